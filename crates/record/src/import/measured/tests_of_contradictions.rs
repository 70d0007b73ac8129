//! Files whose figures are contradictory or impossible, each refused with its fault.

use super::*;

/// The fault of a text.
fn fault_of(text: &str) -> String {
    let read = import(None, "f", text.as_bytes(), Options::default());
    read.expect_err("must be refused").to_string()
}

#[test]
fn figures_that_go_back_are_of_a_second_run() {
    let lines = |first: &str, second: &str| {
        let line = |figures: &str| format!("T: 0 ( 123) P:80 I:1000 {figures}\n");
        line(first) + &line(second)
    };
    for (first, second, what) in [
        (
            "C: 1000 Min: 1 Act: 2 Avg: 2 Max: 90",
            "C: 2000 Min: 1 Act: 2 Avg: 2 Max: 80",
            "f:2: its maximum falls, so a second run begins",
        ),
        (
            "C: 1000 Min: 1 Act: 2 Avg: 2 Max: 90",
            "C: 2000 Min: 2 Act: 2 Avg: 2 Max: 90",
            "its minimum rises",
        ),
        (
            "C: 2000 Min: 1 Act: 2 Avg: 2 Max: 90",
            "C: 1000 Min: 1 Act: 2 Avg: 2 Max: 90",
            "its cycles fall",
        ),
    ] {
        let error = fault_of(&lines(first, second));
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn a_log_of_iterations_has_no_negative_time_and_begins_at_0_or_1() {
    let log = |first: &str| {
        format!("Iteration 1 - Execution Time: {first} ms\nIteration 2 - Execution Time: 0.3 ms\n")
    };
    let error = fault_of(&log("-0.275"));
    assert!(
        error.contains("f:1:") && error.contains("negative"),
        "{error}"
    );
    let read = import(None, "f", log("0.275").as_bytes(), Options::default()).unwrap();
    assert!(read.notes.is_empty(), "{:?}", read.notes);
}

#[test]
fn a_histogram_of_rtla_reaches_its_maximum_or_counts_what_is_beyond() {
    let text = |over: u32, max: u32| {
        format!(
            "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:10\nIndex   IRQ-000\n0   5\n1   5\n\
             over:   {over}\ncount:   {}\nmin:   0\navg:   0\nmax:   {max}\n",
            10 + over
        )
    };
    let read = |text: String| import(None, "f", text.as_bytes(), Options::default());
    assert!(read(text(0, 1)).is_ok(), "{:?}", read(text(0, 1)));
    assert!(read(text(1, 9)).is_ok(), "{:?}", read(text(1, 9)));
    let error = fault_of(&text(0, 9));
    assert!(error.contains("contradict each other"), "{error}");
}

#[test]
fn a_file_of_too_many_threads_is_refused_early() {
    let mut text = String::from(
        "{\"cmdline\": \"cyclictest\", \"rt_test_version\": \"2.5\", \"resolution_in_ns\": 0, \"thread\": {\"0\": {}",
    );
    for number in 1..70_000 {
        text += &format!(",\"{number}\":{{}}");
    }
    // It need not even end.
    let error = fault_of(&text);
    assert!(error.contains("more than 65,536 threads"), "{error}");
}
