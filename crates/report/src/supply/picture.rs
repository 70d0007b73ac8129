//! The figures of a supply study: for each budget the least that was received in windows of each length, and the bounds.

use analysis::Supply;
use analysis::empirical::Envelope;
use analysis::reservation::Periodic;
use maud::html;
use record::supply::{MeasuredSupply, Promise, SupplySummary};

use super::line;
use crate::chart::{
    Axis, Band, Dress, Entry, document, legend, legend_height, n, title_below, title_left, x_axis,
    y_axis,
};
use crate::figure::{Figure, WIDTH};
use study::reservation;
use text::units::Unit;

const LEFT: f64 = 66.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 290.0;
/// Periods that a figure shows at least.
const PERIODS: u64 = 5;
/// Points of a curve that is drawn from a model.
const POINTS: u64 = 400;

/// The figures as SVG files of their own: file name and content.
pub fn supply_figures(summary: &SupplySummary) -> Vec<(String, String)> {
    let note = format!("timecell run {}", summary.run);
    let standalone = |figure: Figure| {
        let dress = Dress {
            title: &figure.title,
            caption: &figure.caption,
            note: &note,
            size: (WIDTH, figure.height),
        };
        let svg = document(&dress, &figure.body);
        (format!("{}.svg", figure.name), svg)
    };
    let all = summary.supplies.iter().filter_map(draw);
    all.map(standalone).collect()
}

/// A curve: its look, what it is called, and its points in ns.
struct Curve {
    look: usize,
    name: String,
    points: Vec<(u64, u64)>,
}

/// The figure of one supply.
pub(super) fn draw(supply: &MeasuredSupply) -> Option<Figure> {
    let held = &supply.held;
    let until = until(supply);
    let curves = curves(supply, until)?;
    let highest = curves
        .iter()
        .flat_map(|curve| &curve.points)
        .map(|p| p.1)
        .max()?;
    let x = Axis::linear([0.0, until.max(1) as f64]).between(LEFT, RIGHT);
    let y = Axis::linear([0.0, highest.max(1) as f64]).between(BOTTOM, TOP);
    let (x_unit, y_unit) = (Unit::of(x.middle()), Unit::of(y.middle()));
    let entries: Vec<Entry> = curves
        .iter()
        .map(|curve| Entry {
            look: curve.look,
            name: &curve.name,
        })
        .collect();
    let legend_top = BOTTOM + 62.0;
    let body = html! {
        (title_left(8.0, TOP, &format!("least cpu time received in {}", y_unit.name())))
        (x_axis(&x, Band(TOP, BOTTOM), x_unit.ns()))
        (y_axis(&y, Band(LEFT, RIGHT), y_unit.ns()))
        (title_below(&x, BOTTOM, &format!("length of the window in {}", x_unit.name())))
        @for curve in curves.iter().rev() {
            path class=(format!("line s{0} d{0}", curve.look)) d=(path(&curve.points, &x, &y)) {}
        }
        (legend(&entries, LEFT, legend_top, WIDTH - LEFT))
    };
    let name = format!(
        "supply-{}-{}us-{}us",
        held.enforcer.name(),
        held.budget_ns / 1_000,
        held.period_ns / 1_000
    );
    Some(Figure {
        name: name.into(),
        title: format!("{} {}", held.enforcer.name(), reservation(held)),
        caption: "The least cpu time received in any window of the length below. A bound holds where the measured curve lies on or above \
                  it; where it lies below, the bound promises what the kernel did not give."
            .to_owned(),
        height: legend_top + legend_height(&entries, WIDTH - LEFT),
        body,
    })
}

/// Where the picture ends: some periods, and enough for the line below the supply to have left the ground.
fn until(supply: &MeasuredSupply) -> u64 {
    let delay = supply.points.first().map_or(0, |point| point.delay_ns);
    let periods = supply.held.period_ns.saturating_mul(PERIODS);
    let cautious = supply.cautious.map_or(0, |promise| promise.delay_ns);
    let wanted = periods
        .max(delay.saturating_mul(2))
        .max(cautious.saturating_mul(3) / 2);
    wanted.min(supply.measured_to_ns)
}

fn curves(supply: &MeasuredSupply, until: u64) -> Option<Vec<Curve>> {
    let held = &supply.held;
    let measured = supply.least.iter().copied();
    let mut points = vec![(0, 0)];
    points.extend(measured.take_while(|(window, _)| *window <= until));
    let envelope = Envelope::of(&supply.counted_on());
    let textbook = Periodic::new(held.budget_ns, held.period_ns).ok()?;
    let sampled = |model: &dyn Fn(u64) -> u64| -> Vec<(u64, u64)> {
        let step = (until / POINTS).max(1);
        let mut all: Vec<u64> = (0..=POINTS).map(|point| point * step).collect();
        all.push(until);
        all.into_iter()
            .filter(|t| *t <= until)
            .map(|t| (t, model(t)))
            .collect()
    };
    let mut curves = vec![
        Curve {
            look: 0,
            name: "measured".to_owned(),
            points,
        },
        Curve {
            look: 1,
            name: "textbook's bound".to_owned(),
            points: bends(&textbook, until),
        },
    ];
    let fitted = supply.points.first().map(line);
    curves.extend(fitted.zip(envelope).map(|(line, envelope)| Curve {
        look: 2,
        name: format!("fitted: {line}"),
        points: sampled(&|t| envelope.sbf(t)),
    }));
    for (look, name, promise) in [
        (3, "bound by the tick", supply.by_tick),
        (3, "bound by the worst reaction", supply.by_reaction),
        (4, "assumed unmeasured", supply.cautious),
    ] {
        curves.extend(promise.map(|promise| Curve {
            look,
            name: name.to_owned(),
            points: straight(&promise, until),
        }));
    }
    Some(curves)
}

/// Where the periodic supply bends: at the end of each pause and of each budget.
fn bends(textbook: &Periodic, until: u64) -> Vec<(u64, u64)> {
    let (budget, period) = (textbook.budget(), textbook.period());
    let gap = period - budget;
    let mut points = vec![(0, 0)];
    let starts = (0..).map_while(|k: u64| k.checked_mul(period)?.checked_add(2 * gap));
    for start in starts
        .take_while(|start| *start < until)
        .take(POINTS as usize)
    {
        points.push((start, textbook.sbf(start)));
        let end = (start + budget).min(until);
        points.push((end, textbook.sbf(end)));
    }
    points.push((until, textbook.sbf(until)));
    points
}

fn straight(promise: &Promise, until: u64) -> Vec<(u64, u64)> {
    let at = |t: u64| {
        let after = u128::from(t.saturating_sub(promise.delay_ns));
        let supplied = after * u128::from(promise.supplied) / u128::from(promise.per.max(1));
        (t, u64::try_from(supplied).unwrap_or(u64::MAX))
    };
    [0, promise.delay_ns.min(until), until].map(at).to_vec()
}

fn path(points: &[(u64, u64)], x: &Axis, y: &Axis) -> String {
    let mut path = String::new();
    for (place, &(across, up)) in points.iter().enumerate() {
        let letter = if place == 0 { 'M' } else { 'L' };
        path.push(letter);
        path += &format!("{} {}", n(x.at(across as f64)), n(y.at(up as f64)));
    }
    path
}
