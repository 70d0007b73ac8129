//! The sentences of a study of isolation.

use model::Enforcer;
use record::isolation::{
    Against, Arm, IsolationSummary, Misses, ReceivedSummary, ReceivedVerdict, Standing,
};

use super::rows::{lateness, missed};
use study::reservation;
use text::units::percent;
use text::words::plural;

/// The sentences, without full stops, the most important first.
pub(super) fn findings(summary: &IsolationSummary) -> Vec<String> {
    let mut all = Vec::new();
    all.extend(summary.standings.iter().map(stands));
    all.extend(received(summary));
    all.extend(noise(summary));
    all
}

/// The machine's own noise.
fn noise(summary: &IsolationSummary) -> Option<String> {
    let alone = (summary.arms.iter())
        .filter(|arm| arm.arm == Arm::NOISE)
        .map(|arm| arm.victim)
        .fold(Misses::default(), Misses::and);
    if alone.trials == 0 {
        return None;
    }
    let latest = alone.worst_lateness_ns.map_or(String::new(), |ns| {
        format!(", the latest job {}", lateness(ns))
    });
    Some(format!(
        "the machine's own noise: with the attacker absent and nothing enforced, the victim missed {} deadlines in {}{latest}",
        missed(&alone),
        plural(alone.trials, "trial")
    ))
}

/// Misses that may be the victim's own.
fn own(standing: &Standing) -> String {
    match standing.victim.over_declared {
        0 => String::new(),
        tasks => format!(
            "; {} of it took more cpu time on average than declared, in one trial or another",
            plural(tasks, "task")
        ),
    }
}

fn stands(standing: &Standing) -> String {
    let name = standing.enforcer.map_or("no enforcer", Enforcer::name);
    let beside = standing
        .load
        .as_ref()
        .map_or(String::new(), |load| format!(" beside the load {load}"));
    let of = missed(&standing.victim);
    match standing.against {
        Against::NoMiss { at_most } => format!(
            "{name}{beside}: the victim missed none of {} deadlines; with 95 % confidence, at most {} of trials have a miss",
            standing.victim.jobs,
            percent(at_most)
        ),
        Against::WithinNoise { .. } => format!(
            "{name}{beside}: the victim missed {of} deadlines, not more than alone as far as {} can tell{}",
            plural(standing.victim.trials, "trial"),
            own(standing)
        ),
        Against::Beyond { .. } => format!(
            "{name}{beside}: the victim missed {of} deadlines, {} alone: more than the host causes{}",
            standing.alone.missed(),
            own(standing)
        ),
        Against::TooFew => format!(
            "{name}{beside}: the victim missed {of} deadlines; {} cannot distinguish that from the host's noise",
            plural(standing.victim.trials, "trial")
        ),
    }
}

fn received(summary: &IsolationSummary) -> Vec<String> {
    let mut all = Vec::new();
    for &enforcer in Enforcer::OF_BENCH {
        let of: Vec<_> = (summary.received.iter())
            .filter(|one| one.held.enforcer == enforcer)
            .collect();
        if of.is_empty() {
            continue;
        }
        let short = |one: &&&ReceivedSummary| one.verdict != ReceivedVerdict::TooShort;
        let told = of.iter().filter(short).count();
        let outside: Vec<String> = (of.iter())
            .filter(|one| {
                !matches!(
                    one.verdict,
                    ReceivedVerdict::Within | ReceivedVerdict::TooShort
                )
            })
            .map(|one| format!("{} ({})", reservation(&one.held), percent(one.received)))
            .collect();
        let name = enforcer.name();
        if of
            .iter()
            .all(|one| one.verdict == ReceivedVerdict::TooShort)
        {
            all.push(format!(
                "{name}: too few periods to tell what cells received within 2 %"
            ));
            continue;
        }
        all.push(match outside.as_slice() {
            [] => format!(
                "{name}: each of {} received what it was granted within 2 %",
                plural(told as u64, "cell")
            ),
            outside => format!(
                "{name}: not within 2 % of what was granted: {}",
                outside.join(", ")
            ),
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::isolation::{ArmSummary, ISOLATION_SUMMARY_SCHEMA};

    #[test]
    fn a_verdict_for_each_enforcer_is_told_first_and_noise_last() {
        let misses = |late| Misses {
            jobs: 1_000,
            late,
            trials: 40,
            trials_with: u64::from(late > 0),
            worst_lateness_ns: Some(-2_000_000),
            ..Misses::default()
        };
        let standing = |enforcer, late, against| Standing {
            enforcer,
            load: None,
            utilisations_permille: vec![600],
            victim: misses(late),
            alone: misses(1),
            pairs: (0, 0),
            against,
        };
        let summary = IsolationSummary {
            schema: ISOLATION_SUMMARY_SCHEMA,
            run: "r".to_owned(),
            overrun: 1.8,
            arms: vec![ArmSummary {
                utilisation_permille: 600,
                load: None,
                arm: Arm::NOISE,
                victim: misses(1),
                attacker: None,
                steal_ns: None,
            }],
            standings: vec![
                standing(None, 300, Against::Beyond { probability: 0.0 }),
                standing(
                    Some(Enforcer::RtCgroup),
                    0,
                    Against::NoMiss { at_most: 0.07 },
                ),
            ],
            received: Vec::new(),
            not_measured: Vec::new(),
            unmet: Vec::new(),
            failures: Vec::new(),
        };
        let found = findings(&summary);
        assert!(
            found[2]
                .contains("missed 1 of 1,000 deadlines in 40 trials, the latest job 2.00 ms early"),
            "{}",
            found[2]
        );
        assert!(
            found[0].starts_with("no enforcer: the victim missed 300 of 1,000"),
            "{}",
            found[0]
        );
        assert!(
            found[1].contains("missed none") && found[1].contains("7.00 %"),
            "{}",
            found[1]
        );
    }
}
