//! Everything that a cell is created from, and its creation: on a separate thread, because others may keep the record of
//! user ids locked, the memory of the previous page may take a while to go, and engines take their time.

use std::path::PathBuf;

use engine::app::{self, AppSpec};
use model::EngineKind;
use model::mission::{self, Uids};
use timecell_client::layout::VARIABLE;

use super::cell::{Given, Live};
use super::options::OutputTo;
use super::spec;
use super::watch::Paging;
use crate::enforce::Mechanisms;
use crate::uids;

/// All that a cell is made of.
pub(super) struct Making {
    pub(super) mission: String,
    /// Those that the mission may give its cells.
    pub(super) uids: Uids,
    pub(super) spec: AppSpec,
    /// The file of the system configuration of its partitions.
    pub(super) system: Option<PathBuf>,
    pub(super) mechanisms: Mechanisms,
    pub(super) given: Given,
    pub(super) cell: mission::Cell,
    pub(super) generation: u64,
    pub(super) paging: Paging,
    /// Where its page is to lie.
    pub(super) page: PathBuf,
    /// Where its output goes.
    pub(super) output: OutputTo,
}

impl Making {
    /// Makes it; else why not, a sentence.
    pub(super) fn make(mut self) -> Result<Live, String> {
        if spec::has_no_user(&self.cell) {
            let record = uids::Record::of_this_machine();
            let uid = record.set_aside(&self.mission, &self.cell.name, self.uids)?;
            spec::give_user(&mut self.spec, &self.cell, uid);
        }
        let owner = spec::user(&self.spec);
        let page = self.paging.make(&self.page, self.generation, owner);
        let page = page.map(|(page, bind)| {
            match self.spec.engine {
                // It sees the files of the host, and is told where its page is.
                EngineKind::Bare | EngineKind::Jailhouse => {
                    let (name, path) = (VARIABLE.to_string_lossy(), page.path());
                    let env = &mut self.spec.env;
                    env.insert(name.into_owned(), path.display().to_string());
                }
                _ => self.spec.binds.push(bind),
            }
            page
        });
        if let (Some(partition), Some(system)) = (&self.cell.partition, &self.system) {
            let of = (self.mission.as_str(), self.cell.name.as_str());
            let made = app::partition(self.spec, of, partition, system);
            self.spec = made.map_err(|error| error.to_string())?;
        }
        let held_by = &self.mechanisms;
        let mut live = Live::start(&self.spec, held_by, &self.given, &self.cell, self.output)?;
        live.page = Some(page);
        Ok(live)
    }
}
