//! The bounds that a kernel sets on budgets and periods.

use crate::Duration;
use crate::Enforcer;
use crate::taskset::Reservation;

/// The bounds that a kernel sets to budgets and periods, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelBounds {
    /// The shortest period of SCHED_DEADLINE: `kernel.sched_deadline_period_min_us`, by default 100 us.
    pub deadline_period_min_ns: i64,
    /// The longest: `kernel.sched_deadline_period_max_us`, by default 2^22 us, about 4.2 s.
    pub deadline_period_max_ns: i64,
    /// The period in which real-time tasks may take `rt_runtime_ns` of each cpu: `kernel.sched_rt_period_us`, by default 1
    /// s; more than 0.
    pub rt_period_ns: i64,
    /// The runtime in that period: `kernel.sched_rt_runtime_us`, by default 950 ms; `None`: no bound (-1).
    pub rt_runtime_ns: Option<i64>,
}

impl Default for KernelBounds {
    /// The bounds of a kernel with default settings.
    fn default() -> KernelBounds {
        KernelBounds {
            deadline_period_min_ns: 100_000,
            deadline_period_max_ns: (1 << 22) * 1_000,
            rt_period_ns: 1_000_000_000,
            rt_runtime_ns: Some(950_000_000),
        }
    }
}

/// The least runtime of SCHED_DEADLINE: `1 << DL_SCALE` ns (`__checkparam_dl`, kernel/sched/deadline.c).
const DEADLINE_RUNTIME_MIN_NS: i64 = 1024;
/// The same for a server of cgroup v2, whose file is in microseconds.
const HCBS_RUNTIME_MIN_NS: i64 = 2_000;
/// The files of real-time groups are in microseconds.
const RT_CGROUP_STEP_NS: i64 = 1_000;
/// The longest runtime of a real-time group: beyond it a shift would overflow (`max_rt_runtime`, kernel/sched/rt.c).
const RT_CGROUP_RUNTIME_MAX_NS: i64 = (1 << 44) - 1;

/// All quotas of EVL have the period of its core, in whole percents.
const EVL_PERIOD_NS: i64 = 1_000_000_000;
const EVL_STEP_NS: i64 = EVL_PERIOD_NS / 100;

/// A reservation beyond a bound: the key, the fault, and the remedy.
pub(super) type Beyond = (&'static str, String, String);

fn time(ns: i64) -> Duration {
    Duration::from_ns(ns)
}

/// The first fixed bound that this reservation exceeds; `cpus` share its budget evenly.
pub(super) fn fixed(enforcer: Enforcer, reservation: &Reservation, cpus: u32) -> Option<Beyond> {
    let budget_ns = reservation.budget.ns() / i64::from(cpus.max(1));
    match enforcer {
        Enforcer::CpusetOnly | Enforcer::Freezer | Enforcer::EvlTp => None,
        Enforcer::Hcbs if budget_ns < HCBS_RUNTIME_MIN_NS => Some((
            "budget",
            format!(
                "the budget is {} on each cpu, and cpu.rt.max accepts no less than 2us",
                time(budget_ns)
            ),
            "raise it".to_owned(),
        )),
        Enforcer::Hcbs => None,
        Enforcer::Deadline if budget_ns < DEADLINE_RUNTIME_MIN_NS => Some((
            "budget",
            format!(
                "the budget is {} on each cpu, and SCHED_DEADLINE grants no less than 1024ns",
                time(budget_ns)
            ),
            "raise it".to_owned(),
        )),
        Enforcer::Deadline => None,
        Enforcer::RtCgroup if budget_ns < RT_CGROUP_STEP_NS => Some((
            "budget",
            format!(
                "the budget is {} on each cpu, and a real-time group counts in microseconds",
                time(budget_ns)
            ),
            "raise it to at least 1us".to_owned(),
        )),
        Enforcer::RtCgroup if budget_ns > RT_CGROUP_RUNTIME_MAX_NS => Some((
            "budget",
            format!(
                "the budget is {} on each cpu, more than the kernel accepts for a real-time group",
                time(budget_ns)
            ),
            format!(
                "lower it to at most {}",
                time(RT_CGROUP_RUNTIME_MAX_NS / RT_CGROUP_STEP_NS * RT_CGROUP_STEP_NS)
            ),
        )),
        Enforcer::RtCgroup => None,
        Enforcer::EvlQuota if reservation.period.ns() != EVL_PERIOD_NS => Some((
            "period",
            format!(
                "the period is {}, and all quotas of EVL have that of its core, 1s",
                reservation.period
            ),
            "set period = \"1s\"".to_owned(),
        )),
        Enforcer::EvlQuota if budget_ns < EVL_STEP_NS || budget_ns % EVL_STEP_NS != 0 => Some((
            "budget",
            format!(
                "the budget is {} on each cpu, and a quota of EVL is a whole percent of its period",
                time(budget_ns)
            ),
            "make it a multiple of 10ms on each cpu".to_owned(),
        )),
        Enforcer::EvlQuota => None,
    }
}

impl KernelBounds {
    /// The first setting of this kernel that a reservation exceeds; `cpus` share its budget evenly.
    pub(super) fn beyond(
        &self,
        enforcer: Enforcer,
        reservation: &Reservation,
        cpus: u32,
    ) -> Option<Beyond> {
        // The kernel does not see, and does not stop, threads out of band.
        if !enforcer.has_budgets() || enforcer.is_out_of_band() {
            return None;
        }
        // A server of cgroup v2 is one of SCHED_DEADLINE.
        if matches!(enforcer, Enforcer::Deadline | Enforcer::Hcbs)
            && let Some(beyond) = self.deadline_period(reservation.period)
        {
            return Some(beyond);
        }
        let runtime_ns = self.rt_runtime_ns?;
        // Q / (m P) > runtime / period, multiplied out; every factor fits 63 bits, the number of cpus 32.
        let asked = i128::from(reservation.budget.ns()) * i128::from(self.rt_period_ns);
        let granted = i128::from(reservation.period.ns()) * i128::from(runtime_ns);
        let over = match granted.checked_mul(i128::from(cpus.max(1))) {
            Some(granted) => asked > granted,
            None => false,
        };
        over.then(|| {
            (
                "budget",
                format!(
                    "the budget of {} every {} on {} exceeds the {} every {} that this kernel leaves to real-time tasks",
                    reservation.budget,
                    reservation.period,
                    if cpus > 1 {
                        format!("{cpus} cpus")
                    } else {
                        "a cpu".to_owned()
                    },
                    time(runtime_ns),
                    time(self.rt_period_ns),
                ),
                "lower it, or raise kernel.sched_rt_runtime_us".to_owned(),
            )
        })
    }

    /// The fault of a period of SCHED_DEADLINE.
    pub(super) fn deadline_period(&self, period: Duration) -> Option<Beyond> {
        let range = self.deadline_period_min_ns..=self.deadline_period_max_ns;
        (!range.contains(&period.ns())).then(|| {
            (
                "period",
                format!(
                    "the period of {period} is outside the range of SCHED_DEADLINE on this kernel"
                ),
                format!(
                    "it must be {} to {} (kernel.sched_deadline_period_min_us and _max_us)",
                    time(*range.start()),
                    time(*range.end())
                ),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserve(budget: i64, period: i64) -> Reservation {
        Reservation {
            budget: time(budget),
            period: time(period),
            deadline: time(period),
        }
    }

    #[test]
    fn bounds_that_no_setting_moves() {
        let key = |enforcer, budget, cpus| {
            fixed(enforcer, &reserve(budget, 1 << 50), cpus).map(|(key, ..)| key)
        };
        assert_eq!(key(Enforcer::Deadline, 1_024, 1), None);
        assert_eq!(key(Enforcer::Deadline, 1_023, 1), Some("budget"));
        assert_eq!(key(Enforcer::Deadline, 2_047, 2), Some("budget"));
        assert_eq!(key(Enforcer::RtCgroup, 1_000, 1), None);
        assert_eq!(key(Enforcer::RtCgroup, 999, 1), Some("budget"));
        assert_eq!(key(Enforcer::Hcbs, 2_000, 1), None);
        assert_eq!(key(Enforcer::Hcbs, 1_999, 1), Some("budget"));
        assert_eq!(key(Enforcer::Hcbs, 3_999, 2), Some("budget"));
        assert_eq!(key(Enforcer::RtCgroup, 1 << 44, 1), Some("budget"));
        let quota = |budget_ms: i64, period_ms: i64, cpus| {
            let reservation = reserve(budget_ms * 1_000_000, period_ms * 1_000_000);
            fixed(Enforcer::EvlQuota, &reservation, cpus).map(|(key, ..)| key)
        };
        assert_eq!(quota(300, 1_000, 1), None);
        assert_eq!(quota(300, 1_000, 2), None);
        assert_eq!(quota(30, 100, 1), Some("period"));
        assert_eq!(quota(305, 1_000, 1), Some("budget"));
        assert_eq!(quota(10, 1_000, 2), Some("budget"));
        assert_eq!(key(Enforcer::CpusetOnly, 1, 1), None);
    }

    #[test]
    fn bounds_of_settings() {
        let bounds = KernelBounds::default();
        let key = |enforcer, budget, period, cpus| {
            (bounds.beyond(enforcer, &reserve(budget, period), cpus)).map(|(key, ..)| key)
        };
        assert_eq!(key(Enforcer::Deadline, 50_000, 100_000, 1), None);
        assert_eq!(key(Enforcer::Deadline, 50_000, 99_999, 1), Some("period"));
        assert_eq!(key(Enforcer::Deadline, 9, 4_194_304_000, 1), None);
        assert_eq!(key(Enforcer::Deadline, 9, 4_194_304_001, 1), Some("period"));
        assert_eq!(key(Enforcer::Hcbs, 50_000, 99_999, 1), Some("period"));
        assert_eq!(key(Enforcer::Hcbs, 9, 4_194_304_001, 1), Some("period"));
        assert_eq!(key(Enforcer::RtCgroup, 95, 100, 1), None);
        assert_eq!(key(Enforcer::RtCgroup, 96, 100, 1), Some("budget"));
        assert_eq!(key(Enforcer::RtCgroup, 190, 100, 2), None);
        assert_eq!(key(Enforcer::RtCgroup, 191, 100, 2), Some("budget"));
        assert_eq!(key(Enforcer::CpusetOnly, 100, 100, 1), None);
        let unbounded = KernelBounds {
            rt_runtime_ns: None,
            ..bounds
        };
        assert_eq!(
            unbounded.beyond(Enforcer::RtCgroup, &reserve(100, 100), 1),
            None
        );
    }
}
