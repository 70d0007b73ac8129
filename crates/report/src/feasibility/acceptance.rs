//! Acceptance ratios as a table.

use crate::demand::Acceptance;
use crate::style::Style;
use crate::table::{Column, render};
use crate::words::count;

/// Points that the table shows; the files have all.
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
            "; {} answers undecided, counted as not accepted",
            count(some)
        ),
    };
    let sets = format!("sets    {}{undecided}", acceptance.made);
    format!("{}\n{}\n", render(&columns, style), style.wrap(&sets, 8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::Curve;

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
            "4 sets; 100 answers undecided",
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
}
