//! Checks of health rules.

use crate::Enforcer;
use crate::file::Faults;
use crate::file::nearest;
use crate::mission::keys::PARAMETERS;
use crate::mission::{Action, Cell, Mission, Observed, Place, Rule};

/// The health rules of a cell: parameters that are missing or have no meaning, observations and actions that are not possible.
pub(super) fn check(mission: &Mission, cell: &Cell, place: &Place, faults: &mut Faults<'_>) {
    for (index, rule) in cell.health.iter().enumerate() {
        let at = place.key("health").item(index);
        if faults.is_clear(&at.key("when")) {
            parameters(rule, &at, faults);
            observed(mission, cell, rule, &at, faults);
        }
        ladder(rule, &at, faults);
        if let Some(first) = cell.health[..index].iter().position(|other| other == rule) {
            let line = faults.line(&place.key("health").item(first));
            faults.report(
                &at,
                &["when", "do"],
                "this rule is declared twice".to_owned(),
                format!("the first is on line {line}; remove one"),
            );
        }
        action(mission, cell, rule, rule.action, &at, faults);
        for (number, step) in rule.escalate.iter().enumerate() {
            let step_at = at.key("escalate").item(number);
            action(mission, cell, rule, step.action, &step_at, faults);
        }
    }
}

/// Whether the rule has the parameters of its observation, and no others.
fn parameters(rule: &Rule, at: &Place, faults: &mut Faults<'_>) {
    let when = rule.when.name();
    let Some((_, required, optional)) = PARAMETERS.iter().find(|(name, ..)| *name == when) else {
        return;
    };
    for key in *required {
        if !faults.says(&at.key(key)) {
            let example = match *key {
                "timeout" => "\"50ms\"",
                _ => "3",
            };
            let what = format!("when = \"{when}\" has no `{key}`");
            let fix = format!("add a line such as `{key} = {example}`");
            faults.report(at, &[key], what, fix);
        }
    }
    for (_, others, further) in &PARAMETERS {
        for key in others.iter().chain(*further) {
            let known = required.contains(key) || optional.contains(key);
            if !known && faults.says(&at.key(key)) {
                let what = format!("`{key}` has no meaning for when = \"{when}\"");
                faults.report(at, &[key], what, "remove the line");
            }
        }
    }
}

/// Whether it can be observed of this cell.
fn observed(mission: &Mission, cell: &Cell, rule: &Rule, at: &Place, faults: &mut Faults<'_>) {
    let when = rule.when.name();
    match &rule.when {
        Observed::DeadlineMisses { misses, jobs, .. } => {
            if misses > jobs {
                let what = format!("{misses} of {jobs} jobs cannot be late");
                let fix = "`misses` must be at most `jobs`";
                faults.report(at, &["misses", "jobs"], what, fix);
            }
            needs_tasks(cell, when, at, faults);
        }
        Observed::Overrun { .. } | Observed::Unproved { .. } => {
            needs_tasks(cell, when, at, faults);
        }
        Observed::BudgetExhausted { .. } => {
            let what = if !cell.is_real_time() {
                Some("a cell of class `other` has no budget")
            } else if mission.enforcer == Some(Enforcer::CpusetOnly) {
                Some("the enforcer `cpuset-only` enforces no budget")
            } else {
                None
            };
            if let Some(what) = what {
                faults.report(at, &["when"], what, "remove the rule");
            }
        }
        Observed::MemoryLimit if cell.rights.memory.is_none() => {
            let what = format!(
                "cell `{}` has no memory limit that it could reach",
                cell.name
            );
            let fix = "add `memory` to [cell.rights], or remove the rule";
            if faults.is_clear(&at_cell(at).key("rights").key("memory")) {
                faults.report(at, &["when"], what, fix);
            }
        }
        _ => {}
    }
    if let Some(name) = rule.when.task()
        && cell.tasks.iter().all(|task| task.name() != name)
        && (0..cell.tasks.len()).all(|n| faults.is_clear(&at_cell(at).task(n).key("name")))
    {
        let names: Vec<&str> = cell.tasks.iter().map(|task| task.name()).collect();
        let fix = match nearest(name, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "add [[cell.task]], or remove the line".to_owned(),
            None => format!("its tasks are {}", names.join(", ")),
        };
        let what = format!("cell `{}` has no task `{name}`", cell.name);
        faults.report(at, &["task"], what, fix);
    }
}

/// The cell that a rule belongs to.
fn at_cell(rule: &Place) -> Place {
    let cell = rule.parent().and_then(|list| list.parent());
    cell.unwrap_or_default()
}

fn needs_tasks(cell: &Cell, when: &str, at: &Place, faults: &mut Faults<'_>) {
    if cell.tasks.is_empty() && faults.is_clear(&at_cell(at).key("task")) {
        let what = format!(
            "cell `{}` declares no task whose jobs could be watched",
            cell.name
        );
        let fix = format!("add [[cell.task]], or remove the rule for `{when}`");
        faults.report(at, &["when"], what, fix);
    }
}

/// Counter, window and steps.
fn ladder(rule: &Rule, at: &Place, faults: &mut Faults<'_>) {
    let counts = rule.times > 1 || !rule.escalate.is_empty();
    if counts && rule.window.is_none() && !faults.says(&at.key("window")) {
        let why = if rule.times > 1 { "times" } else { "escalate" };
        let what = format!("`{why}` counts within a window, but none is set");
        faults.report(
            at,
            &[why, "window"],
            what,
            "add a line such as `window = \"1min\"`",
        );
    }
    for (number, pair) in rule.escalate.windows(2).enumerate() {
        if let [lower, upper] = pair
            && lower.after >= upper.after
        {
            let place = at.key("escalate").item(number + 1);
            let before = at.key("escalate").item(number).key("after");
            let what = format!(
                "a step after {} follows a step after {}",
                upper.after, lower.after
            );
            if faults.is_clear(&before) {
                faults.report(&place, &["after"], what, "order them by ascending `after`");
            }
        }
    }
}

/// Whether it can be done for this cell.
fn action(
    mission: &Mission,
    cell: &Cell,
    rule: &Rule,
    action: Action,
    at: &Place,
    faults: &mut Faults<'_>,
) {
    match action {
        Action::Restart | Action::RestartBackoff if rule.when == Observed::RestartLimit => {
            let what = "the cell has used up its restarts, so it cannot be restarted for that";
            faults.report(
                at,
                &["do"],
                what,
                "raise `limit` of [cell.restart], or choose another action",
            );
        }
        Action::Shed if !cell.is_high() => {
            let what = format!(
                "cell `{}` of criticality `lo` cannot have others shed",
                cell.name
            );
            let fix = "set its criticality to `hi`, or choose another action";
            faults.report(at, &["do"], what, fix);
        }
        Action::Shed if mission.cells.iter().all(Cell::is_high) => {
            let what = "there is no cell of criticality `lo` to shed";
            faults.report(
                at,
                &["do"],
                what,
                "give one that criticality, or choose another action",
            );
        }
        Action::SwitchMode
            if mission.modes.is_none() && !faults.says(&Place::top().key("modes")) =>
        {
            let what = "the mission has only one mode";
            faults.report(at, &["do"], what, "add [modes], or choose another action");
        }
        Action::SwitchMode if !cell.is_high() => {
            let what = format!(
                "cell `{}` of criticality `lo` cannot switch to the mode in which it is shed",
                cell.name
            );
            let fix = "set its criticality to `hi`, or choose another action";
            faults.report(at, &["do"], what, fix);
        }
        _ => {}
    }
}
