//! The pictures of measured files: tails, and the counts of every thread as cyclictest's users draw them.

use maud::html;
use record::import::measured::{Distribution, Measured};

use super::{label, of_quantity};
use crate::chart::{Axis, LOOKS, n};
use crate::figure::Figure;
use crate::figure::plot::{Plot, Side};
use text::words::plural;

/// Points drawn of one curve.
const POINTS: usize = 400;

/// One curve with its name.
struct Curve<'a> {
    name: String,
    d: &'a Distribution,
}

/// The curves of a quantity: at most as many as there are looks, those with the largest maximum.
fn curves<'a>(files: &'a [Measured], quantity: &'a str) -> (Vec<Curve<'a>>, String) {
    let of = of_quantity(files, quantity).filter(|(_, d)| !d.counts.is_empty());
    let mut all: Vec<Curve> = of
        .map(|(file, d)| Curve {
            name: label(files, file, d),
            d,
        })
        .collect();
    let count = all.len();
    if count <= LOOKS {
        return (all, String::new());
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(all[at].d.max_ns()));
    order.truncate(LOOKS);
    let mut place = 0;
    all.retain(|_| {
        place += 1;
        order.contains(&(place - 1))
    });
    let note = format!(
        " Of {}, the {LOOKS} with the largest maximum are drawn.",
        plural(count as u64, "distribution")
    );
    (all, note)
}

/// How often a value is at least x, and how often each value occurs; nothing where no file has a histogram.
pub(super) fn draw(files: &[Measured], quantity: &str, number: usize) -> Vec<Figure> {
    let (curves, note) = curves(files, quantity);
    if curves.is_empty() {
        return Vec::new();
    }
    let mut figures = Vec::new();
    figures.extend(tails(&curves, quantity, number, &note));
    figures.push(counts(&curves, quantity, number, &note));
    figures
}

fn value_axis(values: impl Iterator<Item = i64>) -> Axis {
    Axis::fitting(values.map(|ns| ns as f64))
}

/// At most [`POINTS`] of the points, the rarest tenth of them always.
fn thinned<T>(points: impl Iterator<Item = T> + Clone) -> Vec<T> {
    let count = points.clone().count();
    if count <= POINTS {
        return points.collect();
    }
    let tail = count - POINTS / 2;
    let step = tail.div_ceil(POINTS / 2);
    let kept = |at: usize| at >= tail || at.is_multiple_of(step);
    let points = points.enumerate().filter(|(at, _)| kept(*at));
    points.map(|(_, point)| point).collect()
}

fn tails(curves: &[Curve], quantity: &str, number: usize, note: &str) -> Option<Figure> {
    let points: Vec<Vec<(i64, f64)>> = curves.iter().map(|curve| thinned(curve.d.ccdf())).collect();
    let all = || points.iter().flatten();
    all().next()?;
    let least = all().map(|point| point.1).fold(1.0, f64::min);
    // The largest value stands on the axis even where the histogram ends before it.
    let largest = curves.iter().filter_map(|curve| curve.d.max_ns());
    let x = value_axis(all().map(|point| point.0).chain(largest));
    let y = Side::plain(Axis::probability(least), "share of values, log scale");
    let cut = curves.iter().any(|curve| curve.d.overflow.is_some());
    let cut = if cut {
        " Where a curve ends in an arrow, the tool's histogram ended: the values beyond count in the share, but their sizes are not in \
         the file; a lone mark to the right is the largest value, which the tool kept."
    } else {
        ""
    };
    let mut plot = Plot::new(Side::time(x, quantity), y, 300.0);
    for (look, (curve, points)) in curves.iter().zip(&points).enumerate() {
        plot.steps(look, points.iter().map(|&(ns, p)| (ns as f64, p)));
        let last = points.last().copied();
        if let Some((ns, p)) = last.filter(|_| curve.d.overflow.is_some()) {
            let (x, y) = plot.at((ns as f64, p));
            let arrow = format!("M{} {}h14m-5-4l5 4l-5 4", n(x), n(y));
            plot.draw(html! { path class=(format!("mark s{look}")) d=(arrow) {} });
        }
        plot.marks(
            look,
            curve
                .d
                .max_ns()
                .zip(last)
                .map(|(max, (_, p))| (max as f64, p)),
        );
        plot.name(look, &*curve.name);
    }
    let caption = format!(
        "The share of values that are at least the time on the horizontal axis, both axes logarithmic unless values are negative or 0. A \
         steep fall is predictable; a long, flat stretch to the right is a heavy tail.{cut}{note}"
    );
    let title = format!("How often the {quantity} is at least x");
    Some(plot.figure(format!("tails-{number}"), title, caption))
}

fn counts(curves: &[Curve], quantity: &str, number: usize, note: &str) -> Figure {
    let rows: Vec<Vec<(i64, u64)>> = curves.iter().map(|curve| binned(curve.d)).collect();
    let all = || rows.iter().flatten();
    let x = value_axis(all().map(|row| row.0));
    let most = all().map(|row| row.1).max().unwrap_or(1);
    let y = Side::plain(Axis::log([0.8, most as f64]), "values, log scale");
    let mut plot = Plot::new(Side::time(x, quantity), y, 300.0);
    for (look, (curve, rows)) in curves.iter().zip(&rows).enumerate() {
        let at = |&(ns, count): &(i64, u64)| (ns as f64, count as f64);
        plot.line(look, rows.iter().map(at));
        plot.marks(look, marked(rows).map(at));
        plot.name(look, &*curve.name);
    }
    let caption = format!(
        "How many values lie in each bucket, as the histograms of cyclictest are drawn; wide ranges are gathered into at most 80 buckets. \
         Values beyond the tool's histogram are in the table, not here.{note}"
    );
    plot.figure(
        format!("counts-{number}"),
        format!("Counts of the {quantity}"),
        caption,
    )
}

/// The buckets that carry a mark: about twelve, so that curves that cross stay apart.
fn marked(rows: &[(i64, u64)]) -> impl Iterator<Item = &(i64, u64)> {
    rows.iter().step_by(rows.len().div_ceil(12).max(1))
}

/// The counts, gathered into at most 80 buckets that are even on the axis.
fn binned(d: &Distribution) -> Vec<(i64, u64)> {
    const MOST: usize = 80;
    if d.counts.len() <= MOST {
        return d.counts.clone();
    }
    let (Some(&(low, _)), Some(&(high, _))) = (d.counts.first(), d.counts.last()) else {
        return Vec::new();
    };
    let log = low > 0;
    let at = |ns: i64| if log { (ns as f64).ln() } else { ns as f64 };
    let width = (at(high) - at(low)) / MOST as f64;
    let mut bins: Vec<(i64, u64)> = Vec::new();
    let mut current = usize::MAX;
    for &(ns, count) in &d.counts {
        let bin = (((at(ns) - at(low)) / width) as usize).min(MOST - 1);
        match bins.last_mut() {
            Some(last) if bin == current => last.1 = last.1.saturating_add(count),
            _ => bins.push((ns, count)),
        }
        current = bin;
    }
    bins
}
