//! The keys of a cell's rights.

use crate::file::{Kind, Shape, keys, names};
use crate::mission::{Access, Network, Seccomp};

const NETWORKS: &[&str] = &names(&Network::NAMES);
const FILTERS: &[&str] = &names(&Seccomp::NAMES);
const ACCESSES: &[&str] = &names(&Access::NAMES);

/// The highest user or group id: 2^32 - 1 means none.
const ID: Kind = Kind::Integer {
    least: 0,
    most: 4_294_967_294,
};

/// `[cell.rights]`.
pub(super) static RIGHTS: Shape = Shape {
    title: "[cell.rights]",
    name: "rights",
    doc: "What the cell may use of the machine besides cpu time; nothing by default.",
    choice: false,
    keys: keys! {
        "network": Kind::Choice(NETWORKS), Default "\"none\"",
            "`none`: its own network with only loopback; `host`: that of the host";
        "writable_root": Kind::Boolean, Default "false",
            "whether it may write to its root; what it writes is lost with the cell";
        "capabilities": Kind::List { of: &Kind::Label, least: 0, most: 64, unique: true }, Default "[]",
            "capabilities beyond what its class needs, such as `CAP_NET_RAW`; those that would let it escape are refused";
        "seccomp": Kind::Choice(FILTERS), Default "\"default\"",
            "`default`: refuses the system calls that container engines refuse and those that would let it escape; `cage`: only the latter";
        "user": Kind::Table(&USER), Without "those of the bundle or image, else one of the mission's `uids` that no other cell has",
            "user and group of its program";
        "devices": Kind::Tables { of: &DEVICE, most: 256 }, Without "none", "devices of the host";
        "mounts": Kind::Tables { of: &MOUNT, most: 256 }, Without "none", "files and directories of the host";
        "tmpfs": Kind::Tables { of: &TMPFS, most: 64 }, Without "none", "directories in memory, empty at first";
        "memory": Kind::Size { least: 1 << 20 }, Without "its share of what is free, shown by `admit`",
            "maximum memory, tmpfs included";
        "pids": Kind::Integer { least: 1, most: 4_194_304 }, Default "64", "maximum number of processes and threads";
        "pending_signals": Kind::Integer { least: 1, most: 1_048_576 }, Default "256",
            "maximum number of pending signals of its user, including one for each POSIX timer (RLIMIT_SIGPENDING)";
        "message_queues": Kind::Size { least: 0 }, Default "\"800KiB\"",
            "maximum size of its user's POSIX message queues (RLIMIT_MSGQUEUE)";
        "open_files": Kind::Integer { least: 16, most: 1_048_576 }, Default "1024",
            "maximum number of open descriptors of each of its processes, timerfds included (RLIMIT_NOFILE)";
    },
};

static USER: Shape = Shape {
    title: "`user`",
    name: "user",
    doc: "User and group of the cell's program, as the cell sees them.",
    choice: false,
    keys: keys! {
        "uid": ID, Required "1000", "user id";
        "gid": ID, Required "1000", "group id";
    },
};

static DEVICE: Shape = Shape {
    title: "an item of `devices`",
    name: "device",
    doc: "A device of the host.",
    choice: false,
    keys: keys! {
        "path": Kind::CellPath, Required "\"/dev/ttyS1\"",
            "its path below `/dev`, on the host and in the cell; not one that gives access to the machine's memory";
        "access": Kind::Choice(ACCESSES), Default "\"rw\"", "whether it may be read, written, or both";
    },
};

static MOUNT: Shape = Shape {
    title: "an item of `mounts`",
    name: "mount",
    doc: "A file or directory of the host inside the cell.",
    choice: false,
    keys: keys! {
        "source": Kind::HostPath, Required "\"/var/lib/telemetry\"", "path on the host; not one that holds the kernel's files";
        "target": Kind::CellPath, Required "\"/data\"", "absolute path in the cell; unique";
        "writable": Kind::Boolean, Default "false", "whether the cell may write to it";
    },
};

static TMPFS: Shape = Shape {
    title: "an item of `tmpfs`",
    name: "tmpfs",
    doc: "A directory in memory.",
    choice: false,
    keys: keys! {
        "target": Kind::CellPath, Required "\"/tmp\"", "absolute path in the cell; unique";
        "size": Kind::Size { least: 4096 }, Required "\"8MiB\"", "maximum size";
    },
};
