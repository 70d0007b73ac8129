//! Cells held to time partitions of EVL: out of band, before all threads of Linux, in windows of a frame that is computed here.

use std::collections::BTreeMap;

use analysis::Ns;
use analysis::linux::{Frames, FramesError, Held};
use model::Enforcer;
use serde::Serialize;

use super::cpu::{Bound, Candidate, Unfit, within};
use super::supplied::Supplied;
use super::{Basis, Facts, Grant};

/// The frame of a cpu with time partitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CpuFrames {
    /// The cpu.
    pub cpu: u32,
    /// The minor frame, ns: every period of its cells is a multiple of it.
    pub minor_ns: Ns,
    /// The major frame, ns: its windows are repeated after it.
    pub major_ns: Ns,
    /// Its windows, without a gap.
    pub windows: Vec<FrameWindow>,
}

/// A window of such a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FrameWindow {
    /// When it begins, ns from the frame's begin.
    pub start_ns: Ns,
    /// Length, ns.
    pub length_ns: Ns,
    /// The number of its partition; `None`: it is nobody's.
    pub partition: Option<i32>,
    /// The cell that has this partition.
    pub cell: Option<String>,
}

/// A cell's name, and its budget and period.
type Reserved<'a> = (&'a str, (Ns, Ns));

/// The frames of all cpus on which these, in the order of the mission's file, have time partitions. A cell has the number of its place
/// among those of its cpu.
///
/// # Errors
/// A cpu whose cells fit into no frame of `most` windows, and why.
pub fn frames<'a>(
    grants: impl Iterator<Item = &'a Grant>,
    most: usize,
) -> Result<Vec<CpuFrames>, (u32, FramesError)> {
    let mut on: BTreeMap<u32, Vec<Reserved<'_>>> = BTreeMap::new();
    for grant in grants.filter(|grant| grant.enforcer == Enforcer::EvlTp) {
        for cpu in &grant.cpus {
            let held = grant.budget_ns.zip(grant.period_ns);
            let own = held.map(|held| (grant.cell.as_str(), held));
            on.entry(*cpu).or_default().extend(own);
        }
    }
    (on.into_iter().filter(|(_, cells)| !cells.is_empty()))
        .map(|(cpu, cells)| {
            let held: Vec<(Ns, Ns)> = cells.iter().map(|(_, held)| *held).collect();
            let frames = Frames::of(&held, most).map_err(|why| (cpu, why))?;
            let windows = (frames.slots.iter()).map(|slot| FrameWindow {
                start_ns: slot.start,
                length_ns: slot.length,
                partition: slot.of.map(|of| of as i32),
                cell: slot.of.map(|of| cells[of].0.to_owned()),
            });
            Ok(CpuFrames {
                cpu,
                minor_ns: frames.minor,
                major_ns: frames.major,
                windows: windows.collect(),
            })
        })
        .collect()
}

/// Whether the cells of one cpu fit into one frame, and their deadlines hold with its windows.
pub(super) fn check(
    cells: &[Candidate<'_>],
    facts: &Facts,
    bounds: &mut [Option<Bound>],
    above: &mut Vec<Held>,
) -> Result<(), Unfit> {
    let mut own: Vec<(usize, (Ns, Ns))> = (cells.iter().enumerate())
        .filter(|(_, cell)| cell.asked.enforcer == Enforcer::EvlTp)
        .filter_map(|(at, cell)| cell.budget.map(|budget| (at, budget)))
        .collect();
    let is_others = |at: usize| cells[at].asked.holder.is_some();
    let Some(last) = own.iter().map(|(at, _)| *at).rfind(|at| !is_others(*at)) else {
        // They are where they were admitted.
        for (at, (budget, period)) in own {
            bounds[at] = Some(Bound {
                basis: Basis::Windows { major_ns: period },
                rate: (budget, period),
                delay_ns: None,
                postponed_ns: 0,
                responses: Vec::new(),
            });
            above.push(Held::exactly(budget, period));
        }
        return Ok(());
    };
    let unfit = |of, why: String| Unfit {
        of,
        why,
        witness: None,
    };
    if let Some((other, _)) = own.iter().find(|(at, _)| is_others(*at)) {
        let called = cells[*other].asked.called();
        let why = format!(
            "{called} has the time partitions of its cpu, which one mission has alone: give it another cpu"
        );
        return Err(unfit(last, why));
    }
    // As in `frames`.
    own.sort_by_key(|(at, _)| cells[*at].asked.at);
    let held: Vec<(Ns, Ns)> = own.iter().map(|(_, held)| *held).collect();
    let most = facts.evl_tp.clone().map_err(|why| unfit(last, why))?;
    let frames = Frames::of(&held, most).map_err(|why| {
        unfit(
            last,
            format!("the cells with time partitions of its cpu have no frame: {why}"),
        )
    })?;
    for (place, &(at, (budget, period))) in own.iter().enumerate() {
        let supply = frames.supply(place);
        let supply = supply.ok_or_else(|| unfit(at, "it has no window".to_owned()))?;
        let basis = Basis::Windows {
            major_ns: frames.major,
        };
        let supplied = (Supplied::Windows(supply), basis);
        bounds[at] = Some(within(at, &cells[at], supplied, 0)?);
        above.push(Held::exactly(budget, period));
    }
    Ok(())
}
