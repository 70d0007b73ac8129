//! Creates the page of a cell's next life before the cell exists, where that may take a moment.

use std::path::Path;

use engine::app::{Bind, Ids};

use crate::health::TaskTimes;
use crate::page::{Declared, Page, Place};

/// Where a cell finds its page.
const IN_THE_CELL: &str = "/cell/page";

/// The definition of a cell's page.
#[derive(Debug)]
pub(in crate::run) struct Paging {
    tasks: Vec<Declared>,
}

impl Paging {
    pub(super) fn of(tasks: &[TaskTimes]) -> Paging {
        let declared = |task: &TaskTimes| Declared {
            name: task.name.clone(),
            deadline_ns: task.deadline_ns,
        };
        Paging {
            tasks: tasks.iter().map(declared).collect(),
        }
    }

    /// Creates it in this directory: the page, and its mount into the cell; otherwise why there is none.
    pub(in crate::run) fn make(
        &self,
        dir: &Path,
        generation: u64,
        owner: Result<Ids, engine::Error>,
    ) -> Result<(Page, Bind), String> {
        let owner = owner.map_err(|why| {
            format!("its user is not known before it runs ({why}); set it in `rights`")
        })?;
        let slots = Page::slots(self.tasks.len()).map_err(|error| error.to_string())?;
        let owner = Some((owner.uid, owner.gid));
        let made = |place: &Path| Page::create(place, &self.tasks, generation, owner);
        let place = Place::at(dir).page();
        // A page of the life before is replaced in its place, which is as large as the page.
        let page = match place.exists().then(|| made(&place)) {
            Some(Ok(page)) => page,
            _ => {
                let again = Place::at(dir)
                    .remove()
                    .and_then(|()| Place::mount(dir, slots));
                let fresh = again.and_then(|fresh| made(&fresh.page()));
                fresh.map_err(|error| error.to_string())?
            }
        };
        let bind = Bind::new(page.path(), IN_THE_CELL, true);
        Ok((page, bind))
    }
}
