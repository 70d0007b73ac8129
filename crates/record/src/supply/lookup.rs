//! Finding a measurement of supply that is valid for a budget on this machine.

use std::path::Path;

use model::Enforcer;

use super::{MeasuredSupply, SupplySummary, WorstReaction};
use crate::ground::{Budget, Machine};
use crate::run::Run;
use crate::{Kind, RecordError};

/// Why no measurement is valid for a budget on this machine; a clause that can follow "not measured:".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// This budget has not been measured under this enforcer.
    #[error(
        "no measurement of {} with {} us every {} us{}",
        held.enforcer.name(), held.budget_ns / 1_000, held.period_ns / 1_000, made(held)
    )]
    NotMeasured {
        /// The requested budget.
        held: Budget,
    },
    /// It was measured on a machine that differs.
    #[error("{0}")]
    Elsewhere(String),
}

/// How to make a measurement of it, as a clause; empty if none can be made.
fn made(held: &Budget) -> String {
    if !Enforcer::OF_SUPPLY.contains(&held.enforcer) {
        return String::new();
    }
    format!(
        "; make one with `timecell bench supply --enforcer {} --reservation {}us/{}us`",
        held.enforcer.name(),
        held.budget_ns / 1_000,
        held.period_ns / 1_000
    )
}

/// The supplies that a run measured.
///
/// # Errors
/// When `run` is not a supply study, or its `summary.json` cannot be read; `timecell report RUN` recreates that.
pub fn load(run: &Path) -> Result<Vec<MeasuredSupply>, RecordError> {
    let run = Run::open(run)?;
    if run.kind()? != Kind::Supply {
        return Err(RecordError::malformed(
            run.dir(),
            "this run is not a supply study; give one that `timecell bench supply` made",
        ));
    }
    Ok(run.read::<SupplySummary>()?.supplies)
}

/// The measurement that is valid for a budget on the machine `here`: of the same enforcer, budget and period, on a machine of the
/// same kernel, tick, cpus and host ([`Machine::difference`]); of several, the last. A larger budget than a measured one is not
/// covered: the tick divides it differently.
///
/// # Errors
/// Why there is none, or how the machine of the last otherwise valid one differs.
pub fn find<'a>(
    measured: &'a [MeasuredSupply],
    held: &Budget,
    here: &Machine,
) -> Result<&'a MeasuredSupply, Unfit> {
    let mut unfit = Unfit::NotMeasured { held: *held };
    for supply in measured.iter().rev().filter(|supply| supply.held == *held) {
        match supply.machine.difference(here, held.enforcer) {
            None => return Ok(supply),
            Some(difference) => {
                if matches!(unfit, Unfit::NotMeasured { .. }) {
                    unfit = Unfit::Elsewhere(difference);
                }
            }
        }
    }
    Err(unfit)
}

impl WorstReaction {
    /// Of all budgets that were measured on machines like this one; `None`: none was.
    pub fn on<'a>(
        here: &Machine,
        measured: impl Iterator<Item = &'a MeasuredSupply>,
    ) -> Option<WorstReaction> {
        let ours = measured.filter(|supply| {
            let enforcer = supply.held.enforcer;
            supply.machine.difference(here, enforcer).is_none()
        });
        WorstReaction::of(ours.filter_map(|supply| supply.reaction.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Between, Kept, Promise, SupplyPoint};
    use super::*;
    use crate::ground::Share;
    use crate::ground::machine::tests::machine;

    fn held(budget_ns: u64) -> Budget {
        Budget {
            enforcer: Enforcer::Deadline,
            budget_ns,
            period_ns: 10_000_000,
        }
    }

    fn supply(budget_ns: u64, machine: Machine, delay_ns: u64) -> MeasuredSupply {
        let share = Share {
            cpu_ns: 3,
            of_ns: 10,
        };
        let one = Between::of(vec![delay_ns]).unwrap();
        MeasuredSupply {
            held: held(budget_ns),
            machine,
            rounds: 1,
            starts: 9,
            points: vec![SupplyPoint {
                supplied: 3,
                per: 10,
                delay_ns,
            }],
            measured_to_ns: 1_000_000_000,
            delay_ns: one,
            longest_gap_ns: one,
            billed: Some(share),
            received: share,
            periods: None,
            textbook: Promise {
                supplied: 3,
                per: 10,
                delay_ns: 14,
                kept: Kept::Held,
            },
            by_tick: None,
            by_reaction: None,
            reaction: None,
            cautious: None,
            least: vec![(1, 0)],
        }
    }

    #[test]
    fn what_can_be_measured_is_told_how() {
        let of = |enforcer| {
            let held = Budget {
                enforcer,
                ..held(3_000_000)
            };
            find(&[], &held, &machine()).unwrap_err().to_string()
        };
        assert_eq!(
            of(Enforcer::Freezer),
            "no measurement of freezer with 3000 us every 10000 us; make one with `timecell \
             bench supply --enforcer freezer --reservation 3000us/10000us`"
        );
        assert_eq!(
            of(Enforcer::CpusetOnly),
            "no measurement of cpuset-only with 3000 us every 10000 us"
        );
        assert_eq!(
            of(Enforcer::Hcbs),
            "no measurement of hcbs with 3000 us every 10000 us; make one with `timecell bench \
             supply --enforcer hcbs --reservation 3000us/10000us`"
        );
    }

    #[test]
    fn only_the_same_budget_on_the_same_machine_will_do_and_the_last_of_them() {
        let other = Machine {
            tick_hz: Some(100),
            ..machine()
        };
        let all = [
            supply(3_000_000, machine(), 20),
            supply(3_000_000, machine(), 21),
            supply(3_000_000, other.clone(), 22),
            supply(5_000_000, other, 23),
        ];
        let found = find(&all, &held(3_000_000), &machine()).unwrap();
        assert_eq!(found.points[0].delay_ns, 21);
        let unfit = find(&all, &held(5_000_000), &machine()).unwrap_err();
        assert!(
            unfit.to_string().contains("tick 100 Hz, here 250 Hz"),
            "{unfit}"
        );
        let unfit = find(&all, &held(4_000_000), &machine()).unwrap_err();
        let said = unfit.to_string();
        assert!(
            said.contains("--enforcer deadline --reservation 4000us/10000us"),
            "{said}"
        );
    }

    #[test]
    fn another_kind_of_run_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("run.json"), "{}").unwrap();
        std::fs::write(dir.path().join("series.json"), "{}").unwrap();
        let error = load(dir.path()).unwrap_err().to_string();
        assert!(error.contains("not a supply study"), "{error}");
    }
}
