//! Easements tried with a refused mission before the refusal stands: a supervisor that keeps off some cpus, and cells in which nothing but
//! their tasks is assumed to run.

use model::mission::Mission;

use super::choice::Price;
use super::{Admission, Facts, SupervisorGrant, ample};

/// Decides with the supervisor on all of its cpus and nothing assumed of the cells. Where that refuses one, the supervisor is tried on fewer
/// cpus; then the same with nothing but their tasks in cells of which the file does not say it. Where nothing helps, the answer is the first.
pub(super) fn decide(
    mission: &Mission,
    facts: &Facts,
    with: &dyn Fn(&SupervisorGrant, bool) -> (Admission, Price),
) -> (Admission, Price) {
    let own = SupervisorGrant::wanted(mission, facts);
    let first = with(&own, false);
    if first.0.is_admitted() {
        return first;
    }
    let may_assume = ample::may_be_assumed(mission);
    if own.reservation().is_none() {
        let assumed = may_assume.then(|| with(&own, true));
        let assumed = assumed.filter(|assumed| assumed.0.is_admitted());
        return assumed.unwrap_or(first);
    }
    let elsewhere = own.elsewhere(mission);
    let most = with(&SupervisorGrant::none(None), may_assume);
    if !most.0.is_admitted() || (elsewhere.is_empty() && !may_assume) {
        // It is not the supervisor that is in the way.
        let other = elsewhere.first().map(|own| with(own, may_assume));
        let less =
            |other: &(Admission, Price)| ample::refused(&other.0) <= ample::refused(&first.0);
        return other.filter(less).unwrap_or(first);
    }
    let unassumed = elsewhere.iter().map(|own| (own, false));
    let assumed = std::iter::once(&own)
        .chain(&elsewhere)
        .map(|own| (own, true));
    unassumed
        .chain(assumed.filter(|_| may_assume))
        .map(|(own, assumed)| with(own, assumed))
        .find(|answer| answer.0.is_admitted())
        .unwrap_or(first)
}
