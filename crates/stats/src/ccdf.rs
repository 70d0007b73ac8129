//! The complementary distribution function: how often a job takes at least a given time.

use crate::{Binned, Sorted};

/// The number of largest samples that [`ccdf`] never thins.
pub const CCDF_TAIL: usize = 100;

/// Points (value in nanoseconds, P(X >= value)) of the empirical complementary distribution function, one for each
/// distinct value kept, values strictly ascending and probabilities strictly descending from 1 to at least 1/n.
///
/// There are at most `max_points`. When that forces thinning, the smallest value is kept, and every distinct value
/// among the largest [`CCDF_TAIL`] samples; between them, points are spaced evenly in the logarithm of the
/// probability, as the curve is drawn. Every point given is exact. When `max_points` has no room even for the tail,
/// the largest values are kept, and with room for at least two, the smallest. Empty when there is no sample or no room.
pub fn ccdf(sorted: &Sorted, max_points: usize) -> Vec<(i64, f64)> {
    curve(steps(sorted.as_slice()), sorted.len(), max_points)
}

/// The same from bins, a point for the lower end of each: a step, too, is exact, only some are missing.
pub fn ccdf_binned(binned: &Binned, max_points: usize) -> Vec<(i64, f64)> {
    let total = usize::try_from(binned.len()).unwrap_or(usize::MAX);
    let mut reached = total;
    let steps = binned.bins().iter().map(|bin| {
        let step = (bin.low_ns, reached);
        reached -= usize::try_from(bin.count).unwrap_or(reached).min(reached);
        step
    });
    let mut points: Vec<(i64, usize)> = steps.collect();
    // The largest value is known exactly; when its bin holds more, how many of them reach it is not.
    if let (Some(max), Some(last)) = (binned.max_ns(), points.last().copied())
        && max > last.0
    {
        points.push((max, 1));
        if last.1 == 1 {
            points.swap_remove(points.len() - 2);
        }
    }
    curve(points, total, max_points)
}

fn curve(points: Vec<(i64, usize)>, total: usize, max_points: usize) -> Vec<(i64, f64)> {
    let kept = if points.len() <= max_points {
        points
    } else {
        thin(&points, max_points)
    };
    kept.into_iter()
        .map(|(value, reached)| (value, reached as f64 / total as f64))
        .collect()
}

/// Each distinct value with the number of samples that reach it.
fn steps(samples: &[i64]) -> Vec<(i64, usize)> {
    let mut reached = samples.len();
    let same = samples.chunk_by(|left, right| left == right);
    same.map(|ties| {
        let step = (ties[0], reached);
        reached -= ties.len();
        step
    })
    .collect()
}

/// At most `room` points of more than that many.
fn thin(points: &[(i64, usize)], room: usize) -> Vec<(i64, usize)> {
    if room == 0 {
        return Vec::new();
    }
    let tail = points
        .iter()
        .rev()
        .take_while(|&&(_, reached)| reached <= CCDF_TAIL)
        .count();
    let tail = tail.min(room - 1).max(1);
    let (body, tail) = points.split_at(points.len() - tail);
    let mut kept = spaced(body, room - tail.len());
    kept.extend(tail);
    kept
}

/// At most `room` points, the first of them included, at even steps of the logarithm of the count that reaches them.
fn spaced(body: &[(i64, usize)], room: usize) -> Vec<(i64, usize)> {
    let (Some(&(_, most)), Some(&(_, least))) = (body.first(), body.last()) else {
        return Vec::new();
    };
    let (top, bottom) = ((most as f64).ln(), (least as f64).ln());
    let steps = room.saturating_sub(1).max(1) as f64;
    let mut indices: Vec<usize> = (0..room)
        .map(|step| {
            let target = (top + (bottom - top) * step as f64 / steps).exp().round();
            body.partition_point(|&(_, reached)| reached as f64 > target)
                .min(body.len() - 1)
        })
        .collect();
    indices.dedup();
    indices.into_iter().map(|index| body[index]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_points_by_hand() {
        let sorted = Sorted::new(vec![30, 10, 10, 20]);
        assert_eq!(ccdf(&sorted, 10), [(10, 1.0), (20, 0.5), (30, 0.25)]);
        assert_eq!(ccdf(&Sorted::default(), 10), []);
    }

    #[test]
    fn the_tail_survives_thinning_exactly() {
        let sorted = Sorted::new((0..100_000).map(|i| i * i).collect());
        let points = ccdf(&sorted, 300);
        assert!((200..=300).contains(&points.len()), "{}", points.len());
        assert_eq!(points[0], (0, 1.0));
        let tail: Vec<(i64, f64)> = (99_900..100_000)
            .map(|i| (i * i, (100_000 - i) as f64 / 100_000.0))
            .collect();
        assert_eq!(points[points.len() - CCDF_TAIL..], tail);
    }

    /// Between the decades of the body, each has about the same number of points.
    #[test]
    fn the_body_is_even_on_a_logarithmic_axis() {
        let points = ccdf(&Sorted::new((0..100_000).collect()), 400);
        let decade = |from: f64| {
            points
                .iter()
                .filter(|point| point.1 <= from && point.1 > from / 10.0)
                .count()
        };
        assert!(
            decade(1.0).abs_diff(decade(0.1)) <= 2,
            "{} {}",
            decade(1.0),
            decade(0.1)
        );
    }

    #[test]
    fn little_room_goes_to_the_largest() {
        let sorted = Sorted::new((0..1_000).collect());
        assert_eq!(ccdf(&sorted, 0), []);
        assert_eq!(ccdf(&sorted, 1), [(999, 0.001)]);
        assert_eq!(ccdf(&sorted, 3), [(0, 1.0), (998, 0.002), (999, 0.001)]);
    }
}
