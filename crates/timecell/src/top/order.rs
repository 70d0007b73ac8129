//! The filter and the order of the rows shown.

use std::cmp::Reverse;

use super::scene::{Row, Scene, TaskRow};
use crate::cli::TopSort;

/// Order and filter of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The column to sort by.
    pub by: TopSort,
    /// Whether the order is reversed.
    pub reversed: bool,
    /// Show only rows that contain this, in any column of words.
    pub filter: String,
}

impl Order {
    /// Sorts by this column, and shows only rows that contain `filter`.
    pub fn of(by: TopSort, filter: Option<String>) -> Order {
        Order {
            by,
            reversed: false,
            filter: filter.unwrap_or_default(),
        }
    }

    /// The rows to show.
    fn rows<'a>(&self, scene: &'a Scene) -> Vec<&'a Row> {
        let mut rows: Vec<&Row> = (scene.rows.iter()).filter(|row| self.shows(row)).collect();
        match self.by {
            // The rows already have the order of the experiment.
            TopSort::Cell => {}
            TopSort::Cpu => rows.sort_by_key(|row| Reverse(millionths(row.cpu_share))),
            TopSort::Jobs => rows.sort_by_key(|row| Reverse(row.jobs)),
            TopSort::Skipped => rows.sort_by_key(|row| Reverse(row.skipped)),
            TopSort::Latency => rows.sort_by_key(|row| Reverse(row.worst_latency_ns)),
            TopSort::Execution => rows.sort_by_key(|row| Reverse(row.worst_execution_ns)),
            TopSort::Late => rows.sort_by_key(|row| Reverse(row.kept.and_then(|kept| kept.late))),
            TopSort::Response => {
                rows.sort_by_key(|row| Reverse(row.kept.and_then(|kept| kept.worst_response_ns)));
            }
            TopSort::Starts => rows.sort_by_key(|row| Reverse(row.kept.map(|kept| kept.starts))),
        }
        if self.reversed {
            rows.reverse();
        }
        rows
    }

    /// The lines to show: each of the rows, with those of its tasks below it.
    pub fn lines<'a>(&self, scene: &'a Scene) -> Vec<(&'a Row, Option<&'a TaskRow>)> {
        let lines = |row: &'a Row| {
            let tasks = row.tasks.iter().map(move |task| (row, Some(task)));
            std::iter::once((row, None)).chain(tasks)
        };
        self.rows(scene).into_iter().flat_map(lines).collect()
    }

    fn shows(&self, row: &Row) -> bool {
        let words = [&row.id, &row.engine, &row.class, row.state];
        let mut words = words.into_iter().chain(row.enforcer.as_deref());
        self.filter.is_empty() || words.any(|word| word.contains(&self.filter))
    }

    /// Switches to the next of these columns.
    pub fn turn(&mut self, among: &[TopSort]) {
        let at = among.iter().position(|by| *by == self.by);
        let next = at.map_or(0, |at| at + 1);
        self.by = among.get(next).copied().unwrap_or(TopSort::Cell);
    }
}

/// A share as a number that can be ordered; unknown ones come last.
fn millionths(share: Option<f64>) -> Option<u64> {
    share.map(|share| (share * 1e6) as u64)
}

#[cfg(test)]
mod tests {
    use super::super::columns::tests::three;
    use super::*;

    fn ids(order: &Order) -> Vec<String> {
        let scene = three();
        order
            .rows(&scene)
            .iter()
            .map(|row| row.id.clone())
            .collect()
    }

    #[test]
    fn the_worst_come_first_and_the_filter_reads_words() {
        let mut order = Order::of(TopSort::Skipped, None);
        assert_eq!(ids(&order), ["10-embedded", "1-embedded", "2-embedded"]);
        order.reversed = true;
        assert_eq!(ids(&order), ["2-embedded", "1-embedded", "10-embedded"]);
        let order = Order::of(TopSort::Cpu, None);
        assert_eq!(ids(&order), ["1-embedded", "10-embedded", "2-embedded"]);
        let order = Order::of(TopSort::Cell, Some("fail".to_owned()));
        assert_eq!(ids(&order), ["10-embedded"]);
        let mut turned = Order::of(TopSort::Cell, None);
        for _ in 0..6 {
            turned.turn(three().kind.orders);
        }
        assert_eq!(turned.by, TopSort::Cell, "all columns have had their turn");
    }
}
