//! Reservations, the tasks inside them, and their least budgets.
//! Times are those of the vectors: us, or bare units.

use std::io::Read as _;

use serde_json::Value;
use timecell_analysis::inside::{Policy, edf, fixed_priority};
use timecell_analysis::least_budget::{
    Periods, Search, least_bandwidth, least_budget, least_budget_by_bisection,
};
use timecell_analysis::reservation::{BoundedDelay, ExplicitDeadline, Periodic};
use timecell_analysis::{Supply, Task};

use super::{floats, number, numbers, tasks};

cases! {
    supply_of_the_periodic_model: "prm-01";
    supply_of_the_explicit_deadline_model: "edp-01";
    lock_step_servers_as_explicit_deadlines: "ds-01";
    fixed_priorities_inside_the_reservations_of_the_paper:
        "seed002-csf-2v0", "seed002-csf-2v1", "seed002-csf-4v0", "seed002-csf-4v2";
    earliest_deadline_first_inside_reservations:
        "seed002-edf-2v0", "seed002-edf-4v0", "seed002-edf-4v2", "prm-02";
    reservations_of_least_bandwidth: "seed002-grid";
    least_budgets_in_bulk: "bulk-04";
}

fn supply_of_the_periodic_model(vector: &Value) {
    let (input, expected) = (&vector["input"], &vector["expected"]);
    let supply = Periodic::new(number(&input["Q"]), number(&input["P"])).unwrap();
    let sbf: Vec<u64> = (0..=15).map(|t| supply.sbf(t)).collect();
    assert_eq!(sbf, numbers(&expected["sbf_t0_15"]));
    let inverse: Vec<u64> = (1..=15).map(|work| supply.inverse(work).unwrap()).collect();
    assert_eq!(inverse, numbers(&expected["sbf_inverse_w1_15"]));
    // The linear bound at 10 is 18/5, here in whole units.
    assert_eq!(expected["lsbf_at_t10"], "18/5");
    assert_eq!(BoundedDelay::of(&supply).sbf(10), 18 / 5);
}

fn supply_of_the_explicit_deadline_model(vector: &Value) {
    let (input, expected) = (&vector["input"], &vector["expected"]);
    let [budget, period, deadline] = ["Q", "P", "D"].map(|key| number(&input[key]));
    let supply = ExplicitDeadline::new(budget, period, deadline).unwrap();
    let sbf: Vec<u64> = (0..=26).map(|t| supply.sbf(t)).collect();
    assert_eq!(sbf, numbers(&expected["sbf_t0_26"]));
}

/// A deferrable server below another that is refilled together with it is an explicit-deadline supply.
fn lock_step_servers_as_explicit_deadlines(vector: &Value) {
    let (input, expected) = (&vector["input"], &vector["expected"]);
    let [budget, period] = ["C", "T"].map(|key| number(&input["server"][key]));
    let tasks = tasks(&input["tasks_C_T"]);
    let deadline = number(&expected["edp_equivalent_deadline"]);
    let lock_step = ExplicitDeadline::new(budget, period, deadline).unwrap();
    let bounds = |supply: &dyn Fn(&[Task]) -> Vec<Option<u64>>| -> Vec<u64> {
        supply(&tasks).into_iter().flatten().collect()
    };
    assert_eq!(
        bounds(&|tasks| fixed_priority(tasks, &lock_step).responses),
        numbers(&expected["R"])
    );
    let alone = Periodic::new(budget, period).unwrap();
    assert_eq!(
        bounds(&|tasks| fixed_priority(tasks, &alone).responses),
        numbers(&expected["prm_R_same_QP"])
    );
}

fn fixed_priorities_inside_the_reservations_of_the_paper(vector: &Value) {
    let (input, expected) = (&vector["input"], &vector["expected"]);
    let tasks = tasks(&input["tasks_C_T"]);
    let period = number(&input["P"]);
    let inside = fixed_priority(&tasks, &Periodic::new(number(&input["Q"]), period).unwrap());
    assert_eq!(inside.verdict.is_schedulable(), expected["schedulable"]);
    let responses: Vec<u64> = inside.responses.into_iter().flatten().collect();
    assert_eq!(responses, numbers(&expected["R"]));
    for (key, grid) in [
        ("min_Q_1us", 1),
        ("min_Q_500us_grid", 500),
        ("min_Q_1ms_grid", 1_000),
    ] {
        let least = Ok(Some(number(&expected[key])));
        let policy = Policy::FixedPriority;
        assert_eq!(least_budget(&tasks, policy, period, grid), least);
        assert_eq!(
            least_budget_by_bisection(&tasks, policy, period, grid),
            least
        );
    }
}

fn earliest_deadline_first_inside_reservations(vector: &Value) {
    let (input, expected) = (&vector["input"], &vector["expected"]);
    let tasks = tasks(&input["tasks_C_T"]);
    let period = number(&input["P"]);
    for (key, policy, grid) in [
        ("edf_min_Q_1us", Policy::Edf, 1),
        ("edf_min_Q_100us_grid", Policy::Edf, 100),
        ("rm_min_Q_1us", Policy::FixedPriority, 1),
    ] {
        let Some(least) = expected.get(key).map(number) else {
            continue;
        };
        assert_eq!(
            least_budget(&tasks, policy, period, grid),
            Ok(Some(least)),
            "{key}"
        );
    }
    let least = number(&expected["edf_min_Q_1us"]);
    let holds = |budget| {
        edf(&tasks, &Periodic::new(budget, period).unwrap())
            .verdict
            .is_schedulable()
    };
    assert!(holds(least) && !holds(least - 1));
}

/// 5,000 sets of ten tasks; the sums of their least budgets for a period of 5 ms on a grid of 1 us.
fn least_budgets_in_bulk(vector: &Value) {
    let expected = &vector["expected"];
    let mut text = String::new();
    flate2::read::GzDecoder::new(include_bytes!("../../data/prm_u40.txt.gz").as_slice())
        .read_to_string(&mut text)
        .unwrap();
    let budgets: Vec<u64> = text
        .lines()
        .skip(1)
        .map(|line| {
            let times: Vec<u64> = line.split(' ').map(|time| time.parse().unwrap()).collect();
            let tasks: Vec<Task> = times
                .chunks_exact(2)
                .map(|pair| Task::new(pair[0] * 1_000, pair[1] * 1_000))
                .collect();
            let period = number(&vector["input"]["P"]) * 1_000;
            let least = least_budget(&tasks, Policy::FixedPriority, period, 1_000);
            least.unwrap().unwrap() / 1_000
        })
        .collect();
    assert_eq!(budgets.len() as u64, number(&expected["sets"]));
    assert_eq!(budgets.iter().sum::<u64>(), number(&expected["sum_min_Q"]));
    assert_eq!(
        budgets[..1_000].iter().sum::<u64>(),
        number(&expected["sum_min_Q_first_1000"])
    );
}

/// How the reservations of the paper's section 4.3 were chosen; its ten tasks stand with another vector.
fn reservations_of_least_bandwidth(vector: &Value) {
    const MS: u64 = 1_000;
    let ten = tasks(&super::vector("seed002-mpr")["input"]["tasks_C_T"]);
    let expected = vector["expected"]["QP"].as_object().unwrap();
    for (name, reservation) in expected {
        let indices = numbers(&vector["input"]["sets"][name]);
        let set: Vec<Task> = indices
            .into_iter()
            .map(|index| ten[index as usize])
            .collect();
        let search = Search {
            grid: MS / 2,
            ..Search::over(Periods::for_tasks(&set, 10 * MS, MS))
        };
        let found = least_bandwidth(&set, Policy::FixedPriority, &search)
            .unwrap()
            .unwrap();
        let in_ms = [found.budget(), found.period()].map(|time| time as f64 / 1_000.0);
        assert_eq!(in_ms, *floats(reservation), "{name}");
    }
}
