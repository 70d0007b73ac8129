//! EDF with virtual deadlines, for task sets of two criticalities.

use crate::fp::legal;
use crate::utilization::gcd;
use crate::{MixedTask, Ns, Task, Undecided};

/// The answer of EDF-VD on a dual-criticality set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EdfVd {
    /// Plain EDF does: even with every high task at its high wcet all deadlines hold.
    Plain,
    /// Holds with the deadlines of high tasks scaled by this fraction (numerator, denominator) in low mode.
    Scaled(Ns, Ns),
    /// The test cannot show that the deadlines hold.
    Refused,
    /// The test does not cover the set.
    Undecided(Undecided),
}

/// EDF with virtual deadlines for a dual-criticality set with implicit deadlines. Sufficient.
///
/// Baruah et al. (ECRTS 2012), theorem 1: with `x = U_HI(LO) / (1 - U_LO(LO))` the set is schedulable if
/// `x U_LO(LO) + U_HI(HI) <= 1`. Fractions are exact as long as the common denominator fits in 64 bits, else each
/// utilisation is rounded up by less than 2^-40, so that a set within as much of the bound may be refused; never the reverse.
///
/// Covered are D = T without jitter or blocking and C(HI) >= C(LO). Times in ns.
///
/// ```
/// use timecell_analysis::{MixedTask, Task, edf::{EdfVd, edf_vd}};
///
/// let set = [MixedTask::low(Task::new(1, 2)), MixedTask::high(Task::new(1, 4), 3)];
/// assert_eq!(edf_vd(&set), EdfVd::Scaled(1, 2)); // 1/2 * 1/2 + 3/4 = 1
/// ```
pub fn edf_vd(tasks: &[MixedTask]) -> EdfVd {
    for mixed in tasks {
        if let Err(why) = covered(mixed) {
            return EdfVd::Undecided(why);
        }
    }
    let (low, high_low, high_high) = totals(tasks);
    let sums = on_one_denominator(low, high_low, high_high);
    let Some((low, high_low, high_high, one)) = sums else {
        return EdfVd::Refused;
    };
    // All four are at most 2^62, or the set is refused here: no product leaves 128 bits.
    if low + high_high <= one {
        return EdfVd::Plain;
    }
    if low >= one || high_low > one - low || high_high > one {
        return EdfVd::Refused;
    }
    let idle = one - low;
    if high_low * low <= (one - high_high) * idle {
        let shared = gcd(high_low as Ns, idle as Ns);
        EdfVd::Scaled(high_low as Ns / shared, idle as Ns / shared)
    } else {
        EdfVd::Refused
    }
}

/// The utilisations that [`edf_vd`] weighs, all on one denominator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdfVdLoad {
    /// U_LO(LO): low tasks.
    pub low: Ns,
    /// U_HI(LO): high tasks with their low wcet.
    pub high_low: Ns,
    /// U_HI(HI): high tasks with their high wcet.
    pub high_high: Ns,
    /// The denominator: a whole cpu.
    pub one: Ns,
    /// Whether the fractions are exact; if not, each is rounded up by less than 2^-40.
    pub exact: bool,
}

/// The load that [`edf_vd`] weighs; `None` where it does not cover the set, or a utilisation is far above 1.
///
/// ```
/// use timecell_analysis::{MixedTask, Task, edf::edf_vd_load};
///
/// let set = [MixedTask::low(Task::new(1, 2)), MixedTask::high(Task::new(1, 4), 3)];
/// let load = edf_vd_load(&set).unwrap();
/// assert_eq!((load.low, load.high_low, load.high_high, load.one), (2, 1, 3, 4));
/// ```
pub fn edf_vd_load(tasks: &[MixedTask]) -> Option<EdfVdLoad> {
    if tasks.iter().any(|mixed| covered(mixed).is_err()) {
        return None;
    }
    let (low, high_low, high_high) = totals(tasks);
    let exact = low.exact.is_some() && high_low.exact.is_some() && high_high.exact.is_some();
    let (low, high_low, high_high, one) = on_one_denominator(low, high_low, high_high)?;
    Some(EdfVdLoad {
        low: low as Ns,
        high_low: high_low as Ns,
        high_high: high_high as Ns,
        one: one as Ns,
        // Rounded sums have a denominator that is a power of two and no exact common one.
        exact: exact && one != 1 << SCALE,
    })
}

/// U_LO(LO), U_HI(LO) and U_HI(HI).
fn totals(tasks: &[MixedTask]) -> (Total, Total, Total) {
    let low = tasks.iter().filter(|mixed| mixed.wcet_high.is_none());
    let low = total(low.map(|mixed| (mixed.task.wcet, mixed.task.period)));
    let high = tasks
        .iter()
        .filter_map(|mixed| mixed.wcet_high.map(|wcet| (mixed.task, wcet)));
    let high_low = total(high.clone().map(|(task, _)| (task.wcet, task.period)));
    let high_high = total(high.map(|(task, wcet)| (wcet, task.period)));
    (low, high_low, high_high)
}

fn covered(mixed: &MixedTask) -> Result<(), Undecided> {
    let task = &mixed.task;
    legal(task)?;
    let high = mixed.wcet_high.unwrap_or(task.wcet);
    legal(&Task {
        wcet: high,
        ..*task
    })?;
    if high < task.wcet {
        return Err(Undecided::NotCovered(format!(
            "the high wcet of {high} ns is below the low wcet of {} ns",
            task.wcet
        )));
    }
    if task.deadline != task.period || task.jitter > 0 || task.blocking > 0 {
        return Err(Undecided::NotCovered(
            "EDF-VD covers tasks without jitter and blocking whose deadlines are their periods"
                .into(),
        ));
    }
    Ok(())
}

/// A utilisation: exact as a fraction if that fits, and rounded up in units of 2^-[`SCALE`]; `None` if beyond reason.
struct Total {
    exact: Option<(u128, u128)>,
    rounded: Option<u128>,
}

const SCALE: u32 = 56;

fn total(fractions: impl Iterator<Item = (Ns, Ns)>) -> Total {
    let mut total = Total {
        exact: Some((0, 1)),
        rounded: Some(0),
    };
    for (work, period) in fractions {
        total.exact = total.exact.and_then(|(sum, one)| {
            let common = lcm(one, u128::from(period))?;
            let sum = sum.checked_mul(common / one)?;
            let term = u128::from(work).checked_mul(common / u128::from(period))?;
            Some((sum.checked_add(term)?, common))
        });
        let rounded = (u128::from(work) << SCALE).div_ceil(u128::from(period));
        total.rounded = total
            .rounded
            .map(|sum| sum + rounded)
            .filter(|sum| sum >> 62 == 0);
    }
    total
}

/// Three utilisations and 1 on one denominator of at most 62 bits; `None` if a utilisation is far above 1.
fn on_one_denominator(a: Total, b: Total, c: Total) -> Option<(u128, u128, u128, u128)> {
    let exact = || {
        let ((a, of_a), (b, of_b), (c, of_c)) = (a.exact?, b.exact?, c.exact?);
        let one = lcm(lcm(of_a, of_b)?, of_c)?;
        let scaled = |sum: u128, of: u128| sum.checked_mul(one / of).filter(|sum| sum >> 62 == 0);
        Some((scaled(a, of_a)?, scaled(b, of_b)?, scaled(c, of_c)?, one))
    };
    exact().or_else(|| Some((a.rounded?, b.rounded?, c.rounded?, 1 << SCALE)))
}

/// Least common multiple if it has at most 62 bits.
fn lcm(a: u128, b: u128) -> Option<u128> {
    let shared = u128::from(gcd(Ns::try_from(a).ok()?, Ns::try_from(b).ok()?));
    (a / shared).checked_mul(b).filter(|lcm| lcm >> 62 == 0)
}
