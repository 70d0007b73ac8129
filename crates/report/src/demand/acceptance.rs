//! Acceptance ratios as a figure.

use super::SIZE;
use crate::chart::Axis;
use crate::figure::alone;
use crate::figure::plot::{Plot, Side};
use feasibility::Acceptance;

/// The curves as an SVG document.
pub fn acceptance_svg(acceptance: &Acceptance) -> String {
    let x = Axis::linear(acceptance.utilizations.iter().copied());
    let x = Side::plain(x, "total utilization");
    let y = Side::plain(Axis::linear([0.0, 1.0]), "share of sets accepted");
    let mut plot = Plot::wide(x, y, SIZE);
    // Marks distinguish the curves; one at every point would hide them.
    let every = (acceptance.utilizations.len() / 12).max(1);
    for curve in &acceptance.curves {
        let numbered = acceptance.utilizations.iter().enumerate();
        let points = numbered.map(|(point, &u)| (u, acceptance.ratio(curve, point)));
        plot.line(curve.look, points.clone());
        plot.marks(curve.look, points.step_by(every));
        plot.name(curve.look, &*curve.name);
    }
    let caption = format!(
        "The share of generated sets that each test accepts. {}",
        acceptance.made
    );
    alone(
        &plot.figure("acceptance", "Acceptance ratio", caption),
        &acceptance.made,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use feasibility::Curve;

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
