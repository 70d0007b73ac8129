//! The kinds of load: a file for each, and a line in [`by_kind`].

mod cpu;
mod custom;
mod disk;
mod ipc;
mod memory;
mod net_dev;
mod net_icmp;
mod net_tcp;
mod stress_ng;
mod video;

use model::LoadKind;

use super::kind::Load;

/// Every load. Adding one: a file and a line here.
pub(crate) fn by_kind(kind: LoadKind) -> &'static dyn Load {
    match kind {
        LoadKind::Cpu => &cpu::Cpu,
        LoadKind::Ipc => &ipc::Ipc,
        LoadKind::Memory => &memory::Memory,
        LoadKind::Disk => &disk::Disk,
        LoadKind::NetIcmp => &net_icmp::NetIcmp,
        LoadKind::NetTcp => &net_tcp::NetTcp,
        LoadKind::NetDev => &net_dev::NetDev,
        LoadKind::Video => &video::Video,
        LoadKind::Custom => &custom::Custom,
    }
}
