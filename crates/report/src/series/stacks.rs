//! The shares of one part, stacked, a row for each subject.

use super::table::{share_names, short_name};
use super::{of_part, row_name, shares};
use crate::chart::{Axis, LOOKS, n};
use crate::figure::plot::{Rows, Side};
use crate::figure::{Figure, WIDTH};
use maud::{Markup, html};
use record::series::{SeriesFigure, SeriesSummary};
use text::amount::{amount, axis_unit};
use text::words::{capital, clean, shortened_apart};

/// Height of one line of the legend.
const LINE: f64 = 20.0;
/// Width of one entry of the legend.
const ENTRY: f64 = 172.0;

pub(super) fn draw(summary: &SeriesSummary, part: &str) -> Option<Figure> {
    let all = of_part(summary, part);
    let names = share_names(summary, part, &all);
    let figures: Vec<&SeriesFigure> = all
        .into_iter()
        .filter(|f| !shares(summary, &f.subject, part).is_empty())
        .collect();
    let unit = figures.first()?.unit;
    let subjects: Vec<String> = (figures.iter())
        .map(|f| row_name(summary, &f.subject))
        .collect();
    let columns = (WIDTH / ENTRY).floor();
    let top = 12.0 + LINE * (names.len() as f64 / columns).ceil();
    let sum = |f: &SeriesFigure| -> f64 {
        let all = shares(summary, &f.subject, part);
        all.iter().map(|share| share.mean).sum()
    };
    let most = figures.iter().map(|f| sum(f)).fold(0.0, f64::max);
    let (divisor, unit_name) = axis_unit(unit, most);
    let axis = Axis::linear([0.0, most / divisor]);
    let side = Side::plain(axis, format!("{part} in {unit_name}"));
    let plot = Rows::new(&subjects, side, 28.0, (top, 84.0));
    let at = |value: f64| plot.x.at(value / divisor);
    let entries: Vec<String> = names.iter().map(|name| short_name(part, name)).collect();
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let body = html! {
        @for (place, name) in shortened_apart(&entries, 22).iter().enumerate() {
            (entry(place, name, (place as f64 % columns) * ENTRY, 12.0 + (place as f64 / columns).floor() * LINE))
        }
        @for (row, figure) in figures.iter().enumerate() {
            (stack(&shares(summary, &figure.subject, part), &names, &at, plot.y(row)))
            text class="faint" x=(n(at(sum(figure)) + 6.0)) y=(n(plot.y(row) + 4.5)) { (amount(unit, sum(figure))) }
        }
    };
    let caption = "Means over rounds, stacked; means add up where medians do not. The number at the end is the sum. The table has the \
                   means of shares that are too short to be seen.";
    let title = format!("{}, what it is made of", capital(&clean(part)));
    Some(plot.figure(super::file_name("shares", part), title, caption, body))
}

/// Shares beyond the number of looks repeat a colour and differ by their outline.
fn class(place: usize) -> String {
    let look = place % LOOKS;
    if place < LOOKS {
        format!("bar f{look}")
    } else {
        format!("bar2 s{look} f{look}")
    }
}

fn entry(place: usize, name: &str, x: f64, y: f64) -> Markup {
    html! {
        rect class=(class(place)) x=(n(x)) y=(n(y - 7.0)) width="14" height="14" {}
        text x=(n(x + 20.0)) y=(n(y + 4.5)) { (name) }
    }
}

fn stack(shares: &[&SeriesFigure], names: &[&str], at: &dyn Fn(f64) -> f64, y: f64) -> Markup {
    let mut from = 0.0;
    let bars: Vec<(usize, f64, f64, &SeriesFigure)> = shares
        .iter()
        .map(|share| {
            let place = names.iter().position(|name| *name == share.part);
            let begin = from;
            from += share.mean;
            (place.unwrap_or(0), at(begin), at(from), *share)
        })
        .collect();
    html! {
        @for (place, begin, end, share) in bars {
            rect class=(class(place)) x=(n(begin)) y=(n(y - 9.0)) width=(n((end - begin).max(0.0))) height="18" {
                title { (clean(&share.part)) ": " (amount(share.unit, share.mean)) }
            }
        }
    }
}
