//! A counter of the machine against times: of each activation, and of each window with its largest.

use super::plot::{Plot, Side};
use super::{Figure, with_omission};
use crate::chart::Axis;
use record::summary::Per;
use study::JobsStudy;
use study::jobs::Scatter;

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
    /// Text after the counter's name.
    counts: &'static str,
    /// The mark's key.
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
    let x = Axis::linear(points().map(|point| point.0 as f64));
    let y = Axis::log(points().map(|point| point.1 as f64));
    let across = format!("{} {}", scatter.name, words.counts);
    let mut plot = Plot::new(
        Side::plain(x, &*across),
        Side::time(y, &words.values),
        290.0,
    );
    for (look, (name, points)) in scatter.clouds.iter().enumerate() {
        plot.marks(
            look,
            points.iter().map(|point| (point.0 as f64, point.1 as f64)),
        );
        plot.name(look, name);
    }
    let title = format!(
        "{} against {}",
        text::words::capital(&across),
        data.summary.primary.title()
    );
    let caption = format!(
        "{} The counter drawn is the one whose rank correlation is farthest from 0. A cloud that rises to the right says that the two go \
         together, not that one causes the other. {}",
        words.mark, words.caution
    );
    Some(plot.figure(words.name, title, with_omission(data, caption)))
}
