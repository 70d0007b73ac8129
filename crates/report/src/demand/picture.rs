//! Demand and supply as a figure.

use super::{WIDTH, line};
use crate::chart::{
    Axis, Band, Dress, Entry, document, legend, legend_height, n, sample, title_below, title_left,
    x_axis, y_axis,
};
use feasibility::{Mark, Picture, Touch};
use maud::{Markup, html};
use std::fmt::Write;
use text::units::{Unit, time};
use text::words::{capital, clean, sentence};

const LEFT: f64 = 74.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 360.0;

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
    let x = Axis::linear([0.0, picture.until.max(1) as f64]).between(LEFT, RIGHT);
    // Room above the curves for the label at the mark.
    let y = Axis::linear([0.0, highest.max(1) as f64 * 1.08]).between(BOTTOM, TOP);
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
    let (upright, ticks) = deadlines(picture, &x);
    let body = html! {
        (title_left(8.0, TOP, &format!("cpu time in {}", y_unit.name())))
        (x_axis(&x, Band(TOP, BOTTOM), x_unit.ns()))
        (y_axis(&y, Band(LEFT, RIGHT), y_unit.ns()))
        (title_below(&x, BOTTOM, &format!("time since the worst-case instant in {}", x_unit.name())))
        @for &across in &upright {
            path class="ref" d=(format!("M{} {}V{}", n(across), n(TOP), n(BOTTOM))) {}
        }
        @for &across in ticks.iter().flatten() {
            path class="rule" d=(format!("M{} {}v{}", n(across), n(BOTTOM), n(-TICK))) {}
        }
        path class="line s0 d0" d=(line(&floats(&picture.supply), &x, &y)) {}
        path class="line s1 d1" d=(steps(picture, &x, &y)) {}
        @if let Some(mark) = &picture.mark { (pointed_out(mark, &x, &y)) }
        (legend(&entries, LEFT, BOTTOM + 60.0, WIDTH - LEFT))
    };
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
    let dress = Dress {
        title: &clean(&picture.title),
        caption: &caption,
        note: &clean(&sentence(&note)),
        size: (WIDTH, BOTTOM + 56.0 + legend_height(&entries, WIDTH - LEFT)),
    };
    document(&dress, &body)
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
    let apart = all.len() as f64 * APART <= RIGHT - LEFT;
    let ticks = if apart { places } else { Vec::new() };
    (decides.iter().map(place).collect(), Some(ticks))
}

/// The decisive instant: a mark on each curve, and a label where no curve passes.
fn pointed_out(mark: &Mark, x: &Axis, y: &Axis) -> Markup {
    let across = x.at(mark.instant as f64);
    let (demand, supply) = (y.at(mark.demand as f64), y.at(mark.supply as f64));
    // Both curves rise: there is room above them on the left, and below them on the right.
    let left = across > (LEFT + RIGHT) / 2.0;
    let (end, shift, up) = if left {
        (" end", -9.0, (demand.min(supply) - 8.0).max(TOP + 12.0))
    } else {
        ("", 9.0, (demand.max(supply) + 16.0).min(BOTTOM - 12.0))
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
