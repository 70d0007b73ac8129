//! The mechanisms that hold the cells of a mission, each behind one trait.

use std::fmt::Debug;
use std::sync::Arc;

use model::Enforcer;
use model::mission::Cell;

use super::cpuset_only::ByCpus;
use super::deadline::ByThread;
use super::evl_quota::ByQuota;
use super::evl_tp::ByFrames;
use super::freezer::ByFreezer;
use super::hcbs::ByServer;
use super::partition::ByPartition;
use super::rt_cgroup::ByGroup;
use super::{Enforce, EnforceError};
use crate::admit::Grant;
use crate::names;

/// A mechanism as a mission uses it: the enforcers that it creates for cells, and the reservations that it keeps for
/// the mission beyond the lives of cells.
pub trait Mechanism: Debug + Send + Sync {
    /// The enforcer of a cell that is to be started.
    ///
    /// # Errors
    /// When the machine or the kernel refuses it, or nothing was granted that it could hold.
    fn make(&self, grant: &Grant, cell: &Cell) -> Result<Box<dyn Enforce>, EnforceError>;

    /// The enforcer of a cell that runs on from a supervisor that is gone; one that is shed to best effort (`is_let_go`) is held by nobody until
    /// [`Enforce::unshed`].
    ///
    /// # Errors
    /// As [`Mechanism::make`].
    fn adopt(
        &self,
        grant: &Grant,
        cell: &Cell,
        _is_let_go: bool,
    ) -> Result<Box<dyn Enforce>, EnforceError> {
        self.make(grant, cell)
    }

    /// Makes the missing reservations for these grants, so that nobody else takes their room.
    ///
    /// # Errors
    /// When the kernel refuses one; those before it stay.
    fn keep(&self, _grants: &[Grant]) -> Result<(), EnforceError> {
        Ok(())
    }

    /// Removes the reservations, but for these places.
    ///
    /// # Errors
    /// Of the first that stays, because processes are left in it.
    fn keep_only(&self, _places: &[String]) -> Result<(), EnforceError> {
        Ok(())
    }

    /// Removes the reservation of a place whose cell is gone; one that cannot be removed goes with the mission's others.
    fn forget(&self, _place: &str) {}
}

/// Those of a mission.
#[derive(Debug, Clone)]
pub struct Mechanisms {
    mission: Arc<str>,
    each: Arc<[(Enforcer, Box<dyn Mechanism>)]>,
    partitions: Arc<ByPartition>,
}

impl Mechanisms {
    /// For the mission of this name. A mechanism that the machine does not have refuses when it is asked for.
    pub fn of(mission: &str) -> Mechanisms {
        let partitions = Arc::new(ByPartition::of(mission));
        let of = |enforcer: Enforcer| -> Box<dyn Mechanism> {
            match enforcer {
                Enforcer::RtCgroup => Box::new(ByGroup::of(mission)),
                Enforcer::Hcbs => Box::new(ByServer::of(mission)),
                Enforcer::Deadline => Box::new(ByThread::with(Arc::clone(&partitions))),
                Enforcer::Freezer => Box::new(ByFreezer::of(mission)),
                Enforcer::EvlQuota => Box::new(ByQuota::of(mission)),
                Enforcer::EvlTp => Box::new(ByFrames::of(mission)),
                Enforcer::CpusetOnly => Box::new(ByCpus),
            }
        };
        let all = Enforcer::OF_MISSIONS.iter().copied();
        Mechanisms {
            mission: Arc::from(mission),
            each: all.map(|enforcer| (enforcer, of(enforcer))).collect(),
            partitions,
        }
    }

    /// The group in which a cell is that is granted this partition; `None`: it is in none.
    pub fn within(&self, partition: Option<&[u32]>) -> Option<String> {
        partition.map(|cpus| names::partition(&self.mission, cpus))
    }

    /// Prepares the partition of a cell that is to be created there.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn ready(&self, partition: Option<&[u32]>) -> Result<(), EnforceError> {
        // Where they cannot be kept, as in a container, cells get the possible ones: missing cpus or limits are
        // reported for each.
        let _ = self.partitions.keep_controllers();
        match partition {
            Some(cpus) => self.partitions.make(&[cpus.to_vec()]),
            None => Ok(()),
        }
    }

    /// The enforcer of a cell with this grant.
    ///
    /// # Errors
    /// When cells cannot be held by it at all.
    pub fn of_grant(&self, grant: &Grant) -> Result<&dyn Mechanism, EnforceError> {
        let found = self
            .each
            .iter()
            .find(|(enforcer, _)| *enforcer == grant.enforcer);
        found
            .map(|(_, mechanism)| mechanism.as_ref())
            .ok_or_else(|| EnforceError::NotGranted {
                cell: grant.cell.clone(),
                what: "mechanism that holds cells",
            })
    }

    /// Creates the reservations for these grants, and these cpu partitions, after removing those of none of the places,
    /// and all other partitions. Returns whether none of these is left: one with processes in it stays.
    ///
    /// # Errors
    /// When the kernel refuses something new.
    pub fn fit(
        &self,
        grants: &[Grant],
        places: &[String],
        partitions: &[Vec<u32>],
    ) -> Result<bool, EnforceError> {
        let kept = self.each_keeps_only(places);
        let removed = self.partitions.keep_only(partitions).and(kept).is_ok();
        // For adopted cells, too.
        let _ = self.partitions.keep_controllers();
        self.partitions.make(partitions)?;
        for (enforcer, mechanism) in self.each.iter() {
            let own = grants.iter().filter(|grant| grant.enforcer == *enforcer);
            mechanism.keep(&own.cloned().collect::<Vec<Grant>>())?;
        }
        Ok(removed)
    }

    /// Does this, and if it fails keeps no controllers that were not kept before: for a mission of which nothing runs.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn or_controllers_as_before<T>(
        &self,
        change: impl FnOnce() -> Result<T, EnforceError>,
    ) -> Result<T, EnforceError> {
        self.partitions.or_controllers_as_before(change)
    }

    /// Removes all that is kept, but for these places.
    ///
    /// # Errors
    /// Of the first that stays, because processes are left in it.
    pub fn keep_only(&self, places: &[String]) -> Result<(), EnforceError> {
        let kept = self.each_keeps_only(places);
        let removed = self.partitions.keep_only(&[]);
        match places {
            [] => kept.and(removed).and(self.partitions.leave_controllers()),
            // Those that stay have processes in their partitions.
            _ => kept,
        }
    }

    fn each_keeps_only(&self, places: &[String]) -> Result<(), EnforceError> {
        let each = self
            .each
            .iter()
            .map(|(_, mechanism)| mechanism.keep_only(places));
        each.fold(Ok(()), Result::and)
    }

    /// Removes the reservation of a place whose cell is gone.
    pub fn forget(&self, place: &str) {
        for (_, mechanism) in self.each.iter() {
            mechanism.forget(place);
        }
    }
}
