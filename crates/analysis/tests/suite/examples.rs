//! The examples print the output that their documentation shows.

#[path = "../../examples/least_budget.rs"]
#[expect(dead_code, reason = "its main")]
mod least_budget;
#[path = "../../examples/mixed_criticality.rs"]
#[expect(dead_code, reason = "its main")]
mod mixed_criticality;
#[path = "../../examples/response_times.rs"]
#[expect(dead_code, reason = "its main")]
mod response_times;

#[test]
fn response_times() {
    let source = include_str!("../../examples/response_times.rs");
    assert_eq!(response_times::said().unwrap(), shown(source));
}

#[test]
fn least_budget() {
    let source = include_str!("../../examples/least_budget.rs");
    assert_eq!(least_budget::said().unwrap(), shown(source));
}

#[test]
fn mixed_criticality() {
    let source = include_str!("../../examples/mixed_criticality.rs");
    assert_eq!(mixed_criticality::said().unwrap(), shown(source));
}

/// The first block of text in a file's documentation.
fn shown(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .skip_while(|line| *line != "```text")
        .skip(1)
        .take_while(|line| *line != "```")
        .map(|line| format!("{line}\n"))
        .collect()
}
