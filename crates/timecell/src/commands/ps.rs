//! `timecell ps`: the cells of a mission, from its supervisor, or from its journal if it has none.

use std::time::{SystemTime, UNIX_EPOCH};

use report::grouped;
use supervise::assume::State;
use supervise::control::{
    Ask, BoundStatus, CellState, CellStatus, ControlError, Say, Status, SupervisorStatus,
    from_journal, prometheus,
};

use super::control::{ask_for, directory_first, unexpected};
use crate::cli::Ps;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Prints the cells of a mission, or the grants on the machine.
pub fn run(options: &Ps) -> Result<Ended, CommandError> {
    if options.machine {
        return super::ps_machine::run(options.json);
    }
    let dir = directory_first(&options.which)?;
    let ask = if options.prometheus {
        Ask::Metrics
    } else if options.verbose {
        Ask::Assumptions
    } else {
        Ask::Status
    };
    let status = match ask_for(&dir, ask) {
        Ok(Say::Metrics { text }) => {
            out::print(&text);
            return Ok(Ended::Fine);
        }
        Ok(Say::Status(status)) => *status,
        Ok(other) => return Err(unexpected(&other).into()),
        Err(ControlError::NobodyListens { .. } | ControlError::Ended) => from_journal(&dir)?,
        Err(error) => return Err(error.into()),
    };
    if options.prometheus {
        out::print(&prometheus(&status));
    } else if options.json {
        out::print(&serde_json::to_string_pretty(&status).unwrap_or_default());
    } else {
        out::foreign(&text(&status));
        if options.verbose {
            out::foreign(&assumptions(&status));
        }
    }
    let bounds = status.cells.iter().flat_map(|cell| &cell.bounds);
    Ok(match status.supervisor {
        None => Ended::Unmet,
        Some(_) if bounds.into_iter().any(|bound| bound.withdrawn().is_some()) => {
            Ended::VerdictFails
        }
        Some(_) => Ended::Fine,
    })
}

/// The assumptions of each bound, and their state.
fn assumptions(status: &Status) -> String {
    let of = |cell: &CellStatus| {
        let bounds = cell.bounds.iter();
        let named = |bound: &BoundStatus| {
            (
                format!("{}.{}", cell.cell, bound.task),
                bound.assumptions.clone(),
            )
        };
        bounds.map(named).collect::<Vec<_>>()
    };
    let all: Vec<_> = status.cells.iter().flat_map(of).collect();
    match super::assumptions::text(&all) {
        text if text.is_empty() => "\nno running task has a bound".to_owned(),
        text => format!("\n{}", text.trim_end()),
    }
}

/// The table, with the lines on the whole mission above it.
fn text(status: &Status) -> String {
    let mut lines = vec![head(status)];
    if let Some(update) = status.update {
        lines.push(match status.supervisor {
            Some(_) => format!("update {update} is in progress"),
            None => format!("update {update} was not finished, and will be rolled back"),
        });
    }
    if status.cells.is_empty() {
        return lines.join("\n");
    }
    lines.push(String::new());
    let mut rows = vec![
        [
            "cell",
            "state",
            "pid",
            "starts",
            "uptime",
            "cpu time",
            "cpu",
            "budget",
            "jobs",
            "late",
            "worst response",
            "bound",
            "",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    rows.extend(status.cells.iter().map(row));
    rows.extend((status.supervisor.as_ref()).and_then(supervisor));
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|at| {
            let lengths = rows.iter().map(|row| row[at].chars().count());
            lengths.max().unwrap_or(0)
        })
        .collect();
    // Columns of numbers, which are right-aligned.
    let right = [2, 3, 4, 5, 8, 9, 10, 11];
    for row in &rows {
        let cells: Vec<String> = (row.iter().zip(&widths).enumerate())
            .map(|(at, (text, width))| {
                if right.contains(&at) {
                    format!("{text:>width$}")
                } else {
                    format!("{text:<width$}")
                }
            })
            .collect();
        lines.push(cells.join("  ").trim_end().to_owned());
    }
    lines.join("\n")
}

/// The mission in one sentence.
pub(crate) fn head(status: &Status) -> String {
    let running = (status.cells.iter())
        .filter(|cell| cell.state.runs())
        .count();
    let count = status.cells.len();
    match (&status.mission, &status.supervisor) {
        (Some(name), Some(own)) => format!(
            "mission {name}: {running} of {count} cells run, {} mode, supervisor {} (timecell {})",
            status.mode.name(),
            own.pid,
            own.version
        ),
        (Some(name), None) if supervise::run::is_of_one(&status.dir) => format!(
            "mission {name} has no supervisor; {running} of {count} cells still run; `timecell down {name}` ends it, and the command line that started it \
             adopts it with --name {name}"
        ),
        (Some(name), None) => format!(
            "mission {name} has no supervisor; {running} of {count} cells still run; `timecell up` adopts them, `timecell down` ends them"
        ),
        (None, _) => format!(
            "no mission is up in {}; the last one has ended",
            status.dir.display()
        ),
    }
}

/// A budget and its period.
pub(crate) fn budget_text(budget_ns: i64, period_ns: i64) -> String {
    format!(
        "{} every {}",
        report::time(budget_ns as f64),
        report::time(period_ns as f64)
    )
}

/// The supervisor in the form of a cell, if it has its own reservation.
fn supervisor(own: &SupervisorStatus) -> Option<Vec<String>> {
    let (budget, period) = own.budget_ns.zip(own.period_ns)?;
    let cpu_ns = own.cpu_ns.map(|ns| report::time(ns as f64));
    let none = || "-".to_owned();
    Some(vec![
        "supervisor".to_owned(),
        CellState::Running.word().to_owned(),
        own.pid.to_string(),
        none(),
        none(),
        cpu_ns.unwrap_or_else(none),
        host::cpus::format_list(&own.cpus),
        budget_text(budget, period),
        none(),
        none(),
        none(),
        none(),
        "itself".to_owned(),
    ])
}

fn row(cell: &CellStatus) -> Vec<String> {
    let none = || "-".to_owned();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ns = now.map_or(0, |now| i64::try_from(now.as_nanos()).unwrap_or(i64::MAX));
    let reported = reported(cell);
    let since = (cell.started_unix_ns).filter(|_| cell.state.runs());
    let budget = match (cell.budget_ns, cell.period_ns) {
        (Some(budget), Some(period)) => budget_text(budget, period),
        _ => none(),
    };
    vec![
        cell.cell.clone(),
        cell.state.word().to_owned(),
        cell.pid.map_or(none(), |pid| pid.to_string()),
        cell.starts.to_string(),
        since.map_or(none(), |since| span(now_ns - since)),
        cell.cpu_ns.map_or(none(), |ns| report::time(ns as f64)),
        match cell.cpus.as_slice() {
            [] => none(),
            cpus => host::cpus::format_list(cpus),
        },
        budget,
        reported.map_or(none(), |jobs| grouped(jobs.ended)),
        reported.map_or(none(), |jobs| grouped(jobs.late)),
        (reported.and_then(|jobs| jobs.worst_response_ns))
            .map_or(none(), |ns| report::time(ns as f64)),
        bounds(cell).unwrap_or_else(none),
        why(cell),
    ]
}

/// The longest bound of its tasks, or how many of them are withdrawn; `None`: it has none.
pub(crate) fn bounds(cell: &CellStatus) -> Option<String> {
    let longest_ns = cell.bounds.iter().map(|bound| bound.bound_ns).max()?;
    let is_withdrawn = |bound: &&BoundStatus| bound.withdrawn().is_some();
    let withdrawn = cell.bounds.iter().filter(is_withdrawn).count();
    let is_pending = |bound: &BoundStatus| bound.state == State::Pending;
    Some(match (withdrawn, cell.bounds.len()) {
        (0, _) if cell.bounds.iter().any(is_pending) => "pending".to_owned(),
        (0, _) => report::exact(longest_ns),
        (1, 1) => "withdrawn".to_owned(),
        (some, all) => format!("{some} of {all} withdrawn"),
    })
}

/// The report of a cell's application on all its tasks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reported {
    /// Jobs that have ended.
    pub(crate) ended: u64,
    /// Those that were late.
    pub(crate) late: u64,
    /// The longest response time, ns.
    pub(crate) worst_response_ns: Option<i64>,
}

/// `None` if its application reports nothing.
pub(crate) fn reported(cell: &CellStatus) -> Option<Reported> {
    let tasks = || cell.tasks.iter();
    (!cell.tasks.is_empty()).then(|| Reported {
        ended: tasks().map(|task| task.jobs).fold(0, u64::saturating_add),
        late: tasks().map(|task| task.late).fold(0, u64::saturating_add),
        worst_response_ns: tasks().filter_map(|task| task.worst_response_ns).max(),
    })
}

/// Why it does not run, or how it ended last; its parts that are not held; and its limits.
pub(crate) fn why(cell: &CellStatus) -> String {
    let why = match (&cell.why, &cell.last_end) {
        (Some(why), Some(end)) if cell.state == CellState::Stopped && end.text.contains(why) => {
            Some(end.text.clone())
        }
        (Some(why), Some(end)) if cell.state == CellState::Stopped => {
            Some(format!("{why}; {}", end.text))
        }
        (Some(why), _) => Some(why.clone()),
        (None, Some(end)) if !cell.state.runs() || cell.starts > 1 => {
            Some(format!("last end: {}", end.text))
        }
        _ => None,
    };
    let limits = cell.limits.iter().map(|limit| limit.text.clone());
    let withdrawn = cell.bounds.iter().filter_map(|bound| {
        let (task, time) = (&bound.task, report::exact(bound.bound_ns));
        let why = bound.withdrawn()?;
        Some(format!("bound of {task}, {time}, withdrawn: {why}"))
    });
    let unheld = cell.unheld.iter().filter(|unheld| {
        // Said with the bound already.
        !(cell.bounds.iter()).any(|bound| bound.withdrawn().is_some_and(|why| unheld.contains(why)))
    });
    let all = why.into_iter().chain(withdrawn).chain(unheld.cloned());
    all.chain(limits).collect::<Vec<_>>().join("; ")
}

/// `42 s`, `5 min 3 s`, `2 h 5 min`, `3 d 2 h`.
fn span(ns: i64) -> String {
    let s = ns.max(0) / 1_000_000_000;
    match s {
        0..60 => format!("{s} s"),
        60..3_600 => format!("{} min {} s", s / 60, s % 60),
        3_600..86_400 => format!("{} h {} min", s / 3_600, s / 60 % 60),
        _ => format!("{} d {} h", s / 86_400, s / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_all_tasks_are_summed_and_the_longest_response_counts() {
        let task = |jobs, late, worst| serde_json::json!({ "task": "t", "jobs": jobs, "late": late, "worst_response_ns": worst });
        let mut cell = serde_json::json!({
            "cell": "a", "state": "running", "why": null, "holds": [], "pid": 7, "starts": 1,
            "started_unix_ns": 1, "cpu_ns": 5, "enforcer": null, "budget_ns": null, "period_ns": null,
            "cpus": [1], "guarantee": null, "last_end": null, "dir": "/d", "tasks": [],
        });
        let of = |cell: &serde_json::Value| -> CellStatus {
            serde_json::from_value(cell.clone()).unwrap()
        };
        assert_eq!(reported(&of(&cell)), None);
        assert_eq!(row(&of(&cell))[8..11], ["-", "-", "-"]);
        cell["tasks"] = serde_json::json!([
            task(1_200, 1, Some(3_000_000)),
            task(5, 2, Some(41_500_000))
        ]);
        assert_eq!(row(&of(&cell))[8..11], ["1,205", "3", "41.5 ms"]);
        cell["tasks"] = serde_json::json!([{ "task": "t", "jobs": 4, "late": 0 }]);
        assert_eq!(row(&of(&cell))[8..11], ["4", "0", "-"]);
    }

    #[test]
    fn spans_are_read_easily() {
        let of = |s: i64| span(s * 1_000_000_000);
        assert_eq!(
            [of(-1), of(59), of(303), of(7_505), of(266_405)],
            ["0 s", "59 s", "5 min 3 s", "2 h 5 min", "3 d 2 h"]
        );
    }

    #[test]
    fn what_runs_on_is_told_with_what_takes_it_over() {
        let said = |dir: std::path::PathBuf| {
            head(&Status {
                schema: 1,
                at_utc: String::new(),
                mission: Some("m".to_owned()),
                dir,
                supervisor: None,
                mode: supervise::state::Mode::default(),
                update: None,
                cells: Vec::new(),
            })
        };
        let of_one = said(supervise::run::dir_of_one("m"));
        assert!(of_one.contains("adopts it with --name m"), "{of_one}");
        assert!(of_one.contains("`timecell down m` ends it"), "{of_one}");
        let usual = said("/var/lib/timecell/m".into());
        assert!(usual.contains("`timecell up` adopts them"), "{usual}");
    }
}
