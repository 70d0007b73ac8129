//! Acceptance ratios of generated sets: as data, as a table and as CSV.

use std::fmt::Write;
use text::grid::{Column, render};
use text::style::Style;
use text::words::count;

/// One test: how many of the sets of each point it accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curve {
    /// The test.
    pub name: String,
    /// Its colour, dash and mark, the same wherever the test is drawn; 0 to 7.
    pub look: usize,
    /// Accepted sets at each point.
    pub accepted: Vec<u64>,
    /// Undecided sets at each point; they count as not accepted.
    pub undecided: Vec<u64>,
}

/// Acceptance ratios of several tests over the same generated sets.
#[derive(Debug, Clone, PartialEq)]
pub struct Acceptance {
    /// Total utilization of the sets of each point.
    pub utilizations: Vec<f64>,
    /// Sets at each point.
    pub sets: u64,
    /// How the sets were made, in a sentence.
    pub made: String,
    /// The tests.
    pub curves: Vec<Curve>,
}

impl Acceptance {
    /// The share of the sets of a point that a test accepted.
    pub fn ratio(&self, curve: &Curve, point: usize) -> f64 {
        let accepted = curve.accepted.get(point).copied().unwrap_or(0);
        accepted as f64 / self.sets.max(1) as f64
    }
}

/// The curves as CSV: one line for each point, the ratio of each test, and how many sets were left undecided.
pub fn acceptance_csv(acceptance: &Acceptance) -> String {
    let mut out = String::from("utilization,sets");
    for curve in &acceptance.curves {
        let name: String = (curve.name.chars())
            .map(|c| {
                if c.is_ascii_alphanumeric() {
                    c.to_ascii_lowercase()
                } else {
                    '_'
                }
            })
            .collect();
        let _ = write!(out, ",{name}_accepted,{name}_undecided");
    }
    out.push('\n');
    for (point, utilization) in acceptance.utilizations.iter().enumerate() {
        let _ = write!(out, "{utilization:.6},{}", acceptance.sets);
        for curve in &acceptance.curves {
            let at = |counts: &[u64]| counts.get(point).copied().unwrap_or(0);
            let _ = write!(out, ",{},{}", at(&curve.accepted), at(&curve.undecided));
        }
        out.push('\n');
    }
    out
}

/// Maximum number of points in the table; the files have all.
const ROWS: usize = 11;

/// The share of sets that each test accepts, at a few of the points. Ends with a line break.
pub fn acceptance_table(acceptance: &Acceptance, style: Style) -> String {
    let points = acceptance.utilizations.len();
    let rows = points.min(ROWS);
    let last = rows.saturating_sub(1).max(1);
    let shown: Vec<usize> = (0..rows)
        .map(|row| row * points.saturating_sub(1) / last)
        .collect();
    let utilizations = shown
        .iter()
        .map(|&point| format!("{:.3}", acceptance.utilizations[point]));
    let mut columns = vec![Column::plain("utilization", utilizations.collect()).right()];
    for curve in &acceptance.curves {
        let ratios = shown
            .iter()
            .map(|&point| format!("{:.3}", acceptance.ratio(curve, point)));
        columns.push(Column::plain(&curve.name, ratios.collect()).right());
    }
    let undecided: u64 = acceptance
        .curves
        .iter()
        .flat_map(|curve| &curve.undecided)
        .sum();
    let undecided = match undecided {
        0 => String::new(),
        some => format!(
            "; {} undecided answers counted as not accepted",
            count(some)
        ),
    };
    let sets = format!("sets    {}{undecided}", acceptance.made);
    format!("{}\n{}\n", render(&columns, style), style.wrap(&sets, 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_last_point_are_shown_and_undecided_is_said() {
        let acceptance = Acceptance {
            utilizations: (0..100).map(|k| f64::from(k) / 99.0).collect(),
            sets: 4,
            made: "4 sets".to_owned(),
            curves: vec![Curve {
                name: "test".to_owned(),
                look: 0,
                accepted: (0..100).map(|k| u64::from(k < 50) * 4).collect(),
                undecided: vec![1; 100],
            }],
        };
        let shown = acceptance_table(&acceptance, Style::default());
        assert_eq!(shown.lines().count(), 1 + ROWS + 2);
        for part in [
            "0.000   1.000",
            "1.000   0.000",
            "4 sets; 100 undecided answers",
        ] {
            assert!(shown.contains(part), "`{part}` is not in\n{shown}");
        }
        let none = Acceptance {
            utilizations: Vec::new(),
            curves: Vec::new(),
            ..acceptance
        };
        assert!(acceptance_table(&none, Style::default()).contains("4 sets"));
    }

    #[test]
    fn the_table_holds_every_point() {
        let acceptance = Acceptance {
            utilizations: vec![0.5, 0.75, 1.0],
            sets: 4,
            made: "4 sets".to_owned(),
            curves: vec![Curve {
                name: "EDF, QPA".to_owned(),
                look: 3,
                accepted: vec![4, 3, 0],
                undecided: vec![0, 0, 1],
            }],
        };
        let csv = acceptance_csv(&acceptance);
        assert_eq!(
            csv,
            "utilization,sets,edf__qpa_accepted,edf__qpa_undecided\n0.500000,4,4,0\n0.750000,4,3,0\n1.000000,4,0,1\n"
        );
    }
}
