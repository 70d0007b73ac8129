//! Why activations were skipped or jobs came late, as far as the record shows: work that does not fit its period, a runtime that jobs used
//! up, real-time throttling, or others on the cpu.

use super::source::Source;
use host::doctor::State;
use model::taskset::CellTask;
use model::{Duration, TaskLoad};
use record::RecordError;
use record::summary::{CellSummary, TaskSummary};
use std::collections::BTreeMap;
use text::units::time;
use text::words::{clean, count, plural, ratio};

/// The kernel's limit on real-time work on each cpu.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Limit {
    runtime_us: u64,
    period_us: u64,
}

/// One sentence for each trial and cause.
pub(super) fn study(source: &Source, cells: &[CellSummary]) -> Result<Vec<String>, RecordError> {
    if source.plan.workload.work == model::Work::Endless {
        // It has no jobs, and takes as much as requested.
        return Ok(Vec::new());
    }
    let limit = limit(&source.run.provenance()?.checks);
    let mut sentences = Vec::new();
    for trial in &source.plan.trials {
        let of_trial: Vec<&CellSummary> = cells.iter().filter(|c| c.trial == trial.name).collect();
        let period_ns = |cell: &CellSummary| {
            let own = || source.task_of(trial, &cell.cell).period.ns();
            cell.task.as_ref().map_or_else(own, |task| task.period_ns)
        };
        let throttled = limit.map_or_else(BTreeMap::new, |limit| {
            // Tasks of a set in a virtual machine are on its cpus, not on these.
            let here = |cell: &&&CellSummary| cell.task.is_none() || !cell.engine.is_machine();
            let here: Vec<&CellSummary> = of_trial.iter().filter(here).copied().collect();
            let mut demands = demands(source, &here, &period_ns);
            demands.retain(|_, demand| *demand > limit.share());
            demands
        });
        for (cpu, demand) in &throttled {
            sentences.extend(limit.map(|limit| limit.exceeded(&trial.name, *cpu, *demand)));
        }
        let exhausted: Vec<Exhausted> = (of_trial.iter())
            .filter_map(|cell| Exhausted::of(source.plan.tasks.as_ref()?, cell))
            .collect();
        sentences.extend(used_up(&trial.name, &exhausted));
        if exhausted.is_empty() {
            sentences.extend(late_within(&trial.name, &of_trial));
        }
        for cell in &of_trial {
            let known = exhausted.iter().any(|e| e.cell.label == cell.label);
            if cell.skipped.saturating_mul(10) > cell.planned && !known {
                let throttled = cell.cpus.iter().any(|cpu| throttled.contains_key(cpu));
                sentences.push(skipped(cell, period_ns(cell), throttled && fixed(cell)));
            }
        }
    }
    Ok(sentences)
}

impl Limit {
    /// The part of a cpu.
    fn share(self) -> f64 {
        self.runtime_us as f64 / self.period_us.max(1) as f64
    }

    fn exceeded(self, trial: &str, cpu: u32, demand: f64) -> String {
        let ms = |us: u64| time(us as f64 * 1e3);
        format!(
            "{trial}: the real-time work on cpu {cpu} takes {} of it, and the kernel allows real-time work {} of every {} (real-time \
             throttling, kernel.sched_rt_runtime_us): once that is used up, it stops every thread of class FIFO or RR for the rest, even \
             the most urgent.",
            ratio(demand),
            ms(self.runtime_us),
            ms(self.period_us),
        )
    }
}

/// The limit that the doctor found when the run was made: the first two numbers of its text, if it says that the kernel limits real-time
/// tasks.
fn limit(checks: &[host::doctor::Check]) -> Option<Limit> {
    let check = checks.iter().find(|check| check.id == "rt-throttling")?;
    let known = matches!(check.state, State::Good | State::Warning | State::Bad);
    let found = check
        .found
        .strip_prefix("real-time tasks may use ")?
        .replace(',', "");
    let mut numbers = found
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse().ok());
    let limit = Limit {
        runtime_us: numbers.next()?,
        period_us: numbers.next()?,
    };
    (known && limit.period_us > 0).then_some(limit)
}

/// Whether the cell ran under fixed priorities, which throttling stops.
fn fixed(cell: &CellSummary) -> bool {
    cell.class.starts_with("FIFO") || cell.class.starts_with("RR")
}

/// Whether the cell ran as a thread of SCHED_DEADLINE, which has a runtime.
fn by_runtime(cell: &CellSummary) -> bool {
    cell.class.starts_with("DEADLINE")
}

/// The share of each cpu that the fixed-priority work of a trial takes: the largest over rounds.
fn demands(
    source: &Source,
    cells: &[&CellSummary],
    period_ns: &dyn Fn(&CellSummary) -> i64,
) -> BTreeMap<u32, f64> {
    let mut most = BTreeMap::new();
    let Some(trial) = cells.first().map(|cell| &cell.trial) else {
        return most;
    };
    for record in source.good(trial) {
        let mut of_round = BTreeMap::new();
        for ran in &record.cells {
            let cell = cells
                .iter()
                .find(|cell| cell.cell == ran.id && fixed(cell))
                .and_then(|cell| Some((cell.cpu_time_per_activation_ns?, period_ns(cell))));
            if let Some((used, period)) = cell.filter(|(_, period)| *period > 0) {
                *of_round.entry(ran.cpu).or_insert(0.0) += used / period as f64;
            }
        }
        for (cpu, demand) in of_round {
            let most = most.entry(cpu).or_insert(demand);
            *most = f64::max(*most, demand);
        }
    }
    most
}

/// A thread of SCHED_DEADLINE whose jobs took more cpu time on average than its runtime, and were late.
#[derive(Debug)]
struct Exhausted<'a> {
    cell: &'a CellSummary,
    task: &'a TaskSummary,
    used_ns: f64,
    runtime_ns: i64,
}

impl<'a> Exhausted<'a> {
    fn of(load: &TaskLoad, cell: &'a CellSummary) -> Option<Exhausted<'a>> {
        let task = cell.task.as_ref()?;
        let used_ns = cell.cpu_time_per_activation_ns?;
        let ns = Duration::from_ns;
        let asked = CellTask {
            deadline: ns(task.deadline_ns),
            ..CellTask::new(task.name.clone(), ns(task.wcet_ns), ns(task.period_ns))
        };
        // A thread that is held has its budget as its runtime.
        let runtime_ns = match &task.held {
            Some(held) => i64::try_from(held.by.held.budget_ns).unwrap_or(i64::MAX),
            None => load.runtime(&asked).ns(),
        };
        let late = task.late > 0 || cell.skipped > 0;
        (by_runtime(cell) && late && used_ns > runtime_ns as f64).then_some(Exhausted {
            cell,
            task,
            used_ns,
            runtime_ns,
        })
    }

    fn excess(&self) -> f64 {
        self.used_ns / self.runtime_ns.max(1) as f64
    }
}

fn used_up(trial: &str, exhausted: &[Exhausted]) -> Option<String> {
    let most = (exhausted.iter()).max_by(|a, b| a.excess().total_cmp(&b.excess()))?;
    let late: u64 = (exhausted.iter())
        .map(|e| e.task.late.saturating_add(e.cell.skipped))
        .sum();
    Some(format!(
        "{trial}: the jobs of {} took more cpu time on average than their runtime (wcet and margin, or the budget of its reservation), \
         most of all those of {} with {} of {}: the kernel's constant bandwidth server throttles a thread that has used up its runtime \
         until its next period, and {} of these tasks missed their deadlines. A larger margin or budget, or a wcet measured on this \
         machine, gives them room.",
        plural(exhausted.len() as u64, "task"),
        clean(&most.task.name),
        time(most.used_ns),
        time(most.runtime_ns as f64),
        plural(late, "job"),
    ))
}

/// Late jobs of SCHED_DEADLINE threads whose runtimes suffice on average.
fn late_within(trial: &str, cells: &[&CellSummary]) -> Option<String> {
    let late: u64 = (cells.iter())
        .filter(|cell| by_runtime(cell))
        .filter_map(|cell| Some(cell.task.as_ref()?.late.saturating_add(cell.skipped)))
        .sum();
    (late > 0).then(|| {
        format!(
            "{trial}: {} missed their deadlines although no task's jobs took more cpu time on average than its runtime; single jobs may \
             have, and the kernel throttles those until the next period (the cpu time of single jobs is not on record); with several cpus \
             it promises bounded lateness, not the deadline.",
            plural(late, "job")
        )
    })
}

/// Why a cell skipped more than a tenth of its activations.
fn skipped(cell: &CellSummary, period_ns: i64, throttled: bool) -> String {
    let share = cell.skipped.saturating_mul(100) / cell.planned.max(1);
    let label = &cell.label;
    let lost = format!("{label} skipped {} % of its activations", count(share));
    let Some(used) = cell.cpu_time_per_activation_ns else {
        return format!("{lost}: the cpu time of its jobs is not on record.");
    };
    let took = format!(
        "its jobs took {} of cpu time on average, in a period of {}",
        time(used),
        time(period_ns as f64)
    );
    if used >= period_ns as f64 {
        return format!("{lost}: {took}: they do not fit in their period on this cpu.");
    }
    let why = if throttled {
        "real-time throttling stopped it, or more urgent work kept the cpu".to_owned()
    } else if !cell.real_time {
        format!(
            "others took the cpu, which class {} cannot prevent",
            clean(&cell.class)
        )
    } else {
        "they fit, so something else took the cpu: more urgent work, the kernel, or a hypervisor"
            .to_owned()
    };
    format!("{lost}: {took}; {why}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(state: State, found: &str) -> host::doctor::Check {
        host::doctor::Check {
            id: "rt-throttling".into(),
            title: "".into(),
            state,
            found: found.to_owned(),
            why: "".into(),
            fix: None,
        }
    }

    #[test]
    fn the_limit_is_what_the_doctor_found() {
        // The second is that of earlier versions.
        let found = "real-time tasks may use 950,000 us of every 1,000,000 us on each cpu";
        let old = &found.replace(',', "");
        let limit = |state, found| limit(&[check(state, found)]);
        for found in [found, old] {
            let known = limit(State::Good, found).unwrap();
            assert_eq!((known.runtime_us, known.period_us), (950_000, 1_000_000));
            assert!((known.share() - 0.95).abs() < 1e-12);
        }
        let off = "off: a task that never blocks keeps its cpu";
        assert_eq!(limit(State::Warning, off), None);
        assert_eq!(limit(State::Unknown, found), None);
        let alone = "this kernel stops no thread of class FIFO or RR, for which it has the fair server: kernel.sched_rt_runtime_us holds for SCHED_DEADLINE alone, which may have 950000 us of every 1000000 us";
        assert_eq!(limit(State::Good, alone), None);
    }
}
