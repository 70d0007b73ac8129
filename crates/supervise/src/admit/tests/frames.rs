//! Cells held by time partitions of EVL.

use super::*;

fn by_windows(cells: &str) -> Admission {
    let mission = mission(&format!("enforcer = \"evl-tp\"\n{cells}"));
    let facts = Facts {
        evl_tp: Ok(4),
        ..facts()
    };
    admit(&mission, &facts, &[], 0)
}

/// A cell out of band on this cpu with such a reservation, and more lines.
fn partitioned(name: &str, cpu: u32, reservation: (&str, &str), more: &str) -> String {
    let (budget, period) = reservation;
    cell(
        name,
        &format!(
            "class = \"fifo\"\ncpus = [{cpu}]\nreservation = {{ budget = \"{budget}\", period = \"{period}\" }}\n\
             rights = {{ evl = true }}\n{more}"
        ),
    )
}

#[test]
fn frames_are_computed_from_the_reservations_and_shown_in_the_order_of_the_file() {
    let cells = partitioned("slow", 1, ("60ms", "100ms"), "")
        + &partitioned("fast", 1, ("10ms", "50ms"), "")
        + &partitioned("other", 0, ("1ms", "2ms"), "");
    let both = by_windows(&cells);
    granted(&both);
    let [zero, one] = both.frames.as_slice() else {
        panic!("{:?}", both.frames);
    };
    assert_eq!((zero.cpu, zero.windows.len(), one.cpu), (0, 2, 1));
    assert_eq!((one.minor_ns, one.major_ns), (50 * MS, 100 * MS));
    let windows: Vec<_> = (one.windows.iter())
        .map(|window| {
            (
                window.start_ns / MS,
                window.partition,
                window.cell.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        windows,
        [
            (0, Some(1), Some("fast")),
            (10, Some(0), Some("slow")),
            (70, Some(1), Some("fast")),
            (80, None, None)
        ]
    );
}

#[test]
fn a_task_waits_for_the_worst_window_and_no_longer() {
    let beside = partitioned("slow", 1, ("60ms", "100ms"), "");
    let with = |deadline: &str| {
        let task = task("1ms", "200ms") + &format!("deadline = \"{deadline}\"\n");
        by_windows(&(beside.clone() + &partitioned("fast", 1, ("10ms", "50ms"), &task)))
    };
    // From the end of its window at 10 ms to the next one at 70 ms; the periodic model says 81 ms.
    let bound = granted(&with("61ms"))["fast"].tasks[0].response_ns;
    assert_eq!(bound, Some(61 * MS));
    assert!(!with("60ms").is_admitted());
}

#[test]
fn cells_without_a_frame_are_refused_for_its_reason() {
    let with = |first, second| {
        let cells = partitioned("a", 1, first, "") + &partitioned("b", 1, second, "");
        refused(&by_windows(&cells)).why.clone()
    };
    let over = with(("700ms", "1s"), ("310ms", "1s"));
    assert!(over.contains("more than all of the cpu"), "{over}");
    let many = with(("10ms", "50ms"), ("10ms", "200ms"));
    assert!(many.contains("more than the 4 windows"), "{many}");
    let long = with(("10ms", "7001ms"), ("10ms", "7s"));
    assert!(long.contains("no common frame of 10 s"), "{long}");
    // Two missions would have to change each other's frame.
    let mission = mission(&format!(
        "enforcer = \"evl-tp\"\n{}",
        partitioned("a", 1, ("300ms", "1s"), "")
    ));
    let why = refused(&admit(&mission, &facts(), &[], 0)).why.clone();
    assert!(why.contains("evl-tp cannot hold it here: no EVL"), "{why}");
}

#[test]
fn a_cpu_has_the_time_partitions_of_one_mission() {
    let here = Facts {
        evl_tp: Ok(4),
        ..facts()
    };
    let of_first = format!(
        "enforcer = \"evl-tp\"\n{}",
        partitioned("a", 1, ("300ms", "1s"), "")
    );
    let first = beside::neighbour("first", &of_first, &here);
    let facts = Facts {
        evl_tp: Ok(4),
        ..beside::beside(vec![first])
    };
    let cells = |cpu| {
        format!(
            "enforcer = \"evl-tp\"\n{}",
            partitioned(
                "b",
                cpu,
                ("300ms", "1s"),
                "priorities = { lowest = 1, highest = 1 }"
            )
        )
    };
    let why = refused(&admit(&mission(&cells(1)), &facts, &[], 0))
        .why
        .clone();
    assert!(why.contains("which one mission has alone"), "{why}");
    assert!(admit(&mission(&cells(0)), &facts, &[], 0).is_admitted());
}
