//! From a surveyed task-set file to [`TaskSet`], with the faults that only show when its parts are taken together.

use std::collections::HashSet;

use super::keys::{CRITICALITIES, POLICIES, TOP};
use super::{
    CellServer, CellTask, Fault, Limits, Order, Policy, Refill, Reservation, SCHEMA, ServerKind,
    TaskCell, TaskSet,
};
use crate::file::{self, Faults, Format, Node};
use crate::{Enforcer, InputErrors};

/// The format of the file, for its reader.
pub(crate) const FORMAT: Format = Format {
    name: "taskset",
    schema: SCHEMA,
    most_bytes: 256 << 20,
    top: &TOP,
    narrower: |_, _, _| None,
};

impl TaskSet {
    /// Reads a task-set file; `name` is its name in messages, usually its path.
    ///
    /// # Errors
    /// Every fault, each with its line and how to fix it. A text that is not TOML has only its faults as TOML.
    pub fn parse(name: &str, text: &str) -> Result<TaskSet, InputErrors> {
        file::read(&FORMAT, name, text, set).map(|(set, _)| set)
    }

    /// The JSON Schema (draft 2020-12) of the task-set file.
    pub fn schema() -> serde_json::Value {
        file::schema(&FORMAT)
    }
}

fn set(top: &Node<'_>, faults: &mut Faults<'_>) -> TaskSet {
    let nodes = top.tables("cell");
    let mut names = HashSet::new();
    let mut room = Limits::TASKS;
    let cells = nodes.iter().map(|node| {
        is_new(node, &mut names, "cell", faults);
        let tasks = node.tables("task");
        if tasks.len() > room {
            let fix = format!("a task set has at most {}", Limits::TASKS);
            faults.report(&node.place, &["task"], "there are too many tasks", fix);
        }
        room = room.saturating_sub(tasks.len());
        cell(node, &tasks, faults)
    });
    let set = TaskSet {
        cells: cells.collect(),
        cpus: top.count("cpus"),
        refill: top.choice("refill", &Refill::NAMES).unwrap_or_default(),
        enforcer: top.choice("enforcer", &Enforcer::names(Enforcer::OF_ANALYSIS)),
    };
    if set.refill == Refill::Together && set.cells.iter().all(|cell| cell.server.is_none()) {
        faults.report(
            &top.place,
            &["refill"],
            "`refill` has no meaning without servers",
            "add `server = \"deferrable\"` to the cells, or remove this line",
        );
    }
    // How servers get along is asked of those that are each in order.
    if faults.is_empty()
        && let Some((place, fault)) = set.servers_fault()
    {
        told(&nodes[place], fault, faults);
    }
    set
}

fn told(node: &Node<'_>, fault: Fault, faults: &mut Faults<'_>) {
    faults.report(&node.place, &[fault.key], fault.what, fault.fix);
}

fn is_new(node: &Node<'_>, taken: &mut HashSet<String>, kind: &str, faults: &mut Faults<'_>) {
    let name = node.text("name");
    let what = format!("there are two {kind}s named `{}`", name.escape_debug());
    if !taken.insert(name) {
        faults.report(&node.place, &["name"], what, "give each a different name");
    }
}

fn cell(node: &Node<'_>, task_nodes: &[Node<'_>], faults: &mut Faults<'_>) -> TaskCell {
    let reserved = node.table("reservation");
    let (policy, order) = policy(node, reserved.as_ref(), faults);
    let mut taken = HashSet::new();
    let tasks = task_nodes.iter().map(|node| {
        is_new(node, &mut taken, "task", faults);
        task(node, faults)
    });
    let tasks: Vec<CellTask> = tasks.collect();
    let policy = match faults.is_clear(&node.place.key("policy")) {
        true => ordered(policy, order, &tasks, task_nodes, faults),
        false => policy,
    };
    let cell = TaskCell {
        name: node.text("name"),
        policy,
        reservation: reserved.map(|node| reservation(&node, policy, faults)),
        server: server(node, faults),
        tasks,
    };
    if faults.is_whole(&node.place) {
        if let Some(fault) = cell.server_fault() {
            told(node, fault, faults);
        }
        if let Some((place, fault)) = cell.priority_fault() {
            told(&task_nodes[place], fault, faults);
        }
    }
    cell
}

fn reservation(node: &Node<'_>, policy: Policy, faults: &mut Faults<'_>) -> Reservation {
    let period = node.time_or_zero("period");
    let reservation = Reservation {
        budget: node.time_or_zero("budget"),
        period,
        deadline: node.time("deadline").unwrap_or(period),
    };
    if !faults.is_whole(&node.place) {
        return reservation;
    }
    if reservation.deadline != period && policy.cpus().is_some() {
        faults.report(
            &node.place,
            &["deadline"],
            "a reservation on several cpus cannot have a deadline",
            "remove it: the budget is supplied by the end of each period",
        );
    } else if let Some(fault) = reservation.fault_on(policy.cpus().unwrap_or(1)) {
        told(node, fault, faults);
    }
    reservation
}

fn task(node: &Node<'_>, faults: &mut Faults<'_>) -> CellTask {
    let (wcet, period) = (node.time_or_zero("wcet"), node.time_or_zero("period"));
    let is_high = node.choice("criticality", &CRITICALITIES) == Some(true);
    let wcet_high = node.time("wcet_hi");
    if wcet_high.is_some() && !is_high {
        faults.report(
            &node.place,
            &["wcet_hi", "criticality"],
            "only tasks of high criticality run in high mode",
            "add criticality = \"hi\" or remove `wcet_hi`",
        );
    }
    let task = CellTask {
        deadline: node.time("deadline").unwrap_or(period),
        jitter: node.time_or_zero("jitter"),
        blocking: node.time_or_zero("blocking"),
        priority: node.integer("priority"),
        wcet_high: is_high.then(|| wcet_high.unwrap_or(wcet)),
        ..CellTask::new(node.text("name"), wcet, period)
    };
    if faults.is_whole(&node.place)
        && let Some(fault) = task.fault()
    {
        told(node, fault, faults);
    }
    task
}

/// The server that keeps a cell's reservation among others, if the cell has one.
fn server(cell: &Node<'_>, faults: &mut Faults<'_>) -> Option<CellServer> {
    let Some(kind) = cell.choice("server", &ServerKind::NAMES) else {
        for key in ["priority", "cpu"].into_iter().filter(|key| cell.says(key)) {
            faults.report(
                &cell.place,
                &[key, "server"],
                format!("`{key}` of a cell has no meaning without `server`"),
                "add a line such as `server = \"deferrable\"`, or remove this one",
            );
        }
        return None;
    };
    Some(CellServer {
        kind,
        priority: cell.integer("priority"),
        cpu: cell.count("cpu"),
    })
}

/// The policy of a cell, regardless of its tasks' priorities; and the order that the cell sets.
fn policy(
    cell: &Node<'_>,
    reservation: Option<&Node<'_>>,
    faults: &mut Faults<'_>,
) -> (Policy, Option<Order>) {
    let policy = cell.choice("policy", &POLICIES).unwrap_or(POLICIES[0].1);
    let name = policy.name();
    let order = cell.choice("order", &Order::NAMES);
    let mut fault = |key: &str, what: String, fix: &str| {
        faults.report(&cell.place, &[key, "policy"], what, fix);
    };
    if policy.order().is_none() && order.is_some() {
        fault(
            "order",
            format!("policy \"{name}\" takes no `order`"),
            "remove the line or set policy = \"fp\"",
        );
    } else if order == Some(Order::Audsley) && !matches!(policy, Policy::Fixed(_)) {
        fault(
            "order",
            format!("order = \"audsley\" cannot be combined with policy \"{name}\""),
            "set policy = \"fp\", or an order of priority, dm, rm or file",
        );
    }
    if policy.is_whole() && reservation.is_some() {
        fault(
            "reservation",
            format!("policy \"{name}\" is analysed only on a whole cpu"),
            "remove the reservation or set policy = \"fp\" or \"edf\"",
        );
    }
    if cell.says("cpus") && reservation.is_some() {
        fault(
            "cpus",
            "with a reservation, `cpus` belongs in it".to_owned(),
            "write reservation = { budget, period, cpus }",
        );
        return (policy, order);
    }
    let table = reservation.unwrap_or(cell);
    let policy = match (policy, table.count("cpus")) {
        (Policy::GlobalFixed(order, _), Some(cpus)) => Policy::GlobalFixed(order, cpus),
        (Policy::GlobalEdf(_), Some(cpus)) => Policy::GlobalEdf(cpus),
        (Policy::GlobalFixed(..) | Policy::GlobalEdf(_), None) => {
            let (what, fix) = table.lacks("cpus", "2");
            faults.report(&table.place, &["cpus"], what, fix);
            policy
        }
        (_, Some(_)) if faults.is_clear(&cell.place.key("policy")) => {
            faults.report(
                &table.place,
                &["cpus"],
                format!("policy \"{name}\" schedules on one cpu"),
                "remove `cpus`, or set policy = \"global-fp\" or \"global-edf\"",
            );
            policy
        }
        _ => policy,
    };
    (policy, order)
}

/// The policy with its order, as the cell or its tasks' priorities set it.
fn ordered(
    policy: Policy,
    order: Option<Order>,
    tasks: &[CellTask],
    nodes: &[Node<'_>],
    faults: &mut Faults<'_>,
) -> Policy {
    let name = policy.name();
    let stray = tasks.iter().position(|task| task.wcet_high.is_some());
    if let Some(place) = stray.filter(|_| !policy.is_mixed()) {
        faults.report(
            &nodes[place].place,
            &["criticality"],
            format!("`criticality` has no meaning with policy \"{name}\""),
            "remove the line or set policy = \"amc-rtb\" or \"edf-vd\"",
        );
    }
    // Priorities that nobody would look at are a mistake that nobody would see.
    let by_priority = policy == Policy::EdfOverFixed
        || (policy.order().is_some() && matches!(order, None | Some(Order::Priority)));
    let given = tasks.iter().position(|task| task.priority.is_some());
    if let Some(place) = given.filter(|_| !by_priority) {
        let who = order.map_or_else(
            || format!("policy = \"{name}\""),
            |order| format!("order = \"{}\"", order.name()),
        );
        faults.report(
            &nodes[place].place,
            &["priority"],
            format!("`priority` has no meaning with {who}"),
            "remove one of the two",
        );
    }
    policy.ordered(order.unwrap_or(match given {
        Some(_) => Order::Priority,
        None => Order::Deadline,
    }))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_keys;
