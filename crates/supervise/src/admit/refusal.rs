//! Refusals without a witness, in words.

use analysis::inside::test;
use analysis::linux::{Held, responses_below};
use analysis::reservation::Dedicated;
use analysis::{Ns, Verdict};
use text::units;

use model::Enforcer;
use record::supply::MeasuredSupply;

use super::advice::Advice;
use super::asked::Asked;
use super::cpu::{Candidate, Unfit};
use super::{Facts, Late, Refused, RtRoom, keeper, place_of, servers};

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
    exact: &[Held],
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
                        units::exact(lack)
                    ),
                )],
            )
        }
        Verdict::Undecided(reason) => (reason.to_string(), None, Vec::new()),
        Verdict::Schedulable => {
            let (by, advice) = match in_between(cell, servers::before(cell.enforcer, exact), facts)
            {
                Some((by, kind, text)) => (format!("; {by}"), vec![Advice::of(kind, text)]),
                None => (String::new(), Vec::new()),
            };
            let why = format!(
                "its deadlines hold on a whole cpu, but with no budget up to {percent:.1} % of one as {supplied}{takers}{by}"
            );
            (why, None, advice)
        }
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

/// The cause that no budget is small enough to avoid, a clause, and the kind of change that avoids it with its advice; `None`: none alone.
fn in_between(
    cell: &Asked,
    exact: &[Held],
    facts: &Facts,
) -> Option<(String, &'static str, &'static str)> {
    let tasks = &cell.work.tasks;
    let shortest = tasks.iter().map(|task| task.deadline).min()?;
    let deadline = units::exact(shortest);
    responses_below(tasks, &[])?;
    if responses_below(tasks, exact).is_none() {
        let most = exact.iter().map(|own| own.budget).max()?;
        let by = format!(
            "the supervisor may run for {} at once before it, too long for a deadline of {deadline}",
            units::exact(most)
        );
        return Some((
            by,
            "supervisor",
            "keep the supervisor off its cpu, or lower its budget",
        ));
    }
    // As seldom as it can be.
    let keeper = Held::exactly(keeper::cost(cell.enforcer), 1_000_000_000);
    let above: Vec<Held> = exact.iter().copied().chain([keeper]).collect();
    if keeper.budget > 0 && responses_below(tasks, &above).is_none() {
        let by = format!(
            "the freezer's own thread takes up to {} of the cpu in each period in which it holds a cell, too long for a deadline of \
             {deadline}",
            units::exact(keeper.budget)
        );
        return Some((by, "enforcer", "choose another with `enforcer` or `class`"));
    }
    let by_tick = [Enforcer::RtCgroup, Enforcer::Hcbs].contains(&cell.enforcer);
    (by_tick && shortest <= facts.tick_ns()).then(|| {
        let by = format!(
            "{} checks a budget only at the kernel's tick, every {}, longer than a deadline of {deadline}",
            cell.enforcer.name(),
            units::exact(facts.tick_ns())
        );
        (by, "enforcer", "choose another with `enforcer` or `class`")
    })
}

/// Cells of others that are named in one sentence.
const NAMED: usize = 4;

/// The cells of others where a cell is to go.
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
