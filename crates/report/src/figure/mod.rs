//! The figures of a run. Each is one file with `draw(&JobsStudy) -> Option<Figure>` and one line in [`FIGURES`]; `None`
//! means that the run has nothing to show there. Every caption explains its figure.

mod box_plot;
mod ccdf;
mod counters;
mod cpu_histograms;
mod creation;
mod intervals;
mod max_bars;
mod normalised;
pub(crate) mod plot;
mod ratios;
mod rounds;
mod series;
mod skew;
mod spread;
mod tail;
mod tail_ratios;

pub(crate) use ratios::{NAME as RATIOS, picture as ratios};

use crate::chart::{Axis, Dress, document, n};
use maud::{Markup, html};
use std::borrow::Cow;
use study::JobsStudy;
use text::units::Unit;

/// Every figure, in the order of the report.
const FIGURES: [fn(&JobsStudy) -> Option<Figure>; 17] = [
    normalised::draw,
    normalised::interference,
    max_bars::draw,
    cpu_histograms::draw,
    counters::of_activations,
    counters::of_windows,
    box_plot::draw,
    ratios::draw,
    ccdf::draw,
    tail_ratios::draw,
    intervals::draw,
    series::draw,
    spread::draw,
    rounds::draw,
    skew::draw,
    creation::draw,
    tail::draw,
];

pub(crate) use tail::NAME as TAIL;

/// Width of the figures of a page in px; heights differ.
pub(crate) const WIDTH: f64 = 540.0;

/// One picture, not yet a document.
pub(crate) struct Figure {
    /// The stem of its file name.
    pub name: Cow<'static, str>,
    /// A heading.
    pub title: String,
    /// Its explanation, and omissions.
    pub caption: String,
    /// Width and height in px.
    pub size: (f64, f64),
    /// The content of the `svg` element.
    pub body: Markup,
}

/// The pictures of a run as SVG files: file name and content, readable by themselves.
pub fn figures(data: &JobsStudy) -> Vec<(String, String)> {
    let mut note = format!("timecell run {}", data.summary.run);
    if !data.summary.real_time {
        note += ", not real-time";
    }
    documents(draw(data), &note)
}

/// Draws all pictures that have something to show.
pub(crate) fn draw(data: &JobsStudy) -> Vec<Figure> {
    FIGURES.iter().filter_map(|figure| figure(data)).collect()
}

/// The picture for a page, which has the style.
pub(crate) fn inline(figure: &Figure) -> Markup {
    html! {
        svg class="fig" viewBox=(format!("0 0 {} {}", n(figure.size.0), n(figure.size.1))) role="img"
            aria-labelledby=(format!("{0}-t {0}-d", figure.name)) {
            title id=(format!("{}-t", figure.name)) { (figure.title) }
            desc id=(format!("{}-d", figure.name)) { (figure.caption) }
            (figure.body)
        }
    }
}

/// The figures as documents: file name and content.
pub(crate) fn documents(
    figures: impl IntoIterator<Item = Figure>,
    note: &str,
) -> Vec<(String, String)> {
    let standalone = |figure: Figure| (format!("{}.svg", figure.name), alone(&figure, note));
    figures.into_iter().map(standalone).collect()
}

/// The figure as a document: its heading above, `note` below.
pub(crate) fn alone(figure: &Figure, note: &str) -> String {
    let dress = Dress {
        title: &figure.title,
        caption: &figure.caption,
        note,
        size: figure.size,
    };
    document(&dress, &figure.body)
}

/// An axis for times in ns: logarithmic when every value that matters is positive, as early wake-ups are not.
fn time_axis(data: &JobsStudy, values: impl Iterator<Item = f64>) -> Axis {
    if data
        .drawing
        .cells
        .iter()
        .all(|cell| cell.box_plot.low_whisker_ns > 0)
    {
        Axis::log(values)
    } else {
        Axis::linear(values)
    }
}

/// The unit of an axis of times, and the words for its title.
pub(crate) fn time_title(axis: &Axis, what: &str) -> (f64, String) {
    let unit = Unit::of(axis.middle());
    let scale = if axis.is_log() { ", log scale" } else { "" };
    (unit.ns(), format!("{what} in {}{scale}", unit.name()))
}

/// The name in a row or legend, with the label that marks a cell without a real-time class everywhere.
fn name(cell: &study::jobs::CellData) -> String {
    let label = text::words::clean(&cell.label);
    if cell.real_time {
        label
    } else {
        format!("{label} (not rt)")
    }
}

/// A caption with the figures' omissions.
fn with_omission(data: &JobsStudy, caption: String) -> String {
    let mut caption = caption;
    if !data.drawing.left_out.is_empty() {
        caption += " ";
        caption += &data.drawing.left_out;
    }
    if !data.summary.real_time {
        caption += " \"not rt\" marks cells that ran in no real-time class.";
    }
    caption
}
