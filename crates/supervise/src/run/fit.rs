//! Reservations of the mechanisms for a mission beyond the lives of its cells, changed while it runs. The change takes
//! locks that another supervisor may hold for seconds, and the kernel may refuse a smaller reservation for as long: so
//! it runs outside the loop.

use super::RunError;
use super::keeper::Keeper;
use super::work::{Fitting, Why};
use crate::admit::Grant;
use crate::dirs::place;
use crate::enforce::EnforceError;

impl Keeper<'_> {
    /// Has the mechanisms keep the reservations for the mission's cells, so that nobody else takes their room, after those that
    /// no cell has any more are removed, also of cells put aside. Returns whether none of the latter is left: one with processes
    /// in it stays; `None`: it is not known yet, and the loop is woken once it is.
    ///
    /// # Errors
    /// When the kernel refuses a new one, a sentence.
    pub(super) fn fit_kept(&mut self, why: Why) -> Option<Result<bool, String>> {
        if let Some(came) = self.work.fitting.take(why) {
            return Some(came);
        }
        if self.work.fitting.is_under_way() {
            return None;
        }
        let change = self.change_of_kept();
        let came = self.work.fit(why, change);
        if came.is_none() {
            self.work.fitting = Fitting::UnderWay;
        }
        came
    }

    /// The same for a mission whose loop has not begun.
    ///
    /// # Errors
    /// When the kernel refuses a new one.
    pub(super) fn fit_kept_now(&mut self) -> Result<bool, RunError> {
        let change = self.change_of_kept();
        // Cells that still run from an earlier supervisor rely on it, regardless of its creator.
        if self.cells.iter().any(|cell| cell.phase.is_there()) || !self.work.is_idle() {
            return Ok(change()?);
        }
        Ok(self.mechanisms.or_controllers_as_before(change)?)
    }

    /// The places of all that runs, begins or ends at this instant stay, as do those in which the mission's cells are made next.
    fn change_of_kept(&self) -> impl FnOnce() -> Result<bool, EnforceError> + Send + use<> {
        let grants: Vec<Grant> = (self.mission().cells.iter())
            .filter_map(|cell| self.admission.grant(&cell.name))
            .map(|grant| grant.at(place(&grant.cell, self.place_for(&grant.cell))))
            .collect();
        let there = (0..self.cells.len()).filter(|at| self.cells[*at].phase.is_there());
        let cleared = self.work.clearing.iter();
        let kept: Vec<String> = (grants.iter().map(|grant| grant.cell.clone()))
            .chain(there.map(|at| place(&self.name(at), self.cells[at].beside)))
            .chain(cleared.map(|((name, _), beside)| place(name, *beside)))
            .collect();
        let partitions = self.admission.partitions.clone();
        let mechanisms = self.mechanisms.clone();
        move || mechanisms.fit(&grants, &kept, &partitions)
    }

    /// Returns the room of an update that was rolled back, once the kernel allows it. A running update does so itself.
    pub(super) fn shrink_kept(&mut self) {
        if let Some(until_ns) = self.desk.shrinks_until_ns
            && self.desk.updating.is_none()
        {
            let fitted = self.fit_kept(Why::TakenBack);
            let is_over = until_ns <= timecell_client::now_ns();
            if matches!(fitted, Some(Ok(true))) || (is_over && fitted.is_some()) {
                self.desk.shrinks_until_ns = None;
            }
        }
    }
}
