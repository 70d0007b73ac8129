//! What the columns say, and the table that `--once` prints.

use super::order::Order;
use super::scene::{Row, Scene};
use crate::commands::bench::grouped;

/// One column: its head, whether it stands to the right, its text.
pub struct Column {
    pub head: &'static str,
    pub right: bool,
    pub text: fn(&Row) -> String,
}

/// Every column, from left to right.
pub const COLUMNS: [Column; 11] = [
    left("cell", |row| row.id.clone()),
    left("engine", |row| row.engine.clone()),
    right("cpu", |row| host::cpus::format_list(&row.cpus)),
    left("class", class),
    left("state", |row| row.state.to_owned()),
    right("cpu %", |row| {
        row.cpu_share
            .map_or(none(), |share| format!("{:.1}", share * 100.0))
    }),
    right("cpu time", |row| {
        row.cpu_ns.map_or(none(), |ns| report::time(ns as f64))
    }),
    right("jobs", jobs),
    right("missed", |row| grouped(row.missed)),
    right("worst latency", |row| worst(row, row.worst_latency_ns)),
    right("worst execution", |row| worst(row, row.worst_execution_ns)),
];

const fn left(head: &'static str, text: fn(&Row) -> String) -> Column {
    Column {
        head,
        right: false,
        text,
    }
}

const fn right(head: &'static str, text: fn(&Row) -> String) -> Column {
    Column {
        head,
        right: true,
        text,
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

/// A worst value of which worse may have been missed is marked.
fn worst(row: &Row, ns: Option<i64>) -> String {
    let mark = if row.unseen > 0 { ">= " } else { "" };
    ns.map_or(none(), |ns| format!("{mark}{}", report::time(ns as f64)))
}

/// What stands above the cells, a sentence a line.
pub fn heads(scene: &Scene) -> Vec<String> {
    let left = report::time(scene.left_ns as f64);
    let mut first = format!("{}; about {left} left", scene.what);
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
    let states = ["absent", "present", "armed", "running", "done", "failed"];
    let counted: Vec<String> = (states.iter())
        .filter_map(|state| {
            let count = scene.rows.iter().filter(|row| row.state == *state).count();
            (count > 0).then(|| format!("{} {state}", grouped(count as u64)))
        })
        .collect();
    let missed: u64 = scene.rows.iter().map(|row| row.missed).sum();
    let lost: u64 = scene.rows.iter().map(|row| row.lost).sum();
    let cells = match scene.rows.len() {
        1 => "1 cell".to_owned(),
        count => format!("{} cells", grouped(count as u64)),
    };
    let mut line = format!(
        "{cells}: {}; {} missed",
        counted.join(", "),
        grouped(missed)
    );
    if lost > 0 {
        line = format!("{line}, {} lost", grouped(lost));
    }
    line
}

/// Width of each column for these rows.
pub fn widths<'a>(rows: impl Iterator<Item = &'a [String]>) -> Vec<usize> {
    let mut widths: Vec<usize> = (COLUMNS.iter()).map(|column| column.head.len()).collect();
    for row in rows {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = (*width).max(text.chars().count());
        }
    }
    widths
}

/// The texts of a row.
pub fn texts(row: &Row) -> Vec<String> {
    COLUMNS.iter().map(|column| (column.text)(row)).collect()
}

/// Texts side by side, two blanks between.
pub fn line(texts: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for ((text, width), column) in texts.iter().zip(widths).zip(&COLUMNS) {
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
pub fn head_line(widths: &[usize]) -> String {
    let heads: Vec<String> = (COLUMNS.iter())
        .map(|column| column.head.to_owned())
        .collect();
    line(&heads, widths)
}

/// The whole as text.
pub fn table(scene: &Scene, order: &Order) -> String {
    let rows: Vec<Vec<String>> = (order.rows(scene).into_iter()).map(texts).collect();
    let widths = widths(rows.iter().map(Vec::as_slice));
    let mut text = heads(scene).join("\n");
    text.push_str("\n\n");
    text.push_str(&head_line(&widths));
    for row in &rows {
        text.push('\n');
        text.push_str(&line(row, &widths));
    }
    for row in &scene.rows {
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
        let row = |id: &str, state: &'static str, share: f64, missed: u64| Row {
            id: id.to_owned(),
            engine: "embedded".to_owned(),
            cpus: vec![1],
            class: "FIFO 80".to_owned(),
            reservation: None,
            state,
            failure: None,
            pid: Some(7),
            cpu_share: Some(share),
            cpu_ns: Some(12_300_000),
            jobs: 1_200,
            planned: Some(5_000),
            missed,
            lost: 0,
            unseen: 0,
            worst_latency_ns: Some(48_200),
            worst_execution_ns: None,
        };
        let mut rows = vec![
            row("1-embedded", "running", 0.253, 2),
            row("2-embedded", "armed", 0.0, 0),
            row("10-embedded", "failed", 0.1, 3),
        ];
        rows[2].failure = Some("its process has ended".to_owned());
        rows[2].unseen = 4;
        Scene {
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
    fn a_table_says_what_runs_and_where_each_cell_stands() {
        let order = Order::of(crate::cli::TopSort::Cell, None);
        let text = table(&three(), &order);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("left; under cpu"), "{text}");
        assert!(lines[1].contains("top itself 0.4 % of one cpu"), "{text}");
        assert_eq!(lines[2], "3 cells: 1 armed, 1 running, 1 failed; 5 missed");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            words(lines[5]),
            "1-embedded embedded 1 FIFO 80 running 25.3 12.3 ms 1,200/5,000 2 48.2 us -"
        );
        assert!(lines[7].contains(">= 48.2 us"), "{text}");
        assert_eq!(lines[8], "10-embedded: its process has ended");
    }
}
