//! Reading the rights of a cell.

use crate::Bytes;
use crate::file::Node;
use crate::mission::{Access, Device, Mount, Network, Rights, Seccomp, Tmpfs, User};

pub(super) fn rights(table: &Node<'_>) -> Rights {
    let count = |key| table.count(key).unwrap_or(1);
    Rights {
        network: (table.choice("network", &Network::NAMES)).unwrap_or(Network::None),
        writable_root: table.boolean("writable_root"),
        capabilities: table.texts("capabilities"),
        seccomp: (table.choice("seccomp", &Seccomp::NAMES)).unwrap_or(Seccomp::Default),
        user: table.table("user").map(|user| User {
            uid: user.count("uid").unwrap_or_default(),
            gid: user.count("gid").unwrap_or_default(),
        }),
        devices: table.tables("devices").iter().map(device).collect(),
        mounts: table.tables("mounts").iter().map(mount).collect(),
        tmpfs: table.tables("tmpfs").iter().map(tmpfs).collect(),
        memory: table.size("memory"),
        pids: count("pids"),
        pending_signals: count("pending_signals"),
        message_queues: table.size("message_queues").unwrap_or(Bytes::new(0)),
        open_files: count("open_files"),
    }
}

fn device(table: &Node<'_>) -> Device {
    Device {
        path: table.path("path").unwrap_or_default(),
        access: table
            .choice("access", &Access::NAMES)
            .unwrap_or(Access::ReadWrite),
    }
}

fn mount(table: &Node<'_>) -> Mount {
    Mount {
        source: table.path("source").unwrap_or_default(),
        target: table.path("target").unwrap_or_default(),
        writable: table.boolean("writable"),
    }
}

fn tmpfs(table: &Node<'_>) -> Tmpfs {
    Tmpfs {
        target: table.path("target").unwrap_or_default(),
        size: table.size("size").unwrap_or(Bytes::new(0)),
    }
}
