//! The doctor's checks: each reads one aspect of the machine and gives its finding, whether it is fit for real time, why it
//! matters and a remedy. Nothing here changes the machine: a check returns its possible remedy as a [`Fix`], which
//! [`fix`](crate::fix) applies. Container engines are examined elsewhere.
//!
//! A check is one file with `check(&Root) -> Check`, or `check(&Root, cpus)` where it is about the cpus for real-time work, and one
//! line in `ASPECTS`; with a `fix` beside it where something can be done about it.

mod cell_limits;
mod cgroup_layout;
mod clocksource;
mod cpu_governor;
mod cpu_isolation;
mod deadline_timer;
mod delegated_groups;
mod evl;
mod fair_server;
mod hypervisor;
mod idle_states;
mod irq_affinity;
mod preemption;
mod privileges;
mod rcu_callbacks;
mod rootless;
mod rt_budgets;
mod rt_throttling;
mod smt;
mod steal_time;
mod swap;
mod timer_migration;
mod timer_resolution;
mod transparent_huge_pages;

pub use self::delegated_groups::unlimited_groups;

use crate::cpus;
use crate::fix::Fix;
use crate::root::{Root, Unreadable};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One aspect to examine.
struct Aspect {
    check: Look,
    /// The possible remedy, if any.
    fix: Option<Proposal>,
}

/// The function that makes the fix.
#[derive(Clone, Copy)]
enum Proposal {
    /// It needs no more than the cpus for real-time work.
    Of(fn(&Root, &[u32]) -> Fix),
    /// The same, and the cpus that others have taken for such work.
    Beside(fn(&Root, &[u32], &[u32]) -> Fix),
}

/// The object of a check.
enum Look {
    /// The machine as a whole.
    Machine(fn(&Root) -> Check),
    /// The cpus for real-time work.
    Cpus(fn(&Root, &[u32]) -> Check),
}

impl Aspect {
    const fn machine(check: fn(&Root) -> Check) -> Aspect {
        Aspect {
            check: Look::Machine(check),
            fix: None,
        }
    }

    const fn cpus(check: fn(&Root, &[u32]) -> Check) -> Aspect {
        Aspect {
            check: Look::Cpus(check),
            fix: None,
        }
    }

    const fn fixed_by(self, fix: fn(&Root, &[u32]) -> Fix) -> Aspect {
        Aspect {
            fix: Some(Proposal::Of(fix)),
            ..self
        }
    }

    const fn fixed_beside(self, fix: fn(&Root, &[u32], &[u32]) -> Fix) -> Aspect {
        Aspect {
            fix: Some(Proposal::Beside(fix)),
            ..self
        }
    }

    fn look(&self, root: &Root, cpus: &[u32]) -> Check {
        match self.check {
            Look::Machine(check) => check(root),
            Look::Cpus(check) => check(root, cpus),
        }
    }
}

/// Every check, in the order of the answer.
const ASPECTS: &[Aspect] = &[
    Aspect::machine(preemption::check).fixed_by(preemption::fix),
    Aspect::machine(evl::check),
    Aspect::machine(rt_throttling::check).fixed_by(rt_throttling::fix),
    Aspect::cpus(fair_server::check).fixed_by(fair_server::fix),
    Aspect::machine(deadline_timer::check).fixed_by(deadline_timer::fix),
    Aspect::cpus(cpu_isolation::check).fixed_by(cpu_isolation::fix),
    Aspect::machine(cpu_governor::check).fixed_by(cpu_governor::fix),
    Aspect::cpus(idle_states::check).fixed_by(idle_states::fix),
    Aspect::cpus(smt::check).fixed_by(smt::fix),
    Aspect::machine(transparent_huge_pages::check).fixed_by(transparent_huge_pages::fix),
    Aspect::machine(clocksource::check).fixed_by(clocksource::fix),
    Aspect::machine(timer_resolution::check),
    Aspect::machine(timer_migration::check).fixed_by(timer_migration::fix),
    Aspect::cpus(rcu_callbacks::check).fixed_by(rcu_callbacks::fix),
    Aspect::machine(hypervisor::check),
    Aspect::machine(steal_time::check),
    Aspect::machine(cgroup_layout::check),
    Aspect::machine(delegated_groups::check),
    Aspect::machine(rt_budgets::check),
    Aspect::machine(privileges::check),
    Aspect::cpus(irq_affinity::check).fixed_beside(irq_affinity::fix),
    Aspect::machine(swap::check).fixed_by(swap::fix),
    Aspect::machine(rootless::check),
    Aspect::machine(cell_limits::check),
];

/// How fit an aspect of the machine is for real-time work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Fit for real time.
    Good,
    /// Neither good nor bad; worth knowing.
    Info,
    /// Could not be found out; `found` has the reason.
    Unknown,
    /// Real-time work runs, with longer or rarer but larger delays.
    Warning,
    /// Real-time work is refused or disturbed beyond use.
    Bad,
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            State::Good => "good",
            State::Info => "info",
            State::Unknown => "unknown",
            State::Warning => "warning",
            State::Bad => "bad",
        })
    }
}

/// One finding about the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// A name for programs, in kebab-case; stable between versions.
    pub id: Cow<'static, str>,
    /// A name for people.
    pub title: Cow<'static, str>,
    /// The judgement.
    pub state: State,
    /// The finding, with units; if the state is unknown, why.
    pub found: String,
    /// Why it matters, in one sentence.
    pub why: Cow<'static, str>,
    /// The remedy, as a command or kernel parameter where there is one.
    #[serde(alias = "mend")]
    pub fix: Option<String>,
}

impl Check {
    fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// The question of one check: the parts of a [`Check`] that do not depend on the machine.
struct Question {
    id: &'static str,
    title: &'static str,
    why: &'static str,
}

impl Question {
    fn answer(&self, state: State, found: impl Into<String>) -> Check {
        Check {
            id: Cow::Borrowed(self.id),
            title: Cow::Borrowed(self.title),
            state,
            found: found.into(),
            why: Cow::Borrowed(self.why),
            fix: None,
        }
    }

    fn unknown(&self, reason: &Unreadable) -> Check {
        self.answer(State::Unknown, reason.to_string())
    }
}

/// Examines this machine, for real-time work on the cpus that [`rt_cpus`] names. Takes a little over 100 ms, because steal time is
/// watched that long.
pub fn examine() -> Vec<Check> {
    examine_at(&Root::live())
}

/// [`examine`] of a machine whose files are under another root.
pub fn examine_at(root: &Root) -> Vec<Check> {
    examine_for(root, &rt_cpus(root))
}

/// [`examine_at`] for real-time work on these cpus.
pub fn examine_for(root: &Root, cpus: &[u32]) -> Vec<Check> {
    let looked = ASPECTS.iter().map(|aspect| aspect.look(root, cpus));
    looked.collect()
}

/// The possible remedies for the checks' findings, for real-time work on these cpus, in the order of the checks; nothing is moved
/// to cpus that are `taken` for such work by others. Nothing is changed.
pub fn fixes_for(root: &Root, cpus: &[u32], taken: &[u32]) -> Vec<Fix> {
    let fixes = ASPECTS.iter().filter_map(|aspect| aspect.fix);
    fixes
        .map(|fix| match fix {
            Proposal::Of(fix) => fix(root, cpus),
            Proposal::Beside(fix) => fix(root, cpus, taken),
        })
        .collect()
}

/// The cpus that real-time work would use: the isolated ones, else the default one.
pub fn rt_cpus(root: &Root) -> Vec<u32> {
    match cpus::isolated_at(root) {
        isolated if isolated.is_empty() => vec![cpus::default_rt_cpu_at(root)],
        isolated => isolated,
    }
}

/// "cpu 1" or "cpus 1-3".
fn name_cpus(list: &[u32]) -> String {
    let plural = if list.len() == 1 { "" } else { "s" };
    format!("cpu{plural} {}", cpus::format_list(list))
}

/// The word in brackets of "always [madvise] never".
fn chosen(text: &str) -> Option<&str> {
    text.split_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;
    use proptest::prelude::*;

    #[test]
    fn ids_are_kebab_case_and_unique_and_sentences_end() {
        let checks = examine_at(&Tree::new().root());
        let mut ids: Vec<&str> = checks.iter().map(|check| &*check.id).collect();
        for check in &checks {
            assert!(
                check
                    .id
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'-'),
                "{}",
                check.id
            );
            assert!(check.why.ends_with('.'), "{}: {}", check.id, check.why);
            assert!(!check.found.is_empty(), "{}", check.id);
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ASPECTS.len());
    }

    #[test]
    fn on_a_machine_without_files_nothing_is_called_good_or_bad() {
        for check in examine_at(&Tree::new().root()) {
            assert!(
                matches!(check.state, State::Unknown | State::Info),
                "{check:?}"
            );
            assert!(!check.found.is_empty());
        }
    }

    #[test]
    fn this_machine_can_be_examined() {
        let checks = examine();
        assert_eq!(checks.len(), ASPECTS.len());
        let json = serde_json::to_string(&checks).unwrap();
        let back: Vec<Check> = serde_json::from_str(&json).unwrap();
        assert_eq!(back, checks);
        for check in &checks {
            let text = format!("{}{:?}", check.found, check.fix);
            assert!(!text.contains('!'), "{text}");
        }
    }

    #[test]
    fn a_fix_belongs_to_a_check_and_a_machine_without_files_has_none() {
        let root = Tree::new().root();
        let checks = examine_at(&root);
        for fix in fixes_for(&root, &rt_cpus(&root), &[]) {
            assert!(checks.iter().any(|check| check.id == fix.id), "{fix:?}");
            assert!(
                fix.writes.is_empty() && fix.parameters.is_empty(),
                "{fix:?}"
            );
        }
    }

    /// Files the checks read.
    const FILES: [&str; 46] = [
        "/proc/sys/kernel/version",
        "/proc/sys/kernel/osrelease",
        "/sys/kernel/realtime",
        "/sys/kernel/debug/sched/preempt",
        "/sys/kernel/debug/sched/features",
        "/sys/kernel/debug/sched/fair_server/cpu0/runtime",
        "/sys/kernel/debug/sched/fair_server/cpu0/period",
        "/proc/irq/default_smp_affinity",
        "/proc/interrupts",
        "/proc/cmdline",
        "/proc/config.gz",
        "/proc/sys/kernel/sched_rt_runtime_us",
        "/proc/sys/kernel/sched_rt_period_us",
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/isolated",
        "/sys/devices/system/cpu/nohz_full",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
        "/sys/devices/system/cpu/cpuidle/current_driver",
        "/sys/devices/system/cpu/cpu0/cpuidle/state1/latency",
        "/sys/devices/system/cpu/smt/active",
        "/sys/devices/system/cpu/smt/control",
        "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
        "/proc/timer_list",
        "/proc/sys/kernel/timer_migration",
        "/sys/module/rcutree/parameters/use_softirq",
        "/sys/module/rcutree/parameters/rcu_resched_ns",
        "/proc/cpuinfo",
        "/proc/stat",
        "/proc/self/mountinfo",
        "/proc/self/cgroup",
        "/sys/fs/cgroup/cpu/cpu.rt_runtime_us",
        "/sys/fs/cgroup/cpu/cpu.rt_period_us",
        "/proc/self/status",
        "/proc/self/limits",
        "/proc/self/uid_map",
        "/proc/irq/9/smp_affinity_list",
        "/proc/irq/9/effective_affinity_list",
        "/proc/swaps",
        "/etc/subuid",
        "/etc/passwd",
        "/proc/sys/kernel/keys/maxkeys",
        "/proc/sys/user/max_user_namespaces",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_content_makes_a_check_panic(
            texts in proptest::collection::vec(
                prop_oneof![
                    Just(String::new()),
                    "-?[0-9]{1,22}",
                    "[-0-9,: \\n]{0,20}",
                    "[a-z\\[\\]() =:\\n0-9-]{0,60}",
                    ".{0,40}",
                    Just("32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n".to_owned()),
                    Just("0-1".to_owned()),
                ],
                FILES.len(),
            )
        ) {
            let tree = FILES
                .iter()
                .zip(&texts)
                .fold(Tree::new(), |tree, (file, text)| tree.file(file, text));
            prop_assert_eq!(examine_at(&tree.root()).len(), ASPECTS.len());
            for fix in fixes_for(&tree.root(), &[0, 1], &[2]) {
                prop_assert!(fix.writes.iter().all(|write| !write.set.is_empty()));
            }
        }
    }
}
