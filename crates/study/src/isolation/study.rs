//! Evaluates the raw samples and gaps of a study of isolation.

use std::collections::BTreeMap;

use model::Enforcer;
use record::RecordError;
use record::isolation::{
    Against, Arm, ArmSummary, Attacker, ContestTrial, DrawnSet, ISOLATION_SUMMARY_SCHEMA,
    IsolationRecord, IsolationSummary, Misses, Role, Standing,
};
use record::run::Run;
use record::samples::Samples;

use super::received::received;

/// The probability below which a difference counts as one.
const SIGNIFICANT: f64 = 0.05;
/// Confidence of the bound where nothing was seen.
const CONFIDENCE: f64 = 0.95;

/// Sums up a study of isolation.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn isolation_study(run: &Run) -> Result<IsolationSummary, RecordError> {
    let record: IsolationRecord = run.read()?;
    let manifest = run.manifest()?;
    let mut failures = Vec::new();
    let outcomes = outcomes(run, &record, &mut failures)?;
    let received = received(run, &record, &mut failures)?;
    failures.extend(manifest.failure.clone());
    Ok(IsolationSummary {
        schema: ISOLATION_SUMMARY_SCHEMA,
        run: run.name(),
        overrun: f64::from(record.overrun_permille) / 1_000.0,
        arms: arms(&outcomes),
        standings: standings(&outcomes),
        received,
        not_measured: manifest.not_measured.clone(),
        unmet: (manifest.requirements.iter())
            .filter(|requirement| !requirement.met)
            .cloned()
            .collect(),
        failures,
    })
}

/// A contest that counts.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    set: u32,
    utilisation_permille: u32,
    load: Option<String>,
    arm: Arm,
    victim: Misses,
    attacker: Option<Misses>,
    steal_ns: Option<u64>,
}

fn outcomes(
    run: &Run,
    record: &IsolationRecord,
    failures: &mut Vec<String>,
) -> Result<Vec<Outcome>, RecordError> {
    let mut all = Vec::new();
    for trial in &record.contests {
        let name = || format!("trial {} ({})", trial.number, trial.arm.name());
        if let Some(failure) = &trial.failure {
            failures.push(format!("{}: {failure}", name()));
            continue;
        }
        let Some(set) = record.sets.iter().find(|set| set.number == trial.set) else {
            failures.push(format!(
                "{}: its set {} is not on record",
                name(),
                trial.set
            ));
            continue;
        };
        match outcome(run, trial, set) {
            Ok(outcome) => all.push(outcome),
            Err(error @ RecordError::Newer { .. }) => return Err(error),
            Err(error) => failures.push(format!("{}: {error}", name())),
        }
    }
    Ok(all)
}

fn outcome(run: &Run, trial: &ContestTrial, set: &DrawnSet) -> Result<Outcome, RecordError> {
    let of = |role: Role| -> Result<Misses, RecordError> {
        let cell = match role {
            Role::Attacker => &set.attacker,
            Role::Victim => &set.victim,
        };
        let mut sum = Misses {
            trials: 1,
            ..Misses::default()
        };
        for task in &cell.tasks {
            let samples = run.task_samples(trial.number, &task.name)?;
            sum = sum.and(misses(&samples, task.period_ns, task.wcet_ns));
        }
        sum.trials_with = u64::from(sum.missed() > 0);
        Ok(sum)
    };
    Ok(Outcome {
        set: set.number,
        utilisation_permille: set.utilisation_permille,
        load: trial.load.as_ref().map(|load| load.name.clone()),
        arm: trial.arm,
        victim: of(Role::Victim)?,
        attacker: match trial.arm.attacker {
            Attacker::Absent => None,
            Attacker::Honest | Attacker::Overruns => Some(of(Role::Attacker)?),
        },
        steal_ns: trial.steal_ns,
    })
}

/// Deadlines of a task: the ends of its periods.
pub(crate) fn misses(samples: &Samples, period_ns: u64, wcet_ns: u64) -> Misses {
    let deadline = i64::try_from(period_ns).unwrap_or(i64::MAX);
    let declared = wcet_ns.saturating_mul(samples.header.count);
    let lateness = || {
        (samples.samples.iter()).map(|sample| sample.response_time_ns().saturating_sub(deadline))
    };
    Misses {
        jobs: samples.header.planned,
        late: lateness().filter(|late| *late > 0).count() as u64,
        // A cell that was killed leaves activations that nothing explains; they were not done in time either.
        skipped: samples.header.skipped + samples.unexplained(),
        worst_lateness_ns: lateness().max(),
        over_declared: u64::from(samples.header.cpu_time_ns > declared),
        jobs_over: samples.header.over_declared,
        ..Misses::default()
    }
}

type Point = (u32, Option<String>);

/// The arms at each utilisation beside each load, in the order of first occurrence.
fn arms(outcomes: &[Outcome]) -> Vec<ArmSummary> {
    let mut points: BTreeMap<Point, Vec<ArmSummary>> = BTreeMap::new();
    for outcome in outcomes {
        let point = (outcome.utilisation_permille, outcome.load.clone());
        let arms = points.entry(point).or_default();
        match arms.iter_mut().find(|arm| arm.arm == outcome.arm) {
            Some(arm) => {
                arm.victim = arm.victim.and(outcome.victim);
                arm.attacker = (arm.attacker.zip(outcome.attacker)).map(|(a, b)| a.and(b));
                arm.steal_ns = (arm.steal_ns.zip(outcome.steal_ns)).map(|(a, b)| a + b);
            }
            None => arms.push(ArmSummary {
                utilisation_permille: outcome.utilisation_permille,
                load: outcome.load.clone(),
                arm: outcome.arm,
                victim: outcome.victim,
                attacker: outcome.attacker,
                steal_ns: outcome.steal_ns,
            }),
        }
    }
    for arms in points.values_mut() {
        arms.sort_by_key(|one| (one.arm.attacker, place(one.arm.enforcer)));
    }
    points.into_values().flatten().collect()
}

/// In the order of the report.
fn place(enforcer: Option<Enforcer>) -> usize {
    let known = Enforcer::ALL.iter().map(|each| Some(*each));
    (std::iter::once(None).chain(known))
        .position(|each| each == enforcer)
        .unwrap_or(0)
}

fn standings(outcomes: &[Outcome]) -> Vec<Standing> {
    let mut all: Vec<Standing> = Vec::new();
    let overruns =
        || (outcomes.iter()).filter(|outcome| outcome.arm.attacker == Attacker::Overruns);
    let mut kinds: Vec<(Option<Enforcer>, Option<String>)> = overruns()
        .map(|outcome| (outcome.arm.enforcer, outcome.load.clone()))
        .collect();
    kinds.sort_by(|a, b| (&a.1, place(a.0)).cmp(&(&b.1, place(b.0))));
    kinds.dedup();
    for (enforcer, load) in kinds {
        let of_kind: Vec<&Outcome> = overruns()
            .filter(|outcome| outcome.arm.enforcer == enforcer && outcome.load == load)
            .collect();
        let alone = |with: &Outcome| {
            (outcomes.iter()).find(|outcome| {
                outcome.arm == Arm::NOISE && outcome.set == with.set && outcome.load == load
            })
        };
        // Only sets that have both: the rest cannot be compared.
        let pairs: Vec<(Misses, Misses)> = (of_kind.iter())
            .filter_map(|with| Some((with.victim, alone(with)?.victim)))
            .collect();
        let mut utilisations: Vec<u32> = of_kind
            .iter()
            .map(|outcome| outcome.utilisation_permille)
            .collect();
        utilisations.sort_unstable();
        utilisations.dedup();
        let count = |more: fn(u64, u64) -> bool| {
            let more = pairs
                .iter()
                .filter(|(with, alone)| more(with.missed(), alone.missed()));
            more.count() as u64
        };
        let signs = (count(|a, b| a > b), count(|a, b| a < b));
        let total = |pick: fn(&(Misses, Misses)) -> Misses| {
            pairs.iter().map(pick).fold(Misses::default(), Misses::and)
        };
        let victim = total(|pair| pair.0);
        all.push(Standing {
            enforcer,
            load,
            utilisations_permille: utilisations,
            against: against(&victim, signs),
            victim,
            alone: total(|pair| pair.1),
            pairs: signs,
        });
    }
    all
}

/// Compares the misses of pairs of trials with those of the victim alone, by the sign test over the pairs, because the jobs of one trial
/// depend on each other.
fn against(victim: &Misses, (more, fewer): (u64, u64)) -> Against {
    if victim.trials == 0 {
        return Against::TooFew;
    }
    if victim.missed() == 0 {
        return Against::NoMiss {
            at_most: stats::share_at_most(victim.trials, CONFIDENCE),
        };
    }
    let probability = stats::sign_test(more, fewer);
    if probability < SIGNIFICANT {
        Against::Beyond { probability }
    } else if stats::sign_test(victim.trials, 0) >= SIGNIFICANT {
        Against::TooFew
    } else {
        Against::WithinNoise { probability }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::samples::{Header, Sample};

    fn outcome(set: u32, arm: Arm, missed: u64) -> Outcome {
        Outcome {
            set,
            utilisation_permille: 600,
            load: None,
            arm,
            victim: Misses {
                jobs: 100,
                late: missed,
                trials: 1,
                trials_with: u64::from(missed > 0),
                ..Misses::default()
            },
            attacker: None,
            steal_ns: Some(1),
        }
    }

    fn overruns(enforcer: Option<Enforcer>) -> Arm {
        Arm {
            attacker: Attacker::Overruns,
            enforcer,
        }
    }

    #[test]
    fn every_deadline_that_was_not_met_is_counted_once() {
        let sample = |index: u32, response: i64, skipped: u32| Sample {
            index,
            skipped,
            release_ns: 1_000,
            start_ns: 1_000,
            end_ns: 1_000 + response,
        };
        let samples = Samples {
            header: Header {
                planned: 6,
                count: 3,
                skipped: 2,
                cpu_time_ns: 31,
                complete: 1,
                ..Header::new()
            },
            samples: vec![sample(0, 100, 0), sample(1, 101, 0), sample(4, 350, 2)],
            counts: Vec::new(),
        };
        let found = misses(&samples, 100, 10);
        assert_eq!(
            (found.jobs, found.late, found.worst_lateness_ns),
            (6, 2, Some(250))
        );
        assert_eq!(found.over_declared, 1, "31 of 3 times 10");
        assert_eq!(found.skipped, 2 + samples.unexplained());
    }

    #[test]
    fn an_enforcer_is_held_against_the_same_sets_alone() {
        let mut outcomes = Vec::new();
        for set in 0..10 {
            outcomes.push(outcome(set, Arm::NOISE, u64::from(set == 3)));
            outcomes.push(outcome(set, overruns(None), 7));
            outcomes.push(outcome(set, overruns(Some(Enforcer::RtCgroup)), 0));
            outcomes.push(outcome(
                set,
                overruns(Some(Enforcer::Deadline)),
                u64::from(set == 4),
            ));
        }
        // Nothing to compare it with.
        outcomes.push(outcome(77, overruns(None), 1));
        let all = standings(&outcomes);
        let [none, groups, deadline] = all.as_slice() else {
            panic!("{all:?}");
        };
        assert!(matches!(none.against, Against::Beyond { probability } if probability < 0.002));
        assert_eq!(
            (none.pairs, none.victim.late, none.alone.late),
            ((10, 0), 70, 1)
        );
        assert!(matches!(groups.against, Against::NoMiss { at_most } if at_most < 0.26));
        assert_eq!(deadline.pairs, (1, 1));
        assert!(matches!(deadline.against, Against::WithinNoise { .. }));
        let two: Vec<Outcome> = outcomes[..8].to_vec();
        assert_eq!(standings(&two)[0].against, Against::TooFew);
        let arms = arms(&outcomes);
        assert_eq!(arms.len(), 4);
        assert_eq!(arms[0].arm, Arm::NOISE);
        assert_eq!((arms[1].victim.trials, arms[1].victim.missed()), (11, 71));
    }
}
