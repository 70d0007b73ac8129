//! The core: found, its level known, and called out of band.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::abi;

/// The device of the core itself.
pub const CONTROL: &str = "/dev/evl/control";
/// Devices that a thread opens to be attached and to sleep.
pub const NODES: [&str; 3] = [CONTROL, "/dev/evl/thread/clone", "/dev/evl/clock/monotonic"];

/// The reason why a thread cannot run out of band.
#[derive(Debug, thiserror::Error)]
pub enum EvlError {
    /// A device cannot be opened.
    #[error("{path}: {source}{}", explained(.source))]
    Device {
        /// The device.
        path: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The core's level is not known.
    #[error(
        "the kernel's EVL has level {level} of its ABI; levels {} to {} are known",
        abi::LEVELS.start(),
        abi::LEVELS.end()
    )]
    Level {
        /// Its level.
        level: u32,
    },
    /// The core refuses to attach the thread.
    #[error("EVL does not attach the thread: {source}{}", refused(.source))]
    Attach {
        /// The kernel's answer.
        source: io::Error,
    },
    /// The quotas of one cpu are more than all of it.
    #[error("the quotas of cpu {cpu} would be {sum} % of it, those of others among them")]
    Overbooked {
        /// The cpu.
        cpu: u32,
        /// All of them, percent.
        sum: i32,
    },
    /// Threads are in the time partitions of a cpu, so that they stay as they are.
    #[error(
        "threads are in the time partitions of cpu {cpu}, which cannot be changed or removed before the last of them has ended"
    )]
    Partitioned {
        /// The cpu.
        cpu: u32,
    },
    /// The core refuses a request about a cpu.
    #[error("EVL refuses {what} on cpu {cpu}: {source}{}", of_cpu(.source))]
    Cpu {
        /// The cpu.
        cpu: u32,
        /// The request.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The core refuses a request.
    #[error("EVL refuses {what}: {source}{}", no_core(.source))]
    Request {
        /// The request.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Requests that may be refused.
pub(crate) const LEVEL: &str = "to tell its level";
pub(crate) const PRIORITY: &str = "its priority";
pub(crate) const WARNINGS: &str = "to warn of switches";
pub(crate) const STATE: &str = "the thread's state";
pub(crate) const GROUP: &str =
    "the quota group (it must be there, on the cpu to which the thread is pinned)";
pub(crate) const QUOTAS: &str = "a quota group";
pub(crate) const PARTITION: &str =
    "the time partition (a schedule must be installed on the cpu to which the thread is pinned)";
pub(crate) const SCHEDULE: &str = "a schedule of time partitions";
const REQUESTS: [&str; 8] = [
    LEVEL, PRIORITY, WARNINGS, STATE, GROUP, QUOTAS, PARTITION, SCHEDULE,
];

impl EvlError {
    /// This error as a number, for a page that processes share.
    pub fn to_number(&self) -> i32 {
        let errno = |source: &io::Error| source.raw_os_error().unwrap_or(libc::EIO);
        let place = |names: &[&str], name: &str| {
            names.iter().position(|one| *one == name).unwrap_or(0) as i32
        };
        let (kind, cause) = match self {
            EvlError::Level { level } => (0, (*level).min(0xffff) as i32),
            EvlError::Attach { source } => (1, errno(source)),
            EvlError::Device { path, source } => (8 + place(&NODES, path), errno(source)),
            EvlError::Request { what, source } | EvlError::Cpu { what, source, .. } => {
                (16 + place(&REQUESTS, what), errno(source))
            }
            // Not of a thread.
            EvlError::Overbooked { .. } => (16 + place(&REQUESTS, QUOTAS), libc::EBUSY),
            EvlError::Partitioned { .. } => (16 + place(&REQUESTS, SCHEDULE), libc::EBUSY),
        };
        kind << 16 | cause
    }

    /// The error of a number; of any number, since others can write to such a page.
    pub fn from_number(number: i32) -> EvlError {
        let cause = number & 0xffff;
        let source = io::Error::from_raw_os_error(cause);
        let kind = (number >> 16) as usize;
        match kind {
            0 => EvlError::Level {
                level: cause as u32,
            },
            8..16 => EvlError::Device {
                path: NODES[(kind - 8).min(2)],
                source,
            },
            16..24 => EvlError::Request {
                what: REQUESTS[(kind - 16).min(REQUESTS.len() - 1)],
                source,
            },
            _ => EvlError::Attach { source },
        }
    }
}

fn explained(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::ENOENT) => " (no kernel with EVL, or the cell does not have its devices)",
        Some(libc::EACCES) => " (the mode of the device is for another user)",
        Some(libc::EPERM) => " (the cell has the device's node, and no right to use it)",
        _ => "",
    }
}

fn refused(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EINVAL) => " (the memory of its process is not locked; see RLIMIT_MEMLOCK)",
        Some(libc::EEXIST) => " (another thread of this machine has this name)",
        _ => "",
    }
}

fn of_cpu(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EINVAL) => " (EVL has the cpus of /sys/class/evl/control/cpus only)",
        _ => "",
    }
}

fn no_core(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::ENOTTY) => " (the device is not EVL's)",
        _ => "",
    }
}

/// The core of the running kernel.
#[derive(Debug)]
pub struct Core {
    level: u32,
}

impl Core {
    /// Opens the core and asks for its level.
    ///
    /// # Errors
    /// [`EvlError::Device`], [`EvlError::Level`].
    pub fn open() -> Result<Core, EvlError> {
        let control = open(0)?;
        let mut info = abi::CoreInfo::default();
        ioctl(&control, abi::GET_COREINFO, &raw mut info as usize).map_err(|source| {
            EvlError::Request {
                what: LEVEL,
                source,
            }
        })?;
        Core::known(info.level).map(|level| Core { level })
    }

    fn known(level: u32) -> Result<u32, EvlError> {
        match abi::LEVELS.contains(&level) {
            true => Ok(level),
            false => Err(EvlError::Level { level }),
        }
    }

    /// Level of the core's ABI.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// An ioctl that is served out of band; the calling thread is there afterwards, if it is attached.
    #[inline(always)]
    pub(crate) fn oob_ioctl(
        &self,
        file: &OwnedFd,
        request: u32,
        argument: usize,
    ) -> io::Result<()> {
        let file = i64::from(file.as_raw_fd());
        let (request, argument) = (i64::from(request), argument as i64);
        // SAFETY: the requests are those of `abi`, each with an argument that is valid for its structure.
        let answer = unsafe {
            if self.level < abi::OWN_OPTION_SINCE {
                let number = abi::OOB_BIT | abi::OOB_IOCTL;
                libc::syscall(libc::SYS_prctl, number, file, request, argument, 0_i64)
            } else {
                let number = abi::OOB_IOCTL;
                libc::syscall(
                    libc::SYS_prctl,
                    abi::PR_OOB_SYSCALL,
                    number,
                    file,
                    request,
                    argument,
                )
            }
        };
        match answer {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

const PATHS: [&CStr; 3] = [
    c"/dev/evl/control",
    c"/dev/evl/thread/clone",
    c"/dev/evl/clock/monotonic",
];

/// Opens one of [`NODES`].
pub(crate) fn open(node: usize) -> Result<OwnedFd, EvlError> {
    // SAFETY: the path ends with a null byte.
    let file = unsafe { libc::open(PATHS[node].as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if file < 0 {
        return Err(EvlError::Device {
            path: NODES[node],
            source: io::Error::last_os_error(),
        });
    }
    // SAFETY: nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// An ioctl in band.
pub(crate) fn ioctl(file: &OwnedFd, request: u32, argument: usize) -> io::Result<()> {
    // SAFETY: as in `Core::oob_ioctl`.
    match unsafe { libc::ioctl(file.as_raw_fd(), request as _, argument) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_outside_those_known_are_refused_with_their_number() {
        for level in [23, 32, 35, 36, 43] {
            assert_eq!(Core::known(level).unwrap(), level);
        }
        for level in [0, 22, 44] {
            let said = Core::known(level).unwrap_err().to_string();
            assert!(
                said.contains(&format!("has level {level} of its ABI; levels 23 to 43")),
                "{said}"
            );
        }
    }

    #[test]
    fn refusals_say_the_likely_cause() {
        let device = |errno| EvlError::Device {
            path: CONTROL,
            source: io::Error::from_raw_os_error(errno),
        };
        assert!(
            device(libc::ENOENT)
                .to_string()
                .contains("no kernel with EVL")
        );
        assert!(
            device(libc::EACCES)
                .to_string()
                .contains("mode of the device")
        );
        assert!(
            device(libc::EPERM)
                .to_string()
                .contains("no right to use it")
        );
        let attach = |errno| {
            EvlError::Attach {
                source: io::Error::from_raw_os_error(errno),
            }
            .to_string()
        };
        assert!(attach(libc::EINVAL).contains("RLIMIT_MEMLOCK"));
        assert!(attach(libc::EEXIST).contains("has this name"));
        let on_cpu = |errno| EvlError::Cpu {
            cpu: 3,
            what: QUOTAS,
            source: io::Error::from_raw_os_error(errno),
        };
        let said = on_cpu(libc::EINVAL).to_string();
        assert!(
            said.starts_with("EVL refuses a quota group on cpu 3: "),
            "{said}"
        );
        assert!(said.ends_with("cpus only)"), "{said}");
        let shared = EvlError::from_number(on_cpu(libc::ENOMEM).to_number()).to_string();
        assert!(
            shared.starts_with("EVL refuses a quota group: "),
            "{shared}"
        );
    }

    #[test]
    fn an_error_survives_as_a_number() {
        let source = || io::Error::from_raw_os_error(libc::EPERM);
        let mut errors: Vec<EvlError> = NODES
            .map(|path| EvlError::Device {
                path,
                source: source(),
            })
            .into();
        errors.extend(REQUESTS.map(|what| EvlError::Request {
            what,
            source: source(),
        }));
        errors.push(EvlError::Attach { source: source() });
        errors.push(EvlError::Level { level: 44 });
        for error in errors {
            let read = EvlError::from_number(error.to_number());
            assert_eq!(read.to_string(), error.to_string());
        }
        for number in [i32::MIN, -1, i32::MAX] {
            let _ = EvlError::from_number(number).to_string();
        }
    }

    #[test]
    fn paths_of_the_devices_are_those_told() {
        for (path, node) in PATHS.iter().zip(NODES) {
            assert_eq!(path.to_str().unwrap(), node);
        }
    }
}
