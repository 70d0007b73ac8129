//! `net-dev`: asks every network device for its settings, over and over. stress-ng's `--netdev`, or the same calls
//! built in.

use std::ffi::CStr;
use std::os::fd::AsRawFd;

use model::{LoadKind, LoadPlan};
use record::Achieved;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::stress_ng;
use crate::load::kind::{Gauge, Load, Program, Setting, Window};
use crate::load::tally::Tally;

pub(crate) struct NetDev;

/// Index, flags, address, netmask, metric, MTU, hardware address, memory map, queue length.
const QUESTIONS: [libc::c_ulong; 9] = [
    libc::SIOCGIFINDEX,
    libc::SIOCGIFFLAGS,
    libc::SIOCGIFADDR,
    libc::SIOCGIFNETMASK,
    libc::SIOCGIFMETRIC,
    libc::SIOCGIFMTU,
    libc::SIOCGIFHWADDR,
    libc::SIOCGIFMAP,
    libc::SIOCGIFTXQLEN,
];

impl Load for NetDev {
    fn kind(&self) -> LoadKind {
        LoadKind::NetDev
    }

    fn does(&self) -> &'static str {
        "queries the settings of the network devices on every cpu"
    }

    fn program(&self) -> Option<Program> {
        Some(stress_ng::PROGRAM)
    }

    fn command(&self, _: &LoadPlan, setting: &Setting) -> Vec<String> {
        stress_ng::command(&["--netdev", &setting.cpus.len().to_string()])
    }

    fn told(&self, window: &Window<'_>) -> Vec<Achieved> {
        stress_ng::told(window, "netdev")
    }

    fn gauges(&self) -> Vec<Gauge> {
        vec![Gauge::rate("device queries", "1/s", 1.0)]
    }

    fn work(&self, setting: &Setting, tally: &Tally) -> String {
        crate::load::kind::on_each_cpu(setting, tally, |_| match ask(tally) {
            Ok(()) => "there is no network device".to_owned(),
            Err(error) => format!("network devices: {error}"),
        })
    }
}

fn ask(tally: &Tally) -> std::io::Result<()> {
    let kind = SocketType::DGRAM;
    let socket = socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)?;
    let names = names();
    while !names.is_empty() {
        for name in &names {
            for question in QUESTIONS {
                // SAFETY: an all-zero ifreq is a valid value.
                let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
                for (to, from) in request.ifr_name.iter_mut().zip(name) {
                    *to = *from as libc::c_char;
                }
                // A device without an address refuses that question: the call was made all the same.
                // The C libraries differ in the type of an ioctl's number; the system call takes any.
                // SAFETY: an open socket and a request that lives through the call.
                unsafe {
                    libc::syscall(
                        libc::SYS_ioctl,
                        socket.as_raw_fd(),
                        question,
                        &raw mut request,
                    )
                };
            }
            tally.add(0, QUESTIONS.len() as u64);
        }
    }
    Ok(())
}

/// Names of the devices, without their final NUL, short enough to leave room for it.
fn names() -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    // SAFETY: the list ends with an entry without a name and is given back below.
    unsafe {
        let list = libc::if_nameindex();
        let mut entry = list;
        while !entry.is_null() && !(*entry).if_name.is_null() {
            let name = CStr::from_ptr((*entry).if_name).to_bytes();
            names.push(name[..name.len().min(libc::IFNAMSIZ - 1)].to_vec());
            entry = entry.add(1);
        }
        if !list.is_null() {
            libc::if_freenameindex(list);
        }
    }
    names
}
