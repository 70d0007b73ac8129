//! Where growth leaves the straight line.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// How a figure grows with the number of cells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Growth {
    /// Fewer than six distinct places, or a value that is not positive: nothing can be said.
    TooFew,
    /// One straight line describes all points.
    Straight {
        /// Value at 0.
        intercept: f64,
        /// Growth per unit of x.
        slope: f64,
        /// The largest distance of a point from the line, as a share of the point.
        worst_miss: f64,
    },
    /// Two straight lines that meet do so much better.
    Knee(Knee),
}

/// The place where two straight lines meet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// Where they meet.
    pub at: f64,
    /// The places that the points cannot tell from it at 95 %: the lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Value at 0 of the first line.
    pub intercept: f64,
    /// Growth per unit of x before.
    pub slope_before: f64,
    /// Growth per unit of x behind.
    pub slope_after: f64,
    /// The largest distance of a point from the one straight line, as a share of the point.
    pub straight_miss: f64,
    /// The same from the two.
    pub worst_miss: f64,
}

impl Knee {
    /// The two lines at `x`.
    pub fn value(&self, x: f64) -> f64 {
        let bend = (self.slope_after - self.slope_before) * (x - self.at).max(0.0);
        self.intercept + self.slope_before * x + bend
    }
}

/// Points that are needed.
const LEAST_POINTS: usize = 6;
/// A straight line that misses no point by more than this is straight enough.
const MATERIAL: f64 = 0.05;
/// The least error of a measured point, as a share of it: keeps points without noise from proving anything.
const NOISE: f64 = 0.005;
/// Two lines must beat one by this much of the Bayesian information criterion: "very strong" in the scale of Kass and
/// Raftery, "Bayes factors", J. American Statistical Association 90, 1995.
const EVIDENCE: f64 = 10.0;
/// Places tried between two neighbouring points.
const STEPS: usize = 48;

impl Growth {
    /// Of points (x, y), y above 0, in any order.
    ///
    /// One line and a pair of lines that meet (Hudson, "Fitting segmented curves whose join points have to be
    /// estimated", J. American Statistical Association 61, 1966) are fitted to relative distances, so that small
    /// numbers count like large ones. There is a knee where the pair is better by more than 10 in the Bayesian information
    /// criterion and the one line misses a point by more than 5 %. At least two points lie on either side. The interval holds the places
    /// whose fit an F test at 95 % cannot tell from the best.
    pub fn of(points: &[(f64, f64)]) -> Growth {
        let mut points = points.to_vec();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let sound = |&(x, y): &(f64, f64)| x.is_finite() && y.is_finite() && y > 0.0;
        let mut places: Vec<f64> = points.iter().map(|p| p.0).collect();
        places.dedup();
        if places.len() < LEAST_POINTS || !points.iter().all(sound) {
            return Growth::TooFew;
        }
        let Some(line) = fit(&points, None) else {
            return Growth::TooFew;
        };
        let straight = Growth::Straight {
            intercept: line.terms[0],
            slope: line.terms[1],
            worst_miss: line.worst_miss,
        };
        let tried = broken(&points, &places);
        let best = tried
            .iter()
            .min_by(|a, b| a.1.squares.total_cmp(&b.1.squares));
        let Some((at, pair)) = best else {
            return straight;
        };
        let count = points.len() as f64;
        let noise = count * NOISE * NOISE;
        let gain =
            count * ((line.squares + noise) / (pair.squares + noise)).ln() - 2.0 * count.ln();
        if gain <= EVIDENCE || line.worst_miss <= MATERIAL {
            return straight;
        }
        let free = (count - 4.0).max(1.0);
        let least = pair.squares + noise;
        let reach = FisherSnedecor::new(1.0, free).map_or(f64::INFINITY, |f| f.inverse_cdf(0.95));
        let close = |(_, fit): &&(f64, Fit)| fit.squares + noise <= least * (1.0 + reach / free);
        let near = || tried.iter().filter(close).map(|(at, _)| *at);
        Growth::Knee(Knee {
            at: *at,
            low: near().fold(*at, f64::min),
            high: near().fold(*at, f64::max),
            intercept: pair.terms[0],
            slope_before: pair.terms[1],
            slope_after: pair.terms[1] + pair.terms[2],
            straight_miss: line.worst_miss,
            worst_miss: pair.worst_miss,
        })
    }

    /// The knee, if there is one.
    pub fn knee(&self) -> Option<&Knee> {
        match self {
            Growth::Knee(knee) => Some(knee),
            _ => None,
        }
    }
}

/// One fit: the terms of 1, x and max(0, x - k), and its residual.
struct Fit {
    terms: [f64; 3],
    squares: f64,
    worst_miss: f64,
}

/// The fits of all places where the lines may meet.
fn broken(points: &[(f64, f64)], places: &[f64]) -> Vec<(f64, Fit)> {
    let inner = &places[1..places.len() - 1];
    let mut tried = Vec::new();
    for pair in inner.windows(2) {
        // Equal ratios where that is possible: numbers of cells span orders of magnitude.
        for step in 0..=STEPS {
            let part = step as f64 / STEPS as f64;
            let at = if pair[0] > 0.0 {
                pair[0] * (pair[1] / pair[0]).powf(part)
            } else {
                pair[0] + (pair[1] - pair[0]) * part
            };
            tried.extend(fit(points, Some(at)).map(|fit| (at, fit)));
        }
    }
    tried
}

/// Least squares of relative distances, by Gram-Schmidt with a second pass.
fn fit(points: &[(f64, f64)], knee: Option<f64>) -> Option<Fit> {
    let width = points.iter().map(|p| p.0.abs()).fold(0.0, f64::max);
    if width <= 0.0 {
        return None;
    }
    let mut columns: Vec<Vec<f64>> = vec![
        points.iter().map(|&(_, y)| 1.0 / y).collect(),
        points.iter().map(|&(x, y)| x / width / y).collect(),
    ];
    if let Some(at) = knee {
        let bent = |&(x, y): &(f64, f64)| (x - at).max(0.0) / width / y;
        columns.push(points.iter().map(bent).collect());
    }
    let terms = solve(&columns, &vec![1.0; points.len()])?;
    let terms = [
        terms[0],
        terms[1] / width,
        terms.get(2).map_or(0.0, |term| term / width),
    ];
    let miss = |&(x, y): &(f64, f64)| {
        let bend = knee.map_or(0.0, |at| terms[2] * (x - at).max(0.0));
        (terms[0] + terms[1] * x + bend) / y - 1.0
    };
    let squares: f64 = points.iter().map(|p| miss(p).powi(2)).sum();
    let worst_miss = points.iter().map(|p| miss(p).abs()).fold(0.0, f64::max);
    let finite = terms.iter().all(|t| t.is_finite()) && squares.is_finite();
    finite.then_some(Fit {
        terms,
        squares,
        worst_miss,
    })
}

fn solve(columns: &[Vec<f64>], target: &[f64]) -> Option<Vec<f64>> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let many = columns.len();
    let mut upper = vec![vec![0.0; many]; many];
    let mut unit: Vec<Vec<f64>> = Vec::with_capacity(many);
    for (place, column) in columns.iter().enumerate() {
        let mut rest = column.clone();
        let length = dot(column, column).sqrt();
        for _ in 0..2 {
            for (row, known) in unit.iter().enumerate() {
                let part = dot(known, &rest);
                upper[row][place] += part;
                for (r, k) in rest.iter_mut().zip(known) {
                    *r -= part * k;
                }
            }
        }
        let left = dot(&rest, &rest).sqrt();
        // A column that the others already make up: the points cannot tell the terms apart.
        if !left.is_finite() || left <= 1e-12 * length {
            return None;
        }
        upper[place][place] = left;
        unit.push(rest.iter().map(|r| r / left).collect());
    }
    let mut terms = vec![0.0; many];
    for row in (0..many).rev() {
        let known: f64 = (row + 1..many).map(|c| upper[row][c] * terms[c]).sum();
        terms[row] = (dot(&unit[row], target) - known) / upper[row][row];
    }
    Some(terms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};

    const COUNTS: [f64; 15] = [
        1.0, 2.0, 10.0, 16.0, 20.0, 32.0, 50.0, 64.0, 80.0, 100.0, 128.0, 256.0, 512.0, 1024.0,
        2048.0,
    ];

    /// max(E, N E / m - Z) with E = 0.27 ms, Z = 1 ms, m = 2: flat until 9.4, then 0.135 ms for each further cell.
    #[test]
    fn the_knee_of_a_closed_system_is_found() {
        let response = |n: f64| 270.0_f64.max(n * 135.0 - 1_000.0);
        let points: Vec<(f64, f64)> = COUNTS.iter().map(|&n| (n, response(n))).collect();
        let growth = Growth::of(&points);
        let knee = growth.knee().unwrap();
        assert!((knee.at - 9.4).abs() < 0.15, "{knee:?}");
        assert!(
            knee.low <= 9.407 && knee.high >= 9.407 && knee.high < 10.5,
            "{knee:?}"
        );
        assert!(
            knee.slope_before.abs() < 5.0 && (knee.slope_after - 135.0).abs() < 2.0,
            "{knee:?}"
        );
        assert!((knee.value(2048.0) / response(2048.0) - 1.0).abs() < 0.02);
    }

    #[test]
    fn a_straight_line_has_no_knee() {
        let points: Vec<(f64, f64)> = COUNTS.iter().map(|&n| (n, 40.0 + 7.0 * n)).collect();
        let Growth::Straight {
            intercept,
            slope,
            worst_miss,
        } = Growth::of(&points)
        else {
            panic!("a line is a line");
        };
        assert!((intercept - 40.0).abs() < 1e-6 && (slope - 7.0).abs() < 1e-6 && worst_miss < 1e-6);
        assert_eq!(Growth::of(&points[..5]), Growth::TooFew);
        assert_eq!(Growth::of(&[(1.0, 0.0); 9]), Growth::TooFew);
        let twice: Vec<(f64, f64)> = points[..3].iter().chain(&points[..3]).copied().collect();
        assert_eq!(Growth::of(&twice), Growth::TooFew);
    }

    /// 10 % of noise on a line is rarely taken for a knee, and does not hide a real one.
    #[test]
    fn noise_is_told_from_a_knee() {
        let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(11);
        let mut noisy = |value: f64| value * (1.0 + random.random_range(-0.1..0.1));
        let (mut wrong, mut found) = (0, 0);
        for _ in 0..200 {
            let line: Vec<(f64, f64)> = COUNTS
                .iter()
                .map(|&n| (n, noisy(100.0 + 30.0 * n)))
                .collect();
            wrong += u32::from(Growth::of(&line).knee().is_some());
            let bent: Vec<(f64, f64)> = COUNTS
                .iter()
                .map(|&n| (n, noisy(100.0 + 30.0 * n + 300.0 * (n - 64.0).max(0.0))))
                .collect();
            let knee = Growth::of(&bent);
            found += u32::from(knee.knee().is_some_and(|k| k.low <= 64.0 && k.high >= 64.0));
        }
        assert!(wrong <= 6, "{wrong} of 200");
        assert!(found >= 170, "{found} of 200");
    }

    proptest! {
        #[test]
        fn no_input_panics(points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..20)) {
            let _ = Growth::of(&points);
        }

        #[test]
        fn a_knee_without_noise_is_where_it_is(
            flat in 10.0f64..1e6, slope in 1.0f64..1e3, at in 12.0f64..300.0,
        ) {
            let value = |n: f64| flat + flat * slope / 50.0 * (n - at).max(0.0);
            let points: Vec<(f64, f64)> = COUNTS.iter().map(|&n| (n, value(n))).collect();
            let growth = Growth::of(&points);
            let knee = growth.knee().expect("the line bends");
            prop_assert!((knee.at / at - 1.0).abs() < 0.1, "{:?} is not {}", knee, at);
            prop_assert!(knee.low <= knee.at && knee.at <= knee.high);
        }
    }
}
