//! A cell's share of limited resources, so that the limit that will stop a crowd of cells can be named before the first of
//! them is made.

/// Resources of one cell while it waits, beside the open file that its maker holds for it. Counted on Linux 6.18 with
/// eight cells of each engine; memory is about the least that was seen, all else is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Processes and threads of the machine.
    pub processes: u64,
    /// Of them, those that stay in the control groups of the coordinator.
    pub processes_beside: u64,
    /// Open files of the machine.
    pub files: u64,
    /// inotify instances of the user, where memory groups are those of cgroup v2.
    pub inotify_v2: u64,
    /// Keys and keyrings of the user.
    pub keys: u64,
    /// Namespaces of each kind but `user` and `mount`.
    pub namespaces: u64,
    /// Mount namespaces.
    pub mount_namespaces: u64,
    /// User namespaces.
    pub user_namespaces: u64,
    /// Memory control groups.
    pub memory_groups: u64,
    /// Memory of the machine, KiB.
    pub memory_kib: u64,
}

impl Footprint {
    /// A plain process.
    pub(crate) const PROCESS: Footprint = Footprint {
        processes: 1,
        processes_beside: 1,
        files: 7,
        inotify_v2: 0,
        keys: 0,
        namespaces: 0,
        mount_namespaces: 0,
        user_namespaces: 0,
        memory_groups: 0,
        memory_kib: 512,
    };

    /// One process in namespaces and a control group of its own.
    pub(crate) const CONTAINER: Footprint = Footprint {
        processes_beside: 0,
        namespaces: 1,
        mount_namespaces: 1,
        memory_groups: 1,
        ..Footprint::PROCESS
    };
}
