//! The generators.

use serde_json::Value;
use timecell_analysis::generate::{rand_fixed_sum_of, uunifast_of};

use super::{floats, number};

cases! {
    uunifast: "gen-01";
    rand_fixed_sum: "gen-02";
}

fn same(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
}

fn uunifast(vector: &Value) {
    let input = &vector["input"];
    let mut draws = floats(&input["uniform_draws"]).into_iter();
    let tasks = number(&input["n"]) as usize;
    let found = uunifast_of(tasks, input["U"].as_f64().unwrap(), || {
        draws.next().unwrap()
    });
    same(&found, &floats(&vector["expected"]["u"]));
    assert_eq!(draws.next(), None, "one draw less than tasks");
}

fn rand_fixed_sum(vector: &Value) {
    let input = &vector["input"];
    let found = rand_fixed_sum_of(
        number(&input["n"]) as usize,
        input["u"].as_f64().unwrap(),
        &floats(&input["rt"]),
        &floats(&input["rs"]),
    );
    same(&found.unwrap(), &floats(&vector["expected"]["x"]));
}
