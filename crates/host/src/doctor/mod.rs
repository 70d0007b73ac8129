//! The doctor's checks: each reads one aspect of the machine and says what it found, whether it is
//! fit for real time, why it matters and what would mend it. Nothing here changes the machine; what
//! runs containers is looked at elsewhere.
//!
//! A check is one file with `check(&Root) -> Check` and one line in `CHECKS`.

mod cell_limits;
mod cgroup_layout;
mod clocksource;
mod cpu_governor;
mod cpu_isolation;
mod hypervisor;
mod idle_states;
mod irq_affinity;
mod preemption;
mod privileges;
mod rootless;
mod rt_budgets;
mod rt_throttling;
mod smt;
mod steal_time;
mod swap;
mod timer_migration;
mod timer_resolution;
mod transparent_huge_pages;

use crate::cpus;
use crate::root::{Root, Unreadable};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Every check, in the order of the answer.
const CHECKS: &[fn(&Root) -> Check] = &[
    preemption::check,
    rt_throttling::check,
    cpu_isolation::check,
    cpu_governor::check,
    idle_states::check,
    smt::check,
    transparent_huge_pages::check,
    clocksource::check,
    timer_resolution::check,
    timer_migration::check,
    hypervisor::check,
    steal_time::check,
    cgroup_layout::check,
    rt_budgets::check,
    privileges::check,
    irq_affinity::check,
    swap::check,
    rootless::check,
    cell_limits::check,
];

/// How an aspect of the machine stands to real-time work.
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
    /// What was found, with units; if the state is unknown, why.
    pub found: String,
    /// Why it matters, in one sentence.
    pub why: Cow<'static, str>,
    /// What would make it better, as a command or kernel parameter where there is one.
    pub mend: Option<String>,
}

impl Check {
    fn with_mend(mut self, mend: impl Into<String>) -> Self {
        self.mend = Some(mend.into());
        self
    }
}

/// What one check asks: the parts of a [`Check`] that do not depend on the machine.
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
            mend: None,
        }
    }

    fn unknown(&self, reason: &Unreadable) -> Check {
        self.answer(State::Unknown, reason.to_string())
    }
}

/// Examines this machine. Takes a little over 100 ms, because steal time is watched that long.
pub fn examine() -> Vec<Check> {
    examine_at(&Root::live())
}

/// [`examine`] of a machine whose files are under another root.
pub fn examine_at(root: &Root) -> Vec<Check> {
    CHECKS.iter().map(|check| check(root)).collect()
}

/// The cpus that real-time work would use: the isolated ones, else the default one.
fn rt_cpus(root: &Root) -> Vec<u32> {
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
        assert_eq!(ids.len(), CHECKS.len());
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
        assert_eq!(checks.len(), CHECKS.len());
        let json = serde_json::to_string(&checks).unwrap();
        let back: Vec<Check> = serde_json::from_str(&json).unwrap();
        assert_eq!(back, checks);
        for check in &checks {
            let text = format!("{}{:?}", check.found, check.mend);
            assert!(!text.contains('!'), "{text}");
        }
    }

    /// Files the checks read.
    const FILES: [&str; 39] = [
        "/proc/sys/kernel/version",
        "/proc/sys/kernel/osrelease",
        "/sys/kernel/realtime",
        "/sys/kernel/debug/sched/preempt",
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
            prop_assert_eq!(examine_at(&tree.root()).len(), CHECKS.len());
        }
    }
}
