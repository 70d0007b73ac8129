//! The system calls that cells are refused, by the harm that they would let a cell do.
//!
//! Calls up to [`HIGHEST`] were looked at; a kernel that has newer ones answers them with ENOSYS, as an older one would.

use libc::{EPERM, c_long};

use super::{Refusal, Test, When};

/// The highest call number that this table knows: `file_setattr` of Linux 6.17. New calls have the same number on every
/// architecture.
pub(super) const HIGHEST: u32 = 469;

// Not in every variant of the C library's list.
const SYS_OPEN_TREE_ATTR: c_long = 467;
const SYS_MEMFD_SECRET: c_long = 447;
#[cfg(target_arch = "x86_64")]
const SYS_KEXEC_FILE_LOAD: c_long = 320;
#[cfg(not(target_arch = "x86_64"))]
const SYS_KEXEC_FILE_LOAD: c_long = 294;

pub(super) const fn refuse(name: &'static str, number: c_long) -> Refusal {
    Refusal {
        name,
        number,
        errno: EPERM,
        when: &[],
    }
}

const fn refuse_when(name: &'static str, number: c_long, when: &'static [When]) -> Refusal {
    Refusal {
        when,
        ..refuse(name, number)
    }
}

/// Every flag of clone(2) and unshare(2) that makes a namespace.
const NEW_NAMESPACE: [When; 7] = [
    flag(libc::CLONE_NEWNS),
    flag(libc::CLONE_NEWCGROUP),
    flag(libc::CLONE_NEWUTS),
    flag(libc::CLONE_NEWIPC),
    flag(libc::CLONE_NEWUSER),
    flag(libc::CLONE_NEWPID),
    flag(libc::CLONE_NEWNET),
];
/// unshare(2) knows one more; in clone(2) its bit belongs to the signal.
const UNSHARE: [When; 8] = {
    const NEWTIME: i32 = 0x80;
    let [a, b, c, d, e, f, g] = NEW_NAMESPACE;
    [a, b, c, d, e, f, g, flag(NEWTIME)]
};

const fn flag(flag: i32) -> When {
    bit(0, flag)
}

pub(super) const SET_CLASS: Refusal = refuse("sched_setscheduler", libc::SYS_sched_setscheduler);
pub(super) const SET_PRIORITY: Refusal = refuse("sched_setparam", libc::SYS_sched_setparam);
/// Its class is behind a pointer, which no filter can follow: it is all or nothing.
pub(super) const SET_ATTRIBUTES: Refusal = refuse("sched_setattr", libc::SYS_sched_setattr);
pub(super) const SET_AFFINITY: Refusal = refuse("sched_setaffinity", libc::SYS_sched_setaffinity);

/// Other ways to a larger share of a cpu or disk than was granted.
pub(super) const SHARES: [Refusal; 3] = [
    refuse("setpriority", libc::SYS_setpriority),
    refuse("ioprio_set", libc::SYS_ioprio_set),
    // Core scheduling keeps strangers off the sibling of the cpu on which a thread runs.
    refuse_when(
        "prctl",
        libc::SYS_prctl,
        &[When::equal(0, 62)], // PR_SCHED_CORE
    ),
];

/// An operation of futex(2), with any clock, shared or private.
const fn operation(number: u32) -> When {
    const PRIVATE: u32 = 128;
    const CLOCK_REALTIME: u32 = 256;
    When::masked(1, !(PRIVATE | CLOCK_REALTIME), number)
}

/// A thread that holds a futex of these runs with the priority or the reservation of a thread that waits for it, and the
/// kernel throttles neither a group nor a deadline thread that does (`rt_nr_boosted` and `is_dl_boosted` in kernel/sched).
/// Told that there are none, C libraries refuse to make such mutexes. The newer calls futex_wait(2), futex_requeue(2) and so
/// on have no such operations.
pub(super) const INHERITANCE: Refusal = Refusal {
    errno: libc::ENOSYS,
    ..refuse_when(
        "futex",
        libc::SYS_futex,
        &[
            operation(6),  // FUTEX_LOCK_PI
            operation(7),  // FUTEX_UNLOCK_PI
            operation(8),  // FUTEX_TRYLOCK_PI
            operation(11), // FUTEX_WAIT_REQUEUE_PI
            operation(12), // FUTEX_CMP_REQUEUE_PI
            operation(13), // FUTEX_LOCK_PI2
        ],
    )
};

/// Out of the cell's namespaces, into new ones or those of others.
pub(super) const NAMESPACES: [Refusal; 4] = [
    refuse_when("unshare", libc::SYS_unshare, &UNSHARE),
    refuse("setns", libc::SYS_setns),
    refuse_when("clone", libc::SYS_clone, &NEW_NAMESPACE),
    // Its flags are behind a pointer. Told that there is no such call, C libraries use clone(2).
    Refusal {
        errno: libc::ENOSYS,
        ..refuse("clone3", libc::SYS_clone3)
    },
];

/// Another view of the file systems, and files outside it.
pub(super) const MOUNTS: [Refusal; 12] = [
    refuse("mount", libc::SYS_mount),
    refuse("umount2", libc::SYS_umount2),
    refuse("pivot_root", libc::SYS_pivot_root),
    refuse("move_mount", libc::SYS_move_mount),
    refuse("open_tree", libc::SYS_open_tree),
    refuse("open_tree_attr", SYS_OPEN_TREE_ATTR),
    refuse("mount_setattr", libc::SYS_mount_setattr),
    refuse("fsopen", libc::SYS_fsopen),
    refuse("fsconfig", libc::SYS_fsconfig),
    refuse("fsmount", libc::SYS_fsmount),
    refuse("fspick", libc::SYS_fspick),
    refuse("open_by_handle_at", libc::SYS_open_by_handle_at),
];

/// The machine's clocks, its kernel, and its shared resources.
pub(super) const MACHINE: [Refusal; 17] = [
    refuse("clock_settime", libc::SYS_clock_settime),
    refuse("clock_adjtime", libc::SYS_clock_adjtime),
    refuse("settimeofday", libc::SYS_settimeofday),
    refuse("adjtimex", libc::SYS_adjtimex),
    refuse("bpf", libc::SYS_bpf),
    refuse("init_module", libc::SYS_init_module),
    refuse("finit_module", libc::SYS_finit_module),
    refuse("delete_module", libc::SYS_delete_module),
    refuse("kexec_load", libc::SYS_kexec_load),
    refuse("kexec_file_load", SYS_KEXEC_FILE_LOAD),
    refuse("reboot", libc::SYS_reboot),
    refuse("swapon", libc::SYS_swapon),
    refuse("swapoff", libc::SYS_swapoff),
    refuse("acct", libc::SYS_acct),
    refuse("quotactl", libc::SYS_quotactl),
    refuse("quotactl_fd", libc::SYS_quotactl_fd),
    refuse("syslog", libc::SYS_syslog),
];

/// An option of setsockopt(2).
const fn option(name: i32, level: &'static When) -> When {
    When::equal(2, name).and(level)
}

/// The level at which an option of setsockopt(2) stands.
const fn level(number: i32) -> When {
    When::equal(1, number)
}

const SOCKET_LEVEL: When = level(libc::SOL_SOCKET);
const PACKET_LEVEL: When = level(libc::SOL_PACKET);
const UDP_LEVEL: When = level(libc::IPPROTO_UDP);
/// The kernel answers it with the options of UDP.
const UDP_LITE_LEVEL: When = level(libc::IPPROTO_UDPLITE);

/// Options of sockets that take from all cells.
///
/// Programs for packets: the kernel translates each and has one small store for the translations of all cells
/// (`bpf_jit_limit`): once it is full, no cell gets its filter of system calls, and none starts.
///
/// Encapsulation and receive offload of UDP: the first and the last socket with either rewrite the kernel's code, for which it interrupts
/// every cpu (`static_branch_inc` in net/ipv4/udp.c).
pub(super) const SOCKET_OPTIONS: Refusal = refuse_when(
    "setsockopt",
    libc::SYS_setsockopt,
    &[
        option(libc::SO_ATTACH_FILTER, &SOCKET_LEVEL),
        option(libc::SO_ATTACH_REUSEPORT_CBPF, &SOCKET_LEVEL),
        option(22, &PACKET_LEVEL), // PACKET_FANOUT_DATA
        option(UDP_ENCAP, &UDP_LEVEL),
        option(UDP_ENCAP, &UDP_LITE_LEVEL),
        option(libc::UDP_GRO, &UDP_LEVEL),
        option(libc::UDP_GRO, &UDP_LITE_LEVEL),
    ],
);
const UDP_ENCAP: i32 = 100;

/// Calls for which the kernel interrupts every cpu each time: it collapses small pages into a huge one, moves pages between nodes, for which
/// each cpu gives back the pages that it keeps, or rewrites its code for the first event of a kind.
pub(super) const INTERRUPTING: [Refusal; 6] = [
    refuse_when(
        "madvise",
        libc::SYS_madvise,
        &[When::equal(2, 25)], // MADV_COLLAPSE
    ),
    refuse("process_madvise", libc::SYS_process_madvise),
    refuse_when(
        "mbind",
        libc::SYS_mbind,
        // MPOL_MF_MOVE and MPOL_MF_MOVE_ALL.
        &[bit(5, 2), bit(5, 4)],
    ),
    refuse("move_pages", libc::SYS_move_pages),
    refuse("migrate_pages", libc::SYS_migrate_pages),
    refuse("perf_event_open", libc::SYS_perf_event_open),
];

/// Memory that the kernel takes out of its own map, for which it interrupts every cpu. Told that there is no such call, programs keep their
/// secrets in other memory.
pub(super) const SECRET_MEMORY: Refusal = Refusal {
    errno: libc::ENOSYS,
    ..refuse("memfd_secret", SYS_MEMFD_SECRET)
};

/// A bit of the flags of a call.
const fn bit(argument: u8, bit: i32) -> When {
    When::masked(argument, bit.cast_unsigned(), bit.cast_unsigned())
}

/// Resources of a fixed number on the machine that no limit of a cell counts: huge pages, and contexts of asynchronous
/// input and output (`fs.aio-max-nr`).
pub(super) const UNCOUNTED: [Refusal; 4] = [
    refuse_when("mmap", libc::SYS_mmap, &[bit(3, libc::MAP_HUGETLB)]),
    refuse_when("shmget", libc::SYS_shmget, &[bit(2, libc::SHM_HUGETLB)]),
    refuse_when(
        "memfd_create",
        libc::SYS_memfd_create,
        &[bit(1, libc::MFD_HUGETLB.cast_signed())],
    ),
    // Told that there is no such call, programs read and write otherwise.
    Refusal {
        errno: libc::ENOSYS,
        ..refuse("io_setup", libc::SYS_io_setup)
    },
];

/// Changes of RLIMIT_CORE, which are answered with success. At a limit of 1 byte the machine's crash handler is not run; at 0, to which a program may
/// lower it, it is: by root, outside the cell (core(5), kernel/coredump). Programs that lower it for themselves go on.
pub(super) const CORE_LIMIT: [Refusal; 2] = {
    const CORE: i32 = libc::RLIMIT_CORE as i32;
    const OF_CORE: When = When::equal(1, CORE);
    const NEW: When = When {
        argument: 2,
        test: Test::NotNull,
        also: Some(&OF_CORE),
    };
    [
        Refusal {
            errno: 0,
            ..refuse_when("setrlimit", libc::SYS_setrlimit, &[When::equal(0, CORE)])
        },
        Refusal {
            errno: 0,
            ..refuse_when("prlimit64", libc::SYS_prlimit64, &[NEW])
        },
    ]
};

/// The ports of a PC.
#[cfg(target_arch = "x86_64")]
pub(super) const PORTS: [Refusal; 2] = [
    refuse("iopl", libc::SYS_iopl),
    refuse("ioperm", libc::SYS_ioperm),
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const PORTS: [Refusal; 0] = [];

/// Kernel keyrings, which are not divided among cells: a cell with a user of the machine would read that user's keys.
pub(super) const KEYRINGS: [Refusal; 3] = [
    refuse("add_key", libc::SYS_add_key),
    refuse("request_key", libc::SYS_request_key),
    refuse("keyctl", libc::SYS_keyctl),
];

/// Calls that container engines refuse beside: large and little used parts of the kernel, and other processes' insides.
pub(super) const SELDOM_USED: [Refusal; 11] = [
    refuse("ptrace", libc::SYS_ptrace),
    refuse("process_vm_readv", libc::SYS_process_vm_readv),
    refuse("process_vm_writev", libc::SYS_process_vm_writev),
    refuse("pidfd_getfd", libc::SYS_pidfd_getfd),
    refuse("kcmp", libc::SYS_kcmp),
    refuse("userfaultfd", libc::SYS_userfaultfd),
    refuse("personality", libc::SYS_personality),
    refuse("fanotify_init", libc::SYS_fanotify_init),
    refuse("lookup_dcookie", libc::SYS_lookup_dcookie),
    refuse("nfsservctl", libc::SYS_nfsservctl),
    refuse("vhangup", libc::SYS_vhangup),
];
