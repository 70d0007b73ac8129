//! Demand and supply as a figure.

use super::SIZE;
use crate::chart::{Axis, n, sample};
use crate::figure::alone;
use crate::figure::plot::{Plot, Side};
use feasibility::{Mark, Picture, Touch};
use maud::{Markup, html};
use std::fmt::Write;
use text::units::time;
use text::words::{capital, clean, sentence};

/// The most deadlines drawn as vertical lines; more would hide the curves, and become ticks on the axis.
const UPRIGHT: usize = 16;

/// Length of those ticks in px, and how far they must be apart.
const TICK: f64 = 8.0;
const APART: f64 = 4.0;

/// The picture as an SVG document.
pub fn picture_svg(picture: &Picture) -> String {
    let highest = (picture.demand.iter().chain(&picture.supply))
        .map(|&(_, up)| up)
        .max()
        .unwrap_or(1);
    let x = Axis::linear([0.0, picture.until.max(1) as f64]);
    // Room above the curves for the label at the mark.
    let y = Axis::linear([0.0, highest.max(1) as f64 * 1.08]);
    let x = Side::time(x, "time since the worst-case instant");
    let mut plot = Plot::wide(x, Side::time(y, "cpu time"), SIZE);
    let (upright, ticks) = deadlines(picture, &plot.x);
    let (bottom, top) = plot.y.ends();
    plot.draw(html! {
        @for &across in &upright {
            path class="ref" d=(format!("M{} {}V{}", n(across), n(top), n(bottom))) {}
        }
        @for &across in ticks.iter().flatten() {
            path class="rule" d=(format!("M{} {}v{}", n(across), n(bottom), n(-TICK))) {}
        }
    });
    plot.line(0, picture.supply.iter().map(|&(x, y)| (x as f64, y as f64)));
    // The demand steps up at each of its points.
    let last = picture.demand.last().map(|&(_, up)| (picture.until, up));
    let steps = picture
        .demand
        .iter()
        .copied()
        .chain(last)
        .map(|(x, y)| (x as f64, y as f64));
    plot.rises(1, steps);
    if let Some(mark) = &picture.mark {
        plot.draw(pointed_out(mark, &plot.x, &plot.y));
    }
    plot.name(1, "demand");
    plot.name(0, "least supply");
    let mut note = format!("{}; {}", picture.demand_of, picture.supply_of);
    if !upright.is_empty() {
        let one = if ticks.is_none() { "" } else { " at the mark" };
        let _ = write!(note, "; dashed: {}{one}", picture.deadlines_of);
    }
    note += &match ticks {
        None => String::new(),
        Some(none) if none.is_empty() => {
            "; the other deadlines are too close to be drawn".to_owned()
        }
        Some(_) => format!("; ticks on the axis: {}", picture.deadlines_of),
    };
    let figure = plot.figure("demand", clean(&picture.title), caption(picture));
    alone(&figure, &clean(&sentence(&note)))
}

/// Positions of the deadlines within the picture: vertical lines, and ticks, none if they would run together.
fn deadlines(picture: &Picture, x: &Axis) -> (Vec<f64>, Option<Vec<f64>>) {
    let within = picture.deadlines.iter().copied();
    let all: Vec<u64> = within.filter(|&d| d <= picture.until).collect();
    let place = |&instant: &u64| x.at(instant as f64);
    let places: Vec<f64> = all.iter().map(place).collect();
    if all.len() <= UPRIGHT {
        return (places, None);
    }
    let decides = picture.mark.as_ref().map(|mark| mark.instant);
    let decides = decides.filter(|instant| all.contains(instant));
    let (left, right) = x.ends();
    let apart = all.len() as f64 * APART <= right - left;
    let ticks = if apart { places } else { Vec::new() };
    (decides.iter().map(place).collect(), Some(ticks))
}

/// The decisive instant: a mark on each curve, and a label where no curve passes.
fn pointed_out(mark: &Mark, x: &Axis, y: &Axis) -> Markup {
    let across = x.at(mark.instant as f64);
    let (demand, supply) = (y.at(mark.demand as f64), y.at(mark.supply as f64));
    let ((left, right), (bottom, top)) = (x.ends(), y.ends());
    // Both curves rise: there is room above them on the left, and below them on the right.
    let (end, shift, up) = if across > (left + right) / 2.0 {
        (" end", -9.0, (demand.min(supply) - 8.0).max(top + 12.0))
    } else {
        ("", 9.0, (demand.max(supply) + 16.0).min(bottom - 12.0))
    };
    let alarm = matches!(mark.touch, Touch::Missed | Touch::Doubt);
    let (gap, words) = if alarm {
        ("tail", " tailtext")
    } else {
        ("rule", "")
    };
    html! {
        path class=(gap) d=(format!("M{} {}V{}", n(across), n(demand), n(supply))) {}
        path class="mark s1" d=(sample(crate::chart::Mark::of(1), across, demand)) {}
        path class="mark s0" d=(sample(crate::chart::Mark::of(0), across, supply)) {}
        text class=(format!("over{words}{end}")) x=(n(across + shift)) y=(n(up)) { (label(mark)) }
    }
}

fn label(mark: &Mark) -> String {
    let at = time(mark.instant as f64);
    let short = time(mark.demand.saturating_sub(mark.supply) as f64);
    let spare = mark.supply.saturating_sub(mark.demand);
    match mark.touch {
        Touch::Missed => format!("witness at {at}: {short} short"),
        Touch::Doubt => format!("not shown to hold at {at}: {short} short"),
        Touch::Met => format!("met at {at}"),
        Touch::Nearest if spare == 0 => format!("nothing to spare at {at}"),
        Touch::Nearest => format!("least to spare at {at}: {}", time(spare as f64)),
    }
}

fn caption(picture: &Picture) -> String {
    let end = picture.mark.as_ref().map_or_else(String::new, |mark| {
        let [at, demand, supply] = [mark.instant, mark.demand, mark.supply].map(|t| time(t as f64));
        let both = format!("at {at} the demand is {demand} and the supply {supply}");
        match mark.touch {
            Touch::Missed => format!(" {}: a deadline is missed.", capital(&both)),
            Touch::Doubt => format!(
                " {}: whether a deadline is missed is not decided.",
                capital(&both)
            ),
            Touch::Met => format!(" The demand is met at {at}."),
            Touch::Nearest => format!(" {}: the closest they come.", capital(&both)),
        }
    });
    format!(
        "{}. Steps: {}. Slopes: {}. Deadlines hold as long as the supply reaches the demand in time.{end}",
        picture.title, picture.demand_of, picture.supply_of
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> Picture {
        Picture {
            title: "cell <a>".to_owned(),
            demand_of: "work of x & y".to_owned(),
            supply_of: "2 ms every 10 ms".to_owned(),
            deadlines_of: "deadlines".to_owned(),
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
                touch: Touch::Missed,
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
            touch: Touch::Met,
            ..picture().mark.expect("there is one")
        };
        let svg = picture_svg(&Picture {
            mark: Some(met),
            ..picture()
        });
        assert!(svg.contains("met at 10.0 ms") && !svg.contains("witness at"));
        let mark = (picture().mark).map(|mark| Mark {
            touch: Touch::Nearest,
            supply: 3_000_000,
            ..mark
        });
        assert!(
            picture_svg(&Picture { mark, ..picture() }).contains("nothing to spare at 10.0 ms")
        );
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

    #[test]
    fn many_deadlines_become_ticks_but_for_that_of_the_mark() {
        let lines = |svg: &str| svg.matches("class=\"ref\"").count();
        let few = picture_svg(&picture());
        assert_eq!(lines(&few), 1);
        assert!(few.contains("dashed: deadlines.") && !few.contains("ticks on the axis"));
        let many = |count: u64| Picture {
            deadlines: (1..=count).map(|k| k * (20_000_000 / count)).collect(),
            ..picture()
        };
        let svg = picture_svg(&many(100));
        assert_eq!(lines(&svg), 1);
        assert!(svg.contains("dashed: deadlines at the mark; ticks on the axis: deadlines."));
        assert_eq!(svg.matches("v-8").count(), 100);
        let svg = picture_svg(&many(1_000));
        assert_eq!(lines(&svg), 1);
        assert!(svg.contains("too close") && !svg.contains("v-8"));
    }

    #[test]
    fn only_a_miss_or_a_doubt_is_in_the_colour_of_alarm() {
        for (touch, alarm) in [
            (Touch::Missed, true),
            (Touch::Doubt, true),
            (Touch::Met, false),
            (Touch::Nearest, false),
        ] {
            let mark = picture().mark.map(|mark| Mark { touch, ..mark });
            let svg = picture_svg(&Picture { mark, ..picture() });
            assert_eq!(svg.contains("class=\"over tailtext"), alarm, "{touch:?}");
        }
    }

    #[test]
    fn long_texts_are_broken_not_cut() {
        let long = Picture {
            demand_of: format!("demand of {} and all more urgent tasks", "x".repeat(64)),
            supply_of:
                "supply in 123.456 ms within 200 ms of every 1,000 ms by a deferrable server"
                    .to_owned(),
            ..picture()
        };
        let svg = picture_svg(&long);
        let (_, drawn) = svg.split_once("</style>").expect("styles");
        assert!(!drawn.contains('\u{2026}'), "{drawn}");
        assert!(drawn.matches("class=\"faint\"").count() >= 2, "{drawn}");
    }
}
