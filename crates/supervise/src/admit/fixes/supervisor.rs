//! Fix by another reservation of the supervisor: on any cpus that admission finds, then a smaller or rarer one, then none.

use model::Duration;
use model::mission::{Supervisor, SupervisorClass};

use super::Edit;
use super::search::Search;

/// Budgets and periods that are tried, us, the most ready to react first.
const TRIED_US: [(i64, i64); 5] = [
    (500, 20_000),
    (200, 20_000),
    (200, 50_000),
    (200, 100_000),
    (200, 1_000_000),
];

/// A reservation that leaves the cells enough.
pub(super) fn find(search: &Search<'_>) -> Option<Vec<Edit>> {
    let own = &search.mission.supervisor;
    if own.class == SupervisorClass::Other {
        return None;
    }
    let anywhere = Supervisor {
        cpus: Vec::new(),
        ..own.clone()
    };
    let time = |us: i64| Duration::from_ns(us * 1_000);
    let smaller = TRIED_US
        .iter()
        .map(|&(budget, period)| (time(budget), time(period)))
        .filter(|(budget, period)| *budget <= own.budget && *period >= own.period)
        .map(|(budget, period)| Supervisor {
            budget,
            period,
            ..own.clone()
        });
    std::iter::once(anywhere)
        .chain(smaller)
        .filter(|other| other != own)
        .map(|other| vec![Edit::Supervisor(other)])
        .take_while(|_| search.may_go_on())
        .find(|edits| search.faults_after(edits) == 0)
}

/// No reservation.
pub(super) fn ordinary(search: &Search<'_>) -> Option<Vec<Edit>> {
    let other = Supervisor {
        class: SupervisorClass::Other,
        ..Supervisor::default()
    };
    let edits = vec![Edit::Supervisor(other)];
    let is_fifo = search.mission.supervisor.class == SupervisorClass::Fifo;
    (is_fifo && search.faults_after(&edits) == 0).then_some(edits)
}
