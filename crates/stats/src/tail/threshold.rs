//! Where the tail begins: the choice of the threshold, and the fit above it.

use super::Refusal;
use super::cluster::{Exceedance, decluster};
use super::goodness::{Law, p_value};
use super::pareto::Pareto;
use super::ties::{spread, step_of};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The most jobs above a threshold.
const MOST: usize = 2_000;
/// The fewest jobs above a threshold, and the fewest clusters.
pub(super) const FEWEST: usize = 50;
/// Distinct values that a tail must have.
const DISTINCT: u64 = 10;
/// A fit with a smaller p-value is refused at its own threshold ...
const REFUSED: f64 = 0.10;
/// ... and at the higher ones that must be good as well.
const REFUSED_ABOVE: f64 = 0.05;
/// A tail at least as heavy has no variance: L-moments are then of little use, and extrapolation of none.
const HEAVIEST: f64 = 0.5;

/// A tail and the law fitted to it.
pub(super) struct Peaks {
    /// In ns, between two steps of the clock.
    pub threshold_ns: f64,
    /// Jobs above it.
    pub exceedances: usize,
    /// The largest of each cluster less the threshold, ns, ascending, ties spread.
    pub excesses: Vec<f64>,
    pub extremal_index: f64,
    pub law: Pareto,
    /// Of the Anderson-Darling test.
    pub p_value: f64,
    pub step_ns: f64,
}

/// The lowest threshold above which the tail looks like a generalised Pareto law, and still does above the next two.
///
/// Candidates are the thresholds that 2,000, 1,414, 1,000, ... jobs exceed (each √2 fewer), at most a tenth of all and
/// at least 50. Each is tested by Anderson and Darling's statistic with a parametric bootstrap. Testing an ordered
/// list of thresholds so is the idea of Bader, Yan and Zhang, "Automated threshold selection for extreme value
/// analysis via ordered goodness-of-fit tests with adjustment for false discovery rate", Annals of Applied Statistics
/// 12(1), 2018; their adjustment is replaced here by the plain demand that three neighbours agree.
///
/// `exceedances` are those over any lower threshold, in the order of time.
pub(super) fn choose(
    jobs: usize,
    exceedances: &[Exceedance],
    random: &mut Xoshiro256PlusPlus,
) -> Result<Peaks, Refusal> {
    let mut values: Vec<i64> = exceedances.iter().map(|one| one.value_ns).collect();
    values.sort_unstable();
    let values = &values[values.len().saturating_sub(MOST + 1)..];
    let distinct = values.chunk_by(|a, b| a == b).count() as u64;
    if distinct < DISTINCT || values.len() <= FEWEST {
        return Err(Refusal::FewDistinct {
            distinct,
            needed: DISTINCT,
        });
    }
    let step = step_of(values);
    let lowest = values[0];
    let near: Vec<Exceedance> = exceedances
        .iter()
        .filter(|one| one.value_ns > lowest)
        .copied()
        .collect();
    let mut candidates = Vec::new();
    let most = MOST.min(jobs / 10).min(values.len() - 1) as f64;
    for halvings in 0..12 {
        let count = (most / 2.0_f64.powf(f64::from(halvings) / 2.0)).round() as usize;
        let value = values[values.len() - 1 - count];
        if count < FEWEST || candidates.last().is_some_and(|&last| last >= value) {
            continue;
        }
        candidates.push(value);
    }
    let mut tested: Vec<Option<Option<Peaks>>> = candidates.iter().map(|_| None).collect();
    let mut test = |place: usize, random: &mut Xoshiro256PlusPlus| {
        if tested[place].is_none() {
            tested[place] = Some(peaks(&near, candidates[place], step, random));
        }
        let found = tested[place].as_ref().and_then(Option::as_ref);
        found.map(|peaks| peaks.p_value)
    };
    let mut best = 0.0_f64;
    let mut chosen = None;
    for place in 0..candidates.len() {
        let Some(own) = test(place, random) else {
            continue;
        };
        best = best.max(own);
        let above = place + 1..(place + 3).min(candidates.len());
        let good = |next| test(next, random).is_none_or(|p| p > REFUSED_ABOVE);
        if own > REFUSED && above.into_iter().all(good) {
            chosen = Some(place);
            break;
        }
    }
    let peaks = chosen.and_then(|place| tested[place].take().flatten());
    let peaks = peaks.ok_or(Refusal::NoThreshold {
        tried: candidates.len() as u64,
        best_p_value: best,
    })?;
    if peaks.law.shape >= HEAVIEST {
        return Err(Refusal::TooHeavy {
            shape: peaks.law.shape,
        });
    }
    if peaks.law.scale < 2.0 * peaks.step_ns {
        return Err(Refusal::Coarse {
            step_ns: peaks.step_ns,
            scale_ns: peaks.law.scale,
        });
    }
    Ok(peaks)
}

/// The fit above one threshold; `None` with too few clusters.
fn peaks(
    near: &[Exceedance],
    value: i64,
    step: u64,
    random: &mut Xoshiro256PlusPlus,
) -> Option<Peaks> {
    let over: Vec<Exceedance> = near
        .iter()
        .filter(|one| one.value_ns > value)
        .copied()
        .collect();
    let (mut largest, extremal_index) = decluster(&over);
    (largest.len() >= FEWEST).then_some(())?;
    largest.sort_unstable();
    let step = step as f64;
    let mut excesses: Vec<f64> = largest
        .iter()
        .map(|largest| largest.abs_diff(value) as f64 - step / 2.0)
        .collect();
    spread(&mut excesses, step);
    let law = Pareto::fit(&excesses)?;
    Some(Peaks {
        threshold_ns: value as f64 + step / 2.0,
        exceedances: over.len(),
        p_value: p_value(&law, &excesses, step, random),
        excesses,
        extremal_index,
        law,
        step_ns: step,
    })
}
