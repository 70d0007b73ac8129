//! Scheduling classes and affinities of processes, by system calls directly: the C libraries disagree about the structures, and one
//! of them refuses the calls altogether.

pub mod bandwidth;
mod class;
mod error;

use std::io;

pub use class::{Class, SCHED_DEADLINE};
pub use error::SchedError;

use crate::caps;
use crate::cpus::format_list;
use crate::root::Root;
use crate::rtgroup;

/// The bit `sched_getscheduler` adds when children do not inherit the class.
const SCHED_RESET_ON_FORK: i32 = 0x4000_0000;
const SCHED_FLAG_RESET_ON_FORK: u64 = 1;

/// The kernel's `struct sched_param`; libc crates add fields under musl.
#[repr(C)]
struct KernelSchedParam {
    priority: i32,
}

/// The kernel's `struct sched_attr`, first version (48 bytes).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Attributes {
    size: u32,
    /// The number of the policy, such as SCHED_FIFO.
    pub policy: u32,
    flags: u64,
    nice: i32,
    /// 1 to 99 of a real-time policy, else 0.
    pub priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

impl Attributes {
    /// Of a process's main thread, or of a thread by its id (0: the calling thread). Allocates nothing.
    ///
    /// # Errors
    /// ESRCH once it is gone.
    pub fn of(tid: i32) -> io::Result<Attributes> {
        let mut attr = Attributes::default();
        let size = size_of::<Attributes>() as u32;
        // SAFETY: the kernel writes at most `size` bytes into `attr`, which is that large.
        done(unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attr, size, 0u32) })?;
        Ok(attr)
    }

    /// Whether children start as OTHER.
    pub const fn resets_on_fork(&self) -> bool {
        self.flags & SCHED_FLAG_RESET_ON_FORK != 0
    }
}

/// Gives a thread a policy by its number, with SCHED_RESET_ON_FORK or without it; any but DEADLINE. The nice value stays. Allocates nothing.
///
/// # Errors
/// The kernel's error.
pub fn set_policy(tid: i32, policy: i32, priority: i32) -> io::Result<()> {
    let param = KernelSchedParam { priority };
    // SAFETY: the kernel only reads `param`, which has its layout and outlives the call.
    done(unsafe { libc::syscall(libc::SYS_sched_setscheduler, tid, policy, &raw const param) })
}

/// Sets the scheduling class of a process's main thread, or of a thread by its id (0: the calling
/// thread). The nice value is kept. Children inherit the class, except of DEADLINE: the kernel
/// forbids a deadline task to fork (EAGAIN) unless [`set_class_reset_on_fork`] was used.
///
/// # Errors
/// [`SchedError`] says which of the kernel's several reasons it was.
pub fn set_class(pid: i32, class: &Class) -> Result<(), SchedError> {
    set(pid, class, false)
}

/// As [`set_class`], but children start as OTHER.
///
/// # Errors
/// As [`set_class`].
pub fn set_class_reset_on_fork(pid: i32, class: &Class) -> Result<(), SchedError> {
    set(pid, class, true)
}

fn set(pid: i32, class: &Class, reset_on_fork: bool) -> Result<(), SchedError> {
    set_unexplained(pid, class, reset_on_fork)
        .map_err(|error| explain(pid, class, error.raw_os_error().unwrap_or(0)))
}

/// As [`set_class`] or [`set_class_reset_on_fork`], with the kernel's own error. Allocates nothing.
///
/// # Errors
/// The kernel's error.
pub fn set_unexplained(pid: i32, class: &Class, reset_on_fork: bool) -> io::Result<()> {
    match class {
        Class::Deadline {
            runtime_ns,
            deadline_ns,
            period_ns,
        } => {
            let attr = Attributes {
                size: size_of::<Attributes>() as u32,
                policy: SCHED_DEADLINE as u32,
                flags: if reset_on_fork {
                    SCHED_FLAG_RESET_ON_FORK
                } else {
                    0
                },
                runtime: *runtime_ns,
                deadline: *deadline_ns,
                period: *period_ns,
                ..Attributes::default()
            };
            // SAFETY: the kernel only reads `attr`, which says its own size and outlives the call.
            done(unsafe { libc::syscall(libc::SYS_sched_setattr, pid, &raw const attr, 0u32) })
        }
        _ => {
            let (mut policy, priority) = class.policy();
            if reset_on_fork {
                policy |= SCHED_RESET_ON_FORK;
            }
            set_policy(pid, policy, priority)
        }
    }
}

/// Reads the scheduling class of a process's main thread or of a thread by its id (0: the calling
/// thread).
///
/// # Errors
/// [`SchedError::NoSuchProcess`], or the kernel's error.
pub fn get_class(pid: i32) -> Result<Class, SchedError> {
    Ok(get_class_and_reset(pid)?.0)
}

/// The same, and whether children start as OTHER ([`set_class_reset_on_fork`]).
///
/// # Errors
/// As [`get_class`].
pub fn get_class_and_reset(pid: i32) -> Result<(Class, bool), SchedError> {
    let attr = Attributes::of(pid).map_err(|error| other("sched_getattr", pid, &error))?;
    let priority = attr.priority.min(99) as u8;
    let class = match attr.policy as i32 {
        SCHED_DEADLINE => Class::Deadline {
            runtime_ns: attr.runtime,
            deadline_ns: attr.deadline,
            period_ns: attr.period,
        },
        policy => Class::of_policy(policy, priority),
    };
    Ok((class, attr.resets_on_fork()))
}

/// Bits of one word of a cpu mask.
const WORD_BITS: usize = usize::BITS as usize;
/// Words for 65,536 cpus, more than any kernel has.
const MASK_WORDS: usize = 65_536 / WORD_BITS;

/// Binds a process's main thread, or a thread by its id (0: the calling thread), to these cpus.
/// Cpus that are offline or outside of its cpuset are left out by the kernel.
///
/// # Errors
/// [`SchedError::NoUsableCpu`] if no cpu remains; DEADLINE threads are refused with EBUSY.
pub fn set_affinity(pid: i32, cpus: &[u32]) -> Result<(), SchedError> {
    let no_usable = || SchedError::NoUsableCpu {
        pid,
        cpus: format_list(cpus),
    };
    let highest = cpus.iter().copied().max().ok_or_else(no_usable)?;
    if highest > crate::cpus::HIGHEST_CPU {
        return Err(no_usable());
    }
    let mut mask = vec![0usize; highest as usize / WORD_BITS + 1];
    for &cpu in cpus {
        mask[cpu as usize / WORD_BITS] |= 1 << (cpu as usize % WORD_BITS);
    }
    let bytes = mask.len() * size_of::<usize>();
    // SAFETY: the kernel reads `bytes` bytes of `mask`, which has them.
    done(unsafe { libc::syscall(libc::SYS_sched_setaffinity, pid, bytes, mask.as_ptr()) }).map_err(
        |error| match error.raw_os_error() {
            Some(libc::EINVAL) => no_usable(),
            _ => other("sched_setaffinity", pid, &error),
        },
    )
}

/// The cpus a process's main thread, or a thread by its id (0: the calling thread), may run on, in
/// ascending order.
///
/// # Errors
/// [`SchedError::NoSuchProcess`], or the kernel's error.
pub fn get_affinity(pid: i32) -> Result<Vec<u32>, SchedError> {
    let mut mask = vec![0usize; MASK_WORDS];
    let bytes = mask.len() * size_of::<usize>();
    // SAFETY: the kernel writes at most `bytes` bytes into `mask`, which has them.
    let written =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, pid, bytes, mask.as_mut_ptr()) };
    done(written).map_err(|error| other("sched_getaffinity", pid, &error))?;
    // As many bytes as this kernel may have cpus for.
    mask.truncate(written as usize / size_of::<usize>());
    let mut cpus = Vec::new();
    for (index, word) in mask.iter().enumerate() {
        for bit in (0..WORD_BITS).filter(|bit| word & (1 << bit) != 0) {
            cpus.push((index * WORD_BITS + bit) as u32);
        }
    }
    Ok(cpus)
}

fn done(answer: libc::c_long) -> io::Result<()> {
    match answer {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn other(call: &'static str, pid: i32, error: &io::Error) -> SchedError {
    let errno = error.raw_os_error().unwrap_or(0);
    if errno == libc::ESRCH {
        return SchedError::NoSuchProcess { pid };
    }
    SchedError::Other {
        call,
        pid,
        reason: crate::root::reason_of(error),
        errno,
    }
}

/// Explains an error number of setting a class.
fn explain(pid: i32, class: &Class, errno: i32) -> SchedError {
    let class = class.clone();
    match errno {
        libc::ESRCH => SchedError::NoSuchProcess { pid },
        libc::EBUSY if matches!(class, Class::Deadline { .. }) => {
            SchedError::OverBandwidth { class, pid }
        }
        libc::EINVAL => {
            let why = match class {
                Class::Fifo { .. } | Class::RoundRobin { .. } => "its priority must be 1 to 99",
                Class::Deadline { .. } => {
                    "it needs 1.024 us <= runtime <= deadline <= period, and a period within kernel.sched_deadline_period_min_us and _max_us"
                }
                _ => "the kernel does not know this class",
            }
            .to_owned();
            SchedError::Invalid { class, pid, why }
        }
        libc::EPERM if class.is_real_time() => explain_eperm(&Root::live(), pid, class),
        _ => {
            let error = std::io::Error::from_raw_os_error(errno);
            SchedError::Other {
                call: "sched_setscheduler",
                pid,
                reason: crate::root::reason_of(&error),
                errno,
            }
        }
    }
}

/// EPERM has two causes, a missing privilege and a group without budget: looks at both.
fn explain_eperm(root: &Root, pid: i32, class: Class) -> SchedError {
    let privilege = missing_privilege(root, pid, &class);
    let deadline = matches!(class, Class::Deadline { .. });
    // The kernel asks the group's budget for FIFO and RR only.
    let group = if deadline {
        None
    } else {
        rtgroup::group_without_budget(root, pid)
    };
    match (privilege, group) {
        (Some(why), None) => SchedError::NoPrivilege {
            class,
            pid,
            why,
            fix: if caps::in_user_namespace_at(root) {
                "set the class from outside of the namespace, by process id, or start the cell from a process that has it"
            } else if deadline {
                "run as root (or with CAP_SYS_NICE); limits on real-time priorities do not cover this class"
            } else {
                "run as root (or with CAP_SYS_NICE), or allow real-time priorities: `* - rtprio 99` in /etc/security/limits.d, then log in again"
            },
        },
        (None, Some(group)) => SchedError::NoRtBudget { class, pid, group },
        (Some(why), Some(group)) => SchedError::NoPrivilegeNoBudget {
            class,
            pid,
            why,
            group,
        },
        (None, None) if deadline => SchedError::AffinityTooNarrow { class, pid },
        (None, None) => SchedError::NoPrivilege {
            class,
            pid,
            why: "the caller has CAP_SYS_NICE, and no group without real-time budget was found"
                .to_owned(),
            fix: "look for a security filter (seccomp), or a cgroup v2 group on a kernel with RT_GROUP_SCHED (kernel parameter rt_group_sched=0)",
        },
    }
}

/// Which privilege is missing for `class`, or `None` if the caller has it.
fn missing_privilege(root: &Root, pid: i32, class: &Class) -> Option<String> {
    if caps::effective_at(root).is_ok_and(|caps| caps.has("CAP_SYS_NICE")) {
        return caps::in_user_namespace_at(root).then(|| {
            "the caller's CAP_SYS_NICE counts only inside its user namespace, not for the scheduler"
                .to_owned()
        });
    }
    let (Class::Fifo { priority } | Class::RoundRobin { priority }) = class else {
        return Some("the caller lacks CAP_SYS_NICE".to_owned());
    };
    match caps::limits_at(root, pid).map(|limits| limits.rtprio.soft) {
        Ok(None) => None,
        Ok(Some(limit)) if limit >= u64::from(*priority) => None,
        Ok(Some(limit)) => Some(format!(
            "the caller lacks CAP_SYS_NICE and the limit on real-time priorities (RLIMIT_RTPRIO) is {limit}"
        )),
        Err(_) => Some("the caller lacks CAP_SYS_NICE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn classes_print_as_people_say_them() {
        let show = |class: Class| class.to_string();
        assert_eq!(show(Class::Fifo { priority: 80 }), "FIFO 80");
        assert_eq!(show(Class::Other), "OTHER");
        assert_eq!(
            show(Class::Deadline {
                runtime_ns: 3_000_000,
                deadline_ns: 10_000_000,
                period_ns: 10_000_000
            }),
            "DEADLINE 3 ms/10 ms/10 ms"
        );
        assert_eq!(
            show(Class::Deadline {
                runtime_ns: 1_024,
                deadline_ns: 250_500,
                period_ns: 2_000_000_001
            }),
            "DEADLINE 1.024 us/250.5 us/2.000000001 s"
        );
        assert_eq!(show(Class::Unknown(9)), "policy 9");
    }

    #[test]
    fn classes_survive_json() {
        for class in [
            Class::Other,
            Class::Fifo { priority: 1 },
            Class::Deadline {
                runtime_ns: 1,
                deadline_ns: 2,
                period_ns: 3,
            },
            Class::Unknown(7),
        ] {
            let json = serde_json::to_string(&class).unwrap();
            assert_eq!(serde_json::from_str::<Class>(&json).unwrap(), class);
        }
    }

    fn eperm_tree(caps: &str, rtprio: u32, runtime: &str) -> Tree {
        Tree::new()
            .file("/proc/self/status", &format!("CapEff:\t{caps}\n"))
            .file("/proc/self/uid_map", "0 0 4294967295")
            .file(
                "/proc/7/limits",
                &format!(
                    "Max processes 1 1\nMax open files 1 1\nMax locked memory 1 1\n\
                     Max realtime priority {rtprio} {rtprio}\n"
                ),
            )
            .file(
                "/proc/self/mountinfo",
                "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
            )
            .file("/proc/7/cgroup", "1:cpu:/cell\n")
            .file("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000")
            .file("/sys/fs/cgroup/cpu/cpu.rt_period_us", "1000000")
            .file("/sys/fs/cgroup/cpu/cell/cpu.rt_runtime_us", runtime)
            .file("/sys/fs/cgroup/cpu/cell/cpu.rt_period_us", "1000000")
    }

    #[test]
    fn eperm_says_which_of_its_causes_it_was() {
        let all = "000001ffffffffff";
        let fifo = Class::Fifo { priority: 80 };
        let explain = |tree: Tree, class: &Class| explain_eperm(&tree.root(), 7, class.clone());
        assert!(matches!(
            explain(eperm_tree(all, 0, "0"), &fifo),
            SchedError::NoRtBudget { group, .. } if group == "/sys/fs/cgroup/cpu/cell"
        ));
        assert!(matches!(
            explain(eperm_tree("0", 50, "100000"), &fifo),
            SchedError::NoPrivilege { why, .. } if why.contains("RLIMIT_RTPRIO) is 50")
        ));
        assert!(matches!(
            explain(eperm_tree("0", 0, "0"), &fifo),
            SchedError::NoPrivilegeNoBudget { .. }
        ));
        assert!(matches!(
            explain(eperm_tree("0", 99, "0"), &fifo),
            SchedError::NoRtBudget { .. }
        ));
        let deadline = Class::Deadline {
            runtime_ns: 1,
            deadline_ns: 2,
            period_ns: 3,
        };
        assert!(matches!(
            explain(eperm_tree(all, 0, "0"), &deadline),
            SchedError::AffinityTooNarrow { .. }
        ));
        assert!(matches!(
            explain(eperm_tree("0", 99, "0"), &deadline),
            SchedError::NoPrivilege { fix, .. } if fix.contains("do not cover this class")
        ));
    }

    #[test]
    fn this_thread_can_be_asked_and_batched() {
        std::thread::spawn(|| {
            let before = get_class(0).unwrap();
            assert!(!matches!(before, Class::Unknown(_)));
            set_class(0, &Class::Batch).unwrap();
            assert_eq!(get_class_and_reset(0), Ok((Class::Batch, false)));
            set_class_reset_on_fork(0, &Class::Batch).unwrap();
            assert_eq!(get_class_and_reset(0), Ok((Class::Batch, true)));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn affinity_can_be_narrowed_and_nonsense_is_refused() {
        std::thread::spawn(|| {
            let before = get_affinity(0).unwrap();
            let one = vec![*before.last().unwrap()];
            set_affinity(0, &one).unwrap();
            assert_eq!(get_affinity(0).unwrap(), one);
            for nonsense in [&[][..], &[60_000], &[u32::MAX]] {
                assert!(matches!(
                    set_affinity(0, nonsense),
                    Err(SchedError::NoUsableCpu { .. })
                ));
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_process_that_is_not_there_is_named() {
        // Above the highest pid a kernel gives out (4,194,304).
        let pid = 2_000_000_000;
        assert_eq!(get_class(pid), Err(SchedError::NoSuchProcess { pid }));
        assert_eq!(get_affinity(pid), Err(SchedError::NoSuchProcess { pid }));
        assert_eq!(
            set_class(pid, &Class::Batch),
            Err(SchedError::NoSuchProcess { pid })
        );
    }

    #[test]
    fn a_priority_of_zero_is_refused_with_the_range() {
        let error = set_class(0, &Class::Fifo { priority: 0 }).unwrap_err();
        assert!(error.to_string().contains("1 to 99"), "{error}");
    }
}
