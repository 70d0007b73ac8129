//! The options of an isolation study, and their defaults.

use model::{Duration, Enforcer, InputError, Limits, LoadKind};
use serde::{Deserialize, Serialize};

use super::draw::TASKS;
use super::setting::Part;
use crate::held::Spot;
use crate::supply::{Reservation, once, within};

/// Rounds unless asked otherwise, and with `--quick`.
const ROUNDS: (i64, i64) = (30, 1);
/// Utilisations unless asked otherwise, in thousandths.
const UTILISATIONS: [u32; 4] = [400, 500, 600, 800];
/// With `--quick`.
const QUICK_UTILISATIONS: [u32; 1] = [600];
/// Length of a contest unless asked otherwise, and with `--quick`, ns.
const CONTEST_NS: (i64, i64) = (3_000_000_000, 1_500_000_000);
/// Range of it, ns: two periods of the slowest task at the least.
const CONTEST_RANGE_NS: (i64, i64) = (1_000_000_000, 3_600_000_000_000);
/// How long cells spin for received budgets, and with `--quick`, ns.
const RECEIVED_NS: (i64, i64) = (10_000_000_000, 2_000_000_000);
/// Trials of received budgets with each enforcer, and with `--quick`.
const RECEIVED_TRIALS: (u32, u32) = (3, 1);
/// Budgets in ms of every 100 ms, one cell for each, unless asked otherwise.
const BUDGETS_MS: [u64; 4] = [10, 15, 20, 25];
const PRIORITY: u8 = 80;
const OVERRUN: f64 = 1.8;
const SEED: u64 = 1;

/// The user's options. `plan.json` of a run has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IsolationOptions {
    /// Parts of the study; empty: all.
    pub parts: Vec<Part>,
    /// Enforcers; empty: all.
    pub enforcers: Vec<Enforcer>,
    /// Declared utilisations of both cells together; empty: the study's own.
    pub utilisations: Vec<f64>,
    /// Length of an overrunning attacker's jobs, as a multiple of the declared wcet; `None`: 1.8.
    pub overrun: Option<f64>,
    /// Seed of the task sets; `None`: 1.
    pub seed: Option<u64>,
    /// Loads, one after the other; `None` in it: idle. Empty: idle alone.
    pub loads: Vec<Option<LoadKind>>,
    /// Budgets of the cells that spin side by side; empty: the study's own.
    pub reservations: Vec<Reservation>,
    /// Length of each contest; `None`: the study's own.
    pub duration: Option<Duration>,
    /// Sets for each utilisation; `None`: the study's own.
    pub rounds: Option<i64>,
    /// One round and one utilisation: shows that everything works, but gives no figures to rely on.
    pub quick: bool,
    /// The cpu to measure on; empty: the highest that may be used.
    pub cpus: Vec<u32>,
    /// Priority of the attacker's most urgent task; `None`: 80.
    pub priority: Option<i64>,
}

/// The options with every default filled in.
#[derive(Debug)]
pub(super) struct Checked {
    pub parts: Vec<Part>,
    pub enforcers: Vec<Enforcer>,
    pub utilisations_permille: Vec<u32>,
    pub overrun_permille: u32,
    pub seed: u64,
    pub loads: Vec<Option<LoadKind>>,
    pub reservations: Vec<Reservation>,
    pub contest_ns: i64,
    pub received_ns: i64,
    pub received_trials: u32,
    pub rounds: u32,
    pub spot: Spot,
}

impl IsolationOptions {
    pub(super) fn check(&self) -> Result<Checked, InputError> {
        let of = |(usual, quick): (i64, i64)| if self.quick { quick } else { usual };
        let rounds = self.rounds.unwrap_or(of(ROUNDS));
        within("--rounds", "number of rounds", rounds, &Limits::ROUNDS)?;
        let priority = self.priority.unwrap_or(PRIORITY.into());
        // Below the attacker's tasks there must be room for the victim's.
        let least = 2 * TASKS as i64;
        within("--priority", "priority", priority, &(least..=99))?;
        let received_ns = of(RECEIVED_NS);
        let reservations = self.reservations(received_ns)?;
        Ok(Checked {
            parts: match self.parts.as_slice() {
                [] => Part::ALL.to_vec(),
                some => some.to_vec(),
            },
            enforcers: self.enforcers()?,
            utilisations_permille: self.utilisations_permille()?,
            overrun_permille: self.overrun_permille()?,
            seed: self.seed.unwrap_or(SEED),
            loads: match self.loads.as_slice() {
                [] => vec![None],
                some => once(some),
            },
            reservations,
            contest_ns: self.contest_ns(of(CONTEST_NS))?,
            received_ns,
            received_trials: if self.quick {
                RECEIVED_TRIALS.1
            } else {
                RECEIVED_TRIALS.0
            },
            rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
            spot: Spot::on(&self.cpus, u8::try_from(priority).unwrap_or(PRIORITY))?,
        })
    }

    fn enforcers(&self) -> Result<Vec<Enforcer>, InputError> {
        let known = Enforcer::OF_BENCH;
        let names: Vec<&str> = known.iter().map(|enforcer| enforcer.name()).collect();
        match self.enforcers.iter().find(|one| !known.contains(one)) {
            Some(other) => Err(InputError::new(
                "--enforcer",
                format!(
                    "isolation cannot be measured under `{}`{}",
                    other.name(),
                    match other.is_out_of_band() {
                        true =>
                            ", which holds threads out of band, and sets of tasks are not run there",
                        false => "",
                    }
                ),
                format!("choose from {}", names.join(", ")),
            )),
            None if self.enforcers.is_empty() => Ok(known.to_vec()),
            None => Ok(once(&self.enforcers)),
        }
    }

    fn utilisations_permille(&self) -> Result<Vec<u32>, InputError> {
        let each = |value: &f64| {
            // Each task has at least a hundredth, and each cell half of the whole.
            if (0.1..=1.0).contains(value) {
                return Ok((value * 1_000.0).round() as u32);
            }
            Err(InputError::new(
                "--utilisation",
                format!("a utilisation of {value} is out of range"),
                "it must be 0.1 to 1: both cells together, on one cpu",
            ))
        };
        Ok(match self.utilisations.as_slice() {
            [] if self.quick => QUICK_UTILISATIONS.to_vec(),
            [] => UTILISATIONS.to_vec(),
            some => once(&some.iter().map(each).collect::<Result<Vec<_>, _>>()?),
        })
    }

    fn overrun_permille(&self) -> Result<u32, InputError> {
        let overrun = self.overrun.unwrap_or(OVERRUN);
        if overrun > 1.0 && overrun <= 100.0 {
            return Ok((overrun * 1_000.0).round() as u32);
        }
        Err(InputError::new(
            "--overrun",
            format!("an attacker of {overrun} times what it declared is out of range"),
            "it must be above 1, up to 100",
        ))
    }

    fn contest_ns(&self, own: i64) -> Result<i64, InputError> {
        let Some(asked) = self.duration else {
            return Ok(own);
        };
        let (least, most) = CONTEST_RANGE_NS;
        if (least..=most).contains(&asked.ns()) {
            return Ok(asked.ns());
        }
        Err(InputError::new(
            "--duration",
            format!("contests of {asked} are out of range"),
            "it must be 1s to 1h: the slowest task has a period of 1s",
        ))
    }

    fn reservations(&self, received_ns: i64) -> Result<Vec<Reservation>, InputError> {
        if self.reservations.is_empty() {
            let ms = |budget: u64| Reservation {
                budget_ns: budget * 1_000_000,
                period_ns: 100_000_000,
            };
            return Ok(BUDGETS_MS.map(ms).to_vec());
        }
        let sum: f64 = (self.reservations.iter())
            .map(|one| one.budget_ns as f64 / one.period_ns as f64)
            .sum();
        let longest = self.reservations.iter().map(|one| one.period_ns).max();
        let wrong = if sum > 0.9 {
            format!("these budgets add up to {sum:.2} of a cpu")
        } else if longest.unwrap_or(0) > received_ns.unsigned_abs() / 10 {
            "a period is too long".to_owned()
        } else if self.reservations.len() > 16 {
            format!("{} budgets are too many", self.reservations.len())
        } else {
            return Ok(self.reservations.clone());
        };
        Err(InputError::new(
            "--reservation",
            wrong,
            format!(
                "all cells spin side by side on one cpu: at most 16 cells, 0.9 of the cpu in all, and periods of {}",
                Duration::from_ns(received_ns / 10)
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_study() {
        let checked = IsolationOptions::default().check().unwrap();
        assert_eq!((checked.rounds, checked.overrun_permille), (30, 1_800));
        assert_eq!(checked.utilisations_permille, UTILISATIONS);
        assert_eq!(checked.loads, [None]);
        let share: u64 = checked.reservations.iter().map(|one| one.budget_ns).sum();
        assert_eq!(share, 70_000_000);
    }

    #[test]
    fn what_is_out_of_range_is_refused_with_the_range() {
        let refused = |options: IsolationOptions| options.check().unwrap_err().to_string();
        let options = IsolationOptions::default;
        let duration = |text: &str| Some(text.parse().unwrap());
        for (options, said) in [
            (
                IsolationOptions {
                    rounds: Some(0),
                    ..options()
                },
                "--rounds",
            ),
            (
                IsolationOptions {
                    priority: Some(5),
                    ..options()
                },
                "6 to 99",
            ),
            (
                IsolationOptions {
                    cpus: vec![0, 1],
                    ..options()
                },
                "name one",
            ),
            (
                IsolationOptions {
                    enforcers: vec![Enforcer::EvlTp],
                    ..options()
                },
                "under `evl-tp`, which holds threads out of band, and sets of tasks are not run there; choose from rt-cgroup, deadline",
            ),
            (
                IsolationOptions {
                    utilisations: vec![0.5, 1.2],
                    ..options()
                },
                "0.1 to 1",
            ),
            (
                IsolationOptions {
                    utilisations: vec![f64::NAN],
                    ..options()
                },
                "0.1 to 1",
            ),
            (
                IsolationOptions {
                    overrun: Some(1.0),
                    ..options()
                },
                "above 1",
            ),
            (
                IsolationOptions {
                    duration: duration("200ms"),
                    ..options()
                },
                "1s to 1h",
            ),
            (
                IsolationOptions {
                    reservations: vec!["500ms/1s".parse().unwrap(); 2],
                    ..options()
                },
                "0.9 of the cpu in all",
            ),
            (
                IsolationOptions {
                    reservations: vec!["1ms/4s".parse().unwrap()],
                    ..options()
                },
                "periods of 1s",
            ),
        ] {
            let error = refused(options);
            assert!(error.contains(said), "{said}: {error}");
        }
    }
}
