//! Nanoseconds for people: one unit for a column or an axis.

use crate::words::grouped;

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl Unit {
    /// The most readable unit for a value of `ns`: us below 1 ms, ms below 1 s.
    pub fn of(ns: f64) -> Unit {
        match ns.abs() {
            ns if ns < 1e6 => Unit::Us,
            ns if ns < 1e9 => Unit::Ms,
            _ => Unit::S,
        }
    }

    /// One unit for all values of a table, the most readable one for its median value; `None` if some value would have too
    /// many digits in it, or no digit other than 0.
    pub fn common(values_ns: impl IntoIterator<Item = f64>) -> Option<Unit> {
        let mut values: Vec<f64> = values_ns
            .into_iter()
            .map(f64::abs)
            .filter(|ns| *ns > 0.0)
            .collect();
        values.sort_by(f64::total_cmp);
        let unit = Unit::of(*values.get(values.len() / 2)?);
        let least = 0.5 * unit.ns() / 10f64.powi(unit.most_decimals());
        let fits = *values.first()? > least && *values.last()? < MOST_DIGITS * unit.ns();
        fits.then_some(unit)
    }

    /// Its symbol.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Us => "us",
            Unit::Ms => "ms",
            Unit::S => "s",
        }
    }

    /// Nanoseconds in one unit.
    pub const fn ns(self) -> f64 {
        match self {
            Unit::Us => 1e3,
            Unit::Ms => 1e6,
            Unit::S => 1e9,
        }
    }

    /// Whether a value is more readable in another unit, as `0.0601 ms` is.
    fn is_too_large_for(self, ns: f64) -> bool {
        ns != 0.0 && ns.abs() < 0.1 * self.ns() && Unit::of(ns) != self
    }

    /// Decimals beyond which digits would be finer than the clock or than anyone needs.
    const fn most_decimals(self) -> i32 {
        match self {
            Unit::Us => 3,
            Unit::Ms | Unit::S => 4,
        }
    }
}

/// From here on, a number is hard to read in any unit.
const MOST_DIGITS: f64 = 100_000.0;

/// One unit and one number of decimals for the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    unit: Unit,
    decimals: usize,
}

impl Scale {
    /// Chooses the unit by the largest magnitude, and the decimals so that the smallest one still has three digits.
    pub fn of(values_ns: impl IntoIterator<Item = f64>) -> Scale {
        Scale::within(None, values_ns)
    }

    /// The same in a given unit, such as that of the whole table, if one of the values reaches it.
    pub fn within(unit: Option<Unit>, values_ns: impl IntoIterator<Item = f64>) -> Scale {
        let values: Vec<f64> = values_ns.into_iter().map(f64::abs).collect();
        let largest = values.iter().copied().fold(0.0, f64::max);
        let unit = unit
            .filter(|unit| largest >= unit.ns())
            .unwrap_or_else(|| Unit::of(largest));
        // Values that get their own unit need no digits here.
        let shown = values
            .into_iter()
            .filter(|ns| *ns > 0.0 && !unit.is_too_large_for(*ns));
        let smallest = shown.fold(f64::INFINITY, f64::min);
        let magnitude = if smallest.is_finite() {
            (smallest / unit.ns()).log10().floor() as i32
        } else {
            1
        };
        let decimals = (2 - magnitude).clamp(1, unit.most_decimals());
        Scale {
            unit,
            decimals: decimals as usize,
        }
    }

    /// The number alone.
    pub fn number(self, ns: f64) -> String {
        let text = format!("{:.*}", self.decimals, ns / self.unit.ns());
        grouped(text)
    }

    /// The number and the unit; a value below a tenth of the unit has its own unit.
    pub fn show(self, ns: f64) -> String {
        match self.unit.is_too_large_for(ns) {
            true => time(ns),
            false => format!("{} {}", self.number(ns), self.unit.name()),
        }
    }

    /// A value as [`Scale::show`] prints it, and its interval `low..high`, either in the unit of the value or each with its
    /// own.
    pub fn with_ends(self, ns: f64, ends: [f64; 2]) -> (String, String) {
        if !self.unit.is_too_large_for(ns) {
            let [low, high] = ends.map(|end| self.number(end));
            return (self.show(ns), format!("{low}..{high}"));
        }
        let own = Scale::within(Some(Unit::of(ns)), [ns, ends[0], ends[1]]);
        match ends
            .iter()
            .all(|end| own.unit == Unit::of(*end) || end.abs() < own.unit.ns())
        {
            true => own.with_ends(ns, ends),
            false => (time(ns), format!("{}..{}", time(ends[0]), time(ends[1]))),
        }
    }
}

/// A single value in its own unit, with at least three digits.
pub fn time(ns: f64) -> String {
    Scale::of([ns]).show(ns)
}

/// A time in ns, rounded up to the thousandth of its unit: an upper bound stays one.
pub fn rounded_up(ns: u64) -> String {
    let step = match ns {
        0..1_000_000 => 1,
        1_000_000..1_000_000_000 => 1_000,
        _ => 1_000_000,
    };
    exact(ns.checked_next_multiple_of(step).unwrap_or(ns))
}

/// A time in ns to the last digit, in the most readable unit: `250 us`, `20.821 ms`.
pub fn exact(ns: u64) -> String {
    let (unit, scale) = match ns {
        0 => return "0".to_owned(),
        1..1_000 => ("ns", 1),
        1_000..1_000_000 => ("us", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    let digits = match scale {
        1 => 0,
        1_000 => 3,
        1_000_000 => 6,
        _ => 9,
    };
    let fraction = format!("{:0digits$}", ns % scale);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() || scale == 1 {
        ""
    } else {
        "."
    };
    let fraction = if scale == 1 { "" } else { fraction };
    format!("{}{point}{fraction} {unit}", grouped(ns / scale))
}

/// A share in percent with three digits, or two below a tenth of a percent: `0.040 %`, `1.30 %`, `24.0 %`, `100 %`.
pub fn percent(share: f64) -> String {
    let value = 100.0 * share;
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0} %"),
        v if v >= 9.995 => format!("{value:.1} %"),
        v if v >= 0.095 || v == 0.0 => format!("{value:.2} %"),
        _ => format!("{value:.3} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_times_keep_every_digit() {
        for (ns, text) in [
            (0, "0"),
            (999, "999 ns"),
            (1_000, "1 us"),
            (250_000, "250 us"),
            (250_001, "250.001 us"),
            (20_821_000, "20.821 ms"),
            (20_000_001, "20.000001 ms"),
            (1_500_000_000, "1.5 s"),
            (u64::MAX, "18,446,744,073.709551615 s"),
        ] {
            assert_eq!(exact(ns), text);
        }
    }

    #[test]
    fn a_bound_is_rounded_up() {
        let of = [999_999, 143_226_116, 1_032_440_674, 20_000];
        let shown = ["999.999 us", "143.227 ms", "1.033 s", "20 us"];
        assert_eq!(of.map(rounded_up), shown);
    }

    #[test]
    fn a_column_has_one_unit_and_keeps_three_digits_of_the_smallest() {
        let scale = Scale::of([902_000.0, 270_100.0]);
        assert_eq!(scale.show(270_100.0), "270.1 us");
        let scale = Scale::of([4_210_000.0, 902_000.0]);
        assert_eq!(scale.show(4_210_000.0), "4.210 ms");
        assert_eq!(scale.show(902_000.0), "0.902 ms");
        let scale = Scale::of([12_000_000_000.0, 1_000_000.0]);
        assert_eq!(scale.show(1_000_000.0), "1.00 ms");
        assert_eq!(time(350.0), "0.350 us");
        // A table of milliseconds stays one where a value is a second, and also where one is 13.9 of them.
        let table = [
            10_120_000.0,
            13_900_000.0,
            3_454_900.0,
            35_600.0,
            1_358_600_000.0,
        ];
        let unit = Unit::common(table);
        assert_eq!(unit, Some(Unit::Ms));
        assert_eq!(
            Scale::within(unit, [1_358_600_000.0, 13_900_000.0]).show(13_900_000.0),
            "13.9 ms"
        );
        assert_eq!(Scale::within(unit, [35_600.0]).show(35_600.0), "35.6 us");
        assert_eq!(Scale::within(unit, [60_100.0]).show(-60_100.0), "-60.1 us");
        // A column that does not reach the unit of the table has its own, and one that does loses no digits to those not shown in it.
        assert_eq!(
            Scale::within(unit, [68_600.0, 103_900.0]).show(103_900.0),
            "103.9 us"
        );
        let column = Scale::within(unit, [68_600.0, 103_900.0, 3_977_000.0]);
        assert_eq!(column.show(103_900.0), "0.104 ms");
        assert_eq!(column.show(68_600.0), "68.6 us");
        // Too far apart for one unit, and nothing to have one of.
        assert_eq!(Unit::common([100.0, 2_000.0, 3_000_000_000.0]), None);
        assert_eq!(Unit::common([0.0]), None);
        assert_eq!(time(-4_200.0), "-4.20 us");
        assert_eq!(time(0.0), "0.0 us");
        assert_eq!(time(i64::MAX as f64), "9,223,372,036.9 s");
    }

    #[test]
    fn an_interval_has_the_unit_of_its_value() {
        let scale = Scale::of([4_210_000.0, 902_000.0]);
        let told = |ns, low, high| {
            let (value, ends) = scale.with_ends(ns, [low, high]);
            format!("{value} ({ends})")
        };
        assert_eq!(
            told(902_000.0, 35_600.0, 4_210_000.0),
            "0.902 ms (0.036..4.210)"
        );
        assert_eq!(told(60_100.0, 0.0, 97_000.0), "60.1 us (0.0..97.0)");
        assert_eq!(
            told(60_100.0, 59_000.0, 4_210_000.0),
            "60.1 us (59.0 us..4.21 ms)"
        );
        // Nothing is finer than a microsecond.
        assert_eq!(Scale::of([50.0]).show(50.0), "0.050 us");
    }
}
