//! How values are distributed on each cpu, one small panel for each load and period, as cyclictest's users draw it.

use super::{Figure, WIDTH, with_omission};
use crate::chart::{Axis, Band, Entry, LOOKS, legend, legend_height, n, x_axis, y_axis};
use maud::{Markup, html};
use std::fmt::Write;
use study::JobsStudy;
use study::conditions::{self, period};
use study::jobs::CpuHistogram;
use text::units::Unit;
use text::words::{clean, shortened_apart};

const TOP: f64 = 44.0;
const LEFT: f64 = 66.0;
const ROW: f64 = 96.0;
/// Height of one panel.
const HIGH: f64 = 66.0;
/// Loads drawn at most, the first of the experiment.
const MOST: usize = 10;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    let conditions = conditions::of(&data.summary)?;
    let bins = || data.drawing.histograms.iter().flat_map(|h| &h.bins);
    bins().next()?;
    let loads = &conditions.loads[..conditions.loads.len().min(MOST)];
    let clean: Vec<String> = loads.iter().map(|load| clean(load)).collect();
    let short = shortened_apart(&clean.iter().map(String::as_str).collect::<Vec<_>>(), 9);
    let periods = &conditions.periods;
    let x = Axis::log(bins().map(|bin| bin.0));
    let most = bins().map(|bin| bin.1 as f64).fold(1.0, f64::max);
    let y = Axis::log([0.8, most]);
    let unit = Unit::of(x.middle());
    let mut looks: Vec<(u32, bool)> = data
        .drawing
        .histograms
        .iter()
        .map(|h| (h.cpu, h.isolated))
        .collect();
    looks.sort_unstable();
    looks.dedup();
    let names: Vec<String> = looks
        .iter()
        .map(|(cpu, isolated)| match isolated {
            true => format!("cpu {cpu}, kept free"),
            false => format!("cpu {cpu}"),
        })
        .collect();
    let entries: Vec<Entry> = (names.iter().enumerate())
        .map(|(look, name)| Entry { look, name })
        .collect();
    let bottom = TOP + ROW * loads.len() as f64;
    let wide = (WIDTH - LEFT - 4.0) / periods.len().max(1) as f64;
    let left_out = match conditions.loads.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" {more} more loads are not drawn."),
    };
    Some(Figure {
        name: "histogram-per-cpu".into(),
        title: format!("Histogram of the {} per cpu", data.summary.primary.title()),
        caption: with_omission(
            data,
            format!(
                "Jobs of each cpu by their {}, all rounds together, both axes logarithmic: rows are loads, columns \
                 periods. One narrow peak is predictable; steps far to the right are single late jobs. Bins widen \
                 with the value (ten to a decade).{left_out}",
                data.summary.primary.title()
            ),
        ),
        size: (WIDTH, bottom + 28.0 + legend_height(&entries, WIDTH - LEFT)),
        body: html! {
            text class="faint" x="4" y="14" { "jobs, log scale, against us in " (unit.name()) }
            @for (column, &ns) in periods.iter().enumerate() {
                text class="head mid" x=(n(LEFT + wide * (column as f64 + 0.5))) y="32" { "period " (period(ns)) }
            }
            @for (row, load) in loads.iter().enumerate() {
                @let low = TOP + ROW * row as f64 + HIGH;
                text x="4" y=(n(low - HIGH - 8.0)) { (short[row]) }
                @for (column, &ns) in periods.iter().enumerate() {
                    @let from = LEFT + wide * column as f64;
                    @let x = x.clone().between(from, from + wide - 30.0);
                    @let y = y.clone().between(low, low - HIGH);
                    (x_axis(&x, Band(low - HIGH, low), unit.ns()))
                    @if column == 0 { (y_axis(&y, Band(from, from + wide - 30.0), 1.0)) }
                    @for one in data.drawing.histograms.iter().filter(|h| h.load == *load && h.period_ns == ns) {
                        (curve(one, &looks, &x, &y))
                    }
                }
            }
            (legend(&entries, LEFT, bottom + 18.0, WIDTH - LEFT))
        },
    })
}

fn curve(one: &CpuHistogram, looks: &[(u32, bool)], x: &Axis, y: &Axis) -> Markup {
    let place = looks
        .iter()
        .position(|look| *look == (one.cpu, one.isolated));
    let look = place.unwrap_or(0) % LOOKS;
    let mut path = String::new();
    let (floor, _) = y.ends();
    let step = 10f64.powf(0.1);
    for &(ns, count) in &one.bins {
        let (from, to) = (n(x.at(ns)), n(x.at(ns * step)));
        let _ = write!(
            path,
            "M{from} {floor}V{}H{to}V{floor}",
            n(y.at(count as f64))
        );
    }
    html! { path class=(format!("line s{look} d{look}")) d=(path) {} }
}
