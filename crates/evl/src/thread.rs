//! A thread that runs out of band.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::abi;
use crate::kernel::{self, Core, EvlError};
use crate::{GROUPS, PARTITIONS};

/// Causes of a switch in band that are told apart.
pub const CAUSES: [&str; 4] = ["signal", "system call", "fault", "watchdog"];

static SEEN: [AtomicU32; CAUSES.len()] = [const { AtomicU32::new(0) }; CAUSES.len()];

extern "C" fn seen(_: libc::c_int, about: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid structure to a handler with SA_SIGINFO.
    let value = unsafe { (*about).si_value() }.sival_ptr as usize as u32;
    let cause = (value & 0xff) as usize;
    if value & 0xffff_0000 == abi::SIGNAL_MARK && (1..=CAUSES.len()).contains(&cause) {
        SEEN[cause - 1].fetch_add(1, Relaxed);
    }
}

/// Counts from now on by their cause the switches in band of all threads of this process that warn of them.
pub fn count_causes() {
    // SAFETY: the handler adds to atomic counters and does nothing else; zero is a valid empty mask.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = seen as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(libc::SIGXCPU, &raw const action, std::ptr::null_mut());
    }
}

/// Switches counted so far, in the order of [`CAUSES`].
pub fn causes() -> [u32; CAUSES.len()] {
    std::array::from_fn(|cause| SEEN[cause].load(Relaxed))
}

/// The core's account of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct State {
    /// Switches in band since it attached.
    pub in_band_switches: u32,
    /// Its switches of context by the core.
    pub context_switches: u32,
    /// Its cpu time out of band, ns: clocks of Linux do not see it.
    pub cpu_ns: u64,
}

/// The policy of a thread out of band.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// By priority alone, 1 to 99.
    Fifo {
        /// The priority.
        priority: u8,
    },
    /// By priority, as long as the quota of its group lasts.
    Quota {
        /// The priority, among all threads of EVL on the cpu.
        priority: u8,
        /// The number of a group of the cpu to which the thread is pinned.
        group: i32,
    },
    /// By priority, in the windows of a time partition.
    Partition {
        /// The priority, among the threads of the partition.
        priority: u8,
        /// The number of the partition, from 0.
        partition: i32,
    },
}

/// By which a thread is held out of band, once it has entered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A quota group.
    Quota,
    /// A time partition.
    Partition,
}

impl Kind {
    /// Both.
    pub const ALL: [Kind; 2] = [Kind::Quota, Kind::Partition];

    /// Its word in the arguments of a program.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Quota => "group",
            Kind::Partition => "partition",
        }
    }

    /// The variable that names those of a cell to the program in it.
    pub const fn variable(self) -> &'static str {
        match self {
            Kind::Quota => GROUPS,
            Kind::Partition => PARTITIONS,
        }
    }

    /// The policy of a thread in the one of this number.
    pub const fn policy(self, priority: u8, number: i32) -> Policy {
        match self {
            Kind::Quota => Policy::Quota {
                priority,
                group: number,
            },
            Kind::Partition => Policy::Partition {
                priority,
                partition: number,
            },
        }
    }
}

/// The calling thread, attached. To be used by that thread only.
#[derive(Debug)]
pub struct Thread {
    core: Core,
    clock: OwnedFd,
    element: OwnedFd,
}

impl Thread {
    /// Attaches the calling thread with this policy, without a name. It is pinned, and the memory that it uses locked, already; memory
    /// that its process maps from now on is locked as well, as the core demands. Until it detaches it has CAP_SYS_NICE, CAP_IPC_LOCK and
    /// CAP_SYS_RAWIO; Linux has it in FIFO at the same priority, also afterwards.
    ///
    /// # Errors
    /// [`EvlError`]; then it is not attached.
    pub fn attach(policy: Policy) -> Result<Thread, EvlError> {
        let core = Core::open()?;
        let clock = kernel::open(2)?;
        let factory = kernel::open(1)?;
        let mut made = abi::Clone::default();
        // SAFETY: it only changes how pages that are mapped later are kept.
        unsafe { libc::mlockall(libc::MCL_FUTURE) };
        kernel::ioctl(&factory, abi::CLONE, &raw mut made as usize)
            .map_err(|source| EvlError::Attach { source })?;
        // SAFETY: the core has just opened it for this process.
        let element = unsafe { OwnedFd::from_raw_fd(made.file as i32) };
        let thread = Thread {
            core,
            clock,
            element,
        };
        let (policy, priority, group, what) = match policy {
            Policy::Fifo { priority } => (libc::SCHED_FIFO, priority, 0, kernel::PRIORITY),
            Policy::Quota { priority, group } => (abi::SCHED_QUOTA, priority, group, kernel::GROUP),
            Policy::Partition {
                priority,
                partition,
            } => (abi::SCHED_TP, priority, partition, kernel::PARTITION),
        };
        let wanted = abi::Attributes {
            policy,
            priority: i32::from(priority),
            of_policy: [i64::from(group), 0],
        };
        let set = thread.ask(abi::SET_SCHEDPARAM, &raw const wanted as usize);
        if let Err(source) = set {
            thread.detach();
            return Err(EvlError::Request { what, source });
        }
        Ok(thread)
    }

    /// Level of the core's ABI.
    pub fn level(&self) -> u32 {
        self.core.level()
    }

    #[inline(always)]
    fn ask(&self, request: u32, argument: usize) -> io::Result<()> {
        self.core.oob_ioctl(&self.element, request, argument)
    }

    /// Goes out of band, where it stays until something brings it back, and has such switches counted by their cause, or no longer.
    ///
    /// # Errors
    /// If the core refuses.
    pub fn warn(&self, on: bool) -> Result<(), EvlError> {
        let mut modes = abi::WARN_ON_SWITCH | if on { abi::BY_SIGNAL } else { 0 };
        let request = if on { abi::SET_MODE } else { abi::CLEAR_MODE };
        self.ask(request, &raw mut modes as usize)
            .and_then(|()| self.ask(abi::SWITCH_OOB, 0))
            .map_err(|source| EvlError::Request {
                what: kernel::WARNINGS,
                source,
            })
    }

    /// Sleeps out of band until CLOCK_MONOTONIC reaches this instant, ns.
    #[inline(always)]
    pub fn sleep_until(&self, instant_ns: i64) {
        const NS: i64 = 1_000_000_000;
        let time = abi::Time {
            seconds: instant_ns.max(0) / NS,
            nanoseconds: instant_ns.max(0) % NS,
        };
        // A signal that is handled ends the wait.
        while let Err(error) =
            self.core
                .oob_ioctl(&self.clock, abi::SLEEP, &raw const time as usize)
        {
            if error.raw_os_error() != Some(libc::EINTR) {
                return;
            }
        }
    }

    /// The core's account of it; out of band, so that asking is no switch.
    ///
    /// # Errors
    /// If the core refuses.
    pub fn state(&self) -> Result<State, EvlError> {
        let mut state = abi::ThreadState::default();
        self.ask(abi::GET_STATE, &raw mut state as usize)
            .map_err(|source| EvlError::Request {
                what: kernel::STATE,
                source,
            })?;
        Ok(State {
            in_band_switches: state.in_band_switches,
            context_switches: state.context_switches,
            cpu_ns: state.cpu_ns,
        })
    }

    /// Gives it back to Linux, in band, and unlocks its process's memory. Its class stays as it is.
    pub fn detach(self) {
        let _ = kernel::ioctl(&self.element, abi::DETACH_SELF, 0);
        // SAFETY: it only changes how pages are kept.
        unsafe { libc::munlockall() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_kernel_without_the_core_is_said() {
        if std::path::Path::new(crate::CONTROL).exists() {
            return;
        }
        let said = Thread::attach(Policy::Fifo { priority: 50 })
            .unwrap_err()
            .to_string();
        assert!(said.starts_with("/dev/evl/control: No such file"), "{said}");
    }

    #[test]
    fn signals_are_counted_by_their_cause() {
        count_causes();
        let before = causes();
        let send = |value: u32| {
            // SAFETY: a signal to this thread, which is handled.
            unsafe {
                let mut about: libc::siginfo_t = std::mem::zeroed();
                about.si_code = libc::SI_QUEUE;
                about.si_signo = libc::SIGXCPU;
                let bytes = (&raw mut about).cast::<u8>();
                // After signal number, errno, code, padding, pid and uid.
                bytes.add(24).cast::<u64>().write(u64::from(value));
                libc::syscall(
                    libc::SYS_rt_tgsigqueueinfo,
                    libc::getpid(),
                    libc::syscall(libc::SYS_gettid),
                    libc::SIGXCPU,
                    &raw const about,
                );
            }
        };
        for value in [0xfccf_0002, 0xfccf_0002, 0xfccf_0003, 0xfccf_0009, 2] {
            send(value);
        }
        let after = causes();
        let differ: Vec<u32> = after
            .iter()
            .zip(before)
            .map(|(now, then)| now - then)
            .collect();
        assert_eq!(differ, [0, 2, 1, 0]);
    }

    #[test]
    fn other_files_refuse_its_requests() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(file.as_raw_fd() > 0);
        let error = kernel::ioctl(&OwnedFd::from(file), abi::GET_COREINFO, 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }
}
