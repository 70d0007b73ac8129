//! Deferrable servers.

use serde_json::Value;
use timecell_analysis::server::{
    Cell, Kind, LocalTask, Refill, Response, Server, analyze, deferrable_least_upper_bound,
};

use super::{floats, list, number, numbers, tasks};

cases! {
    refilled_together: "ds-01";
    deferrable_above_deferrable: "ds-02";
    least_upper_bound: "ds-05";
}

fn responses(input: &Value, above: Vec<Server>, refill: Refill) -> Vec<Response> {
    let server = &input["server"];
    let server = Server::new(Kind::Deferrable, number(&server["C"]), number(&server["T"]));
    let tasks = tasks(&input["tasks_C_T"])
        .into_iter()
        .map(LocalTask::unbound)
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

fn refilled_together(vector: &Value) {
    let input = &vector["input"];
    let period = number(&input["server"]["T"]);
    let above = list(&input["hp_servers_same_period"]).iter();
    let above = above
        .map(|x| Server::new(Kind::Deferrable, number(&x["C"]), period))
        .collect();
    let found = responses(input, above, Refill::Together);
    assert_eq!(found, bounded(&vector["expected"]["R"]));
}

fn deferrable_above_deferrable(vector: &Value) {
    let input = &vector["input"];
    let above: Vec<Server> = list(&input["hp_servers"])
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

fn least_upper_bound(vector: &Value) {
    let bounds = floats(&vector["expected"]["U_lub"]);
    for (server, bound) in floats(&vector["input"]["U_s"]).into_iter().zip(bounds) {
        let found = deferrable_least_upper_bound(server);
        assert!((found - bound).abs() < 1e-6, "{server}: {found}");
    }
    let (least, at) = (1..1000)
        .map(|thousandths| f64::from(thousandths) / 1000.0)
        .map(|server| (deferrable_least_upper_bound(server), server))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .unwrap();
    let expected = floats(&vector["expected"]["min"]);
    assert!((least - expected[0]).abs() < 1e-4, "{least}");
    assert!((at - expected[1]).abs() < 1e-2, "{at}");
}
