//! The names under which the machine knows the parts of a mission: formed in one place, so that no two missions and no
//! two kinds of things share one.
//!
//! Names of missions and cells are letters, digits, `-` and `_` (see the mission file); a dot separates them, which every
//! engine, cgroup and file system accepts. It tells `a` with a cell `b-c` from `a-b` with a cell `c`. The text after
//! `timecell-` gives the kind of thing: a cell, a cell's real-time group, or, if a number, something of a measurement.

use host::hcbs::CELLS_PREFIX;

/// The id of a cell: name of its container, of its cgroups, and the mark of its processes. `place` is the cell's name, or that of
/// its second place.
pub fn cell_id(mission: &str, place: &str) -> String {
    format!("{}{place}", cells_of(mission))
}

/// The prefix of the ids of all cells of a mission, and of no other's.
pub fn cells_of(mission: &str) -> String {
    format!("{CELLS_PREFIX}{mission}.")
}

/// The mission of this prefix ([`cells_of`]); `None`: it is no mission's.
pub fn mission_of_cells(begin: &str) -> Option<&str> {
    begin.strip_prefix(CELLS_PREFIX)?.strip_suffix('.')
}

const GROUPS_PREFIX: &str = "timecell-mission-";

/// The prefix of the names of all real-time groups of a mission, and of no other's.
pub fn groups_of(mission: &str) -> String {
    format!("{GROUPS_PREFIX}{mission}.")
}

/// The mission of a real-time group ([`groups_of`]); `None`: it is no mission's.
pub fn mission_of_group(group: &str) -> Option<&str> {
    let (mission, _) = group.strip_prefix(GROUPS_PREFIX)?.rsplit_once('.')?;
    Some(mission)
}

/// The group of a mission that has these cpus to itself: named by the first, because no two partitions share a cpu.
pub fn partition(mission: &str, cpus: &[u32]) -> String {
    let first = cpus.iter().min().copied().unwrap_or_default();
    format!("{}{first}", partitions_of(mission))
}

/// The prefix of the names of all such groups of a mission, and of no other's.
pub fn partitions_of(mission: &str) -> String {
    format!("{}{mission}.", host::isolate::PARTITION_PREFIX)
}

/// The group of a mission that keeps controllers enabled at the top of cgroup v2.
pub fn controllers_of(mission: &str) -> String {
    format!("{}{mission}", host::isolate::CONTROLLERS_PREFIX)
}

/// The owner of a mission's quota groups and time partitions of EVL.
pub fn quotas_of(mission: &str) -> String {
    format!("{GROUPS_PREFIX}{mission}")
}

/// The mission of this owner ([`quotas_of`]); `None`: it is no mission's.
pub fn mission_of_quotas(owner: &str) -> Option<&str> {
    owner.strip_prefix(GROUPS_PREFIX)
}

/// The directory in memory of the keeper that holds a mission's cells with the freezer.
pub fn freezer_of(mission: &str) -> String {
    format!("{FREEZER_PREFIX}{mission}")
}

/// The mission of this directory ([`freezer_of`]); `None`: it is no mission's.
pub fn mission_of_freezer(directory: &str) -> Option<&str> {
    directory.strip_prefix(FREEZER_PREFIX)
}

const FREEZER_PREFIX: &str = "timecell-freezer-";

/// The directory in memory of the keeper that holds groups for `timecell hold`. No mission's has this name.
pub const HELD: &str = "timecell-held";

/// The real-time group around all cells of a measurement by this process.
pub fn group_of_bench(pid: i32) -> String {
    format!("timecell-{pid}")
}

/// The prefix of the ids of all cells of a measurement by this process, and of no other's.
pub fn cells_of_bench(pid: i32) -> String {
    format!("{}-", group_of_bench(pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_missions_share_a_name() {
        assert_ne!(cell_id("jsa", "b-c"), cell_id("jsa-b", "c"));
        assert!(!cell_id("jsa-b", "c").starts_with(&cells_of("jsa")));
        assert!(!cell_id("mission-x", "c").starts_with(&groups_of("x")));
        assert!(!groups_of("jsa-b").starts_with(&groups_of("jsa")));
        assert!(!HELD.starts_with(&freezer_of("")));
        assert!(!partition("jsa-b", &[1]).starts_with(&partitions_of("jsa")));
        assert_eq!(partition("m", &[3, 2]), "timecell-cpus-m.2");
        // A measurement's cells begin with a process id.
        assert!(!cell_id("7", "c").starts_with(&group_of_bench(7)));
        assert_eq!(mission_of_cells(&cells_of("jsa-b")), Some("jsa-b"));
        assert_eq!(mission_of_cells(&cells_of_bench(7)), None);
    }

    #[test]
    fn the_longest_names_are_taken_by_every_engine() {
        let id = cell_id(&"m".repeat(64), &format!("{}.b", "c".repeat(64)));
        // runc: ^[\w+-\.]+$; podman: [a-zA-Z0-9][a-zA-Z0-9_.-]*; a name of a file has 255 bytes at most.
        assert!(
            id.chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        );
        assert!(id.len() <= 200, "{}", id.len());
    }
}
