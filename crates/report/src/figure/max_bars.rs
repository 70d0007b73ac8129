//! The largest value for each load and period: the bars by which device suites compare boards.

use super::{Figure, WIDTH, time_title, with_omission};
use crate::chart::{Axis, Band, n, title_left, y_axis};
use maud::{Markup, html};
use study::JobsStudy;
use study::conditions::{self, Conditions, period};
use text::units::time;
use text::words::{clean, shortened_apart};

const LEFT: f64 = 62.0;
const TOP: f64 = 60.0;
const PANEL: f64 = 190.0;
const GAP: f64 = 74.0;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    let conditions = conditions::of(&data.summary)?;
    let panels: Vec<bool> = [false, true]
        .into_iter()
        .filter(|&isolated| {
            conditions
                .points
                .iter()
                .any(|(p, _)| p.isolated == isolated)
        })
        .collect();
    let all = conditions
        .points
        .iter()
        .filter_map(|(_, cell)| Some(cell.metrics.first()?.summary.max_ns as f64));
    let axis = Axis::log(all);
    let bottom = |place: usize| TOP + PANEL + place as f64 * (PANEL + GAP);
    let (unit, title) = time_title(&axis, &format!("largest {}", data.summary.primary.title()));
    Some(Figure {
        name: "max-by-load".into(),
        title: format!("Maximum {} per load and period", data.summary.primary.title()),
        caption: with_omission(
            data,
            "The largest value over all cpus and rounds, one bar for each period. It is what was seen, a lower bound \
             of the worst case, and grows with the number of jobs: a short period has more of them than a long one \
             in the same time, so bars of one colour compare loads; bars of one load do not compare periods alone. \
             A bar that is lower in the second panel than in the first gained from its cpu being kept free."
                .to_owned(),
        ),
        size: (WIDTH, bottom(panels.len().saturating_sub(1)) + 34.0),
        body: html! {
            @for (place, &ns) in conditions.periods.iter().enumerate() {
                @let x = LEFT + place as f64 * 110.0;
                rect class=(format!("bar f{}", look(place))) x=(n(x)) y="4" width="14" height="14" {}
                text x=(n(x + 20.0)) y="16" { (period(ns)) }
            }
            @for (place, &isolated) in panels.iter().enumerate() {
                @let low = bottom(place);
                @let axis = axis.clone().between(low, low - PANEL);
                (title_left(8.0, low - PANEL, &format!("{title}: {}", words(isolated))))
                (y_axis(&axis, Band(LEFT, WIDTH - 8.0), unit))
                (panel(&conditions, isolated, &axis, low))
            }
        },
    })
}

fn look(place: usize) -> usize {
    place % crate::chart::LOOKS
}

fn words(isolated: bool) -> &'static str {
    if isolated {
        "cpus kept free of other work"
    } else {
        "cpus shared with other work"
    }
}

fn panel(conditions: &Conditions, isolated: bool, axis: &Axis, low: f64) -> Markup {
    let group = (WIDTH - 8.0 - LEFT) / conditions.loads.len().max(1) as f64;
    let width = (group * 0.8 / conditions.periods.len().max(1) as f64).min(30.0);
    let loads: Vec<String> = conditions.loads.iter().map(|load| clean(load)).collect();
    let loads: Vec<&str> = loads.iter().map(String::as_str).collect();
    html! {
        @for (at, (load, short)) in conditions.loads.iter().zip(shortened_apart(&loads, 12)).enumerate() {
            @let middle = LEFT + group * (at as f64 + 0.5);
            @let begin = middle - width * conditions.periods.len() as f64 / 2.0;
            text class="mid" x=(n(middle)) y=(n(low + 18.0)) { (short) }
            @for (place, &ns) in conditions.periods.iter().enumerate() {
                @if let Some(max) = conditions.max_ns(load, ns, isolated) {
                    @let top = axis.at(max as f64);
                    rect class=(format!("bar f{}", look(place))) x=(n(begin + width * place as f64 + 1.0)) y=(n(top))
                        width=(n(width - 2.0)) height=(n((low - top).max(1.0))) {
                        title { (clean(load)) ", period " (period(ns)) ": " (time(max as f64)) }
                    }
                }
            }
        }
    }
}
