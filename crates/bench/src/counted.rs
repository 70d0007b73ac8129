//! The counts of the cells' own threads for each activation, from their samples files, added to readings from outside.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use host::counters::{Counter, CounterError};
use model::{Counters, Keep};
use record::samples::{Counted, Header};
use record::trial::{ActivationCounters, CellCounters, TrialRecord};

use crate::context::Trial;

/// Whether the thread of this cell counts itself. It has reported that by the time it is armed.
pub(crate) fn counts_itself(shared: &Path, id: &str) -> bool {
    header(shared, id).is_some_and(|header| found(&header).has_counts())
}

/// Adds to the record of each cell its thread's counts, or why requested ones are missing.
pub(crate) fn tell(trial: &Trial<'_>, shared: &Path, record: &mut TrialRecord) {
    let asked = trial.plan.experiment.counters;
    if !matches!(asked, Counters::WhereCheap | Counters::Activations) {
        return;
    }
    for cell in &record.cells {
        let place = match record.counters.iter().position(|of| of.cell == cell.id) {
            Some(place) => place,
            // In a task set, only the first thread of a cell is watched from outside.
            None => {
                record.counters.push(CellCounters {
                    cell: cell.id.clone(),
                    ..CellCounters::default()
                });
                record.counters.len() - 1
            }
        };
        let beside = &mut record.counters[place];
        if trial.plan.experiment.keep != Keep::Samples {
            beside.lacking.push(
                "counts of each activation: a run that keeps histograms has no room for them"
                    .to_owned(),
            );
        } else if let Some(header) = header(shared, &cell.id) {
            of_thread(&header, &cell.engine.to_string(), beside);
        }
    }
}

fn of_thread(header: &Header, engine: &str, beside: &mut CellCounters) {
    let found = found(header);
    match found {
        Counted::NotAsked => {}
        Counted::TooDear => beside.lacking.push(format!(
            "counts of each activation where one reading takes more than 1/{} of the period",
            Counters::CHEAP_SHARE,
        )),
        Counted::Refused => beside.lacking.push(format!(
            "counts of each activation in {engine} cells: their threads may not count themselves"
        )),
        Counted::Software | Counted::Hardware => {
            if found == Counted::Software {
                let lacking = CounterError::NoPmu(Counter::CacheMisses).to_string();
                if !beside.lacking.contains(&lacking) {
                    beside.lacking.push(lacking);
                }
            }
            let enabled = u128::from(header.count_enabled_ns.max(1));
            let share = u128::from(header.count_running_ns) * 1_000_000 / enabled;
            let counted_ppm = u32::try_from(share).unwrap_or(u32::MAX).min(1_000_000);
            if header.complete == 1 && counted_ppm < 999_000 {
                beside.lacking.push(format!(
                    "a PMU of its own: the counters ran for {:.0} % of the thread's time",
                    f64::from(counted_ppm) / 10_000.0
                ));
            }
            let counters = header
                .counters
                .iter()
                .map_while(|code| Counter::from_code(*code));
            beside.activations = Some(ActivationCounters {
                names: counters.map(|counter| counter.name().to_owned()).collect(),
                reading_cost_ns: header.count_loop_cost_ns,
                reading_cost_before_ns: header.count_cost_ns,
                counted_ppm,
            });
        }
    }
}

fn found(header: &Header) -> Counted {
    Counted::of(header).unwrap_or(Counted::NotAsked)
}

fn header(shared: &Path, id: &str) -> Option<Header> {
    let mut bytes = [0; size_of::<Header>()];
    let file = File::open(shared.join(format!("{id}.samples"))).ok()?;
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(Header::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(header: Header) -> CellCounters {
        let mut beside = CellCounters::default();
        of_thread(&header, "crun", &mut beside);
        beside
    }

    #[test]
    fn a_thread_that_counts_says_what_it_costs_and_one_that_does_not_says_why() {
        let counted = |counted: Counted| Header {
            counted: counted as u32,
            counters: [1, 4, 0, 0],
            count_cost_ns: 900,
            count_loop_cost_ns: 700,
            count_enabled_ns: 1_000,
            count_running_ns: 500,
            complete: 1,
            ..Header::new()
        };
        let found = told(counted(Counted::Hardware));
        let activations = found.activations.unwrap();
        assert_eq!(activations.names, ["cache misses", "cycles"]);
        assert_eq!(
            (activations.reading_cost_ns, activations.counted_ppm),
            (700, 500_000)
        );
        assert_eq!(found.lacking.len(), 1);
        assert!(found.lacking[0].contains("for 50 % of the thread's time"));
        let whole = Header {
            count_running_ns: 1_000,
            ..counted(Counted::Software)
        };
        assert!(told(whole).lacking[0].starts_with("no PMU here"));
        for (why, said) in [
            (
                Counted::TooDear,
                "one reading takes more than 1/100 of the period",
            ),
            (Counted::Refused, "in crun cells"),
        ] {
            let found = told(counted(why));
            assert_eq!(found.activations, None);
            assert!(found.lacking[0].contains(said), "{:?}", found.lacking);
        }
        assert_eq!(told(counted(Counted::NotAsked)), CellCounters::default());
    }
}
