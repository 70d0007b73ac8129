//! Ends and beginnings of cells' lives as other threads have brought them about.

use super::cell::{Live, page_dir};
use super::making::Made;
use super::work::{Done, Removing};
use super::{Event, Keeper, RunError};
use crate::cause::Cause;
use crate::end::End;
use crate::page::Place;
use crate::state::Entry;

/// Characters of a failed start's reason that the journal keeps.
const WHY: usize = 500;

impl Keeper<'_> {
    /// Removes the page of a cell that has ended.
    pub(super) fn remove_page(&mut self, cell: &str, beside: bool) {
        let page = Place::at(&page_dir(&self.dir, cell, beside)).remove();
        if let Err(error) = page {
            (self.tell)(&Event::Left {
                cell: cell.to_owned(),
                what: error.to_string(),
            });
        }
    }

    /// Has removed what is left of a cell that has ended, or is killed by that; its end is on record once that is done.
    pub(super) fn put_away(
        &mut self,
        cell: String,
        mut live: Live,
        (end, cause): (End, Option<Cause>),
        beside: bool,
        asked: bool,
        put_aside: bool,
    ) {
        live.unfreeze();
        let removing = Removing {
            end,
            cause,
            asked,
            beside,
            put_aside,
            cleared: false,
        };
        self.work.remove(cell, live, removing);
    }

    /// Goes on with what other threads have done.
    pub(super) fn fetch_work(&mut self) -> Result<(), RunError> {
        for done in self.work.fetch() {
            match done {
                Done::Started { cell, result } => self.made(&cell, result)?,
                Done::Removed {
                    cell,
                    generation,
                    end,
                    tail,
                    left,
                } => {
                    for what in left {
                        let cell = cell.clone();
                        (self.tell)(&Event::Left { cell, what });
                    }
                    let key = (cell.clone(), generation);
                    let Some(removed) = self.work.removing.remove(&key) else {
                        continue;
                    };
                    let at = self.mission().position(&cell);
                    if let (Some(at), Some(tail), false) = (at, tail, removed.put_aside) {
                        self.last_output.insert(at, tail);
                    }
                    let end = end.unwrap_or(removed.end);
                    self.removed(cell, generation, end, removed)?;
                }
                Done::Frozen {
                    cell,
                    generation,
                    result,
                } => self.stands_still(&cell, generation, result),
                Done::Stepped {
                    cell,
                    generation,
                    result,
                } => self.stepped(&cell, generation, result),
                Done::Fitted { why, result } => self.work.fitting.came(why, result),
            }
        }
        Ok(())
    }

    /// A cell was made, or could not be.
    fn made(&mut self, cell: &str, result: Result<Box<Made>, String>) -> Result<(), RunError> {
        let Some(starting) = self.work.starting.remove(cell) else {
            return Ok(());
        };
        self.work.in_turn.take_if(|name| name == cell);
        let Some(at) = self.mission().position(cell) else {
            return Ok(());
        };
        match result {
            Ok(made) => {
                self.started(at, *made, starting.began_ns)?;
                if let Some(signal) = starting.ends_by {
                    self.tell_to_end_by(signal, at);
                }
                Ok(())
            }
            Err(why) if starting.ends_by.is_some() => {
                self.has_not_started(at, starting.generation, why)
            }
            Err(why) => self.not_made(at, starting.generation, why),
        }
    }

    /// A cell that was to run could not be made: says so, and does what its policy says.
    pub(super) fn not_made(
        &mut self,
        at: usize,
        generation: u64,
        why: String,
    ) -> Result<(), RunError> {
        self.has_not_started(at, generation, why)?;
        self.never_started(at)
    }

    fn has_not_started(&mut self, at: usize, generation: u64, why: String) -> Result<(), RunError> {
        let cell = self.mission().cells[at].name.clone();
        self.note(Entry::CellEnded {
            cell: cell.clone(),
            generation,
            end: End::Unknown,
            // An engine may say a lot, and the journal is not its log: what comes after the first line tells where it failed.
            cause: why.lines().next().map(|why| Cause::NotStarted {
                why: why.chars().take(WHY).collect(),
            }),
        })?;
        self.desk.failures.insert(cell.clone(), why.clone());
        (self.tell)(&Event::NotStarted { cell, why });
        Ok(())
    }

    /// Nothing is left of a life: writes down how it ended, and does what rules and policy say.
    fn removed(
        &mut self,
        cell: String,
        generation: u64,
        end: End,
        removed: Removing,
    ) -> Result<(), RunError> {
        let asked = removed.asked;
        let cause = removed.cause.filter(|cause| cause.fits(end));
        self.note(Entry::CellEnded {
            cell: cell.clone(),
            generation,
            end,
            cause: cause.clone(),
        })?;
        if removed.cleared {
            return Ok(());
        }
        let at = self.mission().position(&cell);
        (self.tell)(&Event::Ended {
            cell: cell.clone(),
            end,
            cause,
            asked,
        });
        if removed.put_aside {
            self.remove_page(&cell, removed.beside);
            return Ok(());
        }
        if let Some(at) = at {
            match asked {
                true => self.watches[at].gone(),
                false => self.ended_untold(at, end)?,
            }
            self.last_output.remove(&at);
        }
        Ok(())
    }
}
