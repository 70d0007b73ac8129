//! A cell's rights on the machine besides cpu time.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::file::{Kind, table, tables};

/// The highest user or group id: 2^32 - 1 means none.
const ID: Kind = Kind::Integer {
    least: 0,
    most: 4_294_967_294,
};
const CAPABILITIES: Kind = Kind::List {
    of: &Kind::Label,
    least: 0,
    most: 64,
    unique: true,
};

table! {
    /// The cell's rights on the machine besides cpu time; none by default.
    ///
    /// None means an empty network namespace, a read-only root, no capability, no device beyond those that every container
    /// has, and a seccomp filter. With any right, a cell cannot raise its class, leave its cgroup or exceed its budget.
    pub struct Rights: "rights", "[cell.rights]" {
        /// `none`: its own network with only loopback; `host`: that of the host
        network: Network, Default "\"none\"";
        /// whether it may write to its root; its writes are lost with the cell
        writable_root: bool, Default "false";
        /// capabilities beyond those its class needs, such as `CAP_NET_RAW`; those that would let it escape are refused
        capabilities: Vec<String> = CAPABILITIES, Default "[]";
        /// `default`: refuses the system calls that container engines refuse and those that would let it escape; `cage`: only the latter
        seccomp: Seccomp, Default "\"default\"";
        /// user and group of its program
        user: Option<User>, Without "those of the bundle or image, else one of the mission's `uids` that no other cell has";
        /// devices of the host
        devices: Vec<Device> = tables::<Device>(256), Without "none";
        /// whether its threads may attach to EVL and run out of band: with FIFO at any priority, and cpu time that no budget sees
        evl: bool, Default "false";
        /// files and directories of the host
        mounts: Vec<Mount> = tables::<Mount>(256), Without "none";
        /// directories in memory, empty at first
        tmpfs: Vec<Tmpfs> = tables::<Tmpfs>(64), Without "none";
        /// maximum memory, tmpfs included
        memory: Option<Bytes> = Kind::Size { least: 1 << 20 }, Without "its share of what is free, shown by `admit`";
        /// maximum number of processes and threads
        pids: u32 = Kind::Integer { least: 1, most: 4_194_304 }, Default "64";
        /// maximum number of pending signals of its user, including one for each POSIX timer (RLIMIT_SIGPENDING)
        pending_signals: u32 = Kind::Integer { least: 1, most: 1_048_576 }, Default "256";
        /// maximum size of its user's POSIX message queues (RLIMIT_MSGQUEUE)
        message_queues: Bytes, Default "\"800KiB\"";
        /// maximum number of open descriptors of each of its processes, timerfds included (RLIMIT_NOFILE)
        open_files: u32 = Kind::Integer { least: 16, most: 1_048_576 }, Default "1024";
    }
}

table! {
    /// User and group of the cell's program, as the cell sees them.
    pub struct User(Copy, Serialize, Deserialize): "user", "`user`" {
        /// user id
        uid: u32 = ID, Required "1000";
        /// group id
        ///
        /// There are no supplementary groups.
        gid: u32 = ID, Required "1000";
    }
}

impl User {
    /// The user who owns nothing.
    pub const NOBODY: User = User {
        uid: 65_534,
        gid: 65_534,
    };
}

impl Rights {
    /// Devices of EVL that a thread needs to run out of band; then those of libevl: without the second clock it does not begin, and the
    /// others are for its mutexes, events and semaphores, and for its output.
    pub const OF_EVL: [&str; 6] = [
        "/dev/evl/control",
        "/dev/evl/thread/clone",
        "/dev/evl/clock/monotonic",
        "/dev/evl/clock/realtime",
        "/dev/evl/monitor/clone",
        "/dev/evl/proxy/clone",
    ];

    /// All devices that it gets: those named, and those of EVL.
    pub fn all_devices(&self) -> Vec<Device> {
        let of_evl = Rights::OF_EVL.map(|path| Device {
            path: path.into(),
            access: Access::ReadWrite,
        });
        let of_evl = of_evl.into_iter().filter(|_| self.evl);
        self.devices.iter().cloned().chain(of_evl).collect()
    }
}

choice! {
    /// Which network a cell sees.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Network {
        /// Its own network namespace with only loopback.
        None = "none",
        /// That of the host, with the abstract Unix sockets of every process in it.
        Host = "host",
    }
}

choice! {
    /// Which system calls a cell is refused. There is no choice without any: the calls with which a cell could leave its class or
    /// its cgroup are always refused.
    pub enum Seccomp {
        /// Those that container engines refuse by default, and those with which a cell could escape.
        Default = "default",
        /// Only those with which a cell could escape.
        Cage = "cage",
    }
}

table! {
    /// A device of the host.
    pub struct Device(Serialize, Deserialize): "device", "an item of `devices`" {
        /// its path below `/dev`, on the host and in the cell; not one that gives access to the machine's memory
        path: PathBuf = Kind::CellPath, Required "\"/dev/ttyS1\"";
        /// whether it may be read, written, or both
        access: Access, Default "\"rw\"";
    }
}

choice! {
    /// A cell's access to a device.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Access {
        /// Read.
        Read = "r",
        /// Write.
        Write = "w",
        /// Read and write.
        ReadWrite = "rw",
    }
}

table! {
    /// A file or directory of the host inside the cell.
    pub struct Mount: "mount", "an item of `mounts`" {
        /// path on the host; not one that holds the kernel's files
        ///
        /// A relative path starts at the directory of the mission file.
        source: PathBuf, Required "\"/var/lib/telemetry\"";
        /// absolute path in the cell; unique
        target: PathBuf = Kind::CellPath, Required "\"/data\"";
        /// whether the cell may write to it
        writable: bool, Default "false";
    }
}

table! {
    /// A directory in memory.
    pub struct Tmpfs: "tmpfs", "an item of `tmpfs`" {
        /// absolute path in the cell; unique
        target: PathBuf = Kind::CellPath, Required "\"/tmp\"";
        /// maximum size
        size: Bytes = Kind::Size { least: 4096 }, Required "\"8MiB\"";
    }
}
