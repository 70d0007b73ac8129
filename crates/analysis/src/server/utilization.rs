//! Utilisation bounds for servers.

use super::{Kind, Server};
use crate::Task;

/// One, in the units in which products are kept: 2^-62.
const ONE: u128 = 1 << 62;

/// Whether tasks below one deferrable server meet their deadlines by the hyperbolic bound: prod(1 + U_i) <= (U_S + 2)
/// / (2 U_S + 1) (Strosnider, Lehoczky and Sha, IEEE Transactions on Computers 44(1), 1995; in this form Bini,
/// Buttazzo and Buttazzo, IEEE Transactions on Computers 52(7), 2003, and Buttazzo, "Hard Real-Time Computing
/// Systems", chapter 5).
///
/// Sufficient only: no means not shown. Exact arithmetic; rounding is to the refusing side. The tasks are dispatched
/// rate-monotonically below the server; D >= T, no jitter, no blocking, and every period at least T_S + C_S: of anything
/// else the answer is no. A period no shorter than T_S alone, as the bound is often quoted, is not enough: a server of
/// 17 every 23 can take 34 in a row, so that even 1 every 23 below it is late, at 1.04 <= 1.11.
///
/// ```
/// use timecell_analysis::Task;
/// use timecell_analysis::server::{Kind, Server, deferrable_hyperbolic};
/// let server = Server::new(Kind::Deferrable, 1, 4);
/// assert!(deferrable_hyperbolic(&server, &[Task::new(1, 5), Task::new(1, 5)])); // 1.44 <= 2.25 / 1.5
/// assert!(!deferrable_hyperbolic(&server, &[Task::new(2, 5), Task::new(2, 5)])); // 1.96
///
/// let server = Server::new(Kind::Deferrable, 17, 23);
/// assert!(!deferrable_hyperbolic(&server, &[Task::new(1, 23)]));
/// ```
pub fn deferrable_hyperbolic(server: &Server, tasks: &[Task]) -> bool {
    let (budget, period) = (u128::from(server.budget), u128::from(server.period));
    server.kind == Kind::Deferrable
        && tasks
            .iter()
            .all(|task| u128::from(task.period) >= period + budget)
        && hyperbolic(server, tasks, budget + 2 * period, 2 * budget + period)
}

/// Whether tasks below one polling, sporadic or periodic server meet their deadlines by the hyperbolic bound:
/// prod(1 + U_i) <= 2 / (U_S + 1), the server counting as one more task (Sprunt, Sha and Lehoczky, Real-Time Systems
/// 1(1), 1989; Bini, Buttazzo and Buttazzo, IEEE Transactions on Computers 52(7), 2003).
///
/// Sufficient only, and under the conditions of [`deferrable_hyperbolic`], but for any periods from T_S.
///
/// ```
/// use timecell_analysis::Task;
/// use timecell_analysis::server::{Kind, Server, polling_hyperbolic};
/// let server = Server::new(Kind::Polling, 1, 4);
/// assert!(polling_hyperbolic(&server, &[Task::new(1, 4), Task::new(1, 5)])); // 1.25 * 1.2 <= 2 / 1.25
/// assert!(!polling_hyperbolic(&server, &[Task::new(1, 4), Task::new(2, 6)]));
/// ```
pub fn polling_hyperbolic(server: &Server, tasks: &[Task]) -> bool {
    let (budget, period) = (u128::from(server.budget), u128::from(server.period));
    matches!(server.kind, Kind::Polling | Kind::Sporadic | Kind::Periodic)
        && hyperbolic(server, tasks, 2 * period, budget + period)
}

/// prod(1 + U_i) <= numerator / denominator, both at most 3 * 2^60.
fn hyperbolic(server: &Server, tasks: &[Task], numerator: u128, denominator: u128) -> bool {
    let covered = |task: &Task| {
        task.check().is_ok()
            && task.jitter == 0
            && task.blocking == 0
            && task.deadline >= task.period
            && task.period >= server.period
    };
    if server.check().is_err() || server.blocking > 0 || !tasks.iter().all(covered) {
        return false;
    }
    let mut product = ONE;
    for task in tasks {
        let period = u128::from(task.period);
        if u128::from(task.wcet) > period {
            return false;
        }
        product = (product * (period + u128::from(task.wcet))).div_ceil(period);
        // Neither bound exceeds 2.
        if product > 2 * ONE {
            return false;
        }
    }
    product * denominator <= numerator * ONE
}

/// Least upper bound on the utilisation of a deferrable server of utilisation `server` (0 to 1) and all tasks below
/// it: U_S + ln((U_S + 2) / (2 U_S + 1)), for many tasks (Strosnider, Lehoczky and Sha, IEEE Transactions on Computers
/// 44(1), 1995). Its minimum, 0.652, lies at U_S = 0.186.
///
/// A figure for pictures: floating point, no verdict. Conditions as of [`deferrable_hyperbolic`].
///
/// ```
/// assert!((timecell_analysis::server::deferrable_least_upper_bound(0.186) - 0.6518).abs() < 1e-4);
/// ```
pub fn deferrable_least_upper_bound(server: f64) -> f64 {
    server + ((server + 2.0) / (2.0 * server + 1.0)).ln()
}

/// Least upper bound on the utilisation of a polling, sporadic or periodic server of utilisation `server` (0 to 1)
/// and all tasks below it: U_S + ln(2 / (U_S + 1)), for many tasks (Sprunt, Sha and Lehoczky, Real-Time Systems 1(1),
/// 1989).
///
/// A figure for pictures: floating point, no verdict. Conditions as of [`polling_hyperbolic`].
///
/// ```
/// let bound = timecell_analysis::server::polling_least_upper_bound(0.0);
/// assert!((bound - std::f64::consts::LN_2).abs() < 1e-12); // Liu and Layland
/// ```
pub fn polling_least_upper_bound(server: f64) -> f64 {
    server + (2.0 / (server + 1.0)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_NS;
    use proptest::prelude::*;

    /// The response time of the last task below a server, as if the server were a task with jitter.
    fn response(server: &Server, tasks: &[Task]) -> Option<u64> {
        let (last, higher) = tasks.split_last()?;
        let mut time = 1;
        while time <= last.period {
            let next = last.wcet
                + (time + server.jitter()).div_ceil(server.period) * server.budget
                + higher
                    .iter()
                    .map(|task| time.div_ceil(task.period) * task.wcet)
                    .sum::<u64>();
            if next <= time {
                return Some(time);
            }
            time = next;
        }
        None
    }

    #[test]
    fn conditions_are_checked() {
        let server = Server::new(Kind::Deferrable, 1, 10);
        let task = Task::new(1, 20);
        assert!(deferrable_hyperbolic(&server, &[task]));
        assert!(!deferrable_hyperbolic(&server, &[Task::new(1, 9)]));
        assert!(!deferrable_hyperbolic(&server, &[task.due(19)]));
        assert!(!deferrable_hyperbolic(&server, &[task.jittered(1)]));
        assert!(!polling_hyperbolic(&server, &[task]), "another kind");
        assert!(!deferrable_hyperbolic(&server.blocked(1), &[task]));
        assert!(!deferrable_hyperbolic(&server, &[Task::new(2, 1).due(20)]));
        let long = Server::new(Kind::Deferrable, MAX_NS, MAX_NS);
        assert!(!deferrable_hyperbolic(&long, &[Task::new(MAX_NS, MAX_NS)]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn what_a_bound_admits_response_times_confirm(
            budget in 1..40u64, slack in 1..200u64, deferrable in any::<bool>(),
            tasks in prop::collection::vec((1..60u64, 0..400u64), 1..5),
        ) {
            let kind = if deferrable { Kind::Deferrable } else { Kind::Polling };
            let server = Server::new(kind, budget, budget + slack);
            let mut tasks: Vec<Task> =
                tasks.iter().map(|(wcet, more)| Task::new(*wcet, (budget + slack + more).max(*wcet))).collect();
            tasks.sort_by_key(|task| task.period);
            let admitted =
                if deferrable { deferrable_hyperbolic(&server, &tasks) } else { polling_hyperbolic(&server, &tasks) };
            for count in 1..=tasks.len() * usize::from(admitted) {
                prop_assert!(response(&server, &tasks[..count]).is_some(), "{server:?} {tasks:?}");
            }
        }
    }
}
