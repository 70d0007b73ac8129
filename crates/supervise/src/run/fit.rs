//! What the mechanisms keep for a mission beyond the lives of its cells, changed while it runs. It takes locks that another supervisor may
//! have for seconds, and the kernel may not take a smaller reservation for as long: done beside the loop.

use super::RunError;
use super::cell::place;
use super::keeper::Keeper;
use crate::admit::Grant;
use crate::enforce::EnforceError;

/// What it is changed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Room for what an update starts.
    Grows,
    /// What an update has replaced is given back.
    Finishes,
    /// What an update needed that was taken back is given back.
    TakenBack,
}

/// Whether it is being changed, one change at a time, or what came of the last.
#[derive(Debug, Default)]
pub(super) enum Fitting {
    #[default]
    Idle,
    UnderWay,
    /// Why it was, and whether nothing is left of what is not needed; a sentence why not.
    Came(Why, Result<bool, String>),
}

impl Fitting {
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self, Fitting::UnderWay)
    }

    pub(super) fn came(&mut self, why: Why, result: Result<bool, String>) {
        *self = Fitting::Came(why, result);
    }

    /// What came of a change for this, once; what came of another one says nothing of it.
    fn take(&mut self, wanted: Why) -> Option<Result<bool, String>> {
        match std::mem::take(self) {
            Fitting::Came(why, result) if why == wanted => Some(result),
            Fitting::UnderWay => {
                *self = Fitting::UnderWay;
                None
            }
            Fitting::Came(..) | Fitting::Idle => None,
        }
    }
}

impl Keeper<'_> {
    /// Has the mechanisms keep what the mission's cells are to have, so that nobody else takes their room, after that is removed
    /// which no cell has any more, also of those put aside. Returns whether nothing of that is left: what has processes in it
    /// stays; `None`: it is not known yet, and the loop is woken once it is.
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
        // What runs on from an earlier supervisor counts on it, whoever made it.
        if !self.live.is_empty() || !self.work.is_idle() {
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
        let running = (self.live.keys())
            .map(|at| &self.mission().cells[*at].name)
            .map(|name| place(name, self.is_beside(name)));
        let starting = (self.work.starting.iter()).map(|(name, at)| place(name, at.beside));
        let removing = (self.work.removing.iter()).map(|((name, _), at)| place(name, at.beside));
        let leaving = self.desk.leaving.iter();
        let kept: Vec<String> = (grants.iter().map(|grant| grant.cell.clone()))
            .chain(running)
            .chain(starting)
            .chain(removing)
            .chain(leaving.map(|(name, leaving)| place(name, leaving.beside)))
            .collect();
        let partitions = self.admission.partitions.clone();
        let mechanisms = self.mechanisms.clone();
        move || mechanisms.fit(&grants, &kept, &partitions)
    }

    /// Gives back the room of an update that was taken back, once the kernel lets it. One that goes on sees to it itself.
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::super::ballast::Ballast;
    use super::super::output::Output;
    use super::super::work::{Done, Waker, Work};
    use super::*;
    use crate::reserve::Reserve;

    #[test]
    fn a_lock_that_somebody_has_keeps_no_loop_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let waker = Waker::new().unwrap();
        let output = Output::start(waker.clone()).unwrap();
        let ballast = Ballast::take(dir.path());
        let mut work = Work::new(waker, output, ballast, Reserve::default());
        let (give_back, locked) = channel::<()>();
        let change = move || {
            let _ = locked.recv();
            Ok(false)
        };
        assert_eq!(work.fit(Why::Grows, change), None);
        work.fitting = Fitting::UnderWay;
        // An update does not begin, nor does a mission end, while it may yet be done.
        assert!(!work.is_idle() && work.fitting.take(Why::Grows).is_none());
        drop(give_back);
        let (why, result) = loop {
            match work.fetch().pop() {
                Some(Done::Fitted { why, result }) => break (why, result),
                Some(_) => panic!("that was no such step"),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        work.fitting.came(why, result);
        assert!(work.is_idle());
        assert_eq!(work.fitting.take(Why::Grows), Some(Ok(false)));
        assert_eq!(work.fitting.take(Why::Grows), None, "it is told once");
        let refused = || Err(EnforceError::Partition("it is refused".to_owned()));
        let said = (0..20).find_map(|_| work.fit(Why::Grows, refused));
        assert!(said.unwrap().unwrap_err().contains("it is refused"));
    }

    #[test]
    fn what_came_of_a_change_for_something_else_says_nothing() {
        let mut fitting = Fitting::default();
        fitting.came(Why::Grows, Ok(true));
        assert_eq!(fitting.take(Why::Finishes), None);
        assert_eq!(fitting.take(Why::Grows), None);
    }
}
