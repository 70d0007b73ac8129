//! Reference vectors, computed independently of this crate: `vectors.json`. A module here is a module of the crate.
//!
//! Each module lists which of its tests takes which vectors; a vector that no test takes fails.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;

/// Tests that each take one vector, run once for every vector named.
macro_rules! cases {
    ($($test:ident: $($id:literal),+;)+) => {
        pub const TAKEN: &[&str] = &[$($($id),+),+];

        mod cases {
            $(
                #[test]
                fn $test() {
                    for id in [$($id),+] {
                        println!("{id}");
                        super::$test(&$crate::vectors::vector(id));
                    }
                }
            )+
        }
    };
}

mod dedicated;
mod generate;
mod linux;
mod multi;
mod reservation;
mod servers;

static ALL: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let file: Value = serde_json::from_str(include_str!("vectors.json")).unwrap();
    file["vectors"].as_array().unwrap().clone()
});

fn vector(id: &str) -> Value {
    let found = ALL.iter().find(|vector| vector["id"] == id);
    found.unwrap_or_else(|| panic!("no vector {id}")).clone()
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn numbers(value: &Value) -> Vec<u64> {
    list(value).iter().map(number).collect()
}

fn floats(value: &Value) -> Vec<f64> {
    let float = |value: &Value| value.as_f64().expect("a number");
    list(value).iter().map(float).collect()
}

fn lists(value: &Value) -> Vec<Vec<u64>> {
    list(value).iter().map(numbers).collect()
}

/// Tasks as lists C, T or C, T, D, or as objects with C, T and perhaps D, J, B.
fn tasks(value: &Value) -> Vec<timecell_analysis::Task> {
    let of_list = |times: &[u64]| {
        let task = timecell_analysis::Task::new(times[0], times[1]);
        task.due(*times.get(2).unwrap_or(&times[1]))
    };
    let of_object = |task: &Value| {
        let time = |key: &str, otherwise| task.get(key).map_or(otherwise, number);
        let task = timecell_analysis::Task::new(number(&task["C"]), number(&task["T"]));
        task.due(time("D", task.period))
            .jittered(time("J", 0))
            .blocked(time("B", 0))
    };
    list(value)
        .iter()
        .map(|task| match task {
            Value::Array(_) => of_list(&numbers(task)),
            _ => of_object(task),
        })
        .collect()
}

#[test]
fn every_vector_is_taken_by_a_test() {
    let taken = [
        dedicated::TAKEN,
        generate::TAKEN,
        linux::TAKEN,
        multi::TAKEN,
        reservation::TAKEN,
        servers::TAKEN,
    ];
    let taken: BTreeSet<&str> = taken.concat().into_iter().collect();
    let there: BTreeSet<&str> = ALL.iter().filter_map(|each| each["id"].as_str()).collect();
    assert_eq!(there.len(), ALL.len(), "each has an id of its own");
    assert_eq!(taken, there);
}
