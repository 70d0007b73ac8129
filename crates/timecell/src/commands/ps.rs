//! `timecell ps`: the cells of a mission, from its supervisor, or from its journal if it has none.

use std::time::{SystemTime, UNIX_EPOCH};

use record::trial::HelperRecord;
use report::grouped;
use supervise::assume::State;
use supervise::control::{
    Ask, BoundStatus, CellState, CellStatus, ControlError, Say, Status, SupervisorStatus,
    TaskStatus, from_journal, prometheus,
};

use super::control::{ask_for, directory, unexpected};
use crate::cli::Ps;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Prints the cells of a mission, or the grants on the machine.
pub fn run(options: &Ps) -> Result<Ended, CommandError> {
    if options.machine {
        return super::ps_machine::run(options.json);
    }
    let dir = directory(&options.which)?;
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
            "skipped",
            "worst response",
            "bound",
            "",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for cell in &status.cells {
        rows.push(row(cell));
        rows.extend(tasks(cell).iter().map(task_row));
        rows.extend(helpers_row(cell));
    }
    rows.extend((status.supervisor.as_ref()).and_then(supervisor));
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|at| {
            let lengths = rows.iter().map(|row| row[at].chars().count());
            lengths.max().unwrap_or(0)
        })
        .collect();
    // Columns of numbers, which are right-aligned.
    let right = [2, 3, 4, 5, 8, 9, 10, 11, 12];
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
    let said = match (&status.mission, &status.supervisor) {
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
    };
    match &status.caution {
        Some(caution) => format!("{said}; {caution}"),
        None => said,
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
        none(),
        "itself".to_owned(),
    ])
}

fn row(cell: &CellStatus) -> Vec<String> {
    let none = || "-".to_owned();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ns = now.map_or(0, |now| i64::try_from(now.as_nanos()).unwrap_or(i64::MAX));
    let [jobs, late, skipped, worst, bound] = figures(sum(cell).as_ref(), &cell.bounds);
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
        jobs,
        late,
        skipped,
        worst,
        bound,
        why(cell),
    ]
}

fn task_row(task: &Task<'_>) -> Vec<String> {
    let blank = std::iter::repeat_n(String::new(), 7);
    let figures = figures(task.reported, task.bound).into_iter();
    let name = std::iter::once(format!("  {}", task.name));
    name.chain(blank)
        .chain(figures)
        .chain([String::new()])
        .collect()
}

/// QEMU's threads that execute no virtual cpu, if the cell is a virtual machine that runs.
fn helpers_row(cell: &CellStatus) -> Option<Vec<String>> {
    let blank = std::iter::repeat_n(String::new(), 12);
    let name = std::iter::once("  QEMU's other threads".to_owned());
    let helpers = HelperRecord::together(&cell.helpers);
    (!helpers.is_empty()).then(|| name.chain(blank).chain([helpers]).collect())
}

/// Jobs, late ones, skipped releases, the longest response time, and the bound; `-`: there is none.
pub(crate) fn figures(reported: Option<&TaskStatus>, of_bounds: &[BoundStatus]) -> [String; 5] {
    let none = || "-".to_owned();
    let count = |of: fn(&TaskStatus) -> u64| reported.map_or(none(), |task| grouped(of(task)));
    let worst_ns = reported.and_then(|task| task.worst_response_ns);
    [
        count(|task| task.jobs),
        count(|task| task.late),
        count(|task| task.skipped),
        worst_ns.map_or(none(), |ns| report::time(ns as f64)),
        bounds(of_bounds).unwrap_or_else(none),
    ]
}

/// The longest of these bounds, or how many of them are withdrawn; `None`: there is none.
fn bounds(of: &[BoundStatus]) -> Option<String> {
    let longest_ns = of.iter().map(|bound| bound.bound_ns).max()?;
    let is_withdrawn = |bound: &&BoundStatus| bound.withdrawn().is_some();
    let withdrawn = of.iter().filter(is_withdrawn).count();
    let is_pending = |bound: &BoundStatus| bound.state == State::Pending;
    Some(match (withdrawn, of.len()) {
        (0, _) if of.iter().any(is_pending) => "pending".to_owned(),
        (0, _) => report::rounded_up(longest_ns),
        (1, 1) => "withdrawn".to_owned(),
        (some, all) => format!("{some} of {all} withdrawn"),
    })
}

/// A task of a cell as it is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// The report of its application.
    pub(crate) reported: Option<&'a TaskStatus>,
    /// Its bound, if it has one.
    pub(crate) bound: &'a [BoundStatus],
}

/// The tasks of a cell: those that its application reports, and others that have a bound.
pub(crate) fn tasks(cell: &CellStatus) -> Vec<Task<'_>> {
    let bound = |name: &str| {
        let bounds = cell.bounds.iter();
        let found = bounds.into_iter().find(|bound| bound.task == name);
        found.map_or(&[][..], std::slice::from_ref)
    };
    let is_reported = |name: &str| cell.tasks.iter().any(|task| task.task == name);
    let reported = cell.tasks.iter().map(|task| Task {
        name: &task.task,
        reported: Some(task),
        bound: bound(&task.task),
    });
    let others = cell.bounds.iter().filter(|bound| !is_reported(&bound.task));
    let others = others.map(|bound| Task {
        name: &bound.task,
        reported: None,
        bound: std::slice::from_ref(bound),
    });
    reported.chain(others).collect()
}

/// The report of a cell's application on all its tasks together; `None` if it reports nothing.
pub(crate) fn sum(cell: &CellStatus) -> Option<TaskStatus> {
    let (first, others) = cell.tasks.split_first()?;
    let mut sum = first.clone();
    others.iter().for_each(|task| sum.add(task));
    Some(sum)
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
        let (task, time) = (&bound.task, report::rounded_up(bound.bound_ns));
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
    fn each_task_has_a_line_below_the_sums_of_its_cell() {
        let task = |name, jobs, late, worst| serde_json::json!({ "task": name, "jobs": jobs, "late": late, "skipped": 1, "worst_response_ns": worst });
        let mut cell = serde_json::json!({
            "cell": "a", "state": "running", "why": null, "holds": [], "pid": 7, "starts": 1,
            "started_unix_ns": 1, "cpu_ns": 5, "enforcer": null, "budget_ns": null, "period_ns": null,
            "cpus": [1], "guarantee": null, "last_end": null, "dir": "/d", "tasks": [],
        });
        let of = |cell: &serde_json::Value| -> CellStatus {
            serde_json::from_value(cell.clone()).unwrap()
        };
        assert_eq!(sum(&of(&cell)), None);
        assert_eq!(row(&of(&cell))[8..13], ["-"; 5]);
        assert_eq!(tasks(&of(&cell)).len(), 0);
        cell["tasks"] = serde_json::json!([
            task("t", 1_200, 1, Some(3_000_000)),
            task("u", 5, 2, Some(41_500_000))
        ]);
        assert_eq!(row(&of(&cell))[8..13], ["1,205", "3", "2", "41.5 ms", "-"]);
        cell["bounds"] = serde_json::json!([
            { "task": "u", "bound_ns": 50_000_000, "state": "in_force" },
            { "task": "silent", "bound_ns": 9_000_000, "state": "withdrawn", "why": "it sleeps", "for_good": true },
        ]);
        let shown = of(&cell);
        assert_eq!(row(&shown)[12], "1 of 2 withdrawn");
        let rows: Vec<Vec<String>> = tasks(&shown).iter().map(task_row).collect();
        let figures = |at: usize| (rows[at][0].as_str(), rows[at][8..13].join(" "));
        assert_eq!(figures(0), ("  t", "1,200 1 1 3.00 ms -".to_owned()));
        assert_eq!(figures(1), ("  u", "5 2 1 41.5 ms 50 ms".to_owned()));
        assert_eq!(figures(2), ("  silent", "- - - - withdrawn".to_owned()));
        assert!(rows.iter().all(|texts| texts.len() == row(&shown).len()));
        cell["tasks"] = serde_json::json!([{ "task": "t", "jobs": 4, "late": 0 }]);
        assert_eq!(row(&of(&cell))[8..12], ["4", "0", "0", "-"]);
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
                caution: None,
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
