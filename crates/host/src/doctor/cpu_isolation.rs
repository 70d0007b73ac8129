//! Cpu isolation: are there cpus that ordinary work, the tick and RCU callbacks leave alone?

use super::{Check, Question, State, name_cpus};
use crate::cpus::{self, format_list};
use crate::fix::Fix;
use crate::kernel::{self, BuildOptions};
use crate::root::Root;

const QUESTION: Question = Question {
    id: "cpu-isolation",
    title: "Isolated cpus",
    why: "Ordinary work, timer ticks and RCU callbacks on a cpu delay the real-time tasks there unless the kernel keeps them away.",
};

/// The kernel's isolation of the cpus for real-time work, present and possible.
struct Isolation {
    isolated: Vec<u32>,
    nohz: Vec<u32>,
    nocbs: Vec<u32>,
    /// Whether the kernel can go without tick.
    can_nohz: bool,
    /// Whether it can move RCU callbacks elsewhere; `None` if nothing tells.
    can_nocbs: Option<bool>,
}

impl Isolation {
    fn of(root: &Root) -> Isolation {
        let nohz = cpus::list_file(root, "/sys/devices/system/cpu/nohz_full").ok();
        let options = BuildOptions::read(root).ok();
        let built = |name| options.as_ref().map(|options| options.has(name));
        let can_nohz = nohz.is_some() || built("CONFIG_NO_HZ_FULL") == Some(true);
        Isolation {
            isolated: cpus::isolated_at(root),
            nohz: nohz.unwrap_or_default(),
            nocbs: kernel::without_rcu_callbacks(root),
            can_nohz,
            // NO_HZ_FULL is not built without it.
            can_nocbs: if can_nohz {
                Some(true)
            } else {
                built("CONFIG_RCU_NOCB_CPU")
            },
        }
    }

    /// The parameters that keep everything off these cpus that can be kept off.
    fn parameters(&self, wanted: &[u32]) -> Vec<(&'static str, String)> {
        let list = format_list(wanted);
        let mut all = vec![("isolcpus", format!("managed_irq,domain,{list}"))];
        if self.can_nohz {
            all.push(("nohz_full", list.clone()));
        }
        if self.can_nocbs == Some(true) {
            all.push(("rcu_nocbs", list));
        }
        all
    }

    /// Whether everything is kept off these cpus that can be kept off.
    fn is_whole(&self, wanted: &[u32]) -> bool {
        let has = |have: &[u32]| wanted.iter().all(|cpu| have.contains(cpu));
        has(&self.isolated)
            && (!self.can_nohz || has(&self.nohz))
            && (self.can_nocbs != Some(true) || has(&self.nocbs))
    }
}

pub(super) fn check(root: &Root, wanted: &[u32]) -> Check {
    let online = match cpus::online_at(root) {
        Ok(online) => online,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    let now = Isolation::of(root);
    let show = |cpus: &[u32]| match cpus {
        [] => "none".to_owned(),
        cpus => format_list(cpus),
    };
    let mut found = format!(
        "isolated {}; without tick (nohz_full) {}; without RCU callbacks (rcu_nocbs) {}",
        show(&now.isolated),
        show(&now.nohz),
        show(&now.nocbs)
    );
    if online.len() < 2 {
        found.push_str("; there is only one cpu");
        return QUESTION.answer(State::Warning, found);
    }
    if now.nocbs.is_empty() && kernel::is_preempt_rt(root) == Some(true) {
        // In the threads rcuc/N, of class FIFO with priority 1.
        found.push_str(", which PREEMPT_RT leaves to threads of the lowest real-time priority");
    }
    if !now.can_nohz {
        found.push_str("; this kernel was built without nohz_full");
    }
    if now.can_nocbs == Some(false) {
        found.push_str("; this kernel was built without rcu_nocbs");
    }
    if now.is_whole(wanted) {
        let state = match now.can_nohz {
            true => State::Good,
            false => State::Info,
        };
        return QUESTION.answer(state, found);
    }
    if !leaves_some(&online, wanted) {
        found.push_str("; there is no other cpu for ordinary work");
        return QUESTION.answer(State::Warning, found);
    }
    let parameters = now.parameters(wanted).into_iter();
    let words: Vec<String> = parameters
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    QUESTION.answer(State::Warning, found).with_fix(format!(
        "kernel parameters {} (for {})",
        words.join(" "),
        name_cpus(wanted)
    ))
}

/// Whether ordinary work has a cpu left where these are kept free of it.
fn leaves_some(online: &[u32], wanted: &[u32]) -> bool {
    online.iter().any(|cpu| !wanted.contains(cpu))
}

/// Only a start of the machine changes it; until then `bench` keeps the cpus free that it measures on.
pub(super) fn fix(root: &Root, wanted: &[u32]) -> Fix {
    let fix = Fix::of(QUESTION.id);
    let now = Isolation::of(root);
    let online = cpus::online_at(root).unwrap_or_default();
    if online.len() < 2 || wanted.is_empty() || check(root, wanted).state != State::Warning {
        return fix;
    }
    if !leaves_some(&online, wanted) {
        return fix.leave("no cpu would be left for ordinary work: name fewer with --cpus");
    }
    let fix = (now.parameters(wanted).into_iter())
        .fold(fix, |fix, (name, value)| fix.parameter(name, value));
    fix.leave("only kernel parameters change it, at the next boot: --persist has them")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tree, gzip};

    fn tree(isolated: &str, nohz: &str) -> Tree {
        Tree::new()
            .file("/sys/devices/system/cpu/online", "0-3\n")
            .file("/sys/devices/system/cpu/isolated", isolated)
            .file("/sys/devices/system/cpu/nohz_full", nohz)
    }

    #[test]
    fn fully_isolated_cpus_are_good() {
        let check = check(&tree("2-3\n", "2-3\n").root(), &[2, 3]);
        assert_eq!(check.state, State::Good, "{check:?}");
    }

    #[test]
    fn without_isolation_the_parameters_are_named() {
        let check = check(&tree("\n", "(null)\n").root(), &[3]);
        assert_eq!(check.state, State::Warning);
        assert_eq!(
            check.fix.unwrap(),
            "kernel parameters isolcpus=managed_irq,domain,3 nohz_full=3 rcu_nocbs=3 (for cpu 3)"
        );
    }

    #[test]
    fn a_kernel_without_nohz_full_is_not_told_to_use_it() {
        let tree = Tree::new().file("/sys/devices/system/cpu/online", "0-1\n");
        let check = check(&tree.root(), &[1]);
        assert!(!check.fix.unwrap().contains("nohz_full"));
    }

    #[test]
    fn callbacks_can_be_kept_off_where_the_tick_cannot() {
        let of = |options: &str, line: &str| {
            let tree = Tree::new()
                .file("/sys/devices/system/cpu/online", "0-3\n")
                .file("/sys/devices/system/cpu/isolated", "3\n")
                .file("/proc/cmdline", line)
                .bytes("/proc/config.gz", &gzip(options));
            let made = fix(&tree.root(), &[3]).parameters;
            (check(&tree.root(), &[3]), made)
        };
        let (lacking, made) = of("CONFIG_RCU_NOCB_CPU=y\n", "quiet\n");
        assert_eq!(lacking.state, State::Warning);
        assert_eq!(
            lacking.fix.unwrap(),
            "kernel parameters isolcpus=managed_irq,domain,3 rcu_nocbs=3 (for cpu 3)"
        );
        assert_eq!(made.len(), 2, "{made:?}");
        let (whole, made) = of("CONFIG_RCU_NOCB_CPU=y\n", "rcu_nocbs=3\n");
        assert_eq!(whole.state, State::Info, "{whole:?}");
        assert!(
            whole
                .found
                .ends_with("this kernel was built without nohz_full")
        );
        assert!(made.is_empty());
        // A kernel without them takes no notice of the parameter.
        let (ignored, _) = of("CONFIG_HZ=250\n", "rcu_nocbs=3\n");
        assert!(
            ignored.found.contains("(rcu_nocbs) none"),
            "{}",
            ignored.found
        );
    }

    #[test]
    fn a_cpu_is_left_for_ordinary_work() {
        let tree = tree("\n", "(null)\n");
        let of = |cpus: &[u32]| (check(&tree.root(), cpus), fix(&tree.root(), cpus));
        let (all, nothing) = of(&[0, 1, 2, 3]);
        assert_eq!((all.state, all.fix), (State::Warning, None));
        assert!(nothing.parameters.is_empty(), "{nothing:?}");
        assert!(nothing.left[0].contains("--cpus"), "{nothing:?}");
        assert_eq!(
            of(&[1, 2, 3]).1.parameters[0].value,
            "managed_irq,domain,1-3"
        );
    }

    #[test]
    fn one_cpu_has_nothing_to_isolate() {
        let tree = Tree::new().file("/sys/devices/system/cpu/online", "0\n");
        let check = check(&tree.root(), &[1]);
        assert_eq!((check.state, check.fix), (State::Warning, None));
    }
}
