//! Sums up a supply study: fits, and their promises.

use analysis::empirical::{self, Span, cyclic_rate, least_delay, least_of, shortfall, windows};
use analysis::linux::{Means, TickSupply};
use analysis::reservation::{BoundedDelay, Periodic};
use analysis::{Ns, Supply};
use feasibility::means;
use record::RecordError;
use record::run::Run;
use record::supply::gaps::{Gap, Stretch};
use record::supply::{
    Between, Budget, Kept, Machine, MeasuredSupply, Periods, Promise, Reacted,
    SUPPLY_SUMMARY_SCHEMA, Share, SupplyHost, SupplyPoint, SupplyRecord, SupplySummary,
    SupplyTrial,
};

use super::{reaction, tried::tried};

/// Rates are in millionths, rounded down.
const MILLION: Ns = 1_000_000;
/// Rates of the lines below a supply, in hundredths of the highest.
const LINES: [Ns; 8] = [100, 99, 97, 95, 90, 80, 65, 50];
/// Delays are in whole microseconds, rounded up.
const MICROSECOND: Ns = 1_000;

/// Evaluates the gaps of a supply study.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn supply_study(run: &Run) -> Result<SupplySummary, RecordError> {
    let record: SupplyRecord = run.read()?;
    let manifest = run.manifest()?;
    let mut failures = Vec::new();
    let host = host(&rounds(run, &record, None, &mut failures)?);
    let mut supplies = Vec::new();
    for held in budgets(&record) {
        let rounds = rounds(run, &record, Some(held), &mut failures)?;
        supplies.extend(measured(held, &record.machine, &rounds, host.as_ref()));
    }
    let tried = tried(run, &record, &mut failures)?;
    failures.extend(manifest.failure.clone());
    Ok(SupplySummary {
        schema: SUPPLY_SUMMARY_SCHEMA,
        run: run.name(),
        supplies,
        host,
        load: (record.trials.iter())
            .find_map(|trial| trial.load.as_ref())
            .map(|load| load.name.clone()),
        not_measured: manifest.not_measured.clone(),
        tried,
        not_tried: record.tried.without,
        unmet: (manifest.requirements.iter())
            .filter(|requirement| !requirement.met)
            .cloned()
            .collect(),
        failures,
    })
}

/// Budgets in the order in which the first round was planned: by enforcer, as they are listed.
fn budgets(record: &SupplyRecord) -> Vec<Budget> {
    let mut all: Vec<Budget> = Vec::new();
    for held in record.trials.iter().filter_map(|trial| trial.held) {
        if !all.contains(&held) {
            all.push(held);
        }
    }
    all
}

/// One round of one subject.
struct Round {
    /// Every stretch, the long one first.
    spans: Vec<Span>,
    /// Of the long one.
    billed: Share,
    /// How exactly the thread was held, if not by the kernel.
    reacted: Option<Reacted>,
}

/// The rounds of a subject; adds failed and missing ones to `failures`.
fn rounds(
    run: &Run,
    record: &SupplyRecord,
    held: Option<Budget>,
    failures: &mut Vec<String>,
) -> Result<Vec<Round>, RecordError> {
    let mut rounds = Vec::new();
    for trial in record.trials.iter().filter(|trial| trial.held == held) {
        let name = name(trial);
        if let Some(failure) = &trial.failure {
            failures.push(format!("{name}: {failure}"));
            continue;
        }
        let gaps = match run.gaps(trial.number) {
            Ok(gaps) => gaps,
            Err(error @ RecordError::Newer { .. }) => return Err(error),
            Err(error) => {
                failures.push(format!("{name}: {error}"));
                continue;
            }
        };
        if gaps.header.merged > 0 {
            failures.push(format!(
                "{name}: {} gaps had no room and were merged with what lies between them",
                gaps.header.merged
            ));
        }
        let spans = gaps
            .stretches
            .iter()
            .map(|(stretch, gaps)| span(stretch, gaps));
        let spans: Vec<Span> = match spans.collect() {
            Ok(spans) => spans,
            Err(error) => {
                failures.push(format!("{name}: {error}"));
                continue;
            }
        };
        let billed = gaps.stretches.first().map(|(long, _)| Share {
            cpu_ns: long.billed_ns,
            of_ns: (long.end_ns - long.begin_ns).unsigned_abs(),
        });
        let reacted = trial.reacted.clone();
        if let Some(reacted) = &reacted {
            failures.extend(disturbed(reacted).map(|what| format!("{name}: {what}")));
        }
        rounds.extend(billed.map(|billed| Round {
            spans,
            billed,
            reacted,
        }));
    }
    Ok(rounds)
}

/// Disturbances of the holder of the thread.
fn disturbed(reacted: &Reacted) -> Option<String> {
    match (reacted.takeovers, reacted.errors) {
        (0, 0) => None,
        (times, errors) => Some(format!(
            "its holder was replaced {times} times, and {errors} calls on its group's files failed"
        )),
    }
}

fn name(trial: &SupplyTrial) -> String {
    let subject = match &trial.held {
        Some(held) => format!("{} {}", held.enforcer.name(), super::reservation(held)),
        None => "no budget".to_owned(),
    };
    format!("{subject}, round {}", trial.round)
}

/// A stretch of spinning and its gaps.
pub(crate) fn span(stretch: &Stretch, gaps: &[Gap]) -> Result<Span, empirical::SpanError> {
    // No clock is negative: the reader has checked that.
    let gaps = gaps.iter().map(|gap| empirical::Gap {
        begin: gap.begin_ns.unsigned_abs(),
        end: gap.end_ns.unsigned_abs(),
    });
    let ends = [stretch.begin_ns, stretch.end_ns].map(i64::unsigned_abs);
    Span::new(ends[0], ends[1], gaps.collect())
}

/// The largest rate that all rounds kept, in whole periods and once settled, in millionths; at most the granted one.
fn rate(held: &Budget, rounds: &[Round]) -> Option<Ns> {
    // Half the rest of a period: a gap of the enforcer, hardly one of the host.
    let throttled = (held.period_ns - held.budget_ns.min(held.period_ns)) / 2;
    let rates = rounds.iter().filter_map(|round| {
        let long = round.spans.first()?;
        let whole = millionths(long.received(), long.length())?;
        let settled = cyclic_rate(long, throttled.max(1));
        let settled = settled.and_then(|(received, length)| millionths(received, length));
        Some(settled.map_or(whole, |settled| settled.min(whole)))
    });
    Some(
        rates
            .min()?
            .min(millionths(held.budget_ns, held.period_ns)?),
    )
}

fn millionths(part: Ns, whole: Ns) -> Option<Ns> {
    let ratio = (u128::from(part) * u128::from(MILLION)).checked_div(u128::from(whole))?;
    Ns::try_from(ratio).ok()
}

/// The line of this rate, in millionths, below all spans.
fn point(spans: &[Span], rate: Ns) -> Option<SupplyPoint> {
    let delay = least_delay(spans, rate, MILLION)?;
    Some(SupplyPoint {
        supplied: rate,
        per: MILLION,
        delay_ns: delay.checked_next_multiple_of(MICROSECOND)?,
    })
}

/// Lines from the highest rate down, each with a shorter delay than the one before.
fn points(spans: &[Span], highest: Ns) -> Vec<SupplyPoint> {
    let mut points: Vec<SupplyPoint> = Vec::new();
    for rate in LINES.map(|part| highest * part / 100) {
        let shorter = point(spans, rate).filter(|point| {
            points
                .last()
                .is_none_or(|last| point.delay_ns < last.delay_ns)
        });
        points.extend(shorter);
    }
    points
}

fn measured(
    held: Budget,
    machine: &Machine,
    rounds: &[Round],
    host: Option<&SupplyHost>,
) -> Option<MeasuredSupply> {
    let spans: Vec<Span> = rounds
        .iter()
        .flat_map(|round| round.spans.clone())
        .collect();
    let highest = rate(&held, rounds)?;
    let delays = rounds
        .iter()
        .filter_map(|round| point(&round.spans, highest));
    let longest = spans.iter().map(Span::length).max()?;
    let least = least_of(&spans, &windows(held.budget_ns, held.period_ns, longest));
    let textbook = Periodic::new(held.budget_ns, held.period_ns).ok()?;
    let bound = BoundedDelay::of(&textbook);
    // A timer of EVL's own ends budgets out of band.
    let is_known = held.enforcer.is_out_of_band() || machine.tick_ns().is_some();
    let by_tick = is_known.then(|| by_tick(&held, machine)).flatten();
    let of_tick = |pick: fn(&TickSupply) -> BoundedDelay| {
        let model = pick(by_tick.as_ref()?);
        Some(promise(&model, kept(&least, &model, host)))
    };
    let reacted: Vec<&Reacted> = (rounds.iter())
        .filter_map(|round| round.reacted.as_ref())
        .collect();
    let (reaction, by_reaction) = reaction::measured(&held, &reacted).unzip();
    let kept_by = |model: BoundedDelay| promise(&model, kept(&least, &model, host));
    Some(MeasuredSupply {
        held,
        machine: machine.clone(),
        rounds: rounds.len() as u32,
        starts: spans.len() as u32,
        points: points(&spans, highest),
        measured_to_ns: longest,
        delay_ns: Between::of(delays.map(|point| point.delay_ns).collect())?,
        longest_gap_ns: longest_gaps(rounds)?,
        billed: Some(sum(rounds.iter().map(|round| round.billed))),
        received: received(rounds.iter().filter_map(|round| round.spans.first())),
        periods: periods(&held, rounds),
        textbook: promise(&bound, kept(&least, &textbook, host)),
        by_tick: of_tick(|tick| tick.alone),
        by_reaction: by_reaction.flatten().map(kept_by),
        cautious: of_tick(|tick| tick.cautious)
            .or_else(|| reaction::unmeasured(&held).map(|supply| kept_by(supply.behind))),
        reaction,
        least,
    })
}

/// The bound of an enforcer on this machine; `None` where no tick ends its budgets.
fn by_tick(held: &Budget, machine: &Machine) -> Option<TickSupply> {
    let (budget, period) = (held.budget_ns, held.period_ns);
    match means(held.enforcer, machine)? {
        Means::RtCgroup(tick) => TickSupply::rt_cgroup(budget, period, tick).ok(),
        Means::Deadline(tick) | Means::Hcbs(tick) => {
            TickSupply::deadline(budget, period, tick).ok()
        }
        Means::Freezer(_) => None,
    }
}

/// Rate and delay of a line, and whether it was kept.
fn promise(line: &BoundedDelay, kept: Kept) -> Promise {
    let (supplied, per) = line.rate();
    // The least window with 1 ns of supply, less the time for that.
    let first = line.inverse(1).unwrap_or(Ns::MAX);
    Promise {
        supplied,
        per,
        delay_ns: first.saturating_sub(per.div_ceil(supplied.max(1))),
        kept,
    }
}

fn kept(least: &[(Ns, Ns)], model: &impl Supply, host: Option<&SupplyHost>) -> Kept {
    let Some(most) = shortfall(least, model, |_| 0) else {
        return Kept::Held;
    };
    let spare = |window| host.map_or(0, |host| host.lost_in(window));
    match shortfall(least, model, spare) {
        Some(broken) => Kept::Broken {
            window_ns: broken.window,
            promised_ns: broken.promised,
            received_ns: broken.received,
        },
        None => Kept::HeldButForTheHost {
            window_ns: most.window,
            promised_ns: most.promised,
            received_ns: most.received,
        },
    }
}

fn longest_gaps(rounds: &[Round]) -> Option<Between> {
    let longest = |round: &Round| round.spans.iter().map(Span::longest_gap).max();
    Between::of(rounds.iter().filter_map(longest).collect())
}

fn received<'a>(spans: impl Iterator<Item = &'a Span>) -> Share {
    sum(spans.map(|span| Share {
        cpu_ns: span.received(),
        of_ns: span.length(),
    }))
}

fn sum(shares: impl Iterator<Item = Share>) -> Share {
    shares.fold(
        Share {
            cpu_ns: 0,
            of_ns: 0,
        },
        |all, one| Share {
            cpu_ns: all.cpu_ns + one.cpu_ns,
            of_ns: all.of_ns + one.of_ns,
        },
    )
}

/// Time received in each whole period of the long stretches.
fn periods(held: &Budget, rounds: &[Round]) -> Option<Periods> {
    let long = rounds.iter().filter_map(|round| round.spans.first());
    let each: Vec<Ns> = long
        .flat_map(|span| {
            let whole = span.length() / held.period_ns.max(1);
            (0..whole).map(|period| {
                let from = span.begin() + period * held.period_ns;
                span.received_between(from, from + held.period_ns)
            })
        })
        .collect();
    let count = each.len() as u64;
    Some(Periods {
        count,
        least_ns: *each.iter().min()?,
        mean_ns: each.iter().sum::<Ns>().checked_div(count)?,
        most_ns: *each.iter().max()?,
    })
}

/// Losses to the host of a thread that nothing holds.
fn host(rounds: &[Round]) -> Option<SupplyHost> {
    let spans: Vec<Span> = rounds
        .iter()
        .flat_map(|round| round.spans.clone())
        .collect();
    let received = received(spans.iter());
    let longest = spans.iter().map(Span::length).max()?;
    let lost = |(window, received): (Ns, Ns)| (window, window - received);
    let least = least_of(&spans, &windows(longest, longest, longest));
    Some(SupplyHost {
        rounds: rounds.len() as u32,
        received,
        longest_gap_ns: longest_gaps(rounds)?,
        point: point(&spans, millionths(received.cpu_ns, received.of_ns)?)?,
        most_lost: least.into_iter().map(lost).collect(),
    })
}

#[cfg(test)]
mod tests;
