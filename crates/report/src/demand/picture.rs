use super::{WIDTH, line};
use crate::chart::{
    Axis, Band, Dress, Entry, document, legend, legend_height, n, sample, title_below, title_left,
    x_axis, y_axis,
};
use crate::units::{Unit, time};
use crate::words::{clean, shortened};
use maud::html;
use std::fmt::Write;

const LEFT: f64 = 74.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 360.0;

/// Characters of the line below the picture.
const NOTE: usize = 100;

/// An instant to point out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The instant, ns.
    pub instant: u64,
    /// Demand there, ns.
    pub demand: u64,
    /// Supply there, ns.
    pub supply: u64,
    /// Whether the demand is more than the supply: a deadline is missed.
    pub missed: bool,
}

/// Demand against supply over one interval, all in ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// The heading, such as `cell control: task loop under fp`.
    pub title: String,
    /// What the demand counts.
    pub demand_of: String,
    /// What supplies.
    pub supply_of: String,
    /// Length of the interval.
    pub until: u64,
    /// The demand's steps: from each instant on, so much.
    pub demand: Vec<(u64, u64)>,
    /// The supply's corners, joined by straight lines.
    pub supply: Vec<(u64, u64)>,
    /// Deadlines to draw as upright lines.
    pub deadlines: Vec<u64>,
    /// The witness, or where the demand is met.
    pub mark: Option<Mark>,
}

/// The picture as an SVG document.
pub fn picture_svg(picture: &Picture) -> String {
    let highest = (picture.demand.iter().chain(&picture.supply))
        .map(|&(_, up)| up)
        .max()
        .unwrap_or(1);
    let x = Axis::linear([0.0, picture.until.max(1) as f64]).between(LEFT, RIGHT);
    let y = Axis::linear([0.0, highest.max(1) as f64]).between(BOTTOM, TOP);
    let (x_unit, y_unit) = (Unit::of(x.middle()), Unit::of(y.middle()));
    let entries = [
        Entry {
            look: 1,
            name: "demand",
        },
        Entry {
            look: 0,
            name: "least supply",
        },
    ];
    let caption = caption(picture);
    let body = html! {
        (title_left(8.0, TOP, &format!("cpu time in {}", y_unit.name())))
        (x_axis(&x, Band(TOP, BOTTOM), x_unit.ns()))
        (y_axis(&y, Band(LEFT, RIGHT), y_unit.ns()))
        (title_below(&x, BOTTOM, &format!("time since the worst-case instant in {}", x_unit.name())))
        @for &deadline in picture.deadlines.iter().filter(|&&d| d <= picture.until) {
            path class="ref" d=(format!("M{} {}V{}", n(x.at(deadline as f64)), n(TOP), n(BOTTOM))) {}
        }
        path class="line s0 d0" d=(line(&floats(&picture.supply), &x, &y)) {}
        path class="line s1 d1" d=(steps(picture, &x, &y)) {}
        @if let Some(mark) = &picture.mark {
            @let (across, up) = (x.at(mark.instant as f64), y.at(mark.demand as f64));
            path class="tail" d=(format!("M{} {}V{}", n(across), n(up), n(y.at(mark.supply as f64)))) {}
            path class="mark s1" d=(sample(crate::chart::Mark::of(1), across, up)) {}
            path class="mark s0" d=(sample(crate::chart::Mark::of(0), across, y.at(mark.supply as f64))) {}
            @let (class, shift) = if across > (LEFT + RIGHT) / 2.0 { ("tailtext end", -9.0) } else { ("tailtext", 9.0) };
            text class=(class) x=(n(across + shift)) y=(n((up - 8.0).max(TOP + 12.0))) { (label(mark)) }
        }
        (legend(&entries, LEFT, BOTTOM + 60.0, WIDTH - LEFT))
    };
    let note = clean(&format!(
        "{}; {}; dashed: deadlines",
        picture.demand_of, picture.supply_of
    ));
    let dress = Dress {
        title: &clean(&picture.title),
        caption: &caption,
        note: &shortened(&note, NOTE),
        size: (WIDTH, BOTTOM + 56.0 + legend_height(&entries, WIDTH - LEFT)),
    };
    document(&dress, &body)
}

fn label(mark: &Mark) -> String {
    let at = time(mark.instant as f64);
    if mark.missed {
        let short = mark.demand.saturating_sub(mark.supply) as f64;
        format!("witness at {at}: {} short", time(short))
    } else {
        format!("met at {at}")
    }
}

fn caption(picture: &Picture) -> String {
    let end = match &picture.mark {
        Some(mark) if mark.missed => format!(
            " At {} the demand is {} and the supply {}: a deadline is missed.",
            time(mark.instant as f64),
            time(mark.demand as f64),
            time(mark.supply as f64)
        ),
        Some(mark) => format!(" The demand is met at {}.", time(mark.instant as f64)),
        None => String::new(),
    };
    format!(
        "Steps: {}. Slopes: {}. Deadlines hold as long as the supply reaches the demand in time.{end}",
        picture.demand_of, picture.supply_of
    )
}

fn floats(points: &[(u64, u64)]) -> Vec<(f64, f64)> {
    points.iter().map(|&(x, y)| (x as f64, y as f64)).collect()
}

fn steps(picture: &Picture, x: &Axis, y: &Axis) -> String {
    let mut path = String::new();
    for (place, &(across, up)) in picture.demand.iter().enumerate() {
        let (across, up) = (n(x.at(across as f64)), n(y.at(up as f64)));
        let _ = match place {
            0 => write!(path, "M{across} {up}"),
            _ => write!(path, "H{across}V{up}"),
        };
    }
    if !path.is_empty() {
        let _ = write!(path, "H{}", n(x.at(picture.until as f64)));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> Picture {
        Picture {
            title: "cell <a>".to_owned(),
            demand_of: "work of x & y".to_owned(),
            supply_of: "2 ms every 10 ms".to_owned(),
            until: 20_000_000,
            demand: vec![
                (0, 1_000_000),
                (5_000_000, 2_000_000),
                (10_000_000, 3_000_000),
            ],
            supply: vec![(0, 0), (16_000_000, 0), (18_000_000, 2_000_000)],
            deadlines: vec![10_000_000],
            mark: Some(Mark {
                instant: 10_000_000,
                demand: 3_000_000,
                supply: 0,
                missed: true,
            }),
        }
    }

    #[test]
    fn the_witness_is_marked_and_texts_are_escaped() {
        let svg = picture_svg(&picture());
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"));
        assert!(svg.contains("witness at 10.0 ms: 3.00 ms short"), "{svg}");
        assert!(svg.contains("cell &lt;a&gt;") && svg.contains("x &amp; y"));
        let met = Mark {
            missed: false,
            ..picture().mark.expect("there is one")
        };
        let svg = picture_svg(&Picture {
            mark: Some(met),
            ..picture()
        });
        assert!(svg.contains("met at 10.0 ms") && !svg.contains("witness at"));
    }

    #[test]
    fn nothing_and_the_largest_times_are_no_panic() {
        let empty = Picture {
            until: 0,
            demand: Vec::new(),
            supply: Vec::new(),
            deadlines: Vec::new(),
            mark: None,
            ..picture()
        };
        assert!(picture_svg(&empty).contains("</svg>"));
        let large = Picture {
            until: u64::MAX,
            demand: vec![(0, u64::MAX)],
            supply: vec![(u64::MAX, u64::MAX)],
            ..picture()
        };
        assert!(!picture_svg(&large).contains("NaN"));
    }
}
