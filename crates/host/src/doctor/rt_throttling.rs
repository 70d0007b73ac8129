//! Real-time throttling: how much of a cpu real-time tasks may take before the kernel stops them, and whether it stops them at
//! all: since Linux 6.12 a kernel without real-time groups has the fair server instead.

use super::{Check, Question, State};
use crate::fix::{Fix, Form};
use crate::kernel;
use crate::root::{Root, Unreadable};
use model::grouped;

const QUESTION: Question = Question {
    id: "rt-throttling",
    title: "Real-time throttling",
    why: "It stops a runaway real-time task from taking a cpu forever, and it also stops a well-behaved one that needs more than the limit.",
};

pub(super) fn check(root: &Root) -> Check {
    let (runtime, period) = match limit(root) {
        Ok(limit) => limit,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    let fix = "sysctl -w kernel.sched_rt_runtime_us=950000";
    let share = format!("{} us of every {} us", grouped(runtime), grouped(period));
    if kernel::throttles_real_time(root) == Some(false) {
        let holds = match runtime {
            0 => "which may have nothing".to_owned(),
            ..0 => "which may have everything".to_owned(),
            _ => format!("which may have {share}"),
        };
        let found = format!(
            "this kernel has the fair server and does not throttle FIFO or RR threads: kernel.sched_rt_runtime_us limits SCHED_DEADLINE alone, {holds}"
        );
        return match runtime {
            0 => QUESTION.answer(State::Bad, found).with_fix(fix),
            _ => QUESTION.answer(State::Good, found),
        };
    }
    if runtime < 0 {
        return QUESTION
            .answer(
                State::Warning,
                "off: a task that never blocks keeps its cpu",
            )
            .with_fix(fix);
    }
    let found = format!("real-time tasks may use {share} on each cpu");
    if runtime == 0 {
        return QUESTION.answer(State::Bad, found).with_fix(fix);
    }
    // Below a half, ordinary mission loads run into it.
    if i128::from(runtime) * 2 < i128::from(period) {
        return QUESTION.answer(State::Warning, found).with_fix(fix);
    }
    QUESTION.answer(State::Good, found)
}

/// Runtime and period, us.
fn limit(root: &Root) -> Result<(i64, i64), Unreadable> {
    Ok((root.read_number(RUNTIME)?, root.read_number(PERIOD)?))
}

/// A limit that stops well-behaved tasks is raised to the kernel's usual share. None is set where there is none: that would make
/// no task faster. Where it stops nobody and bounds SCHED_DEADLINE alone, only 0 is raised, which refuses that class altogether.
pub(super) fn fix(root: &Root, _: &[u32]) -> Fix {
    let fix = Fix::of(QUESTION.id);
    let stops_some = kernel::throttles_real_time(root) != Some(false);
    let is_low = |runtime: i64, period: i64| match stops_some {
        true => runtime >= 0 && i128::from(runtime) * 2 < i128::from(period),
        false => runtime == 0,
    };
    match limit(root) {
        Ok((runtime, period)) if is_low(runtime, period) => {
            let usual = i128::from(period) * 95 / 100;
            fix.write(root, RUNTIME, Form::Plain, usual.to_string())
        }
        Ok((runtime, _)) if runtime < 0 && stops_some => fix.leave(
            "no limit is set where there is none: it makes no task faster, and stops one that never blocks (sysctl -w kernel.sched_rt_runtime_us=950000)",
        ),
        Ok(_) => fix,
        Err(error) => fix.leave(error.to_string()),
    }
}

const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tree, gzip};

    fn tree(runtime: &str) -> Tree {
        Tree::new().file(RUNTIME, runtime).file(PERIOD, "1000000\n")
    }

    fn state(runtime: &str) -> State {
        check(&tree(runtime).root()).state
    }

    #[test]
    fn a_kernel_with_the_fair_server_alone_stops_nobody() {
        let of = |runtime: &str| {
            let tree = tree(runtime)
                .file("/proc/sys/kernel/osrelease", "6.12.41-rt-amd64\n")
                .bytes("/proc/config.gz", &gzip("CONFIG_HZ=250\n"));
            (check(&tree.root()), fix(&tree.root(), &[]))
        };
        let (usual, _) = of("950000\n");
        assert_eq!(usual.state, State::Good);
        assert!(
            usual
                .found
                .starts_with("this kernel has the fair server and does not throttle FIFO")
        );
        assert!(
            usual.found.ends_with("950,000 us of every 1,000,000 us"),
            "{}",
            usual.found
        );
        assert_eq!(of("-1\n").0.state, State::Good);
        // An administrator's bound on SCHED_DEADLINE is not ours to lift.
        let (bounded, left) = of("400000\n");
        assert_eq!(bounded.state, State::Good);
        assert_eq!(left, Fix::of("rt-throttling"));
        let (none, raised) = of("0\n");
        assert_eq!(none.state, State::Bad);
        assert_eq!(raised.writes[0].set, "950000");
    }

    #[test]
    fn only_a_limit_that_is_too_low_is_changed() {
        let of = |runtime: &str| fix(&tree(runtime).root(), &[]);
        assert_eq!(of("100000\n").writes[0].set, "950000");
        assert_eq!(of("0\n").writes[0].set, "950000");
        assert_eq!(of("950000\n"), Fix::of("rt-throttling"));
        let off = of("-1\n");
        assert!(off.writes.is_empty() && off.left.len() == 1, "{off:?}");
    }

    #[test]
    fn the_usual_limit_is_good_and_extremes_are_not() {
        assert_eq!(state("950000\n"), State::Good);
        assert_eq!(state("-1\n"), State::Warning);
        assert_eq!(state("100000\n"), State::Warning);
        assert_eq!(state("0\n"), State::Bad);
        assert_eq!(state("many\n"), State::Unknown);
    }
}
