//! Protects the supervisor from the OOM killer: cells outlive it, but nobody would restart them.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Ready to be killed after everything that is not protected itself, but before processes that the machine cannot do without.
const OOM_SCORE_ADJ: &str = "-900";

/// Protects this process as far as permitted; returns the refused protections, as sentences.
pub(super) fn supervisor() -> Vec<String> {
    let mut left = Vec::new();
    if let Err(error) = fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJ) {
        left.push(match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "the supervisor is not protected from the OOM killer, which needs CAP_SYS_RESOURCE; its cells are killed first"
                    .to_owned()
            }
            _ => format!("the supervisor is not protected from the OOM killer: {error}"),
        });
    }
    // Without the capability a limit holds, and an allocation beyond it would fail.
    if host::caps::effective().is_ok_and(|caps| caps.has("CAP_IPC_LOCK")) {
        let flags = libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT;
        // SAFETY: no memory is involved but that already there.
        if unsafe { libc::mlockall(flags) } != 0 {
            let error = io::Error::last_os_error();
            left.push(format!("the supervisor's memory is not locked: {error}"));
        }
    }
    if let Err(error) = keep_time_stamps() {
        left.push(format!(
            "a cell that asks for time stamps of packets can interrupt every cpu: they cannot be kept switched on ({error})"
        ));
    }
    left
}

/// Keeps the kernel's time stamps of packets switched on as long as this process runs: for the first socket that asks for them, and after
/// the last one, the kernel rewrites its code and interrupts every cpu (`net_enable_timestamp` in net/core/dev.c).
fn keep_time_stamps() -> io::Result<()> {
    static KEPT: OnceLock<OwnedFd> = OnceLock::new();
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    set_socket_timestamp(&socket)?;
    KEPT.get_or_init(|| socket);
    Ok(())
}

fn set_socket_timestamp(socket: &OwnedFd) -> io::Result<()> {
    let on = 1_i32;
    // SAFETY: an open socket, and an integer of the length given.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMP,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
