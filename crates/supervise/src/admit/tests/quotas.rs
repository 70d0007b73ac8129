//! Cells held by quotas of EVL.

use super::*;

fn with_evl() -> Facts {
    Facts {
        evl_quota: Ok(()),
        ..facts()
    }
}

/// A cell out of band on this cpu with so much of every second, and more lines.
fn quota(name: &str, cpu: u32, budget: &str, more: &str) -> String {
    cell(
        name,
        &format!(
            "class = \"fifo\"\ncpus = [{cpu}]\nreservation = {{ budget = \"{budget}\", period = \"1s\" }}\n\
             rights = {{ evl = true }}\n{more}"
        ),
    )
}

fn by_quotas(cells: &str) -> Admission {
    let mission = mission(&format!("enforcer = \"evl-quota\"\n{cells}"));
    admit(&mission, &with_evl(), &[], 0)
}

#[test]
fn all_of_a_cpu_is_shared_out_because_groups_are_refilled_together() {
    let both = by_quotas(&(quota("a", 1, "700ms", "") + &quota("b", 1, "300ms", "")));
    let granted = granted(&both);
    assert_eq!(granted["a"].budget_ns, Some(700 * MS));
    assert_eq!(granted["a"].postponed_ns, 0);
    // One budget of the group above, and not the two of servers whose periods begin at any time.
    assert_eq!(granted["b"].postponed_ns, 700 * MS);
    let over = by_quotas(&(quota("a", 1, "700ms", "") + &quota("b", 1, "310ms", "")));
    let why = refused(&over).why.clone();
    assert!(why.contains("are 1.01 s of every 1 s"), "{why}");
    assert!(by_quotas(&(quota("a", 1, "700ms", "") + &quota("b", 0, "310ms", ""))).is_admitted());
}

#[test]
fn tasks_that_cannot_use_their_quota_up_are_bounded_by_those_above_alone() {
    let task = task("1ms", "10ms");
    let ample = by_quotas(&quota(
        "a",
        1,
        "200ms",
        &format!("only_tasks = true\n{task}"),
    ));
    let bound = granted(&ample)["a"].tasks[0].response_ns;
    assert!(bound.is_some_and(|ns| ns < 2 * MS), "{bound:?}");
    assert!(!granted(&ample)["a"].basis.is_assumed());
    // Anything else in the cell could use the quota up, and then they would wait for up to 1.6 s.
    let shared = by_quotas(&quota(
        "a",
        1,
        "200ms",
        &format!("only_tasks = false\n{task}"),
    ));
    assert!(granted(&shared)["a"].basis.is_assumed());
}

#[test]
fn a_kernel_without_evl_refuses_and_nobody_chooses_it() {
    let mission = mission(&format!(
        "enforcer = \"evl-quota\"\n{}",
        quota("a", 1, "300ms", "")
    ));
    let why = refused(&admit(&mission, &facts(), &[], 0)).why.clone();
    assert!(
        why.contains("evl-quota cannot hold it here: no EVL"),
        "{why}"
    );
    assert_ne!(with_evl().best(), Enforcer::EvlQuota);
}
