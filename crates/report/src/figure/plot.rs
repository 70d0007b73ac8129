//! The two frames of plots: two axes with a legend below, and named rows over one axis. A picture gives its axes and its marks.

use super::{Figure, WIDTH};
use crate::chart::{
    Axis, Band, Entry, LOOKS, Mark, legend, legend_height, marks, n, name_room, row_names, sample,
    title_below, title_left, x_axis, y_axis,
};
use maud::{Markup, PreEscaped, html};
use std::borrow::Cow;
use std::fmt::Write;
use text::units::Unit;
use text::words::clean;

/// From the frame to the edges of the picture in px.
const LEFT: f64 = 74.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 30.0;

/// An axis with its unit and its title.
#[derive(Clone)]
pub(crate) struct Side {
    axis: Axis,
    unit: f64,
    title: String,
    /// Names in place of numbers, from left to right; an empty one is left out.
    places: Vec<String>,
}

impl Side {
    /// Numbers as they are.
    pub fn plain(axis: Axis, title: impl Into<String>) -> Side {
        Side {
            axis,
            unit: 1.0,
            title: clean(&title.into()),
            places: Vec::new(),
        }
    }

    /// Times in ns, in their most readable unit.
    pub fn time(axis: Axis, what: &str) -> Side {
        let unit = Unit::of(axis.middle());
        let scale = if axis.is_log() { ", log scale" } else { "" };
        let title = format!("{what} in {}{scale}", unit.name());
        let unit = unit.ns();
        Side {
            unit,
            ..Side::plain(axis, title)
        }
    }

    /// Places with names; that at index `i` is `i + 0.5`.
    pub fn places(places: Vec<String>, title: impl Into<String>) -> Side {
        let axis = Axis::exact(0.0, places.len().max(1) as f64);
        Side {
            places,
            ..Side::plain(axis, title)
        }
    }
}

/// Two axes, the drawing in them, and a legend.
pub(crate) struct Plot {
    pub x: Axis,
    pub y: Axis,
    /// Width of the picture, and the lower end of the vertical axis, in px.
    size: (f64, f64),
    entries: Vec<(usize, String)>,
    body: String,
}

impl Plot {
    /// A plot of the usual width with a vertical axis of so many px.
    pub fn new(x: Side, y: Side, height: f64) -> Plot {
        Plot::wide(x, y, (WIDTH, height))
    }

    /// A plot of another width.
    pub fn wide(x: Side, y: Side, (width, height): (f64, f64)) -> Plot {
        let (right, bottom) = (width - RIGHT, TOP + height);
        let across = x.axis.between(LEFT, right);
        let up = y.axis.between(bottom, TOP);
        let mut plot = Plot {
            x: across,
            y: up,
            size: (width, bottom),
            entries: Vec::new(),
            body: String::new(),
        };
        plot.draw(html! {
            (title_left(8.0, TOP, &y.title))
            @if x.places.is_empty() { (x_axis(&plot.x, Band(TOP, bottom), x.unit)) } @else {
                path class="rule" d=(format!("M{LEFT} {}H{}", n(bottom), n(right))) {}
                @for (place, name) in x.places.iter().enumerate() {
                    text class="faint mid" x=(n(plot.x.at(place as f64 + 0.5))) y=(n(bottom + 17.0)) { (name) }
                }
            }
            (y_axis(&plot.y, Band(LEFT, right), y.unit))
            (title_below(&plot.x, bottom, &x.title))
        });
        plot
    }

    /// Anything else, drawn on top.
    pub fn draw(&mut self, markup: Markup) {
        self.body += &markup.into_string();
    }

    /// The position of a point in px.
    pub fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }

    /// Names a look in the legend.
    pub fn name(&mut self, look: usize, name: impl Into<String>) {
        self.entries.push((look % LOOKS, name.into()));
    }

    fn stroke(&mut self, look: usize, path: &str) {
        let look = look % LOOKS;
        self.draw(html! { path class=(format!("line s{look} d{look}")) d=(path) {} });
    }

    /// Straight lines from point to point.
    pub fn line(&mut self, look: usize, points: impl IntoIterator<Item = (f64, f64)>) {
        let path = path(points.into_iter().map(|point| self.at(point)));
        self.stroke(look, &path);
    }

    /// From point to point first up or down, then across.
    pub fn steps(&mut self, look: usize, points: impl IntoIterator<Item = (f64, f64)>) {
        self.stairs(look, points, |x, y| format!("V{y}H{x}"));
    }

    /// From point to point first across, then up.
    pub fn rises(&mut self, look: usize, points: impl IntoIterator<Item = (f64, f64)>) {
        self.stairs(look, points, |x, y| format!("H{x}V{y}"));
    }

    fn stairs(
        &mut self,
        look: usize,
        points: impl IntoIterator<Item = (f64, f64)>,
        step: fn(String, String) -> String,
    ) {
        let mut path = String::new();
        for (x, y) in points.into_iter().map(|point| self.at(point)) {
            path += &match path.is_empty() {
                true => format!("M{} {}", n(x), n(y)),
                false => step(n(x), n(y)),
            };
        }
        self.stroke(look, &path);
    }

    /// The marks of a look.
    pub fn marks(&mut self, look: usize, points: impl IntoIterator<Item = (f64, f64)>) {
        let path = marks(
            Mark::of(look),
            points.into_iter().map(|point| self.at(point)),
        );
        let look = look % LOOKS;
        self.draw(html! { path class=(format!("mark s{look}")) d=(path) {} });
    }

    /// The whole picture.
    pub fn figure(
        self,
        name: impl Into<Cow<'static, str>>,
        title: impl Into<String>,
        caption: impl Into<String>,
    ) -> Figure {
        let (width, bottom) = self.size;
        let entries: Vec<Entry> = (self.entries.iter())
            .map(|(look, name)| Entry { look: *look, name })
            .collect();
        Figure {
            name: name.into(),
            title: title.into(),
            caption: caption.into(),
            size: (width, bottom + 56.0 + legend_height(&entries, width - LEFT)),
            body: html! {
                (PreEscaped(&self.body))
                (legend(&entries, LEFT, bottom + 60.0, width - LEFT))
            },
        }
    }
}

/// Named rows over one axis.
pub(crate) struct Rows {
    pub x: Axis,
    /// Left end of the axis in px.
    pub left: f64,
    top: f64,
    bottom: f64,
    row: f64,
    head: Markup,
    frame: Markup,
}

impl Rows {
    /// Rows of height `row`, `top` px below the picture's upper end, with `room` px to the right of the axis.
    pub fn new(names: &[String], side: Side, row: f64, (top, room): (f64, f64)) -> Rows {
        let names = || names.iter().map(String::as_str);
        let left = name_room(names());
        let bottom = top + row * names().count() as f64;
        let x = side.axis.between(left, WIDTH - room);
        Rows {
            frame: html! {
                (x_axis(&x, Band(top, bottom), side.unit))
                (title_below(&x, bottom, &side.title))
                (row_names(names(), left, |at| top + row * (at as f64 + 0.5)))
            },
            head: html! {},
            x,
            left,
            top,
            bottom,
            row,
        }
    }

    /// With rows of two marks, and above them a key of the two.
    pub fn of_two(names: &[String], side: Side, two: [(Mark, &str); 2]) -> Rows {
        let rows = Rows::new(names, side, 36.0, (TOP, RIGHT));
        let head = key(rows.left + 6.0, &two);
        Rows { head, ..rows }
    }

    /// The middle of a row in px.
    pub fn y(&self, row: usize) -> f64 {
        self.top + self.row * (row as f64 + 0.5)
    }

    /// The dashed line at a value, over all rows.
    pub fn reference(&self, value: f64) -> Markup {
        let (top, bottom) = (n(self.top), n(self.bottom));
        html! { path class="ref" d=(format!("M{} {top}V{bottom}", n(self.x.at(value)))) {} }
    }

    /// The whole picture with `body` in its rows.
    pub fn figure(
        &self,
        name: impl Into<Cow<'static, str>>,
        title: impl Into<String>,
        caption: impl Into<String>,
        body: Markup,
    ) -> Figure {
        Figure {
            name: name.into(),
            title: title.into(),
            caption: caption.into(),
            size: (WIDTH, self.bottom + 48.0),
            body: html! { (self.head) (self.frame) (body) },
        }
    }
}

/// The key of marks, from left to right at the top of a picture.
pub(crate) fn key(start: f64, entries: &[(Mark, &str)]) -> Markup {
    let room = |name: &str| 34.0 + 7.7 * name.len() as f64;
    html! {
        @for (look, (mark, name)) in entries.iter().enumerate() {
            @let x = start + entries[..look].iter().map(|entry| room(entry.1)).sum::<f64>();
            path class=(format!("mark s{look}")) d=(sample(*mark, x, 12.0)) {}
            text x=(n(x + 10.0)) y="16.5" { (name) }
        }
    }
}

/// A lying box with its median, between positions in px.
pub(crate) fn lying(look: usize, [low, median, high]: [f64; 3], y: f64) -> Markup {
    html! {
        rect class=(format!("box s{look} f{look}")) x=(n(low)) y=(n(y - 9.0))
            width=(n((high - low).max(1.0))) height="18" {}
        path class=(format!("median s{look}")) d=(format!("M{} {}v18", n(median), n(y - 9.0))) {}
    }
}

/// Straight lines between positions in px.
pub(crate) fn path(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (x, y) in points {
        let letter = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{letter}{} {}", n(x), n(y));
    }
    path
}
