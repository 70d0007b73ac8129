//! Cells held to time partitions of EVL, which threads out of band enter by themselves: a variable of their environment names them.

use host::enforcers;
use host::evl_quota::{self, Kept, PARTITIONS};
use host::evl_tp::{self, Group, Partitioned, Window};
use host::root::Root;
use host::sched::Class;
use model::mission::Cell;
use text::units::exact;

use super::evl_quota::not_granted;
use super::{CpusetOnly, Enforce, EnforceError, Mechanism};
use crate::admit::{CpuFrames, Grant, frames};
use crate::names;

/// Schedules that are kept for a mission's cells, as long as it runs. They outlive the supervisor.
#[derive(Debug)]
pub(super) struct ByFrames {
    partitioned: Partitioned,
}

impl ByFrames {
    pub(super) fn of(mission: &str) -> ByFrames {
        ByFrames {
            partitioned: Partitioned::by(&names::quotas_of(mission)),
        }
    }
}

fn windows(frames: &CpuFrames) -> Vec<Window> {
    let each = frames.windows.iter();
    each.map(|window| Window {
        length_ns: window.length_ns,
        partition: window.partition,
    })
    .collect()
}

/// The partitions of a cell in these.
fn kept(grant: &Grant, all: &[CpuFrames]) -> Kept {
    let own = |frames: &CpuFrames| {
        let mut windows = frames.windows.iter();
        let found = windows.find(|window| window.cell.as_ref() == Some(&grant.cell))?;
        Some(Group {
            cpu: frames.cpu,
            number: found.partition?,
        })
    };
    Kept {
        place: grant.cell.clone(),
        percent: 0,
        groups: all.iter().filter_map(own).collect(),
    }
}

impl Mechanism for ByFrames {
    fn make(&self, grant: &Grant, _: &Cell) -> Result<Box<dyn Enforce>, EnforceError> {
        let Some((budget, period)) = grant.budget_ns.zip(grant.period_ns) else {
            return Ok(Box::new(CpusetOnly::new(grant)));
        };
        let kept = self.partitioned.of(&grant.cell)?;
        let kept = kept.ok_or_else(|| not_granted(grant, "time partition"))?;
        let there = (kept.groups.iter())
            .map(|group| evl_tp::windows(group.cpu).map(|windows| (group.cpu, windows)))
            .collect::<Result<_, _>>()?;
        Ok(Box::new(Windows {
            supplied: format!("{} in every {}", exact(budget), exact(period)),
            kept,
            there,
            in_band: CpusetOnly::new(grant),
        }))
    }

    fn keep(&self, grants: &[Grant]) -> Result<(), EnforceError> {
        let held = || grants.iter().filter(|grant| grant.budget_ns.is_some());
        if held().next().is_none() {
            return Ok(());
        }
        let most = enforcers::evl_tp(&Root::live())?;
        let all = frames(held(), most).map_err(|(cpu, why)| EnforceError::Frames(cpu, why))?;
        let cells: Vec<Kept> = held().map(|grant| kept(grant, &all)).collect();
        let all: Vec<_> = (all.iter())
            .map(|frames| (frames.cpu, windows(frames)))
            .collect();
        Ok(self.partitioned.run(&all, &cells)?)
    }

    fn keep_only(&self, places: &[String]) -> Result<(), EnforceError> {
        Ok((self.partitioned).retain(|kept| places.contains(&kept.place))?)
    }

    fn forget(&self, place: &str) {
        let _ = self.partitioned.retain(|kept| kept.place != place);
    }
}

/// The time partitions of a cell, one on each of its cpus.
struct Windows {
    kept: Kept,
    /// Budget and period, a clause.
    supplied: String,
    /// The windows of its cpus when it was put there.
    there: Vec<(u32, Vec<Window>)>,
    /// Cpus and class of its threads in band.
    in_band: CpusetOnly,
}

impl Enforce for Windows {
    fn guarantee(&self) -> String {
        let each: Vec<String> = (self.kept.groups.iter())
            .map(|group| format!("{} of cpu {}", group.number, group.cpu))
            .collect();
        format!(
            "{} on its cpus, in windows of their own, for its threads out of band that enter EVL's time partition {}; nothing holds its \
             others",
            self.supplied,
            each.join(" or ")
        )
    }

    fn hold(&self, pid: i32) -> Result<(), EnforceError> {
        self.in_band.hold(pid)
    }

    fn variable(&self) -> Option<(String, String)> {
        Some((PARTITIONS.to_owned(), evl_quota::listed(&self.kept.groups)))
    }

    fn unheld(&self, threads: &[(i32, Class)]) -> Vec<String> {
        let tids: Vec<i32> = threads.iter().map(|(tid, _)| *tid).collect();
        let own = ("tp", &*self.kept.groups);
        let mut unheld = evl_quota::outside(&Root::live(), &tids, own, "time partitions");
        let changed = |(cpu, windows): &&(u32, Vec<Window>)| {
            !evl_tp::windows(*cpu).is_ok_and(|now| now == *windows)
        };
        if self.there.iter().any(|one| changed(&one)) {
            unheld.push(
                "others have removed or changed the windows of its time partitions".to_owned(),
            );
        }
        unheld.extend(self.in_band.unheld(threads));
        unheld
    }

    /// The partitions stay for the cell's next life.
    fn release(&mut self) -> Result<(), EnforceError> {
        Ok(())
    }
}
