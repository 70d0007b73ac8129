//! Amounts of any unit for people: one unit for a column or an axis.

use crate::units::{Scale, Unit};
use crate::words::grouped;
use record::series::Quantity;

/// The unit and decimals of one column or one axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// A time, on this scale.
    Time(Scale),
    /// Divisor, decimals and symbol.
    Plain(f64, usize, &'static str),
}

impl Amount {
    /// Chooses unit and decimals for all of these values together.
    pub fn of(unit: Quantity, values: impl IntoIterator<Item = f64>) -> Amount {
        let values: Vec<f64> = values.into_iter().collect();
        let largest = values.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        match unit {
            Quantity::Ns => Amount::Time(Scale::of(values)),
            Quantity::Bytes if largest < 10_240.0 => Amount::Plain(1.0, 0, "B"),
            Quantity::Bytes if largest < 1_048_576.0 => Amount::Plain(1024.0, 1, "KiB"),
            Quantity::Bytes => Amount::Plain(1_048_576.0, 2, "MiB"),
            Quantity::Millicelsius => Amount::Plain(1e3, 1, "degrees C"),
            Quantity::Count => Amount::Plain(1.0, 0, ""),
        }
    }

    /// The number and its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Amount::Time(scale) => scale.show(value),
            Amount::Plain(divisor, decimals, "") => {
                grouped(format!("{:.decimals$}", value / divisor))
            }
            Amount::Plain(divisor, decimals, symbol) => {
                let number = grouped(format!("{:.decimals$}", value / divisor));
                format!("{number} {symbol}")
            }
        }
    }

    /// The interval of a value, in the value's unit: `low..high`.
    pub fn ends(self, value: f64, ends: [f64; 2]) -> String {
        match self {
            Amount::Time(scale) => scale.with_ends(value, ends).1,
            Amount::Plain(divisor, decimals, _) => {
                let [low, high] = ends.map(|end| grouped(format!("{:.decimals$}", end / divisor)));
                format!("{low}..{high}")
            }
        }
    }
}

/// A single value.
pub fn amount(unit: Quantity, value: f64) -> String {
    Amount::of(unit, [value]).show(value)
}

/// Raw values in the unit of an axis with `middle` at its centre, and that unit's name.
pub fn axis_unit(unit: Quantity, middle: f64) -> (f64, &'static str) {
    match unit {
        Quantity::Ns => {
            let unit = Unit::of(middle);
            (unit.ns(), unit.name())
        }
        Quantity::Bytes if middle < 1_048_576.0 => (1024.0, "KiB"),
        Quantity::Bytes => (1_048_576.0, "MiB"),
        Quantity::Millicelsius => (1e3, "degrees C"),
        Quantity::Count => (1.0, "count"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_has_its_words() {
        assert_eq!(amount(Quantity::Ns, 1_500_000.0), "1.50 ms");
        assert_eq!(amount(Quantity::Bytes, 18_874_368.0), "18.00 MiB");
        assert_eq!(amount(Quantity::Bytes, 4_096.0), "4,096 B");
        assert_eq!(amount(Quantity::Bytes, 102_400.0), "100.0 KiB");
        assert_eq!(amount(Quantity::Count, 14_200.0), "14,200");
        assert_eq!(amount(Quantity::Millicelsius, 45_500.0), "45.5 degrees C");
    }
}
