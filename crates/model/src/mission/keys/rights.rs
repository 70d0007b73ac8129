//! The keys of a cell's rights.

use super::{Key, Kind, Shape, names};
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
    doc: "What the cell may have of the machine beside cpu time; nothing by default.",
    choice: false,
    keys: &[
        Key::default(
            "network",
            Kind::Choice(NETWORKS),
            "\"none\"",
            "`none`: a network of its own with nothing but loopback; `host`: that of the host",
        ),
        Key::default(
            "writable_root",
            Kind::Boolean,
            "false",
            "whether it may write to its root; what it writes is lost with the cell",
        ),
        Key::default(
            "capabilities",
            Kind::List {
                of: &Kind::Label,
                least: 0,
                most: 64,
                unique: true,
            },
            "[]",
            "capabilities beyond what its class needs, such as `CAP_NET_RAW`; those that break the cage are refused",
        ),
        Key::default(
            "seccomp",
            Kind::Choice(FILTERS),
            "\"default\"",
            "`default`: what container engines refuse is refused, and what breaks the cage; `cage`: only the latter",
        ),
        Key::without(
            "user",
            Kind::Table(&USER),
            "those of the bundle or image, else one of the mission's `uids` that no other cell has",
            "user and group of its program",
        ),
        Key::without(
            "devices",
            Kind::Tables {
                of: &DEVICE,
                most: 256,
            },
            "none",
            "devices of the host",
        ),
        Key::without(
            "mounts",
            Kind::Tables {
                of: &MOUNT,
                most: 256,
            },
            "none",
            "files and directories of the host",
        ),
        Key::without(
            "tmpfs",
            Kind::Tables {
                of: &TMPFS,
                most: 64,
            },
            "none",
            "directories in memory, empty at first",
        ),
        Key::without(
            "memory",
            Kind::Size { least: 1 << 20 },
            "its share of what is free, as `admit` says",
            "the most memory that it may use, tmpfs included",
        ),
        Key::default(
            "pids",
            Kind::Integer {
                least: 1,
                most: 4_194_304,
            },
            "64",
            "the most processes and threads that it may have",
        ),
        Key::default(
            "pending_signals",
            Kind::Integer {
                least: 1,
                most: 1_048_576,
            },
            "256",
            "the most signals that may wait for its user, each POSIX timer counting as one (RLIMIT_SIGPENDING)",
        ),
        Key::default(
            "message_queues",
            Kind::Size { least: 0 },
            "\"800KiB\"",
            "the most that the POSIX message queues of its user hold (RLIMIT_MSGQUEUE)",
        ),
        Key::default(
            "open_files",
            Kind::Integer {
                least: 16,
                most: 1_048_576,
            },
            "1024",
            "the most descriptors that each of its processes may have open, timerfds among them (RLIMIT_NOFILE)",
        ),
    ],
};

static USER: Shape = Shape {
    title: "`user`",
    name: "user",
    doc: "User and group of the cell's program, as the cell sees them.",
    choice: false,
    keys: &[
        Key::required("uid", ID, "1000", "user id"),
        Key::required("gid", ID, "1000", "group id"),
    ],
};

static DEVICE: Shape = Shape {
    title: "an item of `devices`",
    name: "device",
    doc: "A device of the host.",
    choice: false,
    keys: &[
        Key::required(
            "path",
            Kind::CellPath,
            "\"/dev/ttyS1\"",
            "its path below `/dev`, on the host and in the cell; none that reaches the machine's memory",
        ),
        Key::default(
            "access",
            Kind::Choice(ACCESSES),
            "\"rw\"",
            "whether it may be read, written, or both",
        ),
    ],
};

static MOUNT: Shape = Shape {
    title: "an item of `mounts`",
    name: "mount",
    doc: "A file or directory of the host inside the cell.",
    choice: false,
    keys: &[
        Key::required(
            "source",
            Kind::HostPath,
            "\"/var/lib/telemetry\"",
            "path on the host; none that holds the kernel's files",
        ),
        Key::required(
            "target",
            Kind::CellPath,
            "\"/data\"",
            "absolute path in the cell; each once",
        ),
        Key::default(
            "writable",
            Kind::Boolean,
            "false",
            "whether the cell may write to it",
        ),
    ],
};

static TMPFS: Shape = Shape {
    title: "an item of `tmpfs`",
    name: "tmpfs",
    doc: "A directory in memory.",
    choice: false,
    keys: &[
        Key::required(
            "target",
            Kind::CellPath,
            "\"/tmp\"",
            "absolute path in the cell; each once",
        ),
        Key::required(
            "size",
            Kind::Size { least: 4096 },
            "\"8MiB\"",
            "the most that it holds",
        ),
    ],
};
