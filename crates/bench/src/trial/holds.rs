//! What holds the cells of a trial to their budgets, from before each cell is made until all are gone.

use record::trial::TrialRecord;

use super::members::{Ended, Members};
use crate::context::Trial;
use crate::held::{self, Names, group_name};

/// Makes what holds the cell of entry `index`, which will be called `id`; where its class does, or nothing, there is nothing to make.
pub(super) fn make(
    trial: &Trial<'_>,
    index: usize,
    id: &str,
    live: &mut Members,
) -> Result<(), String> {
    let task = trial.planned.tasks.get(index);
    let Some((task, by)) = task.and_then(|task| Some((task, task.held?))) else {
        return Ok(());
    };
    let Some(holder) = held::by(by.held.enforcer) else {
        return Err(format!(
            "nothing here holds cells by {}",
            by.held.enforcer.name()
        ));
    };
    let names = Names {
        id,
        rt_group: &format!("{}/{}", group_name(), task.cell),
    };
    let made = holder.hold(&by.held, task.cpu(), &names)?;
    live.holds.extend(made.map(|held| (index, held)));
    Ok(())
}

/// Puts a cell's process where it is held, before it is in a real-time class.
pub(super) fn join(live: &Members, index: usize, pid: i32) -> Result<(), String> {
    let own = live.holds.iter().find(|(of, _)| *of == index);
    own.map_or(Ok(()), |(_, held)| held.join(pid))
}

/// Every cell is ready: their budgets are held from now on at the latest.
pub(super) fn begin(live: &Members) -> Result<(), Ended> {
    let mut all = live.holds.iter();
    all.try_for_each(|(_, held)| held.begin())
        .map_err(Ended::Failed)
}

/// Writes down how exact whoever holds them has been.
pub(super) fn note(
    live: &Members,
    trial: &Trial<'_>,
    record: &mut TrialRecord,
) -> Result<(), Ended> {
    let Some(record) = &mut record.holds else {
        return Ok(());
    };
    for (index, held) in &live.holds {
        let number = trial.planned.tasks[*index].cell;
        let reacted = held.reacted().map_err(Ended::Failed)?;
        let mut cells = record.cells.iter_mut();
        if let Some(cell) = cells.find(|cell| cell.cell_number as usize == number) {
            cell.reacted = reacted;
        }
    }
    Ok(())
}

/// Removes it all, once the cells are gone; what could not be.
pub(super) fn end(live: &mut Members) -> Vec<String> {
    live.holds
        .drain(..)
        .filter_map(|(_, held)| held.end().err())
        .collect()
}
