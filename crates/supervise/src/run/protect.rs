//! Protects the supervisor from the OOM killer: cells outlive it, but nobody would restart them.

use std::fs;
use std::io;

/// Ready to be killed after everything that is not protected itself, but before what the machine cannot do without.
const OOM_SCORE_ADJ: &str = "-900";

/// Protects this process as far as permitted; returns what is not permitted, as sentences.
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
        // SAFETY: no memory is involved but what is there already.
        if unsafe { libc::mlockall(flags) } != 0 {
            let error = io::Error::last_os_error();
            left.push(format!("the supervisor's memory is not locked: {error}"));
        }
    }
    left
}
