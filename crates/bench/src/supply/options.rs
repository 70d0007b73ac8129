//! The options of a supply study, and their defaults.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use model::{Duration, Enforcer, InputError, Limits, LoadKind};
use serde::{Deserialize, Serialize};

use crate::held::Spot;

/// Priority of spinning threads unless asked otherwise.
const PRIORITY: u8 = 80;
/// Rounds unless asked otherwise, and with `--quick`.
const ROUNDS: (u32, u32) = (3, 1);
/// Length of the long stretch unless asked otherwise, and with `--quick`, ns.
const LONG_NS: (i64, i64) = (5_000_000_000, 1_000_000_000);
/// Short stretches of each trial, and with `--quick`.
const STARTS: (u32, u32) = (8, 2);
/// Length of each run of a set, and with `--quick`, ns: some jobs of the background task.
const TRIED_NS: (i64, i64) = (4_000_000_000, 1_200_000_000);
/// The budgets that are measured unless asked otherwise: (budget, period) in ms.
const USUAL: [(u64, u64); 4] = [(30, 100), (10, 50), (3, 10), (1, 10)];
/// Range of the long stretch, ns: limited so that a gaps file has room for every gap of a restless machine.
const LONG_RANGE_NS: (i64, i64) = (100_000_000, 30_000_000_000);
/// Threads that share a budget.
const THREADS: RangeInclusive<i64> = 1..=64;
/// Periods that the long stretch must hold.
const LEAST_PERIODS: i64 = 5;

/// A budget in every period, written `30ms/100ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Cpu time in every period, ns; whole microseconds.
    pub budget_ns: u64,
    /// Period, ns; whole microseconds.
    pub period_ns: u64,
}

impl FromStr for Reservation {
    type Err = String;

    fn from_str(text: &str) -> Result<Reservation, String> {
        let Some((budget, period)) = text.split_once('/') else {
            return Err(format!(
                "`{text}` is not a reservation; write budget/period, such as 30ms/100ms"
            ));
        };
        let time = |part: &str| {
            let time: Duration = part.parse().map_err(|error| format!("{error}"))?;
            if time.ns() == 0 || time.ns() % 1_000 != 0 {
                return Err(format!(
                    "`{part}` is out of range; the kernel accepts whole microseconds, 1us or more"
                ));
            }
            Ok(time.ns().unsigned_abs())
        };
        let reservation = Reservation {
            budget_ns: time(budget)?,
            period_ns: time(period)?,
        };
        if reservation.budget_ns > reservation.period_ns {
            return Err(format!(
                "the budget of `{text}` is larger than its period; write the budget first"
            ));
        }
        if reservation.period_ns > 4_000_000_000 {
            return Err(format!(
                "the period of `{text}` is out of range; it must be 4s or less"
            ));
        }
        Ok(reservation)
    }
}

impl fmt::Display for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [budget, period] = [self.budget_ns, self.period_ns]
            .map(|ns| Duration::from_ns(i64::try_from(ns).unwrap_or(i64::MAX)));
        write!(f, "{budget}/{period}")
    }
}

/// The user's options. `plan.json` of a run has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SupplyOptions {
    /// Enforcers; empty: all.
    pub enforcers: Vec<Enforcer>,
    /// Budgets; empty: the usual ones.
    pub reservations: Vec<Reservation>,
    /// Length of the long stretch; `None`: the study's own.
    pub duration: Option<Duration>,
    /// Rounds; `None`: the study's own.
    pub rounds: Option<i64>,
    /// One round and few starts: shows that everything works, but gives no figures to rely on.
    pub quick: bool,
    /// The cpu to measure on; empty: the highest that may be used.
    pub cpus: Vec<u32>,
    /// Priority of FIFO threads; `None`: 80.
    pub priority: Option<i64>,
    /// Leave out the task sets that are run inside the budgets.
    pub no_try: bool,
    /// Threads that share a budget; `None`: one.
    pub threads: Option<i64>,
    /// Loads beside every trial, one at most; `None` among them stands for none.
    pub loads: Vec<Option<LoadKind>>,
}

/// The options with every default filled in.
pub(super) struct Checked {
    pub enforcers: Vec<Enforcer>,
    pub reservations: Vec<Reservation>,
    pub long_ns: i64,
    pub starts: u32,
    pub rounds: u32,
    pub spot: Spot,
    /// Length of each run of a task set, ns; `None`: none is run.
    pub tried_ns: Option<i64>,
    pub threads: u32,
    /// The load of every trial.
    pub load: Option<LoadKind>,
}

impl SupplyOptions {
    pub(super) fn check(&self) -> Result<Checked, InputError> {
        let of = |(usual, quick): (i64, i64)| if self.quick { quick } else { usual };
        let pair = |(usual, quick): (u32, u32)| of((usual.into(), quick.into()));
        let reservations = match self.reservations.as_slice() {
            [] => usual(),
            some => once(some),
        };
        let rounds = self.rounds.unwrap_or(pair(ROUNDS));
        within("--rounds", "number of rounds", rounds, &Limits::ROUNDS)?;
        let priority = self.priority.unwrap_or(PRIORITY.into());
        within("--priority", "priority", priority, &(1..=99))?;
        let threads = self.threads.unwrap_or(1);
        within("--threads", "number of threads", threads, &THREADS)?;
        if threads > 1 && priority == 1 {
            return Err(InputError::new(
                "--threads",
                "the other threads run at one priority below the measured one",
                "use a --priority of 2 or more",
            ));
        }
        if self.loads.len() > 1 {
            return Err(InputError::new(
                "--load",
                format!("{} loads are named", self.loads.len()),
                "the study runs the same load beside all trials; name one",
            ));
        }
        Ok(Checked {
            threads: u32::try_from(threads).unwrap_or(1),
            load: self.loads.first().copied().flatten(),
            enforcers: match self.enforcers.as_slice() {
                [] => Enforcer::OF_BENCH.to_vec(),
                some => once(some),
            },
            long_ns: self.long_ns(of(LONG_NS), &reservations)?,
            reservations,
            starts: u32::try_from(pair(STARTS)).unwrap_or(STARTS.0),
            rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
            spot: Spot::on(&self.cpus, u8::try_from(priority).unwrap_or(PRIORITY))?,
            tried_ns: (!self.no_try).then(|| of(TRIED_NS)),
        })
    }

    fn long_ns(&self, own: i64, reservations: &[Reservation]) -> Result<i64, InputError> {
        let longest = reservations.iter().map(|r| r.period_ns).max().unwrap_or(0);
        let needed = LEAST_PERIODS.saturating_mul(i64::try_from(longest).unwrap_or(i64::MAX));
        let (least, most) = LONG_RANGE_NS;
        let least = least.max(needed);
        let Some(asked) = self.duration else {
            return Ok(own.max(least));
        };
        if (least..=most).contains(&asked.ns()) {
            return Ok(asked.ns());
        }
        Err(InputError::new(
            "--duration",
            format!("stretches of {asked} are out of range"),
            format!(
                "it must be {} to {}, and at least {LEAST_PERIODS} periods",
                Duration::from_ns(least),
                Duration::from_ns(most)
            ),
        ))
    }
}

fn usual() -> Vec<Reservation> {
    let ms = |(budget, period)| Reservation {
        budget_ns: budget * 1_000_000,
        period_ns: period * 1_000_000,
    };
    USUAL.map(ms).to_vec()
}

/// Each of them once, in the order given.
pub(crate) fn once<T: Copy + PartialEq>(all: &[T]) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for one in all {
        if !kept.contains(one) {
            kept.push(*one);
        }
    }
    kept
}

/// That an option's value is in its range.
pub(crate) fn within(
    option: &str,
    what: &str,
    value: i64,
    range: &RangeInclusive<i64>,
) -> Result<(), InputError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(InputError::new(
        option,
        format!("the {what} is {value}"),
        format!("it must be {} to {}", range.start(), range.end()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reservations_are_read_and_what_is_none_is_explained() {
        let good: Reservation = "0.3ms/1ms".parse().unwrap();
        assert_eq!((good.budget_ns, good.period_ns), (300_000, 1_000_000));
        assert_eq!(good.to_string(), "300us/1ms");
        for (text, said) in [
            ("30ms", "write budget/period"),
            ("30ms/", "not a duration"),
            ("30/100ms", "has no unit"),
            ("0us/1ms", "1us or more"),
            ("1500ns/1ms", "whole microseconds"),
            ("2ms/1ms", "larger than its period"),
            ("1s/5s", "4s or less"),
        ] {
            let error = text.parse::<Reservation>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn a_reservation_that_is_written_is_read_again(budget in 1u64..4_000_000, more in 0u64..4_000_000) {
            let period = (budget + more).min(4_000_000);
            let one = Reservation { budget_ns: budget * 1_000, period_ns: period * 1_000 };
            prop_assert_eq!(one.to_string().parse(), Ok(one));
        }

        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _ = text.parse::<Reservation>();
        }
    }

    #[test]
    fn options_out_of_range_are_refused_and_defaults_fit_long_periods() {
        let refused = |options: SupplyOptions| options.check().err().unwrap().to_string();
        let of = |text: &str| text.parse::<Duration>().unwrap();
        let options = SupplyOptions::default;
        assert!(
            refused(SupplyOptions {
                rounds: Some(0),
                ..options()
            })
            .contains("--rounds")
        );
        assert!(
            refused(SupplyOptions {
                priority: Some(100),
                ..options()
            })
            .contains("1 to 99")
        );
        assert!(
            refused(SupplyOptions {
                cpus: vec![0, 1],
                ..options()
            })
            .contains("name one")
        );
        assert!(
            refused(SupplyOptions {
                loads: vec![Some(LoadKind::Cpu), Some(LoadKind::Disk)],
                ..options()
            })
            .contains("name one")
        );
        for (threads, priority, said) in [(0, 80, "1 to 64"), (2, 1, "--priority of 2")] {
            let error = refused(SupplyOptions {
                threads: Some(threads),
                priority: Some(priority),
                ..options()
            });
            assert!(error.contains(said), "{error}");
        }
        let short = SupplyOptions {
            duration: Some(of("200ms")),
            ..options()
        };
        assert!(refused(short).contains("500ms to 30s"));
        let slow = "1s/4s".parse::<Reservation>().unwrap();
        let checked = SupplyOptions {
            reservations: vec![slow, slow],
            quick: true,
            ..options()
        }
        .check()
        .unwrap();
        assert_eq!((checked.long_ns, checked.rounds), (20_000_000_000, 1));
        assert_eq!(checked.reservations, [slow], "each once");
    }
}
