//! Mean and standard deviation, over rounds, of each round's average and worst value: the field's way to sum up
//! repeated latency tests.

use super::section::{Page, Section};
use crate::grid::{Table, name};
use maud::html;
use record::summary::{CellSummary, MetricSummary};

/// With fewer rounds nothing varies.
const LEAST_ROUNDS: usize = 2;

pub(super) fn section(page: &Page) -> Option<Section> {
    let rows: Vec<(&CellSummary, [f64; 4])> = (page.data.summary.cells.iter())
        .filter_map(|cell| Some((cell, numbers(cell.metrics.first()?)?)))
        .collect();
    let title = page.data.summary.primary.title();
    (!rows.is_empty()).then(|| Section {
        id: "repetitions",
        heading: "Over repetitions".to_owned(),
        body: html! {
            p.quiet {
                "Each round has an average and a worst " (title) "; the table shows their means and standard deviations over rounds. The \
                 mean of the worst grows with the length of a round, so it compares only rounds of equal length; the worst of all rounds \
                 is the maximum in the table above."
            }
            (table(rows))
        },
    })
}

/// Mean and standard deviation of the averages, then of the worst values, ns.
fn numbers(metric: &MetricSummary) -> Option<[f64; 4]> {
    if metric.round_means_ns.len() < LEAST_ROUNDS {
        return None;
    }
    let worst: Vec<f64> = metric.round_maxima_ns.iter().map(|&ns| ns as f64).collect();
    let (mean_of_average, sd_of_average) = mean_and_sd(&metric.round_means_ns);
    let (mean_of_worst, sd_of_worst) = mean_and_sd(&worst);
    Some([mean_of_average, sd_of_average, mean_of_worst, sd_of_worst])
}

/// With the divisor n - 1.
fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0)).sqrt())
}

fn table(rows: Vec<(&CellSummary, [f64; 4])>) -> Table<(&CellSummary, [f64; 4])> {
    let table = Table::new("Average and worst over rounds", rows)
        .detail()
        .head("cell", |(cell, _)| name(cell));
    let headings = [
        "mean of average",
        "sd of average",
        "mean of worst",
        "sd of worst",
    ];
    let numbers = headings.iter().enumerate();
    numbers
        .fold(table, |table, (at, heading)| {
            table.times(heading, |(_, numbers)| Some(numbers[at]))
        })
        .number("rounds", |(cell, _)| cell.rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        let (mean, sd) = mean_and_sd(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert!((mean - 5.0).abs() < 1e-12);
        assert!((sd - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    }
}
