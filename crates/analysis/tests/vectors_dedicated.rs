//! Reference vectors, computed independently, for fixed priorities and EDF on a dedicated cpu.

use analysis::fp::{self, Response};
use analysis::{MixedTask, Task, Verdict, edf};
use serde_json::Value;

fn vector(id: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("data/vectors.json")).unwrap();
    let found = all["vectors"]
        .as_array()
        .unwrap()
        .iter()
        .find(|vector| vector["id"] == id);
    found.unwrap_or_else(|| panic!("no vector {id}")).clone()
}

fn numbers(value: &Value) -> Vec<u64> {
    let list = value.as_array().expect("a list");
    list.iter().map(|number| number.as_u64().unwrap()).collect()
}

/// Tasks as lists C, T or C, T, D, or as objects with C, T and perhaps D, J, B.
fn tasks(value: &Value) -> Vec<Task> {
    let list = value.as_array().expect("a list");
    list.iter()
        .map(|task| {
            if task.is_array() {
                let times = numbers(task);
                let task = Task::new(times[0], times[1]);
                return task.due(*times.get(2).unwrap_or(&times[1]));
            }
            let time = |key: &str, otherwise| task[key].as_u64().unwrap_or(otherwise);
            let period = time("T", 0);
            Task::new(time("C", 0), period)
                .due(time("D", period))
                .jittered(time("J", 0))
                .blocked(time("B", 0))
        })
        .collect()
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

#[test]
fn fixed_priority_response_times() {
    for id in ["fp-rta-01", "fp-rta-05"] {
        let vector = vector(id);
        let tasks = tasks(&vector["input"]["tasks_C_T"]);
        assert_eq!(bounds(&tasks), numbers(&vector["expected"]["R"]), "{id}");
        assert_eq!(fp::verdict(&tasks), Verdict::Schedulable, "{id}");
    }
}

#[test]
fn arbitrary_deadlines() {
    let vector = vector("fp-rta-02");
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

#[test]
fn jitter_and_blocking() {
    for id in ["fp-rta-04", "fp-rta-08"] {
        let vector = vector(id);
        let tasks = tasks(&vector["input"]["tasks"]);
        assert_eq!(
            bounds(&tasks),
            numbers(&vector["expected"]["R_including_own_jitter"]),
            "{id}"
        );
    }
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

#[test]
fn edf_verdicts() {
    let vector_1 = vector("edf-01");
    let mut set = tasks(&vector_1["input"]["tasks_C_T_D"]);
    assert_eq!(edf::verdict(&set), Verdict::Schedulable);
    set.push(Task::new(10, 100).due(15));
    assert!(matches!(edf::verdict(&set), Verdict::Unschedulable(_)));

    let vector_2 = vector("edf-02");
    let set = tasks(&vector_2["input"]["tasks_C_T_D"]);
    let Verdict::Unschedulable(witness) = edf::verdict(&set) else {
        panic!("accepted");
    };
    let first = &vector_2["expected"]["first_violation"];
    assert_eq!(Some(witness.instant), first["t"].as_u64());
    assert_eq!(Some(witness.demand), first["dbf"].as_u64());
    assert_eq!(witness.task, 1);
}

#[test]
fn edf_demand() {
    let vector = vector("edf-04");
    let tasks = tasks(&vector["input"]["tasks_C_T_D"]);
    let demands: Vec<u64> = numbers(&vector["input"]["t"])
        .into_iter()
        .map(|t| edf::demand(&tasks, t))
        .collect();
    assert_eq!(demands, numbers(&vector["expected"]["dbf"]));
}

#[test]
fn mixed_criticality() {
    let vector = vector("mc-01");
    let set: Vec<MixedTask> = vector["input"]["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| {
            let time = |key: &str| task[key].as_u64().unwrap();
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
    let expected: Vec<Option<u64>> = vector["expected"]["R_HI"]
        .as_array()
        .unwrap()
        .iter()
        .map(Value::as_u64)
        .collect();
    assert_eq!(high, expected);
}

#[test]
fn twenty_thousand_sets() {
    use std::io::Read as _;

    let vector = vector("bulk-01");
    let packed = include_bytes!("../benches/data/rta_u80.txt.gz");
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
