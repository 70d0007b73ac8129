//! Real-time group budgets: may this process run FIFO tasks, and how much can cells be given?

use super::{Check, Question, State};
use crate::cgroup::{self, Layout};
use crate::kernel::{BuildOptions, CommandLine};
use crate::root::Root;
use crate::rtgroup;
use model::grouped;

const QUESTION: Question = Question {
    id: "rt-budgets",
    title: "Real-time group budgets",
    why: "With RT_GROUP_SCHED a group without a budget refuses FIFO to everyone in it, root included; without it the kernel holds no group to a budget.",
};

pub(super) fn check(root: &Root) -> Check {
    let cgroups = match cgroup::detect_at(root) {
        Ok(cgroups) => cgroups,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    let top = match rtgroup::detect_at(root) {
        Ok(top) => top,
        Err(reason) => return without(root, &cgroups, &reason.to_string()),
    };
    let (own, free_us, top_budget) = match (
        rtgroup::own_group_at(root, 0),
        rtgroup::free_in(root, &top),
        rtgroup::budget_of(root, &top),
    ) {
        (Ok(own), Ok(free_us), Ok(top_budget)) => (own, free_us, top_budget),
        (Err(error), _, _) | (_, Err(error), _) | (_, _, Err(error)) => {
            return QUESTION.answer(State::Unknown, error.to_string());
        }
    };
    let whose = if own.path == top {
        "this process is in the root group".to_owned()
    } else {
        format!("own group {} has {}", own.path.display(), own.budget)
    };
    let found = format!(
        "{whose}; the root group has {top_budget} on each cpu, {} us of every 1,000,000 us free for new groups",
        grouped(free_us)
    );
    if !own.has_budget() {
        return QUESTION.answer(State::Bad, found).with_fix(format!(
            "echo $$ > {}/cgroup.procs (moves the shell to the root group), or give {} a budget",
            top.display(),
            own.path.display()
        ));
    }
    // Two ticks of the slowest usual kernel (100 Hz); nothing useful fits into less.
    if free_us < 20_000 {
        return QUESTION.answer(State::Warning, found).with_fix(format!(
            "lower cpu.rt_runtime_us of groups that do not need it: grep . {}/*/cpu.rt_runtime_us",
            top.display()
        ));
    }
    QUESTION.answer(State::Good, found)
}

/// No such budgets: harmless, unless the kernel knows them and v2 hides the switch.
fn without(root: &Root, cgroups: &cgroup::Cgroups, reason: &str) -> Check {
    let built = BuildOptions::read(root).ok();
    let has_option = built
        .as_ref()
        .is_some_and(|options| options.has("CONFIG_RT_GROUP_SCHED"));
    let by_default = !built
        .as_ref()
        .is_some_and(|options| options.has("CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED"));
    let on = match CommandLine::read(root)
        .ok()
        .as_ref()
        .and_then(|line| line.get("rt_group_sched"))
    {
        Some(value) => value != "0",
        None => by_default,
    };
    if has_option && on && cgroups.layout() == Layout::V2 {
        return QUESTION
            .answer(
                State::Bad,
                "RT_GROUP_SCHED is on under cgroup v2, which has no file for budgets: FIFO is refused outside of the root group once the cpu controller is enabled",
            )
            .with_fix("kernel parameter rt_group_sched=0 (Linux 6.15 or newer), or a kernel without RT_GROUP_SCHED");
    }
    QUESTION.answer(
        State::Info,
        format!("no group budget is enforced for FIFO tasks; {reason}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tree, gzip};

    fn tree(own: &str, held: &str) -> Tree {
        let cpu = "/sys/fs/cgroup/cpu";
        Tree::new()
            .file(
                "/proc/self/mountinfo",
                "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
            )
            .file("/proc/self/cgroup", &format!("1:cpu:{own}\n"))
            .file(&format!("{cpu}/cpu.rt_runtime_us"), "950000\n")
            .file(&format!("{cpu}/cpu.rt_period_us"), "1000000\n")
            .file(&format!("{cpu}/user/cpu.rt_runtime_us"), held)
            .file(&format!("{cpu}/user/cpu.rt_period_us"), "1000000\n")
    }

    #[test]
    fn a_budget_that_is_free_is_good() {
        let check = check(&tree("/", "50000\n").root());
        assert_eq!(check.state, State::Good);
        assert!(
            check
                .found
                .contains("900,000 us of every 1,000,000 us free")
        );
    }

    #[test]
    fn an_own_group_without_budget_is_bad() {
        let check = check(&tree("/user", "0\n").root());
        assert_eq!(check.state, State::Bad);
        assert!(
            check
                .fix
                .unwrap()
                .contains("/sys/fs/cgroup/cpu/cgroup.procs")
        );
    }

    #[test]
    fn a_root_group_that_is_given_away_is_a_warning() {
        assert_eq!(check(&tree("/", "940000\n").root()).state, State::Warning);
    }

    #[test]
    fn on_v2_it_depends_on_the_kernel() {
        let v2 = || {
            Tree::new().file(
                "/proc/self/mountinfo",
                "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            )
        };
        assert_eq!(check(&v2().root()).state, State::Info);
        let on = v2().bytes("/proc/config.gz", &gzip("CONFIG_RT_GROUP_SCHED=y\n"));
        assert_eq!(check(&on.root()).state, State::Bad);
        let off = v2()
            .bytes("/proc/config.gz", &gzip("CONFIG_RT_GROUP_SCHED=y\n"))
            .file("/proc/cmdline", "rt_group_sched=0\n");
        assert_eq!(check(&off.root()).state, State::Info);
    }
}
