//! The budgets that cells spinning side by side received, period by period.

use analysis::Ns;
use analysis::empirical::Span;
use record::RecordError;
use record::isolation::{IsolationRecord, PeriodShares, ReceivedSummary, ReceivedVerdict};
use record::run::Run;
use record::supply::{Budget, Share};

use crate::supply::span;

/// How far a cell's received time may be from its grant, as a share.
const WITHIN: f64 = 0.02;

/// The largest share of the granted time that a tick may be without deciding the verdict.
const TICK: f64 = 0.01;

/// A cell's received time in one trial.
struct Spun {
    /// In each period from the second on, ns.
    each: Vec<Ns>,
    billed: Share,
}

pub(super) fn received(
    run: &Run,
    record: &IsolationRecord,
    failures: &mut Vec<String>,
) -> Result<Vec<ReceivedSummary>, RecordError> {
    let mut budgets: Vec<(usize, Budget)> = Vec::new();
    for trial in &record.received {
        for cell in trial.cells.iter().map(|cell| cell.held).enumerate() {
            if !budgets.contains(&cell) {
                budgets.push(cell);
            }
        }
    }
    let tick_ns = record.machine.slowest_tick_ns();
    let mut all = Vec::new();
    let mut said = Vec::new();
    for (place, held) in budgets {
        let mut spun = Vec::new();
        for trial in &record.received {
            if trial.cells.get(place).map(|cell| cell.held) != Some(held) {
                continue;
            }
            let name = format!(
                "trial {} (received, {})",
                trial.number,
                held.enforcer.name()
            );
            if let Some(failure) = &trial.failure {
                said.push(format!("{name}: {failure}"));
                continue;
            }
            match one(run, trial.number, place, held) {
                Ok(found) => spun.extend(found),
                Err(error @ RecordError::Newer { .. }) => return Err(error),
                Err(error) => said.push(format!("{name}: {error}")),
            }
        }
        all.extend(summary(held, &spun, tick_ns));
    }
    said.dedup();
    failures.extend(said);
    Ok(all)
}

fn one(run: &Run, trial: u32, place: usize, held: Budget) -> Result<Option<Spun>, RecordError> {
    let gaps = run.cell_gaps(trial, place as u32 + 1)?;
    let Some((stretch, gaps)) = gaps.stretches.first() else {
        return Ok(None);
    };
    let Ok(span) = span(stretch, gaps) else {
        return Ok(None);
    };
    Ok(Some(Spun {
        each: periods(&span, held.period_ns),
        billed: Share {
            cpu_ns: stretch.billed_ns,
            of_ns: span.length(),
        },
    }))
}

/// The first period is left out, because it includes the rest of the budget before.
fn periods(span: &Span, period: Ns) -> Vec<Ns> {
    let whole = span.length() / period.max(1);
    (1..whole)
        .map(|number| {
            let from = span.begin() + number * period;
            span.received_between(from, from + period)
        })
        .collect()
}

fn summary(held: Budget, spun: &[Spun], tick_ns: Ns) -> Option<ReceivedSummary> {
    let each: Vec<Ns> = spun.iter().flat_map(|one| one.each.clone()).collect();
    let budget = held.budget_ns as f64;
    let mut sorted: Vec<f64> = each.iter().map(|ns| *ns as f64 / budget).collect();
    sorted.sort_by(f64::total_cmp);
    let (&least, &most) = (sorted.first()?, sorted.last()?);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    let received = sorted.iter().sum::<f64>() / sorted.len() as f64;
    let cpu: u64 = spun.iter().map(|one| one.billed.cpu_ns).sum();
    let of: u64 = spun.iter().map(|one| one.billed.of_ns).sum();
    let granted = of as f64 * budget / held.period_ns.max(1) as f64;
    let billed = cpu as f64 / granted.max(1.0);
    Some(ReceivedSummary {
        held,
        trials: spun.len() as u32,
        periods: each.len() as u64,
        received,
        billed,
        each: PeriodShares {
            least,
            low: at(0.05),
            median: at(0.5),
            high: at(0.95),
            most,
            permille: (each.iter())
                .map(|ns| (*ns as f64 * 1_000.0 / budget).round() as u32)
                .collect(),
        },
        // In each trial a tick at the one end or the other.
        verdict: match tick_ns as f64 * spun.len() as f64 / (budget * sorted.len() as f64) {
            tick if tick < TICK => verdict(received, billed),
            _ => ReceivedVerdict::TooShort,
        },
    })
}

fn verdict(received: f64, billed: f64) -> ReceivedVerdict {
    if received > 1.0 + WITHIN {
        ReceivedVerdict::More
    } else if received >= 1.0 - WITHIN {
        ReceivedVerdict::Within
    } else if billed >= 1.0 - WITHIN {
        ReceivedVerdict::TakenByTheHost
    } else {
        ReceivedVerdict::Less
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::empirical::Gap;
    use model::Enforcer;

    #[test]
    fn periods_are_counted_from_the_second_on() {
        // 30 of every 100, after a first period of 60.
        let gaps = [(60, 100), (130, 200), (230, 300), (330, 400)];
        let gaps = gaps.map(|(begin, end)| Gap { begin, end }).to_vec();
        let span = Span::new(0, 430, gaps).unwrap();
        assert_eq!(periods(&span, 100), [30, 30, 30]);
        let spun = Spun {
            each: vec![30, 27, 33],
            billed: Share {
                cpu_ns: 150,
                of_ns: 430,
            },
        };
        let held = Budget {
            enforcer: Enforcer::RtCgroup,
            budget_ns: 30,
            period_ns: 100,
        };
        let found = summary(held, std::slice::from_ref(&spun), 0).unwrap();
        assert_eq!(found.verdict, ReceivedVerdict::Within);
        let coarse = summary(held, std::slice::from_ref(&spun), 1).unwrap();
        assert_eq!(coarse.verdict, ReceivedVerdict::TooShort, "1 of 90");
        assert!((found.received - 1.0).abs() < 1e-12);
        assert_eq!((found.each.least, found.each.most), (0.9, 1.1));
        assert_eq!(found.each.permille, [1_000, 900, 1_100]);
        assert!((found.billed - 150.0 / 129.0).abs() < 1e-12);
        assert!(summary(held, &[], 0).is_none());
    }

    #[test]
    fn what_the_host_takes_is_told_from_what_the_kernel_withholds() {
        for (received, billed, expected) in [
            (0.985, 0.99, ReceivedVerdict::Within),
            (0.97, 0.99, ReceivedVerdict::TakenByTheHost),
            (0.97, 0.97, ReceivedVerdict::Less),
            (1.03, 1.03, ReceivedVerdict::More),
        ] {
            assert_eq!(verdict(received, billed), expected, "{received} {billed}");
        }
    }
}
