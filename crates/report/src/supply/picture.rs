//! The figures of a supply study: for each budget the least that was received in windows of each length, and the bounds.

use analysis::Supply;
use analysis::empirical::Envelope;
use analysis::reservation::Periodic;
use record::supply::{MeasuredSupply, Promise, SupplySummary};

use super::line;
use crate::chart::Axis;
use crate::figure::plot::{Plot, Side};
use crate::figure::{Figure, documents};
use study::reservation;

/// Periods that a figure shows at least.
const PERIODS: u64 = 5;
/// Points of a curve that is drawn from a model.
const POINTS: u64 = 400;

/// The figures as SVG files of their own: file name and content.
pub fn supply_figures(summary: &SupplySummary) -> Vec<(String, String)> {
    let note = format!("timecell run {}", summary.run);
    documents(summary.supplies.iter().filter_map(draw), &note)
}

/// A curve: its look, its name, and its points in ns.
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
    let x = Axis::linear([0.0, until.max(1) as f64]);
    let y = Axis::linear([0.0, highest.max(1) as f64]);
    let (x, y) = (
        Side::time(x, "length of the window"),
        Side::time(y, "least cpu time received"),
    );
    let mut plot = Plot::new(x, y, 260.0);
    for curve in curves.iter().rev() {
        plot.line(
            curve.look,
            curve.points.iter().map(|&(x, y)| (x as f64, y as f64)),
        );
    }
    for curve in curves {
        plot.name(curve.look, curve.name);
    }
    let name = format!(
        "supply-{}-{}us-{}us",
        held.enforcer.name(),
        held.budget_ns / 1_000,
        held.period_ns / 1_000
    );
    let title = format!("{} {}", held.enforcer.name(), reservation(held));
    let caption = "The least cpu time received in any window of the length below. A bound holds where the measured curve lies on or above it; \
                   where it lies below, the bound promises what the kernel did not give.";
    Some(plot.figure(name, title, caption))
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
    let by_tick = match supply.held.enforcer.is_out_of_band() {
        true => "bound by EVL's timer",
        false => "bound by the tick",
    };
    for (look, name, promise) in [
        (3, by_tick, supply.by_tick),
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
