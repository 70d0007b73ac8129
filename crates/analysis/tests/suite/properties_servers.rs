//! Properties of every server: its supply is one, and refilled together it is an explicit-deadline resource.

use proptest::prelude::*;
use timecell_analysis::inside::fixed_priority;
use timecell_analysis::reservation::{ExplicitDeadline, Periodic};
use timecell_analysis::server::{
    Cell, Kind, LocalTask, Refill, Response, Server, ServerSupply, analyze,
};
use timecell_analysis::{Supply, Task};

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Deferrable),
        Just(Kind::Polling),
        Just(Kind::Sporadic),
        Just(Kind::Periodic),
    ]
}

/// Servers of which many, not all, fit on one cpu.
fn servers() -> impl Strategy<Value = Vec<Server>> {
    let server = (kind(), 1..12u64, 0..60u64)
        .prop_map(|(kind, budget, more)| Server::new(kind, budget, 2 * budget + more));
    prop::collection::vec(server, 1..5)
}

fn tasks() -> impl Strategy<Value = Vec<Task>> {
    let task = (1..30u64, 0..400u64, 0..400u64, 0..20u64).prop_map(|(wcet, more, late, jitter)| {
        Task::new(wcet, wcet + more)
            .due(wcet + late)
            .jittered(jitter)
    });
    prop::collection::vec(task, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_supply_of_a_server_is_a_supply(servers in servers(), a in 0..200u64, b in 0..200u64) {
        let Ok(supply) = ServerSupply::new(&servers, servers.len() - 1, Refill::Apart) else {
            return Ok(());
        };
        prop_assert_eq!(supply.sbf(0), 0);
        prop_assert_eq!(supply.inverse(0), Some(0));
        prop_assert!(supply.sbf(a) <= supply.sbf(a + 1) && supply.sbf(a + 1) <= supply.sbf(a) + 1);
        prop_assert!(supply.sbf(a) + supply.sbf(b) <= supply.sbf(a + b), "superadditive");
        let time = supply.inverse(a + 1).unwrap();
        prop_assert!(supply.sbf(time) == a + 1 && supply.sbf(time - 1) == a);
        let cycle = supply.cycle().unwrap();
        let later = supply.inverse(1).unwrap() + a;
        prop_assert_eq!(supply.sbf(later + cycle), supply.sbf(later) + supply.server().budget);
    }

    /// Response times inside servers refilled together are those under EDP(T, C_S, C_S + sum of C_X above).
    #[test]
    fn refilled_together_is_an_explicit_deadline_resource(
        budgets in prop::collection::vec(1..12u64, 1..5), more in 0..30u64, tasks in tasks(),
    ) {
        let deadline: u64 = budgets.iter().sum();
        let period = deadline + more;
        let budget = *budgets.last().unwrap();
        let cells: Vec<Cell> = budgets.iter().map(|budget| Cell {
            server: Server::new(Kind::Deferrable, *budget, period),
            tasks: tasks.iter().copied().map(LocalTask::unbound).collect(),
        }).collect();
        let found = analyze(&cells, Refill::Together).cells.pop().unwrap();
        let resource = ExplicitDeadline::new(budget, period, deadline).unwrap();
        let expected = fixed_priority(&tasks, &resource);
        for (found, expected) in found.tasks.iter().zip(expected.responses) {
            prop_assert_eq!(found.bound(), expected, "{:?}", found);
        }
        let servers: Vec<Server> = cells.iter().map(|cell| cell.server).collect();
        let supply = ServerSupply::new(&servers, servers.len() - 1, Refill::Together).unwrap();
        for t in 0..5 * period {
            prop_assert_eq!(supply.sbf(t), resource.sbf(t));
        }
    }

    /// A constant bandwidth server supplies as much as a periodic resource.
    #[test]
    fn a_constant_bandwidth_server_is_a_periodic_resource(budget in 1..30u64, more in 0..30u64, tasks in tasks()) {
        let server = Server::new(Kind::ConstantBandwidth, budget, budget + more);
        let local = tasks.iter().copied().map(LocalTask::unbound).collect();
        let found = analyze(&[Cell { server, tasks: local }], Refill::Apart);
        let expected = fixed_priority(&tasks, &Periodic::new(budget, budget + more).unwrap());
        for (found, expected) in found.cells[0].tasks.iter().zip(expected.responses) {
            prop_assert_eq!(found.bound(), expected);
        }
    }

    /// On the supply of a server among servers the general analysis and this one agree for unbound tasks.
    #[test]
    fn response_times_are_those_on_the_supply(servers in servers(), tasks in tasks()) {
        let last = servers.len() - 1;
        let Ok(supply) = ServerSupply::new(&servers, last, Refill::Apart) else {
            return Ok(());
        };
        let cells: Vec<Cell> = servers.iter().map(|server| Cell {
            server: *server,
            tasks: tasks.iter().copied().map(LocalTask::unbound).collect(),
        }).collect();
        let found = analyze(&cells, Refill::Apart).cells.pop().unwrap();
        let expected = fixed_priority(&tasks, &supply);
        for (found, expected) in found.tasks.iter().zip(expected.responses) {
            prop_assert_eq!(found.bound(), expected);
        }
    }

    /// A refusal shows more demand than supply, and never hides behind the parts.
    #[test]
    fn a_witness_demands_more_than_is_supplied(
        servers in servers(), tasks in tasks(), bound in any::<bool>(),
    ) {
        let cells: Vec<Cell> = servers.iter().map(|server| Cell {
            server: *server,
            tasks: tasks.iter().map(|task| LocalTask { task: *task, bound }).collect(),
        }).collect();
        for (place, response) in analyze(&cells, Refill::Apart).responses() {
            if let Response::Exceeded(witness) = response {
                prop_assert!(witness.demand > witness.supply, "{place:?} {witness:?}");
                prop_assert_eq!(witness.demand, witness.parts.iter().map(|part| part.demand).sum::<u64>());
            }
        }
    }

    /// Being bound to the refills never makes a response longer.
    #[test]
    fn bound_is_no_later_than_unbound(servers in servers(), tasks in tasks()) {
        let last = servers.len() - 1;
        let cells = |bound| -> Vec<Cell> {
            let tasks: Vec<LocalTask> = tasks.iter().map(|task| LocalTask { task: *task, bound }).collect();
            servers.iter().map(|server| Cell { server: *server, tasks: tasks.clone() }).collect()
        };
        let unbound = analyze(&cells(false), Refill::Apart);
        let bound = analyze(&cells(true), Refill::Apart);
        for (unbound, bound) in unbound.cells[last].tasks.iter().zip(&bound.cells[last].tasks) {
            if let Some(unbound) = unbound.bound() {
                prop_assert!(bound.bound().is_some_and(|bound| bound <= unbound));
            }
        }
    }
}
