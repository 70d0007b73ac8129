//! From values to positions, and where the ticks stand.

use text::words::grouped;

/// An axis from `low` to `high` (any unit), drawn between two positions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    log: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

/// The position of a tick, and its text if it has one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub value: f64,
    pub text: Option<String>,
}

/// A logarithmic axis that spans less than this factor is ticked like a linear one.
const NARROW: f64 = 4.0;

impl Axis {
    /// A logarithmic axis that holds all positive values; linear when there are none.
    pub fn log(values: impl IntoIterator<Item = f64>) -> Axis {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values.into_iter().filter(|&v| v > 0.0 && v.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        if high <= 0.0 {
            return Axis::linear([0.0, 1.0]);
        }
        let (low, high) = if high / low < NARROW {
            let room = (high / low).powf(0.06).max(1.01);
            (low / room, high * room)
        } else {
            (round_down(low * 0.98), round_up(high * 1.02))
        };
        let log = true;
        Axis {
            log,
            ..Axis::exact(low, high)
        }
    }

    /// A linear axis that holds all values.
    pub fn linear(values: impl IntoIterator<Item = f64>) -> Axis {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.into_iter().filter(|v| v.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if low == high {
            let room = (low.abs() * 0.05).max(1.0);
            (low, high) = (low - room, high + room);
        }
        let room = (high - low) * 0.04;
        let low = if low == 0.0 { 0.0 } else { low - room };
        Axis::exact(low, high + room)
    }

    /// A linear axis from `low` to `high`, without room beyond.
    pub fn exact(low: f64, high: f64) -> Axis {
        Axis {
            log: false,
            low,
            high,
            from: 0.0,
            to: 1.0,
        }
    }

    /// Logarithmic when no value is 0 or less, else linear.
    pub fn fitting(values: impl IntoIterator<Item = f64>) -> Axis {
        let values: Vec<f64> = values.into_iter().collect();
        match values.iter().all(|value| *value > 0.0) {
            true => Axis::log(values),
            false => Axis::linear(values),
        }
    }

    /// The probabilities from `least` to 1 on a logarithmic axis, in whole decades.
    pub fn probability(least: f64) -> Axis {
        let least = if least > 0.0 { least } else { 0.1 };
        let (log, low) = (true, 10f64.powf(least.log10().floor()).min(0.1));
        Axis {
            log,
            ..Axis::exact(low, 1.0)
        }
    }

    /// The same axis drawn between these positions.
    pub fn between(mut self, from: f64, to: f64) -> Axis {
        (self.from, self.to) = (from, to);
        self
    }

    /// Whether it is logarithmic.
    pub fn is_log(&self) -> bool {
        self.log
    }

    /// First and last position.
    pub fn ends(&self) -> (f64, f64) {
        (self.from, self.to)
    }

    /// The position of a value, kept within the axis.
    pub fn at(&self, value: f64) -> f64 {
        let part = if self.log {
            let value = value.max(self.low);
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + (self.to - self.from) * part.clamp(0.0, 1.0)
    }

    /// Whether the axis is long enough to show a value.
    pub fn reaches(&self, value: f64) -> bool {
        self.holds(value)
    }

    /// The value in the middle of the axis, by position.
    pub fn middle(&self) -> f64 {
        if self.log {
            (self.low * self.high).sqrt()
        } else {
            self.low.abs().max(self.high.abs())
        }
    }

    /// Ticks with texts in multiples of `unit`; texts are `gap` px apart or more.
    pub fn ticks(&self, unit: f64, gap: f64) -> Vec<Tick> {
        if self.log && self.high / self.low >= NARROW {
            self.log_ticks(unit, gap)
        } else {
            self.linear_ticks(unit, gap)
        }
    }

    fn log_ticks(&self, unit: f64, gap: f64) -> Vec<Tick> {
        let decades = (self.high / self.low).log10();
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        // Powers of ten get their texts first, then 5 and 2, then 3, wherever there is room.
        let mut texted: Vec<f64> = Vec::new();
        for steps in [&[1][..], &[5, 2], &[3]] {
            for decade in first..=last {
                for &step in steps {
                    let value = f64::from(step) * 10f64.powi(decade);
                    let free = |&other: &f64| (self.at(other) - self.at(value)).abs() >= gap;
                    if self.holds(value) && texted.iter().all(free) {
                        texted.push(value);
                    }
                }
            }
        }
        let mut ticks = Vec::new();
        for decade in first..=last {
            for step in 1..=9 {
                let value = f64::from(step) * 10f64.powi(decade);
                let text = texted.contains(&value).then(|| plain(value / unit));
                if self.holds(value) && (text.is_some() || step == 1 || decades <= 5.0) {
                    ticks.push(Tick { value, text });
                }
            }
        }
        ticks
    }

    /// Whether a value lies on the axis, rounding allowed for.
    fn holds(&self, value: f64) -> bool {
        value >= self.low * 0.999 && value <= self.high * 1.001
    }

    fn linear_ticks(&self, unit: f64, gap: f64) -> Vec<Tick> {
        let span = (self.high - self.low) / unit;
        let room = (self.to - self.from).abs() / gap.max(1.0);
        let rough = span / room.clamp(1.0, 6.0);
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|m| m * power)
            .find(|&s| s >= rough)
            .unwrap_or(power * 10.0);
        let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let first = (self.low / unit / step).ceil();
        (0..12)
            .map(|k| (first + f64::from(k)) * step)
            .take_while(|&value| value * unit <= self.high * (1.0 + 1e-12) + 1e-12)
            .map(|value| Tick {
                value: value * unit,
                text: Some(grouped(format!("{:.decimals$}", value + 0.0))),
            })
            .collect()
    }
}

/// A power of ten times 1, 2 or 5 without superfluous digits.
fn plain(value: f64) -> String {
    if !(1e-6..1e9).contains(&value) {
        return format!("{value:.0e}");
    }
    let decimals = (-value.log10().floor()).clamp(0.0, 9.0) as usize;
    grouped(format!("{value:.decimals$}"))
}

/// Where a logarithmic axis may begin or end within a decade.
const ENDS: [f64; 7] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0];

/// The largest of [`ENDS`] times a power of ten that is not above.
fn round_down(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    ENDS.into_iter()
        .rev()
        .map(|m| m * power)
        .find(|&m| m <= value)
        .unwrap_or(power)
}

/// The smallest of [`ENDS`] times a power of ten that is not below.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    ENDS.into_iter()
        .map(|m| m * power)
        .find(|&m| m >= value)
        .unwrap_or(power * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis, unit: f64) -> Vec<String> {
        axis.ticks(unit, 40.0)
            .into_iter()
            .filter_map(|t| t.text)
            .collect()
    }

    #[test]
    fn a_wide_logarithm_is_ticked_at_decades() {
        let axis = Axis::log([1_000.0, 900_000_000.0]).between(0.0, 300.0);
        assert_eq!(texts(&axis, 1e6)[..3], ["0.001", "0.01", "0.1"]);
        assert_eq!(axis.at(-5.0), 0.0);
        assert_eq!(axis.at(1e30), 300.0);
    }

    #[test]
    fn a_narrow_logarithm_still_has_numbers() {
        let axis = Axis::log([262_000.0, 331_000.0]).between(0.0, 300.0);
        assert_eq!(texts(&axis, 1e3), ["260", "280", "300", "320"]);
        assert!(texts(&Axis::log([270_000.0]).between(0.0, 300.0), 1e3).len() >= 2);
    }

    #[test]
    fn nothing_to_draw_is_no_panic() {
        for axis in [
            Axis::log([]),
            Axis::log([0.0, -3.0]),
            Axis::linear([]),
            Axis::linear([7.0, 7.0]),
            Axis::linear([i64::MIN as f64, i64::MAX as f64]),
            Axis::log([1.0, i64::MAX as f64]),
            Axis::probability(0.0),
        ] {
            assert!(axis.at(1.0).is_finite());
            let axis = axis.between(0.0, 300.0);
            assert!((1..200).contains(&axis.ticks(1e3, 40.0).len()), "{axis:?}");
        }
    }
}
