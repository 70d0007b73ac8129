//! Acceptance ratios as a figure.

use super::{WIDTH, line};
use crate::chart::{
    Axis, Band, Dress, Entry, LOOKS, Mark, document, legend, legend_height, marks, title_below,
    title_left, x_axis, y_axis,
};
use maud::html;
use std::fmt::Write;

const LEFT: f64 = 74.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 360.0;

/// One test: how many of the sets of each point it accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curve {
    /// The test.
    pub name: String,
    /// Its colour, dash and mark, the same wherever the test is drawn; 0 to 7.
    pub look: usize,
    /// Sets accepted at each point.
    pub accepted: Vec<u64>,
    /// Sets left undecided at each point; they count as not accepted.
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

/// The curves as an SVG document.
pub fn acceptance_svg(acceptance: &Acceptance) -> String {
    let x = Axis::linear(acceptance.utilizations.iter().copied()).between(LEFT, RIGHT);
    let y = Axis::linear([0.0, 1.0]).between(BOTTOM, TOP);
    let entries: Vec<Entry> = (acceptance.curves.iter())
        .map(|curve| Entry {
            look: curve.look % LOOKS,
            name: &curve.name,
        })
        .collect();
    let points = |curve: &Curve| -> Vec<(f64, f64)> {
        let numbered = acceptance.utilizations.iter().enumerate();
        numbered
            .map(|(point, &u)| (u, acceptance.ratio(curve, point)))
            .collect()
    };
    // Marks tell the curves apart; one at every point would hide them.
    let every = (acceptance.utilizations.len() / 12).max(1);
    let body = html! {
        (title_left(8.0, TOP, "share of sets accepted"))
        (x_axis(&x, Band(TOP, BOTTOM), 1.0))
        (y_axis(&y, Band(LEFT, RIGHT), 1.0))
        (title_below(&x, BOTTOM, "total utilization"))
        @for curve in &acceptance.curves {
            @let look = curve.look % LOOKS;
            @let points = points(curve);
            path class=(format!("line s{look} d{look}")) d=(line(&points, &x, &y)) {}
            path class=(format!("mark s{look}"))
                d=(marks(Mark::of(look), points.iter().step_by(every).map(|&(u, a)| (x.at(u), y.at(a))))) {}
        }
        (legend(&entries, LEFT, BOTTOM + 60.0, WIDTH - LEFT))
    };
    let dress = Dress {
        title: "Acceptance ratio",
        caption: &format!(
            "The share of generated sets that each test accepts. {}",
            acceptance.made
        ),
        note: &acceptance.made,
        size: (WIDTH, BOTTOM + 56.0 + legend_height(&entries, WIDTH - LEFT)),
    };
    document(&dress, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acceptance() -> Acceptance {
        Acceptance {
            utilizations: vec![0.5, 0.75, 1.0],
            sets: 4,
            made: "4 sets".to_owned(),
            curves: vec![Curve {
                name: "EDF, QPA".to_owned(),
                look: 3,
                accepted: vec![4, 3, 0],
                undecided: vec![0, 0, 1],
            }],
        }
    }

    #[test]
    fn the_table_holds_every_point() {
        let csv = acceptance_csv(&acceptance());
        assert_eq!(
            csv,
            "utilization,sets,edf__qpa_accepted,edf__qpa_undecided\n0.500000,4,4,0\n0.750000,4,3,0\n1.000000,4,0,1\n"
        );
    }

    #[test]
    fn the_curves_fall_from_left_to_right() {
        let svg = acceptance_svg(&acceptance());
        assert!(svg.starts_with("<svg") && svg.contains("EDF, QPA"), "{svg}");
        let none = Acceptance {
            utilizations: Vec::new(),
            curves: Vec::new(),
            ..acceptance()
        };
        assert!(acceptance_svg(&none).contains("</svg>"));
    }
}
