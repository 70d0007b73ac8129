//! Reference vectors, computed independently, for deferrable servers.

use analysis::Task;
use analysis::server::{
    Cell, Kind, LocalTask, Refill, Response, Server, analyze, deferrable_least_upper_bound,
};
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

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn numbers(value: &Value) -> Vec<u64> {
    value
        .as_array()
        .expect("a list")
        .iter()
        .map(number)
        .collect()
}

fn responses(input: &Value, above: Vec<Server>, refill: Refill) -> Vec<Response> {
    let server = &input["server"];
    let server = Server::new(Kind::Deferrable, number(&server["C"]), number(&server["T"]));
    let tasks = input["tasks_C_T"].as_array().unwrap().iter();
    let tasks = tasks
        .map(|task| LocalTask::unbound(Task::new(number(&task[0]), number(&task[1]))))
        .collect();
    let mut cells: Vec<Cell> = above
        .into_iter()
        .map(|server| Cell {
            server,
            tasks: Vec::new(),
        })
        .collect();
    cells.push(Cell { server, tasks });
    analyze(&cells, refill).cells.pop().unwrap().tasks
}

fn bounded(value: &Value) -> Vec<Response> {
    numbers(value).into_iter().map(Response::Bounded).collect()
}

#[test]
fn ds_01_refilled_together() {
    let vector = vector("ds-01");
    let input = &vector["input"];
    let period = number(&input["server"]["T"]);
    let above = input["hp_servers_same_period"].as_array().unwrap().iter();
    let above = above
        .map(|x| Server::new(Kind::Deferrable, number(&x["C"]), period))
        .collect();
    let found = responses(input, above, Refill::Together);
    assert_eq!(found, bounded(&vector["expected"]["R"]));
}

#[test]
fn ds_02_deferrable_above_deferrable() {
    let vector = vector("ds-02");
    let input = &vector["input"];
    let above: Vec<Server> = input["hp_servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|x| {
            let server = Server::new(Kind::Deferrable, number(&x["C"]), number(&x["T"]));
            assert_eq!(server.jitter(), number(&x["J"]));
            server
        })
        .collect();
    let found = responses(input, above, Refill::Apart);
    assert_eq!(found, bounded(&vector["expected"]["R"]));
}

#[test]
fn ds_05_least_upper_bound() {
    let vector = vector("ds-05");
    let float = |value: &Value| value.as_f64().unwrap();
    let servers = vector["input"]["U_s"].as_array().unwrap();
    let bounds = vector["expected"]["U_lub"].as_array().unwrap();
    for (server, bound) in servers.iter().zip(bounds) {
        let found = deferrable_least_upper_bound(float(server));
        assert!((found - float(bound)).abs() < 1e-6, "{server}: {found}");
    }
    let (least, at) = (1..1000)
        .map(|thousandths| f64::from(thousandths) / 1000.0)
        .map(|server| (deferrable_least_upper_bound(server), server))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .unwrap();
    let expected = vector["expected"]["min"].as_array().unwrap();
    assert!((least - float(&expected[0])).abs() < 1e-4, "{least}");
    assert!((at - float(&expected[1])).abs() < 1e-2, "{at}");
}
