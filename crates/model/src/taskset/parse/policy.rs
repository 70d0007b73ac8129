//! The policy of a cell.

use super::super::{CellTask, Limits, Order, Policy};
use super::field::choice;
use crate::InputError;
use crate::reader::Table;

/// The policies of files; the order and the cpus are keys of their own.
const POLICIES: [(&str, Policy); 6] = [
    ("fp", Policy::Fixed(Order::Deadline)),
    ("edf", Policy::Edf),
    ("amc-rtb", Policy::AmcRtb(Order::Deadline)),
    ("edf-vd", Policy::EdfVd),
    ("global-fp", Policy::GlobalFixed(Order::Deadline, 1)),
    ("global-edf", Policy::GlobalEdf(1)),
];

/// The policy of a cell, without what its tasks say of the order; and the order that the cell says.
pub(super) fn policy(
    cell: &Table<'_>,
    reservation: Option<&Table<'_>>,
) -> Result<(Policy, Option<Order>), InputError> {
    let policy = choice(cell, "policy", &POLICIES)?.unwrap_or(POLICIES[0].1);
    let name = policy.name();
    let order = choice(cell, "order", &Order::NAMES)?;
    if policy.order().is_none() && order.is_some() {
        return Err(cell.fault(
            "order",
            format!("policy \"{name}\" has no order"),
            "remove the line or set policy = \"fp\"",
        ));
    }
    if order == Some(Order::Audsley) && !matches!(policy, Policy::Fixed(_)) {
        return Err(cell.fault(
            "order",
            format!("order = \"audsley\" is not sought with policy \"{name}\""),
            "set policy = \"fp\", or an order of priority, dm, rm or file",
        ));
    }
    if policy.is_mixed() && reservation.is_some() {
        return Err(cell.fault(
            "reservation",
            format!("policy \"{name}\" is analysed on a cpu of its own"),
            "remove the reservation or set policy = \"fp\" or \"edf\"",
        ));
    }
    Ok((with_cpus(policy, cell, reservation)?, order))
}

/// The policy with the number of its cpus, which stands in the reservation if there is one.
fn with_cpus(
    policy: Policy,
    cell: &Table<'_>,
    reservation: Option<&Table<'_>>,
) -> Result<Policy, InputError> {
    let name = policy.name();
    let on_cell = cell.integer("cpus", &Limits::CPUS)?;
    let reserved = match reservation {
        Some(table) => table.integer("cpus", &Limits::CPUS)?,
        None => None,
    };
    let given = match (on_cell, reserved, reservation) {
        (Some(_), _, Some(_)) => {
            return Err(cell.fault(
                "cpus",
                "with a reservation, the number of cpus stands in it",
                "write reservation = { budget, period, cpus }",
            ));
        }
        (on_cell, reserved, _) => on_cell.or(reserved),
    };
    let table = match (reservation, reserved) {
        (Some(table), Some(_)) => table,
        _ => cell,
    };
    let cpus = given.and_then(|cpus| u32::try_from(cpus).ok());
    match (policy, cpus) {
        (Policy::GlobalFixed(order, _), Some(cpus)) => Ok(Policy::GlobalFixed(order, cpus)),
        (Policy::GlobalEdf(_), Some(cpus)) => Ok(Policy::GlobalEdf(cpus)),
        (Policy::GlobalFixed(..) | Policy::GlobalEdf(_), None) => {
            Err(reservation.unwrap_or(cell).missing("cpus", "2"))
        }
        (_, Some(_)) => Err(table.fault(
            "cpus",
            format!("policy \"{name}\" schedules on one cpu"),
            "remove `cpus`, or set policy = \"global-fp\" or \"global-edf\"",
        )),
        (_, None) => Ok(policy),
    }
}

/// The policy with its order: that of the cell, else by priorities if tasks have them, else by deadlines.
pub(super) fn ordered(
    policy: Policy,
    order: Option<Order>,
    tasks: &[CellTask],
    tables: &[Table<'_>],
) -> Result<Policy, InputError> {
    let name = policy.name();
    let stray = tasks.iter().position(|task| task.wcet_high.is_some());
    if let Some(place) = stray.filter(|_| !policy.is_mixed()) {
        return Err(tables[place].fault(
            "criticality",
            format!("`criticality` has no meaning with policy \"{name}\""),
            "remove the line or set policy = \"amc-rtb\" or \"edf-vd\"",
        ));
    }
    // Priorities that nobody would look at are a mistake that nobody would see.
    let by_priority = policy.order().is_some() && matches!(order, None | Some(Order::Priority));
    let given = tasks.iter().position(|task| task.priority.is_some());
    if let Some(place) = given.filter(|_| !by_priority) {
        let who = order.map_or_else(
            || format!("policy = \"{name}\""),
            |order| format!("order = \"{}\"", order.name()),
        );
        return Err(tables[place].fault(
            "priority",
            format!("`priority` has no meaning with {who}"),
            "remove one of the two",
        ));
    }
    Ok(policy.ordered(order.unwrap_or(match given {
        Some(_) => Order::Priority,
        None => Order::Deadline,
    })))
}
