use analysis::linux::{DeadlineLimits, DeadlineParams, RootDomain};
use model::taskset::TaskSet;

use super::judge::ns;

/// What the admission control of SCHED_DEADLINE says of the reservations, in a sentence; `None` if there is none.
///
/// The kernel's arithmetic with its defaults and the fair server of Linux 6.12. It is another question than whether the
/// deadlines hold: a kernel may refuse what is feasible, and admits some that is not.
pub(super) fn admission(set: &TaskSet, cpus: u32) -> Option<String> {
    let limits = DeadlineLimits::default();
    let mut threads = Vec::new();
    for cell in &set.cells {
        let Some(reservation) = &cell.reservation else {
            continue;
        };
        let thread = DeadlineParams {
            runtime: ns(reservation.budget),
            deadline: ns(reservation.deadline),
            period: ns(reservation.period),
        };
        if let Err(refusal) = thread.check(0, &limits) {
            let why = refusal.to_string();
            let why = why.strip_prefix("reservation 0: ").unwrap_or(&why);
            return Some(format!(
                "SCHED_DEADLINE would refuse cell {}: {why}",
                cell.name
            ));
        }
        threads.push(thread);
    }
    if threads.is_empty() {
        return None;
    }
    let cpus = usize::try_from(cpus).unwrap_or(usize::MAX);
    let domain = RootDomain::of_cpus(cpus).with_fair_server();
    Some(match domain.admits(&threads) {
        Ok(()) => "SCHED_DEADLINE would admit these reservations together, its fair server counted".to_owned(),
        Err(_) => "SCHED_DEADLINE would refuse these reservations together: with its fair server they are more than \
                   95 % of the cpus"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(reservation: &str, cpus: u32) -> Option<String> {
        let text = format!(
            "schema = 1\n[[cell]]\nname = \"c\"\n{reservation}\n\
             [[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"1s\"\n"
        );
        admission(&TaskSet::parse("x", &text).expect("a task set"), cpus)
    }

    #[test]
    fn the_kernel_is_asked_too() {
        let of = |budget: &str, period: &str| {
            said(
                &format!("reservation = {{ budget = \"{budget}\", period = \"{period}\" }}"),
                1,
            )
            .expect("there is a reservation")
        };
        assert!(of("89ms", "100ms").contains("would admit"));
        // 91 % is below 95 %, but the fair server has 5 %.
        assert!(of("91ms", "100ms").contains("would refuse these"));
        assert!(of("20us", "50us").contains("would refuse cell c"));
        assert!(of("1us", "1ms").contains("would refuse cell c"));
        assert_eq!(said("", 1), None);
    }
}
