use super::cell::{Live, page_dir};
use super::{Event, Keeper, RunError};
use crate::end::End;
use crate::page::Place;
use crate::state::Entry;

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

    /// Removes what is left of a cell that has ended, and writes down how.
    pub(super) fn put_away(
        &mut self,
        cell: String,
        mut live: Live,
        end: End,
    ) -> Result<(), RunError> {
        let (generation, asked) = (live.generation, live.told_until_ns.is_some());
        let _ = live.drain();
        for what in live.remove() {
            (self.tell)(&Event::Left {
                cell: cell.clone(),
                what,
            });
        }
        self.note(Entry::CellEnded {
            cell: cell.clone(),
            generation,
            end,
        })?;
        (self.tell)(&Event::Ended { cell, end, asked });
        Ok(())
    }
}
