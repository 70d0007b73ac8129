//! Fixed priorities and EDF on a dedicated cpu.

use serde_json::Value;
use timecell_analysis::fp::{self, Response};
use timecell_analysis::{MixedTask, Task, Verdict, edf};

use super::{list, number, numbers, tasks};

cases! {
    fixed_priority_response_times: "fp-rta-01", "fp-rta-05";
    arbitrary_deadlines: "fp-rta-02";
    jitter_and_blocking: "fp-rta-04", "fp-rta-08";
    schedulable_under_edf: "edf-01";
    first_violation_under_edf: "edf-02";
    edf_demand: "edf-04";
    mixed_criticality: "mc-01";
    twenty_thousand_sets: "bulk-01";
}

fn bounds(tasks: &[Task]) -> Vec<u64> {
    let responses = fp::response_times(tasks);
    responses
        .iter()
        .map(|response| {
            let bound = response.bound();
            bound.unwrap_or_else(|| panic!("{response:?} in {tasks:?}"))
        })
        .collect()
}

fn fixed_priority_response_times(vector: &Value) {
    let tasks = tasks(&vector["input"]["tasks_C_T"]);
    assert_eq!(bounds(&tasks), numbers(&vector["expected"]["R"]));
    assert_eq!(fp::verdict(&tasks), Verdict::Schedulable);
}

fn arbitrary_deadlines(vector: &Value) {
    let mut tasks = tasks(&vector["input"]["tasks_C_T"]);
    for task in &mut tasks {
        task.deadline = 1_000;
    }
    assert_eq!(bounds(&tasks), numbers(&vector["expected"]["R"]));
    tasks.reverse();
    let mut other = bounds(&tasks);
    other.reverse();
    assert_eq!(
        other,
        numbers(&vector["expected"]["R_if_second_task_has_higher_priority"])
    );
}

fn jitter_and_blocking(vector: &Value) {
    let tasks = tasks(&vector["input"]["tasks"]);
    let expected = numbers(&vector["expected"]["R_including_own_jitter"]);
    assert_eq!(bounds(&tasks), expected);
}

#[test]
fn own_jitter_counts_against_the_deadline() {
    // w = 9 <= D = 10, but w + J = 12: tools that compare w with D accept this.
    let tasks = [Task::new(5, 20), Task::new(4, 20).due(10).jittered(3)];
    assert_eq!(
        fp::response_times(&tasks)[1],
        Response::Misses(Some(12)),
        "R includes the task's own jitter"
    );
    let Verdict::Unschedulable(witness) = fp::verdict(&tasks) else {
        panic!("accepted");
    };
    assert_eq!((witness.instant, witness.demand), (7, 9));
}

fn schedulable_under_edf(vector: &Value) {
    let mut set = tasks(&vector["input"]["tasks_C_T_D"]);
    assert_eq!(edf::verdict(&set), Verdict::Schedulable);
    set.push(Task::new(10, 100).due(15));
    assert!(matches!(edf::verdict(&set), Verdict::Unschedulable(_)));
}

fn first_violation_under_edf(vector: &Value) {
    let set = tasks(&vector["input"]["tasks_C_T_D"]);
    let Verdict::Unschedulable(witness) = edf::verdict(&set) else {
        panic!("accepted");
    };
    let first = &vector["expected"]["first_violation"];
    assert_eq!(Some(witness.instant), first["t"].as_u64());
    assert_eq!(Some(witness.demand), first["dbf"].as_u64());
    assert_eq!(witness.task, 1);
}

fn edf_demand(vector: &Value) {
    let tasks = tasks(&vector["input"]["tasks_C_T_D"]);
    let demands: Vec<u64> = numbers(&vector["input"]["t"])
        .into_iter()
        .map(|t| edf::demand(&tasks, t))
        .collect();
    assert_eq!(demands, numbers(&vector["expected"]["dbf"]));
}

fn mixed_criticality(vector: &Value) {
    let set: Vec<MixedTask> = list(&vector["input"]["tasks"])
        .iter()
        .map(|task| {
            let time = |key: &str| number(&task[key]);
            let low = Task::new(time("CL"), time("T"));
            if task["L"] == "HI" {
                MixedTask::high(low, time("CH"))
            } else {
                MixedTask::low(low)
            }
        })
        .collect();
    let responses = fp::amc_rtb(&set);
    assert!(responses.iter().all(fp::AmcResponse::meets));
    let low: Vec<u64> = responses.iter().filter_map(|r| r.low.bound()).collect();
    assert_eq!(low, numbers(&vector["expected"]["R_LO"]));
    let high: Vec<Option<u64>> = responses
        .iter()
        .map(|response| response.high.as_ref().and_then(Response::bound))
        .collect();
    let expected = list(&vector["expected"]["R_HI"]).iter().map(Value::as_u64);
    assert!(high.into_iter().eq(expected));
}

fn twenty_thousand_sets(vector: &Value) {
    use std::io::Read as _;

    let packed = include_bytes!("../../data/rta_u80.txt.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice())
        .read_to_string(&mut text)
        .unwrap();
    let mut schedulable = 0;
    let mut sum = 0;
    for line in text.lines().skip(1) {
        let times: Vec<u64> = line.split(' ').map(|time| time.parse().unwrap()).collect();
        let tasks: Vec<Task> = times
            .chunks_exact(2)
            .map(|task| Task::new(1_000 * task[0], 1_000 * task[1]))
            .collect();
        let last = fp::response_times(&tasks);
        if last.iter().all(Response::meets) {
            schedulable += 1;
            sum += last[9].bound().unwrap() / 1_000;
        }
    }
    assert_eq!(
        Some(schedulable),
        vector["expected"]["schedulable"].as_u64()
    );
    assert_eq!(
        Some(sum),
        vector["expected"]["sum_R_of_last_task_over_schedulable"].as_u64()
    );
}
