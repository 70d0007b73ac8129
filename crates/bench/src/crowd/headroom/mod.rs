//! The machine's room for a crowd: the reserve that must stay free, and the first limit that a larger crowd reaches.

use engine::Footprint;
use host::limits::{self, Kind, Limit};
use host::root::Root;
use model::Bytes;
use model::grouped;
use record::crowd::GaveOut;

use crate::Plan;

/// The share of common resources that a crowd leaves to everybody else.
const RESERVE_PART: u64 = 20;
/// The least of it in memory, MB.
const RESERVE_MB: u64 = 128;
/// The least of it in process ids and threads.
const RESERVE_PROCESSES: u64 = 256;

/// The reserve of a shared limit for everybody else, in the limit's unit.
fn reserve(limit: &Limit, memory: Option<Bytes>) -> u64 {
    let least = match (limit.kind, memory) {
        (Kind::Memory, Some(asked)) => return asked.bytes() >> 20,
        (Kind::Memory, None) => RESERVE_MB,
        _ => RESERVE_PROCESSES,
    };
    (limit.most / RESERVE_PART).max(least).min(limit.most / 2)
}

/// The shortage: less than the reserve is left; `None` while there is enough, or where that is unknown. `memory` is the requested reserve
/// of memory.
pub(super) fn short(root: &Root, memory: Option<Bytes>) -> Option<GaveOut> {
    limits::shared(root).into_iter().find_map(|limit| {
        let left = limit.most.saturating_sub(limit.used?);
        let reserve = reserve(&limit, memory);
        let fix = match limit.kind {
            Kind::Memory => format!(
                "{}, or keep less in reserve (--set scale.memory_reserve=256MiB)",
                limit.fix
            ),
            _ => limit.fix,
        };
        (left < reserve).then(|| GaveOut {
            what: limit.what,
            limit: "the reserve that a crowd must leave".to_owned(),
            value: Some(format!(
                "{} of {}{} are available, {} are kept in reserve",
                grouped(left),
                grouped(limit.most),
                limit.unit,
                grouped(reserve)
            )),
            fix,
        })
    })
}

/// The limits as they stand for this user.
pub(super) fn limits() -> Vec<Limit> {
    let uid = crate::place::uid();
    limits::all(&Root::live(), uid)
}

/// Use of a limit by a cell with this footprint, as so many units for so many cells; `None`: none is known.
fn taken(limit: &Limit, cell: &Footprint, groups_v2: bool) -> Option<(u64, u64)> {
    let named = |end: &str| limit.name.ends_with(end);
    let each = match limit.kind {
        Kind::Processes if named(".max") => cell.processes_beside,
        Kind::Processes => cell.processes,
        Kind::Files if named("NOFILE") => 1,
        Kind::Files => cell.files,
        Kind::Inotify if groups_v2 => cell.inotify_v2,
        Kind::Keys if named("keys") => cell.keys,
        Kind::Namespaces if named("/max_mnt_namespaces") => cell.mount_namespaces,
        Kind::Namespaces if named("/max_user_namespaces") => cell.user_namespaces,
        Kind::Namespaces => cell.namespaces,
        // The limit of a control group holds for cells that stay in it.
        Kind::Memory if named("/meminfo") || cell.processes == cell.processes_beside => {
            return Some((cell.memory_kib, 1 << 10));
        }
        Kind::Cgroups if named("of the kernel") => cell.memory_groups,
        _ => 0,
    };
    (each > 0).then_some((each, 1))
}

/// The first limit that cells reach, and their number then.
struct First<'a> {
    limit: &'a Limit,
    cells: u64,
    /// The use of each, in the limit's unit.
    each: f64,
}

impl<'a> First<'a> {
    fn of(
        limits: &'a [Limit],
        cell: &Footprint,
        memory: Option<Bytes>,
        groups_v2: bool,
    ) -> Option<First<'a>> {
        let shared = |limit: &Limit| {
            let of_all = ["/pid_max", "/threads-max", "/meminfo"];
            of_all.iter().any(|end| limit.name.ends_with(end))
        };
        (limits.iter())
            .filter_map(|limit| {
                let (units, of_cells) = taken(limit, cell, groups_v2)?;
                let kept = if shared(limit) {
                    reserve(limit, memory)
                } else {
                    0
                };
                let room = limit.most.saturating_sub(limit.used?).saturating_sub(kept);
                Some(First {
                    limit,
                    cells: room.saturating_mul(of_cells) / units,
                    each: units as f64 / of_cells as f64,
                })
            })
            .min_by_key(|first| first.cells)
    }

    /// Such as `open files of timecell (RLIMIT_NOFILE), at about 27 cells: 13 of 40, 1 for each cell`.
    fn told(&self) -> String {
        let limit = self.limit;
        let each = match self.each.fract() == 0.0 {
            true => format!("{}", self.each),
            false => format!("{:.1}", self.each),
        };
        format!(
            "{} ({}), at about {} cells: {}, {each}{} for each cell",
            limit.what,
            limit.name,
            self.cells,
            limit.value(),
            limit.unit
        )
    }
}

/// Whether memory groups are those of cgroup v2.
fn groups_v2(root: &Root) -> bool {
    host::cgroup::detect_at(root).is_ok_and(|found| found.v1_mount("memory").is_none())
}

/// For every engine of a scale study, the limit that will end its crowds, or the first beyond them: one sentence each. Empty for other
/// experiments. Raises the soft limit of open files as far as it goes, as the study does.
pub fn ahead(plan: &Plan) -> Vec<String> {
    let Some(scale) = &plan.experiment.scale else {
        return Vec::new();
    };
    limits::raise();
    let limits = limits();
    let groups_v2 = groups_v2(&Root::live());
    let told = |kind: &model::EngineKind| {
        let most = (plan.trials.iter().map(|trial| &trial.cells))
            .filter(|cells| cells.first().is_some_and(|(first, _)| first == kind))
            .map(Vec::len)
            .max()?;
        let cell = plan.engines.get(kind)?.footprint();
        let first = First::of(&limits, &cell, scale.memory_reserve, groups_v2)?;
        Some(sentence(kind.name(), &first, most))
    };
    scale.engines.iter().filter_map(told).collect()
}

fn sentence(engine: &str, first: &First<'_>, most: usize) -> String {
    if u64::try_from(most).is_ok_and(|most| most <= first.cells) {
        format!(
            "{engine}: {most} cells reach no known limit; the first beyond is {}",
            first.told()
        )
    } else {
        format!(
            "{engine}: the first limit reached will be {}; {}",
            first.told(),
            first.limit.fix
        )
    }
}

/// The same for one trial, where the machine as it is now does not have enough for its cells.
pub(super) fn certain(
    limits: &[Limit],
    cell: &Footprint,
    memory: Option<Bytes>,
    cells: usize,
) -> Option<String> {
    let first = First::of(limits, cell, memory, groups_v2(&Root::live()))?;
    let short = first.cells < u64::try_from(cells).ok()?;
    short.then(|| {
        format!(
            "the first limit reached will be {}; {}",
            first.told(),
            first.limit.fix
        )
    })
}

/// Which limit ends larger crowds of this kind, by how much `cells` took of each between `before` and `after`; `None` where they took
/// nothing distinguishable from the rest of the machine.
pub(super) fn forecast(before: &[Limit], after: &[Limit], cells: usize) -> Option<String> {
    let cells = u64::try_from(cells).ok().filter(|cells| *cells > 0)?;
    let (most, limit, taken) = (after.iter())
        .filter_map(|limit| {
            let earlier = before
                .iter()
                .find(|b| b.what == limit.what && b.name == limit.name)?;
            let used = limit.used?;
            let taken = used.checked_sub(earlier.used?)?;
            // Less than a unit for every two cells may as well be somebody else's.
            (taken > cells / 2).then(|| {
                let room = limit.most.saturating_sub(used);
                (cells + room.saturating_mul(cells) / taken, limit, taken)
            })
        })
        .min_by_key(|(most, _, _)| *most)?;
    let each = taken as f64 / cells as f64;
    Some(format!(
        "the limit for larger ones is {} ({}), at about {most} cells: {}, {each:.1}{} for each cell",
        limit.what,
        limit.name,
        limit.value(),
        limit.unit
    ))
}

#[cfg(test)]
mod tests;
