//! How long the longest of many jobs may take: the fitted tail, a little beyond the largest sample, with its band.

use super::goodness::Law;
use super::pareto::Pareto;
use super::threshold::Peaks;
use super::{CurvePoint, Pareto as Fitted};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// How far the curve goes beyond one job in all that were measured. Farther out nothing was seen that could refute it.
pub(super) const BEYOND: f64 = 10.0;
/// Points of a curve.
const POINTS: u32 = 24;
/// Resamples of the band.
const RESAMPLES: usize = 500;
/// The part that the band leaves out at each side.
const OUTSIDE: f64 = 0.025;

/// The law with the interval of its shape, and the curve from the threshold's probability down to one in ten times the
/// jobs measured.
///
/// P(X > x) = (exceedances / jobs) · P(excess > x - threshold): the rate of all exceedances with the law of the largest
/// of each cluster, which errs to the safe side. The band is the 95 % interval of a parametric bootstrap (excesses drawn
/// from the law, their number from Poisson's law) at each probability; the threshold is kept.
pub(super) fn curve(
    jobs: usize,
    peaks: &Peaks,
    random: &mut Xoshiro256PlusPlus,
) -> (Fitted, Vec<CurvePoint>) {
    let rate = peaks.exceedances as f64 / jobs as f64;
    let last = 1.0 / (jobs as f64 * BEYOND);
    let probabilities: Vec<f64> = (0..=POINTS)
        .map(|point| rate * (last / rate).powf(f64::from(point) / f64::from(POINTS)))
        .collect();
    let clusters = peaks.excesses.len();
    let mut shapes = Vec::new();
    let mut drawn: Vec<Vec<f64>> = vec![Vec::new(); probabilities.len()];
    for _ in 0..RESAMPLES {
        // Poisson's law is close to a normal one for 50 events and more.
        let factor = 1.0 + normal(random) / (clusters as f64).sqrt();
        let count = ((clusters as f64 * factor).round() as usize).max(clusters / 4);
        let excesses = peaks.law.draw(count, random);
        let Some(law) = Pareto::fit(&excesses) else {
            continue;
        };
        let rate = rate * count as f64 / clusters as f64;
        shapes.push(law.shape);
        for (values, &probability) in drawn.iter_mut().zip(&probabilities) {
            values.push(beyond(&law, rate, probability));
        }
    }
    let (shape_low, shape_high) = interval(&mut shapes, peaks.law.shape);
    let fitted = Fitted {
        threshold_ns: peaks.threshold_ns,
        exceedances: peaks.exceedances as u64,
        clusters: clusters as u64,
        extremal_index: peaks.extremal_index,
        shape: peaks.law.shape,
        shape_low,
        shape_high,
        scale_ns: peaks.law.scale,
        p_value: peaks.p_value,
    };
    let points = probabilities
        .iter()
        .zip(&mut drawn)
        .map(|(&probability, values)| {
            let value = beyond(&peaks.law, rate, probability);
            let (low, high) = interval(values, value);
            CurvePoint {
                probability,
                value_ns: peaks.threshold_ns + value,
                low_ns: peaks.threshold_ns + low,
                high_ns: peaks.threshold_ns + high,
            }
        });
    (fitted, points.collect())
}

/// The excess that a job has with this probability, below 0 where the rate is smaller than the probability.
fn beyond(law: &Pareto, rate: f64, probability: f64) -> f64 {
    law.quantile(1.0 - probability / rate)
}

/// The 95 % interval of these values, which holds `value`.
fn interval(values: &mut [f64], value: f64) -> (f64, f64) {
    if values.is_empty() {
        return (value, value);
    }
    values.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| values[((values.len() - 1) as f64 * part).round() as usize];
    (at(OUTSIDE).min(value), at(1.0 - OUTSIDE).max(value))
}

/// A standard normal number (Box and Muller, 1958).
fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    let (radius, angle): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}
