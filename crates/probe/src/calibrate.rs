//! How long one multiply-accumulate step takes on this cpu, in cpu time: time lost to preemption is not counted.

use crate::clock;
use crate::work::mac;

/// Steps of one try.
const STEPS: u32 = 400_000;
/// Tries before the least two are looked at, and at most.
const LEAST_TRIES: u32 = 8;
const MOST_TRIES: u32 = 200;
/// How far the least two tries may be apart, in millionths of the least: 2 %.
const CLOSE_PPM: u32 = 20_000;

/// The result of a calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Calibration {
    /// Cpu time of one step in ps: the least of all tries.
    pub step_ps: u64,
    /// Number of tries.
    pub tries: u32,
    /// How far apart the least two were, in millionths.
    pub spread_ppm: u32,
}

impl Calibration {
    /// Steps that take so much cpu time, at least 1.
    pub(crate) fn steps(&self, ns: i64) -> u32 {
        let ps = u128::from(ns.unsigned_abs()) * 1000;
        let steps = ps / u128::from(self.step_ps.max(1));
        u32::try_from(steps).unwrap_or(u32::MAX).max(1)
    }
}

/// Tries until the least two agree within 2 %, so that the least is not one lucky reading.
pub(crate) fn calibrate() -> Calibration {
    of(|| {
        let from = clock::thread_cpu_time();
        std::hint::black_box(mac(std::hint::black_box(STEPS)));
        clock::thread_cpu_time() - from
    })
}

fn of(mut attempt: impl FnMut() -> i64) -> Calibration {
    let (mut least, mut second) = (u64::MAX, u64::MAX);
    let mut tries = 0;
    loop {
        let took = attempt().max(1).unsigned_abs();
        if took < least {
            (least, second) = (took, least);
        } else {
            second = second.min(took);
        }
        tries += 1;
        let apart = u128::from(second - least) * 1_000_000 / u128::from(least);
        let spread_ppm = u32::try_from(apart).unwrap_or(u32::MAX);
        let close = tries >= LEAST_TRIES && spread_ppm <= CLOSE_PPM;
        if close || tries >= MOST_TRIES {
            return Calibration {
                step_ps: (least * 1000 / u64::from(STEPS)).max(1),
                tries,
                spread_ppm,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lucky_reading_is_not_believed() {
        let mut times = [800_000, 500_000, 900_000].into_iter();
        let found = of(|| times.next().unwrap_or(505_000));
        assert_eq!((found.step_ps, found.tries), (1250, LEAST_TRIES));
        assert!(found.spread_ppm == 10_000, "{found:?}");
        let mut took = 1_000_000_000;
        let wild = of(|| {
            took -= took / 20;
            took
        });
        assert_eq!(wild.tries, MOST_TRIES);
        assert!(wild.spread_ppm > CLOSE_PPM);
    }

    #[test]
    fn steps_of_a_time() {
        let calibration = Calibration {
            step_ps: 500,
            tries: 1,
            spread_ppm: 0,
        };
        assert_eq!(calibration.steps(1_000), 2_000);
        assert_eq!(calibration.steps(0), 1);
        assert_eq!(calibration.steps(i64::MAX), u32::MAX);
    }

    #[test]
    fn this_machine_can_be_calibrated() {
        let found = calibrate();
        assert!(found.step_ps > 0 && found.tries >= LEAST_TRIES);
    }
}
