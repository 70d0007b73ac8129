//! Reference vectors, computed independently, for the generators.

use analysis::generate::{rand_fixed_sum_of, uunifast_of};
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

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("a list");
    list.iter().map(|number| number.as_f64().unwrap()).collect()
}

fn same(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
}

#[test]
fn gen_01_uunifast() {
    let vector = vector("gen-01");
    let input = &vector["input"];
    let mut draws = numbers(&input["uniform_draws"]).into_iter();
    let tasks = input["n"].as_u64().unwrap() as usize;
    let found = uunifast_of(tasks, input["U"].as_f64().unwrap(), || {
        draws.next().unwrap()
    });
    same(&found, &numbers(&vector["expected"]["u"]));
    assert_eq!(draws.next(), None, "one draw less than tasks");
}

#[test]
fn gen_02_rand_fixed_sum() {
    let vector = vector("gen-02");
    let input = &vector["input"];
    let found = rand_fixed_sum_of(
        input["n"].as_u64().unwrap() as usize,
        input["u"].as_f64().unwrap(),
        &numbers(&input["rt"]),
        &numbers(&input["rs"]),
    );
    same(&found.unwrap(), &numbers(&vector["expected"]["x"]));
}
