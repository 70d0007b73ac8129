//! Equal values, which a continuous law never gives and a clock with a coarse step gives always.
//!
//! Nothing random is added. Values that fell into one step of the clock are spread evenly over that step, in the
//! middle of which they were reported; a test then sees the shares of the steps as measured and no false heaps.

/// The step of the clock as the values show it, in ns: the smallest difference between two that differ. 0 with fewer
/// than two distinct values.
pub(super) fn step_of(ascending: &[i64]) -> u64 {
    let gaps = ascending.windows(2).map(|pair| pair[1].abs_diff(pair[0]));
    gaps.filter(|&gap| gap > 0).min().unwrap_or(0)
}

/// Rounds ascending values to multiples of the step, up from half, and spreads those that became equal evenly over
/// their step. They stay ascending, above 0 if they were. A step of 0 changes nothing.
pub(super) fn spread(ascending: &mut [f64], step: f64) {
    if step <= 0.0 {
        return;
    }
    // The offset of half a step is the one that excesses over a threshold between two steps have.
    let place = |value: f64| (value / step).floor();
    let mut from = 0;
    while from < ascending.len() {
        let bin = place(ascending[from]);
        let length = ascending[from..]
            .iter()
            .take_while(|&&value| place(value) == bin)
            .count();
        for (j, value) in ascending[from..from + length].iter_mut().enumerate() {
            *value = step * (bin + (j as f64 + 0.5) / length as f64);
        }
        from += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_fill_their_step() {
        let mut values = [5.0, 5.0, 15.0, 25.0, 25.0, 25.0, 25.0];
        spread(&mut values, 10.0);
        assert_eq!(values, [2.5, 7.5, 15.0, 21.25, 23.75, 26.25, 28.75]);
        let before = values;
        spread(&mut values, 0.0);
        assert_eq!(values, before);
    }

    #[test]
    fn the_step_is_the_least_difference() {
        assert_eq!(step_of(&[10, 10, 30, 70, 80]), 10);
        assert_eq!(step_of(&[4, 4]), 0);
        assert_eq!(step_of(&[]), 0);
    }
}
