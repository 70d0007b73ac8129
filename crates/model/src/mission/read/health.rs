//! Reading health rules.

use crate::file::Node;
use crate::mission::{Action, Escalation, ExitStatus, Observed, Rule};

pub(super) fn rule(table: &Node<'_>) -> Rule {
    let action = |table: &Node<'_>| table.choice("do", &Action::NAMES).unwrap_or(Action::Log);
    let steps = table.tables("escalate");
    Rule {
        when: observed(table),
        times: table.count("times").unwrap_or(1),
        window: table.time("window"),
        cooldown: table.time_or_zero("cooldown"),
        action: action(table),
        escalate: (steps.iter())
            .map(|step| Escalation {
                after: step.count("after").unwrap_or(1),
                action: action(step),
            })
            .collect(),
    }
}

fn observed(table: &Node<'_>) -> Observed {
    let task = table.some_text("task");
    let count = |key| table.count(key).unwrap_or(1);
    let timeout = table.time_or_zero("timeout");
    match table.text("when").as_str() {
        "heartbeat" => Observed::Heartbeat { task, timeout },
        "deadline-misses" => Observed::DeadlineMisses {
            task,
            misses: count("misses"),
            jobs: count("jobs"),
        },
        "budget-exhausted" => Observed::BudgetExhausted {
            periods: count("periods"),
        },
        "memory-limit" => Observed::MemoryLimit,
        "no-progress" => Observed::NoProgress { timeout },
        "overrun" => Observed::Overrun { task },
        "unproved" => Observed::Unproved { task },
        "restart-limit" => Observed::RestartLimit,
        _ => Observed::Exit {
            status: table
                .choice("status", &ExitStatus::NAMES)
                .unwrap_or(ExitStatus::Failure),
        },
    }
}
