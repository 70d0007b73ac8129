//! The state of a mission in Prometheus format.

use std::fmt::Write as _;

use timecell_client::layout::bucket_end_ns;

use super::{BoundStatus, CellStatus, Responses, Status, TaskStatus};
use crate::assume::State;

/// A family of metrics: name without prefix, type, help, and the value of a cell.
type Family = (
    &'static str,
    &'static str,
    &'static str,
    fn(&CellStatus) -> Option<f64>,
);

/// Name without prefix, help, and the count of a task.
type OfTask = (&'static str, &'static str, fn(&TaskStatus) -> u64);

/// Name without prefix, help, and the value of a bound.
type OfBound = (&'static str, &'static str, fn(&BoundStatus) -> f64);

const OF_CELLS: [Family; 6] = [
    (
        "cell_up",
        "gauge",
        "Whether the cell's program runs.",
        |cell| Some(f64::from(u8::from(cell.state.runs()))),
    ),
    (
        "cell_starts_total",
        "counter",
        "How often the cell was started.",
        |cell| Some(cell.starts as f64),
    ),
    (
        "cell_start_time_seconds",
        "gauge",
        "When the running program was started, in seconds since 1970.",
        |cell| {
            let runs = cell.state.runs();
            runs.then_some(cell.started_unix_ns? as f64 / 1e9)
        },
    ),
    (
        "cell_cpu_seconds_total",
        "counter",
        "Cpu time of all processes of the cell.",
        |cell| Some(cell.total.cpu_ns? as f64 / 1e9),
    ),
    (
        "cell_budget_seconds",
        "gauge",
        "Cpu time that the cell may use on each of its cpus per period.",
        |cell| Some(cell.budget_ns? as f64 / 1e9),
    ),
    (
        "cell_period_seconds",
        "gauge",
        "Period of the cell's budget.",
        |cell| Some(cell.period_ns? as f64 / 1e9),
    ),
];

/// The mission in the text format of Prometheus, version 0.0.4 (<https://prometheus.io/docs/instrumenting/exposition_formats/>);
/// base units. `_total`, `_bucket`, `_sum` and `_count` are those of all starts that the supervisor has seen, and only grow.
pub fn prometheus(status: &Status) -> String {
    let mut text = String::new();
    let mission = escaped(status.mission.as_deref().unwrap_or_default());
    let head = |text: &mut String, name: &str, kind: &str, help: &str| {
        let _ = writeln!(text, "# HELP timecell_{name} {help}");
        let _ = writeln!(text, "# TYPE timecell_{name} {kind}");
    };
    head(
        &mut text,
        "mission_high_mode",
        "gauge",
        "Whether the mission is in high mode.",
    );
    let high = u8::from(status.mode == crate::state::Mode::High);
    let _ = writeln!(
        text,
        "timecell_mission_high_mode{{mission=\"{mission}\"}} {high}"
    );
    let own = status.supervisor.as_ref();
    let own: [(&str, &str, &str, Option<f64>); 2] = [
        (
            "supervisor_cpu_seconds_total",
            "counter",
            "Cpu time of the supervisor itself.",
            own.and_then(|own| Some(own.cpu_ns? as f64 / 1e9)),
        ),
        (
            "supervisor_resident_memory_bytes",
            "gauge",
            "Resident memory of the supervisor.",
            own.and_then(|own| Some(own.rss_bytes? as f64)),
        ),
    ];
    for (name, kind, help, value) in own {
        if let Some(value) = value {
            head(&mut text, name, kind, help);
            let _ = writeln!(text, "timecell_{name}{{mission=\"{mission}\"}} {value}");
        }
    }
    // Of two versions during an update, the one that the mission had first.
    let mut seen = std::collections::BTreeSet::new();
    let cells: Vec<&CellStatus> = (status.cells.iter())
        .filter(|cell| seen.insert(cell.cell.as_str()))
        .collect();
    for (name, kind, help, value) in OF_CELLS {
        head(&mut text, name, kind, help);
        for cell in &cells {
            if let Some(value) = value(cell) {
                let cell = escaped(&cell.cell);
                let _ = writeln!(
                    text,
                    "timecell_{name}{{mission=\"{mission}\",cell=\"{cell}\"}} {value}"
                );
            }
        }
    }
    let of_tasks: [OfTask; 3] = [
        (
            "task_jobs_total",
            "Jobs that have ended, as reported by the application.",
            |task| task.jobs,
        ),
        (
            "task_deadline_misses_total",
            "Late jobs and skipped releases, as reported by the application.",
            |task| task.late,
        ),
        (
            "task_skipped_releases_total",
            "Releases skipped by a periodic task; included in the misses.",
            |task| task.skipped,
        ),
    ];
    let labels = |cell: &CellStatus, task: &str| {
        let (cell, task) = (escaped(&cell.cell), escaped(task));
        format!("mission=\"{mission}\",cell=\"{cell}\",task=\"{task}\"")
    };
    let row = |name: &str, cell: &CellStatus, task: &str, value: f64| {
        format!("timecell_{name}{{{}}} {value}\n", labels(cell, task))
    };
    for (name, help, value) in of_tasks {
        head(&mut text, name, "counter", help);
        for cell in &cells {
            let tasks = cell.total.tasks.iter();
            text.extend(tasks.map(|task| row(name, cell, &task.task, value(task) as f64)));
        }
    }
    let name = "task_response_seconds";
    let help = "Response times of jobs, as counted by the application.";
    head(&mut text, name, "histogram", help);
    for cell in &cells {
        for task in &cell.total.tasks {
            let labels = labels(cell, &task.task);
            histogram(&mut text, name, &labels, &task.responses);
        }
    }
    let name = "task_worst_response_seconds";
    let help =
        "Longest response time since the cell was last started, as reported by the application.";
    head(&mut text, name, "gauge", help);
    for cell in &cells {
        for task in &cell.tasks {
            let worst =
                (task.worst_response_ns).map(|ns| row(name, cell, &task.task, ns as f64 / 1e9));
            text.extend(worst);
        }
    }
    let of_bounds: [OfBound; 2] = [
        (
            "task_bound_seconds",
            "Proved bound on the task's response time.",
            |bound| bound.bound_ns as f64 / 1e9,
        ),
        (
            "task_bound_in_force",
            "Whether all that is looked at of the bound's assumptions holds.",
            |bound| f64::from(u8::from(bound.state == State::InForce)),
        ),
    ];
    for (name, help, value) in of_bounds {
        head(&mut text, name, "gauge", help);
        for cell in &cells {
            let bounds = cell.bounds.iter();
            text.extend(bounds.map(|bound| row(name, cell, &bound.task, value(bound))));
        }
    }
    text
}

/// The series of a histogram; none if nothing was counted.
fn histogram(text: &mut String, name: &str, labels: &str, responses: &Responses) {
    if responses.is_unknown() {
        return;
    }
    let mut count = 0u64;
    for (bucket, jobs) in responses.counts.iter().enumerate() {
        count = count.saturating_add(*jobs);
        let end = bucket_end_ns(bucket);
        let end = end.map_or("+Inf".to_owned(), |ns| (ns as f64 / 1e9).to_string());
        let _ = writeln!(
            text,
            "timecell_{name}_bucket{{{labels},le=\"{end}\"}} {count}"
        );
    }
    let sum = responses.sum_ns as f64 / 1e9;
    let _ = writeln!(text, "timecell_{name}_sum{{{labels}}} {sum}");
    let _ = writeln!(text, "timecell_{name}_count{{{labels}}} {count}");
}

/// The value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
