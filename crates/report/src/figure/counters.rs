//! A counter of the machine against times: of each activation, and of each window with its largest.

use super::{Figure, WIDTH, time_title, with_omission};
use crate::chart::{
    Axis, Band, Entry, LOOKS, Mark, legend, legend_height, marks, title_below, title_left, x_axis,
    y_axis,
};
use maud::html;
use record::summary::Per;
use study::JobsStudy;
use study::jobs::Scatter;

const LEFT: f64 = 74.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 320.0;

pub(super) fn of_activations(data: &JobsStudy) -> Option<Figure> {
    let metric = data.summary.primary.title();
    let words = Words {
        name: "counters-by-activation",
        values: metric.to_owned(),
        counts: "in an activation",
        mark: "Each mark is one activation of one cell: what its thread counted from the end of the previous job to the end of this one, \
               and its own time. Where there are many, the largest times and a sample of the others are drawn."
            .to_owned(),
        caution: "Activations follow each other in time and are not independent.",
    };
    draw(data, Per::Activation, |_| words)
}

pub(super) fn of_windows(data: &JobsStudy) -> Option<Figure> {
    let metric = data.summary.primary.title();
    draw(data, Per::Window, |scatter| Words {
        name: "counters",
        values: format!("largest {metric} of a window"),
        counts: "in a window",
        mark: format!(
            "Each mark is one window of about {} ms of one cell: what was counted in it, and its largest {metric}.",
            scatter.window_ns / 1_000_000,
        ),
        caution: "Windows follow each other in time and are not independent.",
    })
}

/// The texts in which the two pictures differ.
struct Words {
    /// The stem of the file name.
    name: &'static str,
    /// The title of the vertical axis.
    values: String,
    /// What follows the counter's name.
    counts: &'static str,
    /// What a mark is.
    mark: String,
    /// Why not to read more into it.
    caution: &'static str,
}

fn draw(data: &JobsStudy, per: Per, words: impl FnOnce(&Scatter) -> Words) -> Option<Figure> {
    let scatter = data
        .drawing
        .scatters
        .iter()
        .find(|scatter| scatter.per == per)?;
    let words = words(scatter);
    let points = || scatter.clouds.iter().flat_map(|(_, points)| points);
    let x = Axis::linear(points().map(|point| point.0 as f64)).between(LEFT, WIDTH - 24.0);
    let y = Axis::log(points().map(|point| point.1 as f64)).between(BOTTOM, TOP);
    let (unit, title) = time_title(&y, &words.values);
    let entries: Vec<Entry> = (scatter.clouds.iter().enumerate())
        .map(|(look, (name, _))| Entry { look, name })
        .collect();
    Some(Figure {
        name: words.name.into(),
        title: format!(
            "{} {} against {}",
            text::words::capital(&scatter.name),
            words.counts,
            data.summary.primary.title()
        ),
        caption: with_omission(
            data,
            format!(
                "{} The counter drawn is the one whose rank correlation is farthest from 0. A cloud that rises to the \
                 right says that the two go together, not that one causes the other. {}",
                words.mark, words.caution
            ),
        ),
        height: BOTTOM + 56.0 + legend_height(&entries, WIDTH - LEFT),
        body: html! {
            (title_left(8.0, TOP, &title))
            (x_axis(&x, Band(TOP, BOTTOM), 1.0))
            (y_axis(&y, Band(LEFT, WIDTH - 24.0), unit))
            (title_below(&x, BOTTOM, &format!("{} {}", scatter.name, words.counts)))
            @for (look, (_, points)) in scatter.clouds.iter().enumerate() {
                @let look = look % LOOKS;
                path class=(format!("mark s{look}"))
                    d=(marks(Mark::of(look), points.iter().map(|p| (x.at(p.0 as f64), y.at(p.1 as f64))))) {}
            }
            (legend(&entries, LEFT, BOTTOM + 60.0, WIDTH - LEFT))
        },
    })
}
