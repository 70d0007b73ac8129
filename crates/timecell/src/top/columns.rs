//! The columns, and the table that `--once` prints.

use clap::ValueEnum as _;
use model::InputError;
use report::grouped;

use super::order::Order;
use super::scene::{Row, Scene, TaskRow};
use crate::cli::TopSort;

/// One column: its head, whether it is right-aligned, its text, and which of the figures of a task it shows.
pub struct Column {
    pub head: &'static str,
    pub right: bool,
    pub text: fn(&Row) -> String,
    pub figure: Option<usize>,
}

/// A kind of thing to watch; to add one, add a value of this type.
pub struct Kind {
    /// Its noun.
    what: &'static str,
    /// From left to right.
    pub columns: &'static [Column],
    /// The orders in which it can be sorted, in the order of the `s` key.
    pub orders: &'static [TopSort],
    /// The states of its cells, in the order in which they are counted.
    states: &'static [&'static str],
    /// JSON keys of a scene and its rows that do not apply to it.
    pub lacks: &'static [&'static str],
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kind")
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Kind {
    /// The error if it cannot be sorted by this column.
    pub fn refuses(&self, by: TopSort) -> Option<InputError> {
        let word = |by: TopSort| {
            by.to_possible_value()
                .map(|value| value.get_name().to_owned())
        };
        let orders: Vec<String> = self.orders.iter().filter_map(|by| word(*by)).collect();
        (!self.orders.contains(&by)).then(|| {
            let by = word(by).unwrap_or_default();
            let what = format!("{} has no column `{by}`", self.what);
            let fix = format!("it can be sorted by {}", orders.join(", "));
            InputError::new("--sort", what, fix)
        })
    }
}

/// A running experiment.
pub static EXPERIMENT: Kind = Kind {
    what: "an experiment",
    columns: &COLUMNS,
    orders: &[
        TopSort::Cell,
        TopSort::Cpu,
        TopSort::Jobs,
        TopSort::Skipped,
        TopSort::Latency,
        TopSort::Execution,
    ],
    states: &["absent", "present", "armed", "running", "done", "failed"],
    lacks: &["enforcer", "tasks"],
};

/// A running mission.
pub static MISSION: Kind = Kind {
    what: "a mission",
    columns: &OF_MISSION,
    orders: &[
        TopSort::Cell,
        TopSort::Cpu,
        TopSort::Jobs,
        TopSort::Late,
        TopSort::Response,
        TopSort::Starts,
    ],
    states: &[
        "running",
        "starting",
        "restarting",
        "waiting",
        "ending",
        "stopped",
        "orphan",
        "gone",
    ],
    lacks: &[
        "run",
        "left_ns",
        "loads",
        "shared_reservation",
        "engine",
        "planned",
        "skipped",
        "lost",
        "unseen",
        "worst_latency_ns",
        "worst_execution_ns",
    ],
};

const OF_MISSION: [Column; 13] = [
    left("cell", |row| row.id.clone()),
    left("state", |row| row.state.to_owned()),
    right("cpu", |row| host::cpus::format_list(&row.cpus)),
    right("starts", |row| {
        row.kept.map_or(none(), |kept| grouped(kept.starts))
    }),
    left("budget", |row| row.reservation.clone().unwrap_or_else(none)),
    right("cpu %", cpu_share),
    right("cpu time", cpu_time),
    figure("jobs", 0, |row| row.figures[0].clone()),
    figure("late", 1, |row| row.figures[1].clone()),
    figure("skipped", 2, |row| row.figures[2].clone()),
    figure("worst response", 3, |row| row.figures[3].clone()),
    figure("bound", 4, |row| row.figures[4].clone()),
    left("", |row| row.failure.clone().unwrap_or_default()),
];

fn cpu_share(row: &Row) -> String {
    (row.cpu_share).map_or(none(), |share| format!("{:.1}", share * 100.0))
}

fn cpu_time(row: &Row) -> String {
    (row.cpu_ns).map_or(none(), |ns| report::time(ns as f64))
}

const COLUMNS: [Column; 11] = [
    left("cell", |row| row.id.clone()),
    left("engine", |row| row.engine.clone()),
    right("cpu", |row| host::cpus::format_list(&row.cpus)),
    left("class", class),
    left("state", |row| row.state.to_owned()),
    right("cpu %", cpu_share),
    right("cpu time", cpu_time),
    right("jobs", jobs),
    right("skipped", |row| grouped(row.skipped)),
    right("worst latency", |row| worst(row, row.worst_latency_ns)),
    right("worst execution", |row| worst(row, row.worst_execution_ns)),
];

const fn left(head: &'static str, text: fn(&Row) -> String) -> Column {
    Column {
        head,
        right: false,
        text,
        figure: None,
    }
}

const fn right(head: &'static str, text: fn(&Row) -> String) -> Column {
    Column {
        right: true,
        ..left(head, text)
    }
}

/// The figure at this place, of a cell and of its tasks.
const fn figure(head: &'static str, at: usize, text: fn(&Row) -> String) -> Column {
    Column {
        figure: Some(at),
        ..right(head, text)
    }
}

fn none() -> String {
    "-".to_owned()
}

fn class(row: &Row) -> String {
    match &row.reservation {
        Some(held) => format!("{}, {held}", row.class),
        None => row.class.clone(),
    }
}

fn jobs(row: &Row) -> String {
    match row.planned {
        Some(planned) => format!("{}/{}", grouped(row.jobs), grouped(planned)),
        None => grouped(row.jobs),
    }
}

/// A worst value, marked if a worse one may have been missed.
fn worst(row: &Row, ns: Option<i64>) -> String {
    let mark = if row.unseen > 0 { ">= " } else { "" };
    ns.map_or(none(), |ns| format!("{mark}{}", report::time(ns as f64)))
}

/// The lines above the cells.
pub fn heads(scene: &Scene) -> Vec<String> {
    let mut first = scene.what.clone();
    if scene.kind == &EXPERIMENT {
        first.push_str(&format!(
            "; about {} left",
            report::time(scene.left_ns as f64)
        ));
    }
    if !scene.loads.is_empty() {
        first = format!("{first}; under {}", scene.loads.join(", "));
    }
    let cpus: Vec<String> = (scene.cpus.iter())
        .map(|cpu| format!("cpu {} {:.0} %", cpu.cpu, cpu.busy * 100.0))
        .collect();
    let mut second: Vec<String> = vec![cpus.join(", ")];
    second.extend(scene.rt_limit.clone());
    second.extend(
        (scene.shared_reservation.as_ref()).map(|held| format!("the cells together {held}")),
    );
    second.extend(
        (scene.own_share).map(|share| format!("top itself {:.1} % of one cpu", share * 100.0)),
    );
    second.retain(|part| !part.is_empty());
    vec![first, second.join("; "), counts(scene)]
}

/// Such as `64 cells: 60 running, 4 failed`.
fn counts(scene: &Scene) -> String {
    let counted: Vec<String> = (scene.kind.states.iter())
        .filter_map(|state| {
            let count = scene.rows.iter().filter(|row| row.state == *state).count();
            (count > 0).then(|| format!("{} {state}", grouped(count)))
        })
        .collect();
    let late: u64 = (scene.rows.iter()).filter_map(|row| row.kept?.late).sum();
    let skipped: u64 = scene.rows.iter().map(|row| row.skipped).sum();
    let lost: u64 = scene.rows.iter().map(|row| row.lost).sum();
    let cells = match scene.rows.len() {
        1 => "1 cell".to_owned(),
        count => format!("{} cells", grouped(count)),
    };
    let bad = match scene.kind == &MISSION {
        true => format!("{} late", grouped(late)),
        false => format!("{} skipped", grouped(skipped)),
    };
    let mut line = format!("{cells}: {}; {bad}", counted.join(", "));
    if lost > 0 {
        line = format!("{line}, {} lost", grouped(lost));
    }
    line
}

/// Width of each column for these rows.
pub fn widths<'a>(kind: &Kind, rows: impl Iterator<Item = &'a [String]>) -> Vec<usize> {
    let mut widths: Vec<usize> = (kind.columns.iter())
        .map(|column| column.head.len())
        .collect();
    for row in rows {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = (*width).max(text.chars().count());
        }
    }
    widths
}

/// The texts of the line of a row, or of one of its tasks.
pub fn texts(kind: &Kind, (row, task): (&Row, Option<&TaskRow>)) -> Vec<String> {
    let Some(task) = task else {
        let columns = kind.columns.iter();
        return columns.map(|column| (column.text)(row)).collect();
    };
    let figures = kind.columns.iter().skip(1).map(|column| column.figure);
    let figures = figures.map(|at| at.map_or(String::new(), |at| task.figures[at].clone()));
    let name = std::iter::once(format!("  {}", task.task));
    name.chain(figures).collect()
}

/// Texts side by side, separated by two blanks.
pub fn line(kind: &Kind, texts: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for ((text, width), column) in texts.iter().zip(widths).zip(kind.columns) {
        if !line.is_empty() {
            line.push_str("  ");
        }
        let gap = " ".repeat(width.saturating_sub(text.chars().count()));
        if column.right {
            line.push_str(&gap);
            line.push_str(text);
        } else {
            line.push_str(text);
            line.push_str(&gap);
        }
    }
    line.trim_end().to_owned()
}

/// The heads of the columns in one line.
pub fn head_line(kind: &Kind, widths: &[usize]) -> String {
    let heads: Vec<String> = (kind.columns.iter())
        .map(|column| column.head.to_owned())
        .collect();
    line(kind, &heads, widths)
}

/// The whole as text.
pub fn table(scene: &Scene, order: &Order) -> String {
    let kind = scene.kind;
    let rows: Vec<Vec<String>> = (order.lines(scene).into_iter())
        .map(|line| texts(kind, line))
        .collect();
    let widths = widths(kind, rows.iter().map(Vec::as_slice));
    let mut text = heads(scene).join("\n");
    text.push_str("\n\n");
    text.push_str(&head_line(kind, &widths));
    for row in &rows {
        text.push('\n');
        text.push_str(&line(kind, row, &widths));
    }
    // A mission has a column for it.
    let below = scene.rows.iter().filter(|_| kind == &EXPERIMENT);
    for row in below {
        if let Some(why) = &row.failure {
            text.push_str(&format!("\n{}: {why}", row.id));
        }
    }
    text
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Three cells: one at work, one that waits, one that failed.
    pub fn three() -> Scene {
        let row = |id: &str, state: &'static str, share: f64, skipped: u64| Row {
            id: id.to_owned(),
            engine: "embedded".to_owned(),
            cpus: vec![1],
            class: "FIFO 80".to_owned(),
            enforcer: None,
            reservation: None,
            state,
            failure: None,
            pid: Some(7),
            cpu_share: Some(share),
            cpu_ns: Some(12_300_000),
            jobs: 1_200,
            planned: Some(5_000),
            skipped,
            lost: 0,
            unseen: 0,
            worst_latency_ns: Some(48_200),
            worst_execution_ns: None,
            kept: None,
            figures: Default::default(),
            tasks: Vec::new(),
        };
        let mut rows = vec![
            row("1-embedded", "running", 0.253, 2),
            row("2-embedded", "armed", 0.0, 0),
            row("10-embedded", "failed", 0.1, 3),
        ];
        rows[2].failure = Some("its process has ended".to_owned());
        rows[2].unseen = 4;
        Scene {
            kind: &EXPERIMENT,
            schema: 1,
            what: "scale: trial 2 of 15, embedded-3, round 1 of 1".to_owned(),
            run: "runs/x".to_owned(),
            pid: 9,
            left_ns: 12_000_000_000,
            loads: vec!["cpu".to_owned()],
            shared_reservation: None,
            rt_limit: Some("real-time tasks may take 95 % of a cpu".to_owned()),
            cpus: Vec::new(),
            own_share: Some(0.004),
            rows,
        }
    }

    #[test]
    fn each_task_of_a_mission_has_a_line_below_its_cell() {
        let words = |of: &str| std::array::from_fn(|at| format!("{of}{at}"));
        let mut scene = Scene {
            kind: &MISSION,
            ..three()
        };
        scene.rows[0].figures = words("sum");
        scene.rows[0].tasks = ["control", "log"]
            .map(|task| TaskRow {
                task: task.to_owned(),
                jobs: Some(1),
                late: Some(0),
                skipped: Some(0),
                worst_response_ns: None,
                bound_ns: None,
                figures: words(task),
            })
            .to_vec();
        let text = table(&scene, &Order::of(TopSort::Cell, None));
        let lines: Vec<&str> = text.lines().skip(4).collect();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words(lines[1]).ends_with("sum0 sum1 sum2 sum3 sum4"),
            "{text}"
        );
        assert!(lines[2].starts_with("  control "), "{text}");
        assert_eq!(words(lines[3]), "log log0 log1 log2 log3 log4");
        assert!(lines[4].starts_with("2-embedded"), "{text}");
        assert_eq!(scene.json().matches("\"task\":").count(), 2);
        scene.kind = &EXPERIMENT;
        assert!(!scene.json().contains("\"tasks\""), "{}", scene.json());
    }

    #[test]
    fn what_has_no_column_is_not_sorted_by() {
        let refused = |kind: &Kind| {
            let all = TopSort::value_variants().iter();
            let all = all.filter(|by| kind.refuses(**by).is_some());
            all.copied().collect::<Vec<_>>()
        };
        assert_eq!(
            refused(&EXPERIMENT),
            [TopSort::Late, TopSort::Response, TopSort::Starts]
        );
        assert_eq!(
            refused(&MISSION),
            [TopSort::Skipped, TopSort::Latency, TopSort::Execution]
        );
        assert_eq!(
            MISSION.refuses(TopSort::Skipped).unwrap().to_string(),
            "--sort: a mission has no column `skipped`; it can be sorted by cell, cpu, jobs, late, response, starts"
        );
    }

    #[test]
    fn a_table_says_what_runs_and_where_each_cell_stands() {
        let order = Order::of(crate::cli::TopSort::Cell, None);
        let text = table(&three(), &order);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("left; under cpu"), "{text}");
        assert!(lines[1].contains("top itself 0.4 % of one cpu"), "{text}");
        assert_eq!(lines[2], "3 cells: 1 armed, 1 running, 1 failed; 5 skipped");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            words(lines[5]),
            "1-embedded embedded 1 FIFO 80 running 25.3 12.3 ms 1,200/5,000 2 48.2 us -"
        );
        assert!(lines[7].contains(">= 48.2 us"), "{text}");
        assert_eq!(lines[8], "10-embedded: its process has ended");
    }
}
