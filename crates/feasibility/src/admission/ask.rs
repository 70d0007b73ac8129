//! The questions that can be put to Linux's admission arithmetic, and their answers.

use std::str::FromStr;

use analysis::linux::{Bandwidth, Reaction};
use analysis::{Task, edf};
use model::Duration;
use model::Enforcer;
use model::taskset::{ServerKind, TaskCell, TaskSet};
use record::supply::MeasuredSupply;

use super::super::judge::ns;
use super::super::study::{Outcome, Study};
use super::super::together::{reserved, share};
use super::{Admission, Bound, Standing, deadline, freezer, groups, measured};

/// `sched_rt_runtime_us` in every `sched_rt_period_us`: the share of each cpu that real-time work may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtLimit(pub(super) Bandwidth);

impl RtLimit {
    /// The kernel's default: 0.95 s in every second.
    pub const KERNEL: RtLimit = RtLimit(Bandwidth::new(950_000_000, 1_000_000_000));
}

impl FromStr for RtLimit {
    type Err = String;

    /// `950ms/1s`, or `none`.
    fn from_str(text: &str) -> Result<RtLimit, String> {
        if text == "none" {
            return Ok(RtLimit(Bandwidth {
                runtime: None,
                ..Bandwidth::default()
            }));
        }
        let wanted = "write it as runtime/period, such as 950ms/1s, or `none`";
        let (runtime, period) = text.split_once('/').ok_or(wanted)?;
        let time = |text: &str| text.trim().parse::<Duration>().map_err(|e| e.to_string());
        let (runtime, period) = (ns(time(runtime)?), ns(time(period)?));
        if period == 0 || runtime > period {
            return Err(
                "the runtime must be at most the period, and the period more than zero".to_owned(),
            );
        }
        if runtime % 1_000 != 0 || period % 1_000 != 0 {
            return Err("the kernel takes whole microseconds".to_owned());
        }
        Ok(RtLimit(Bandwidth::new(runtime, period)))
    }
}

/// The reaction of the thread that holds budgets with the freezer: its lateness, the overrun that it lets through, and whether it
/// has notice of first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReactionText(pub Reaction);

impl FromStr for ReactionText {
    type Err = String;

    /// `100us/300us` or `100us/300us/noticed`.
    fn from_str(text: &str) -> Result<ReactionText, String> {
        let wanted = "write it as lateness/overrun, such as 100us/300us, or 100us/300us/noticed";
        let time = |text: &str| text.trim().parse::<Duration>().map_err(|e| e.to_string());
        let parts: Vec<&str> = text.split('/').collect();
        let (late, overrun, noticed) = match parts.as_slice() {
            [late, overrun] => (late, overrun, false),
            [late, overrun, "noticed"] => (late, overrun, true),
            _ => return Err(wanted.to_owned()),
        };
        let (late, overrun) = (time(late)?, time(overrun)?);
        if late.ns() < 0 || overrun < late {
            return Err("the overrun contains the lateness, and cannot be shorter".to_owned());
        }
        Ok(ReactionText(Reaction {
            late: ns(late),
            overrun: ns(overrun),
            noticed,
        }))
    }
}

/// The known facts about the enforcement of budgets.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The assumed reaction of the freezer.
    pub reaction: Reaction,
    /// Measured supplies of budgets that the kernel holds, used besides the textbook's; empty: only the textbook's are used.
    pub measured: &'a [MeasuredSupply],
}

impl Known<'_> {
    /// Nothing has been measured on the machine.
    pub const NOTHING: Known<'static> = Known {
        reaction: Reaction::MEASURED,
        measured: &[],
    };

    /// Whether deadlines inside the reservations hold with their enforcer's supply, with notes; `None`: as with the textbook
    /// supply.
    fn inside(&self, set: &TaskSet, asked: &Asked) -> Option<(Outcome, Vec<String>)> {
        match set.enforcer.unwrap_or_default() {
            Enforcer::Freezer => Some(freezer::inside(set, self.reaction)),
            by_kernel => (!self.measured.is_empty())
                .then(|| measured::inside(set, asked, by_kernel, self.measured)),
        }
    }
}

/// A question to the kernel's arithmetic.
pub(super) struct Asked {
    pub limit: Bandwidth,
    /// Number of cpus.
    pub cpus: usize,
    /// The cells with reservations; for those on several cpus, the share on each.
    pub cells: Vec<TaskCell>,
    /// The cpus of each of them; `None`: no placement is known, and they share all cpus.
    pub on: Option<Vec<Vec<usize>>>,
}

impl Asked {
    /// The cells on a cpu; without a placement all, once for each cpu that they use.
    pub fn on_cpu(&self, cpu: usize) -> Vec<&TaskCell> {
        let cells = self.cells.iter().enumerate();
        cells
            .flat_map(|(place, cell)| {
                let times = match &self.on {
                    Some(on) => usize::from(on[place].contains(&cpu)),
                    None => cell.policy.cpus().unwrap_or(1) as usize,
                };
                std::iter::repeat_n(cell, times)
            })
            .collect()
    }
}

/// Asks the arithmetic of the set's enforcer, SCHED_DEADLINE if it names none, about the reservations; `None` if there are
/// none.
///
/// The kernel's arithmetic with default settings except for `limit`, and with the fair server of Linux 6.12. Cells are on
/// the cpus on which the study placed them; without `cpus` in the file they are all on the first, and the analysis then
/// checks whether EDF supplies them there. A reservation over several cpus counts as an equal share on each.
pub fn admission(
    set: &TaskSet,
    study: &Study,
    limit: RtLimit,
    known: Known<'_>,
) -> Option<Admission> {
    let mut admission = of_covered(set, study, limit, known)?;
    if !study.uncovered.is_empty() {
        admission.standing = admission.standing.of_a_part();
    }
    Some(admission)
}

/// The same, as if the study covered the whole file.
fn of_covered(set: &TaskSet, study: &Study, limit: RtLimit, known: Known<'_>) -> Option<Admission> {
    let reserving = |cell: &usize| set.cells[*cell].reservation.is_some();
    let places: Vec<usize> = (0..set.cells.len()).filter(reserving).collect();
    if places.is_empty() {
        return threads(set, study, limit);
    }
    let cells: Vec<TaskCell> = places.iter().map(|&cell| bare(&set.cells[cell])).collect();
    let mut supplied = study.supplied();
    let on: Option<Vec<Vec<usize>>> = match &study.together {
        // On one cpu there is no placement to look for.
        Some(together)
            if together.cpus == 1 && cells.iter().all(|cell| cell.policy.cpus().is_none()) =>
        {
            Some(vec![vec![0]; cells.len()])
        }
        Some(together) => together
            .placement
            .as_ref()
            .map(|cpus| places.iter().map(|&cell| cpus[cell].clone()).collect()),
        None => {
            let assumed = cells.iter().filter(|cell| cell.server.is_none());
            let assumed: Vec<Task> = assumed.map(reserved).collect();
            supplied = supplied.worst(Outcome::of(&edf::verdict(&assumed)));
            let cpus = |cell: &TaskCell| match cell.server {
                Some(server) => vec![server.on_cpu() as usize],
                None => (0..cell.policy.cpus().unwrap_or(1) as usize).collect(),
            };
            Some(cells.iter().map(cpus).collect())
        }
    };
    let used = on
        .iter()
        .flatten()
        .flatten()
        .max()
        .map_or(1, |last| last + 1);
    let asked = Asked {
        limit: limit.0,
        cpus: set.cpus.map_or(used, |cpus| cpus as usize),
        cells,
        on,
    };
    ask(
        &asked,
        set.enforcer.unwrap_or_default(),
        set.cpus.is_none(),
        (study.deadlines(), supplied),
        &|| known.inside(set, &asked),
    )
}

/// The same where the file reserves nothing and names SCHED_DEADLINE: each task that is scheduled by its deadline is a thread, and the cpus
/// of each cell are a root domain of their own.
fn threads(set: &TaskSet, study: &Study, limit: RtLimit) -> Option<Admission> {
    if set.enforcer != Some(Enforcer::Deadline) {
        return None;
    }
    let bounds: Vec<Bound> = (set.cells.iter())
        .filter_map(|cell| deadline::of_threads(cell, limit.0))
        .collect();
    if bounds.is_empty() {
        return None;
    }
    let admitted = bounds.iter().all(|bound| bound.refusals.is_empty());
    Some(Admission {
        enforcer: Enforcer::Deadline,
        limit_runtime_ns: limit.0.runtime,
        limit_period_ns: limit.0.period,
        cpus_assumed: false,
        bounds,
        writes: Vec::new(),
        admitted,
        notes: vec![
            "each thread of SCHED_DEADLINE reserves its time for itself; the kernel keeps it to some cpus only where these are an exclusive cpuset, and \
             otherwise refuses its affinity (EPERM, EBUSY)"
                .to_owned(),
        ],
        standing: Standing::of(admitted, study.deadlines(), study.supplied()),
    })
}

/// A cell with its share of a reservation, and without its tasks, which the kernel does not see.
fn bare(cell: &TaskCell) -> TaskCell {
    TaskCell {
        name: cell.name.clone(),
        policy: cell.policy,
        reservation: share(cell),
        server: cell.server,
        tasks: Vec::new(),
    }
}

/// The same for a design: its cells, each with its cpu if it has one.
pub(in super::super) fn of_design(
    set: &TaskSet,
    on: &[Option<usize>],
    cpus: u32,
    theory: Outcome,
    (limit, reaction): (RtLimit, Reaction),
) -> Option<Admission> {
    let without: Vec<&str> = (set.cells.iter().zip(on))
        .filter(|(_, cpu)| cpu.is_none())
        .map(|(cell, _)| cell.name.as_str())
        .collect();
    let placed = set.cells.iter().zip(on);
    let placed = placed.filter_map(|(cell, cpu)| Some((bare(cell), vec![(*cpu)?])));
    let (cells, on): (Vec<_>, Vec<_>) = placed.unzip();
    let asked = Asked {
        limit: limit.0,
        cpus: cpus as usize,
        cells,
        on: Some(on),
    };
    let mut admission = ask(
        &asked,
        set.enforcer.unwrap_or_default(),
        false,
        (theory, Outcome::Holds),
        &|| {
            let known = Known {
                reaction,
                measured: &[],
            };
            known.inside(set, &asked)
        },
    )?;
    if !without.is_empty() {
        admission.notes.push(format!(
            "the kernel's answer covers only the cells that are placed, not {}",
            without.join(", ")
        ));
    }
    Some(admission)
}

fn ask(
    asked: &Asked,
    enforcer: Enforcer,
    assumed: bool,
    (mut deadlines, supplied): (Outcome, Outcome),
    inside: &dyn Fn() -> Option<(Outcome, Vec<String>)>,
) -> Option<Admission> {
    if asked.cells.is_empty() {
        return None;
    }
    let (bounds, writes, mut notes) = match enforcer {
        Enforcer::Deadline => {
            let (bounds, notes) = deadline::bounds(asked);
            (bounds, Vec::new(), notes)
        }
        Enforcer::RtCgroup => groups::rt_cgroup(asked),
        Enforcer::Hcbs => groups::hcbs(asked),
        Enforcer::Freezer => (freezer::bounds(asked), Vec::new(), Vec::new()),
        // They ask Linux for no budget, so that there is nothing to refuse.
        Enforcer::CpusetOnly | Enforcer::EvlQuota | Enforcer::EvlTp => return None,
    };
    if let Some((outcome, said)) = inside() {
        deadlines = deadlines.worst(outcome);
        notes.extend(said);
    }
    notes.extend(mismatch(asked, enforcer));
    let admitted = bounds.iter().all(|bound| bound.refusals.is_empty());
    let standing = Standing::of(admitted, deadlines, supplied);
    Some(Admission {
        enforcer,
        limit_runtime_ns: asked.limit.runtime,
        limit_period_ns: asked.limit.period,
        cpus_assumed: assumed,
        bounds,
        writes,
        admitted,
        notes,
        standing: match enforcer {
            Enforcer::Freezer => standing.by_reaction(),
            _ => standing,
        },
    })
}

/// A note if the mechanism differs from the assumptions of the analysis.
fn mismatch(asked: &Asked, enforcer: Enforcer) -> Option<String> {
    let names = |of: &dyn Fn(&TaskCell) -> bool| {
        let cells = asked.cells.iter().filter(|cell| of(cell));
        let names: Vec<&str> = cells.map(|cell| cell.name.as_str()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    if enforcer == Enforcer::RtCgroup {
        return names(&|cell| {
            cell.server
                .is_none_or(|s| s.kind == ServerKind::ConstantBandwidth)
        })
        .map(|cells| {
            format!(
                "an rt-cgroup only limits what a cell takes: whether {cells} get their budgets, \
                 as the analysis assumes, depends on their priorities; with server = \
                 \"deferrable\" and priorities that is analysed too"
            )
        });
    }
    if enforcer == Enforcer::Freezer {
        return names(&|cell| cell.server.is_some_and(|s| s.kind != ServerKind::Deferrable)).map(|cells| {
            format!("the freezer enforces a budget as a deferrable server does, not as the servers that the file gives {cells}")
        });
    }
    let other = |cell: &TaskCell| {
        cell.server
            .is_some_and(|s| s.kind != ServerKind::ConstantBandwidth)
    };
    names(&other).map(|cells| {
        format!(
            "this mechanism enforces a budget as a cbs server does; the answers on deadlines in \
             {cells} hold for the servers in the file, not for this mechanism"
        )
    })
}
