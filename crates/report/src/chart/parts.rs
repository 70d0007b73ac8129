//! Axes with their grids and titles, row names, legends.

use super::{Axis, LOOKS, Mark, sample};
use maud::{Markup, html};
use text::words::shortened_apart;

/// A coordinate with one decimal at most.
pub(crate) fn n(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    let text = format!("{rounded}");
    if text == "-0" { "0".to_owned() } else { text }
}

/// The positions across an axis: where its grid begins and ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Band(pub f64, pub f64);

/// A horizontal axis at the bottom of a band, its grid and its numbers in multiples of `unit`.
pub(crate) fn x_axis(axis: &Axis, band: Band, unit: f64) -> Markup {
    let Band(top, bottom) = band;
    let ticks = axis.ticks(unit, 48.0);
    let grid: String = ticks
        .iter()
        .map(|tick| {
            let top = if tick.text.is_some() {
                top
            } else {
                bottom - 4.0
            };
            format!("M{} {}V{}", n(axis.at(tick.value)), n(top), n(bottom))
        })
        .collect();
    let (from, to) = axis.ends();
    html! {
        path class="grid" d=(grid) {}
        path class="rule" d=(format!("M{} {}H{}", n(from), n(bottom), n(to))) {}
        @for (tick, text) in texts(&ticks) {
            text class="faint mid" x=(n(axis.at(tick))) y=(n(bottom + 17.0)) { (text) }
        }
    }
}

/// A vertical axis at the left of a band.
pub(crate) fn y_axis(axis: &Axis, band: Band, unit: f64) -> Markup {
    let Band(left, right) = band;
    let (bottom, top) = axis.ends();
    // A tall axis has room to space its numbers more widely than a panel.
    let gap = if (bottom - top).abs() > 150.0 {
        34.0
    } else {
        15.0
    };
    let ticks = axis.ticks(unit, gap);
    let grid: String = ticks
        .iter()
        .map(|tick| {
            let right = if tick.text.is_some() {
                right
            } else {
                left + 4.0
            };
            format!("M{} {}H{}", n(left), n(axis.at(tick.value)), n(right))
        })
        .collect();
    let (from, to) = axis.ends();
    html! {
        path class="grid" d=(grid) {}
        path class="rule" d=(format!("M{} {}V{}", n(left), n(from), n(to))) {}
        @for (tick, text) in texts(&ticks) {
            text class="faint end" x=(n(left - 6.0)) y=(n(axis.at(tick) + 4.0)) { (text) }
        }
    }
}

fn texts(ticks: &[super::axis::Tick]) -> impl Iterator<Item = (f64, &str)> {
    let texted = |tick: &'_ super::axis::Tick| tick.text.is_some();
    ticks
        .iter()
        .filter(move |tick| texted(tick))
        .map(|tick| (tick.value, tick.text.as_deref().unwrap_or_default()))
}

/// The title below a horizontal axis.
pub(crate) fn title_below(axis: &Axis, bottom: f64, title: &str) -> Markup {
    let (from, to) = axis.ends();
    html! { text class="mid" x=(n((from + to) / 2.0)) y=(n(bottom + 38.0)) { (title) } }
}

/// The title of a vertical axis, above its upper end.
pub(crate) fn title_left(left: f64, top: f64, title: &str) -> Markup {
    html! { text x=(n(left)) y=(n(top - 10.0)) { (title) } }
}

/// Characters of a row's name; longer ones are shortened in the middle and whole in a tooltip.
const NAME: usize = 25;

/// The room in px that names of rows take.
pub(crate) fn name_room<'a>(names: impl IntoIterator<Item = &'a str>) -> f64 {
    let longest = names.into_iter().map(|name| name.chars().count()).max();
    (longest.unwrap_or(0).min(NAME) as f64 * 7.7 + 14.0).max(60.0)
}

/// The names of rows, at the left of `left`.
pub(crate) fn row_names<'a>(
    names: impl IntoIterator<Item = &'a str>,
    left: f64,
    y: impl Fn(usize) -> f64,
) -> Markup {
    let names: Vec<&str> = names.into_iter().collect();
    html! {
        @for (row, (name, short)) in names.iter().zip(shortened_apart(&names, NAME)).enumerate() {
            text class="end" x=(n(left - 8.0)) y=(n(y(row) + 4.5)) {
                @if name.chars().count() > NAME { title { (name) } }
                (short)
            }
        }
    }
}

/// One series in a legend.
pub(crate) struct Entry<'a> {
    pub look: usize,
    pub name: &'a str,
}

/// Height of one line of a legend in px.
const LINE: f64 = 20.0;
/// Characters of a name in a legend.
const LEGEND_NAME: usize = 36;
/// Length of the line of an entry in px: two dashes of the longest pattern on either side of the mark.
const SAMPLE: f64 = 40.0;

/// Width of one entry of this legend in px.
fn entry_width(entries: &[Entry]) -> f64 {
    let longest = entries.iter().map(|entry| entry.name.chars().count()).max();
    longest.unwrap_or(0).clamp(8, LEGEND_NAME) as f64 * 7.0 + SAMPLE + 18.0
}

/// Height in px of a legend within this width.
pub(crate) fn legend_height(entries: &[Entry], width: f64) -> f64 {
    let columns = (width / entry_width(entries)).floor().max(1.0);
    (entries.len() as f64 / columns).ceil() * LINE
}

/// A legend: line, dash, mark and name of each series.
pub(crate) fn legend(entries: &[Entry], left: f64, top: f64, width: f64) -> Markup {
    let entry_width = entry_width(entries);
    let columns = (width / entry_width).floor().max(1.0) as usize;
    let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
    html! {
        @for (place, (entry, name)) in entries.iter().zip(shortened_apart(&names, LEGEND_NAME)).enumerate() {
            @let x = left + (place % columns) as f64 * entry_width;
            @let y = top + (place / columns) as f64 * LINE;
            @let look = entry.look % LOOKS;
            path class=(format!("line s{look} d{look}")) d=(format!("M{} {}h{}", n(x), n(y), n(SAMPLE))) {}
            path class=(format!("mark s{look}")) d=(sample(Mark::of(look), x + SAMPLE / 2.0, y)) {}
            text x=(n(x + SAMPLE + 7.0)) y=(n(y + 4.5)) { (name) }
        }
    }
}
