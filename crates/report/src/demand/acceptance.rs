//! Acceptance ratios as a figure.

use super::{WIDTH, line};
use crate::chart::{
    Axis, Band, Dress, Entry, LOOKS, Mark, document, legend, legend_height, marks, title_below,
    title_left, x_axis, y_axis,
};
use feasibility::{Acceptance, Curve};
use maud::html;

const LEFT: f64 = 74.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 360.0;

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
    // Marks distinguish the curves; one at every point would hide them.
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
