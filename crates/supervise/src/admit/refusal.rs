//! Refusals without a witness, in words.

use analysis::inside::test;
use analysis::reservation::Dedicated;
use analysis::{Ns, Verdict};

use model::Enforcer;
use record::supply::MeasuredSupply;

use super::advice::Advice;
use super::asked::Asked;
use super::cpu::{Candidate, Unfit};
use super::{Facts, Late, Refused, RtRoom, place_of};

fn ms(ns: Ns) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

/// A refusal without a witness.
pub(super) fn plain(cell: &Asked, why: &str, advice: Vec<Advice>) -> Refused {
    Refused {
        cell: cell.name.clone(),
        place: place_of(cell),
        why: why.to_owned(),
        witness: None,
        fix: None,
        advice,
    }
}

/// No budget and period suffice.
pub(super) fn no_budget(
    cell: &Asked,
    (part, whole): (Ns, Ns),
    facts: &Facts,
    measured: &[MeasuredSupply],
) -> Refused {
    let whole_cpu = test(&cell.work.tasks, cell.work.policy, &Dedicated).verdict;
    let percent = part as f64 * 100.0 / whole.max(1) as f64;
    let takers = (facts.room(cell.enforcer).and_then(RtRoom::takers))
        .map_or(String::new(), |who| format!("; {who}"));
    let supplied = match (cell.enforcer, measured) {
        (Enforcer::Freezer, _) => "the freezer supplies it",
        (enforcer, []) if Enforcer::OF_BENCH.contains(&enforcer) => {
            "a model of this kernel's tick supplies it (`timecell bench supply` measures it)"
        }
        (Enforcer::Hcbs, _) => "a model of this kernel's tick supplies it",
        (_, _) => "this kernel supplies it",
    };
    let (why, witness, advice) = match whole_cpu {
        Verdict::Unschedulable(witness) => {
            let late = cell.names.get(witness.task).cloned().unwrap_or_default();
            let lack = witness.demand.saturating_sub(witness.supply);
            (
                format!("not even a whole cpu lets `{late}` meet its deadline"),
                Some(Late {
                    task: late,
                    witness,
                }),
                vec![Advice::of(
                    "wcet",
                    format!(
                        "cut {} from the execution time that is due by then",
                        ms(lack)
                    ),
                )],
            )
        }
        Verdict::Undecided(reason) => (reason.to_string(), None, Vec::new()),
        Verdict::Schedulable => (
            format!(
                "its deadlines hold on a whole cpu, but with no budget up to {percent:.1} % of one as {supplied}{takers}"
            ),
            None,
            Vec::new(),
        ),
    };
    Refused {
        cell: cell.name.clone(),
        place: place_of(cell),
        why,
        witness,
        fix: None,
        advice,
    }
}

/// Cells of others that are named in one sentence.
const NAMED: usize = 4;

/// What others run where a cell is to go.
fn in_the_way(asked: &Asked, candidates: &[Candidate<'_>]) -> String {
    let meets = |other: &&Asked| {
        let there = |cpu| asked.cpus.is_empty() || asked.cpus.contains(cpu);
        other.holder.is_some() && !other.is_supervisor && other.cpus.iter().any(there)
    };
    let others: Vec<String> = (candidates.iter().map(|candidate| candidate.asked))
        .filter(meets)
        .map(Asked::called)
        .collect();
    let (named, more) = others.split_at(others.len().min(NAMED));
    match (named, more.len()) {
        ([], _) => String::new(),
        ([one], 0) => format!("{one} runs"),
        (_, 0) => format!("{} run", named.join(", ")),
        (_, more) => format!("{} and {more} more run", named.join(", ")),
    }
}

/// It fits on no cpu, or not on its own.
pub(super) fn unfit(cell: &Candidate<'_>, unfit: &Unfit, candidates: &[Candidate<'_>]) -> Refused {
    let asked = cell.asked;
    let mut why = unfit.why.clone();
    let late = candidates.get(unfit.of).map(|late| late.asked);
    if let Some(late) = late.filter(|late| late.at != asked.at) {
        why = format!("{} would be late beside it: {why}", late.called());
    }
    let witness = unfit.witness.as_ref().and_then(|(task, found)| {
        let task = late?.names.get(*task)?.clone();
        Some(Late {
            task,
            witness: found.clone(),
        })
    });
    if asked.cpus.is_empty() {
        why = format!("no cpu has room for it; on the last one tried, {why}");
    }
    let own = late.is_none_or(|late| late.at == asked.at);
    let in_the_way = in_the_way(asked, candidates);
    if own && !in_the_way.is_empty() {
        why.push_str(&format!("; {in_the_way} there already"));
    }
    Refused {
        cell: asked.name.clone(),
        place: place_of(asked),
        why,
        witness,
        fix: None,
        advice: Vec::new(),
    }
}
