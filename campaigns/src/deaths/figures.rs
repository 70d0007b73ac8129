//! Summarises the cells' recorded stretches of one case.

use freezer::Reservation;

use super::cell::Stretch;

/// Of all events of one case; times in ns, by cell.
pub struct Figures {
    beyond: Vec<Vec<i64>>,
    gaps: Vec<Vec<i64>>,
    pub replaced: Vec<i64>,
}

impl Figures {
    pub fn new(cells: usize) -> Figures {
        Figures {
            beyond: vec![Vec::new(); cells],
            gaps: vec![Vec::new(); cells],
            replaced: Vec::new(),
        }
    }

    /// One event's stretches of one cell, which begin a few periods before it.
    pub fn add(
        &mut self,
        cell: usize,
        ran: &[Stretch],
        at_ns: i64,
        until_ns: i64,
        reservation: Reservation,
        cpu: u32,
    ) {
        self.beyond[cell].push(beyond_budget(ran, at_ns, until_ns, reservation, cpu));
        let gaps = ran.windows(2).filter(|pair| pair[1].from > at_ns);
        let last = ran
            .last()
            .map_or(until_ns - at_ns, |last| until_ns - last.to);
        let longest = gaps.map(|pair| pair[1].from - pair[0].to).max();
        self.gaps[cell].push(longest.unwrap_or(0).max(last));
    }

    pub fn print(&self, name: &str, cells: &[(i64, i64)]) {
        for (cell, (budget, period)) in cells.iter().enumerate() {
            let us = |of: &[i64], permille| quantile(of, permille) as f64 / 1e3;
            let (beyond, gaps) = (&self.beyond[cell], &self.gaps[cell]);
            println!(
                "{:<14} {:>5}/{:<5} {:>31.0} {:>6.0} {:>6.0} {:>26.2} {:>6.2} {:>28.0} {:>6.0}",
                if cell == 0 { name } else { "" },
                budget,
                period,
                us(beyond, 500),
                us(beyond, 990),
                us(beyond, 1000),
                us(gaps, 500) / 1e3,
                us(gaps, 1000) / 1e3,
                us(&self.replaced, 500),
                us(&self.replaced, 1000),
            );
        }
    }
}

/// The most that the cell had used, at the end of any period of the grid, beyond all budgets given since the debt last was 0. That
/// is the cpu time that it ran without a budget, as the rule counts it: less of it is owed by the next period's end.
fn beyond_budget(
    ran: &[Stretch],
    at_ns: i64,
    until_ns: i64,
    reservation: Reservation,
    cpu: u32,
) -> i64 {
    let (budget, period) = (reservation.budget_ns(), reservation.period_ns());
    // Periods of different cpus begin so far apart.
    let grid = i64::from(cpu) * 137_000;
    let first = (at_ns - grid).div_euclid(period) - 2;
    let (mut debt, mut most) = (0i64, 0i64);
    for number in first.. {
        let (from, to) = (grid + number * period, grid + (number + 1) * period);
        if from >= until_ns {
            break;
        }
        let used = used_by(ran, to) - used_by(ran, from);
        debt = (debt + used - budget).max(0);
        if to > at_ns {
            most = most.max(debt);
        }
    }
    most
}

/// The cpu time that a cell had used at an instant, ns.
fn used_by(ran: &[Stretch], at_ns: i64) -> i64 {
    match ran.iter().rev().find(|stretch| stretch.from <= at_ns) {
        Some(stretch) => stretch.used - (stretch.to - at_ns).max(0),
        // Before the first: as much as at its beginning.
        None => ran
            .first()
            .map_or(0, |first| first.used - (first.to - first.from)),
    }
}

fn quantile(of: &[i64], permille: usize) -> i64 {
    let mut sorted = of.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() * permille).div_ceil(1000).max(1) - 1;
    sorted.get(at).copied().unwrap_or(0)
}
