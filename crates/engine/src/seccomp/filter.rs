//! Seccomp programs for the kernel.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use libc::{SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::calls::{self, INHERITANCE};
use super::{Answers, Refusal, Test, When, notify};

use crate::error::{Doing, Result};

/// Programs for the kernel that carry out a policy's refusals. A call is refused if any of them refuses it.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    refusing: Vec<BpfProgram>,
    /// The program that refuses [`calls::INHERITANCE`], where the cell's agent does not.
    inheritance: Option<BpfProgram>,
    answers: Option<Answers>,
}

/// Whether this kernel and this architecture have filters.
pub(crate) fn is_supported() -> bool {
    TargetArch::try_from(std::env::consts::ARCH).is_ok()
        && Path::new("/proc/sys/kernel/seccomp/actions_avail").exists()
}

impl Filter {
    /// Compiles a policy, of which nothing is left where it is empty, with the way in which calls of [`super::SCHEDULING`] are answered that it does
    /// not refuse.
    ///
    /// # Errors
    /// On an architecture for which no filter can be built.
    pub(crate) fn of(policy: &[Refusal], answers: Option<Answers>) -> Result<Filter> {
        if policy.is_empty() {
            return Ok(Filter {
                refusing: Vec::new(),
                inheritance: None,
                answers: None,
            });
        }
        let mut programs = vec![foreign_calls()];
        // One program has one answer.
        let others = || policy.iter().filter(|refusal| **refusal != INHERITANCE);
        let mut errors: Vec<i32> = others().map(|refusal| refusal.errno).collect();
        errors.sort_unstable();
        errors.dedup();
        for errno in errors {
            let refused = others().filter(|refusal| refusal.errno == errno);
            programs.push(compile(refused, errno)?);
        }
        let inheritance = (policy.contains(&INHERITANCE))
            .then(|| compile(std::iter::once(&INHERITANCE), INHERITANCE.errno));
        Ok(Filter {
            refusing: programs,
            inheritance: inheritance.transpose()?,
            answers,
        })
    }

    /// Installs the programs for the calling thread and all that it starts; they can never be taken away again. The `agent` at the
    /// other end of the socket gets the descriptor of its calls.
    ///
    /// # Errors
    /// In the kernel's words.
    pub(crate) fn install(&self, agent: Option<BorrowedFd<'_>>) -> Result<()> {
        for program in &self.refusing {
            seccompiler::apply_filter(program).doing(|| "seccomp")?;
        }
        if let (Some(Answers::Agent), Some(agent)) = (self.answers, agent) {
            let program = Answers::Agent.program(self.inheritance.is_some());
            let listener = notify::install(&program).doing(|| "seccomp")?;
            return crate::agent::send(agent, listener.as_fd())
                .doing(|| "its agent does not answer");
        }
        let nothing = self.answers.map(|_| Answers::Nothing.program(false));
        (self.inheritance.iter().chain(&nothing))
            .try_for_each(|program| seccompiler::apply_filter(program).doing(|| "seccomp"))
    }
}

fn compile<'a>(refused: impl Iterator<Item = &'a Refusal>, errno: i32) -> Result<BpfProgram> {
    let doing = || "cannot build a seccomp filter";
    let mut rules = BTreeMap::new();
    for refusal in refused {
        let conditions: Result<Vec<SeccompRule>, _> = (refusal.when.iter())
            .map(|when| SeccompRule::new(when.all().map(condition).collect::<Result<_, _>>()?))
            .collect();
        rules.insert(refusal.number, conditions.doing(doing)?);
    }
    let arch = TargetArch::try_from(std::env::consts::ARCH).doing(doing)?;
    let action = SeccompAction::Errno(errno.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, action, arch)
        .and_then(TryInto::try_into)
        .doing(doing)
}

fn condition(when: &When) -> Result<SeccompCondition, seccompiler::BackendError> {
    let (length, operator, value) = match when.test {
        Test::Masked { mask, value } => (
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(mask.into()),
            value,
        ),
        Test::NotNull => (SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0),
    };
    SeccompCondition::new(when.argument, length, operator, value.into())
}

/// The x32 calls of x86-64 have this bit: the same calls under other numbers.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// ENOSYS for calls that are newer than the tables, and death for x32 calls. Calls of another architecture are dealt
/// with by every compiled program.
fn foreign_calls() -> BpfProgram {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const IF_ABOVE: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
    #[cfg(target_arch = "x86_64")]
    const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    #[cfg(target_arch = "x86_64")]
    const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    let step = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    let no_such_call = SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    vec![
        // The number is the first field of seccomp_data.
        step(LOAD, 0, 0, 0),
        // A skipped call has -1, and none of x32 does.
        #[cfg(target_arch = "x86_64")]
        step(IF_EQUAL, u32::MAX, 2, 0),
        #[cfg(target_arch = "x86_64")]
        step(IF_AT_LEAST, X32, 3, 0),
        step(IF_ABOVE, calls::HIGHEST, 0, 1),
        step(RETURN, no_such_call, 0, 0),
        step(RETURN, SECCOMP_RET_ALLOW, 0, 0),
        #[cfg(target_arch = "x86_64")]
        step(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use libc::EPERM;

    use super::*;
    use crate::app::{Granted, Grants, Network, RealTime, Scheduling, Seccomp};
    use crate::seccomp::policy;

    /// The answer of a call under the filter of these grants: 0 or the error number, as told by a child's exit status;
    /// a signal is negative.
    fn answer(grants: &Grants, call: impl Fn() -> i64) -> i32 {
        let answers = matches!(grants.scheduling, Scheduling::Granted(_));
        let answers = answers.then_some(Answers::Nothing);
        let filter = Filter::of(&policy(grants, Network::None), answers).unwrap();
        // SAFETY: the child makes system calls and ends without returning.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let status = match filter.install(None) {
                Ok(()) if call() >= 0 => 0,
                Ok(()) => std::io::Error::last_os_error()
                    .raw_os_error()
                    .unwrap_or(255),
                Err(_) => 254,
            };
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(status) };
        }
        let mut status = 0;
        // SAFETY: the child was just made; `status` is valid.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        if libc::WIFSIGNALED(status) {
            -libc::WTERMSIG(status)
        } else {
            libc::WEXITSTATUS(status)
        }
    }

    fn set_class(policy: i32) -> i64 {
        let priority = 0_i32;
        // SAFETY: a pointer to one integer, like the kernel's sched_param.
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) }
    }

    #[test]
    fn what_is_granted_succeeds_without_effect_where_nobody_answers() {
        let closed = Grants::default();
        let real_time = RealTime::ByTask;
        let open = Grants {
            scheduling: Scheduling::Granted(Granted {
                real_time,
                cpus: vec![0],
                held_in: None,
            }),
            ..Grants::default()
        };
        let class_after = |policy: i32| {
            set_class(policy);
            // SAFETY: no memory is involved.
            let now = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
            if now == i64::from(libc::SCHED_OTHER) {
                0
            } else {
                -1
            }
        };
        for policy in [libc::SCHED_OTHER, libc::SCHED_FIFO, libc::SCHED_BATCH, 6, 7] {
            assert_eq!(answer(&closed, || set_class(policy)), EPERM, "{policy}");
            assert_eq!(answer(&open, || set_class(policy)), 0, "{policy}");
            assert_eq!(answer(&open, || class_after(policy)), 0, "{policy}");
        }
        for number in crate::seccomp::SCHEDULING.map(|(_, number)| number) {
            // SAFETY: answered before any of it is looked at.
            let call = || unsafe { libc::syscall(number, 0, 0, 0, 0) };
            assert_eq!(answer(&closed, call), EPERM, "{number}");
            assert_eq!(answer(&open, call), 0, "{number}");
        }
        let off = Grants {
            seccomp: Seccomp::Off,
            ..open
        };
        assert_eq!(answer(&off, || set_class(6)), libc::EINVAL);
    }

    #[test]
    fn namespaces_are_refused_and_threads_are_not() {
        let grants = Grants::default();
        // SAFETY: plain system calls; a null stack is that of the caller.
        let unshare = |flags: i32| unsafe { i64::from(libc::unshare(flags)) };
        assert_eq!(answer(&grants, || unshare(libc::CLONE_NEWUSER)), EPERM);
        assert_eq!(answer(&grants, || unshare(0x80)), EPERM);
        assert_eq!(answer(&grants, || unshare(libc::CLONE_FILES)), 0);
        let clone = |flags: i64| unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
        let user = i64::from(libc::CLONE_NEWUSER | libc::SIGCHLD);
        assert_eq!(answer(&grants, || clone(user)), EPERM);
        // The kernel ignores the bits above the flags, and so must the filter.
        assert_eq!(answer(&grants, || clone(user | 1 << 40)), EPERM);
        assert_eq!(answer(&grants, || clone(libc::SIGCHLD.into())), 0);
        let clone3 = || unsafe { libc::syscall(libc::SYS_clone3, 0, 0) };
        assert_eq!(answer(&grants, clone3), libc::ENOSYS);
    }

    #[test]
    fn priorities_are_inherited_only_where_that_is_granted() {
        let closed = Grants::default();
        let open = Grants {
            priority_inheritance: true,
            ..Grants::default()
        };
        let word = std::sync::atomic::AtomicU32::new(0);
        // SAFETY: a word that outlives the call; there is no timeout.
        let futex = |operation: i64| unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                operation,
                0,
                0,
                word.as_ptr(),
                0,
            )
        };
        // With FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME, both, neither, and with bits that the kernel does not look at.
        for beside in [0, 128, 256, 128 | 256, 1 << 40] {
            for operation in [6, 7, 8, 11, 12, 13] {
                let answer = |grants| answer(grants, || futex(operation | beside));
                assert_eq!(answer(&closed), libc::ENOSYS, "{operation} {beside}");
                // The kernel has no LOCK_PI of its own real-time clock and the like; LOCK_PI, UNLOCK_PI and TRYLOCK_PI are
                // those that need no second thread.
                if beside == 128 && operation == 8 {
                    assert_eq!(answer(&open), 0);
                }
            }
            // FUTEX_WAKE, FUTEX_REQUEUE and FUTEX_WAKE_BITSET are everybody's.
            for operation in [1, 3] {
                if beside != 256 && beside != 128 | 256 {
                    assert_eq!(answer(&closed, || futex(operation | beside)), 0);
                }
            }
        }
    }

    #[test]
    fn what_shares_a_number_with_a_refused_option_is_allowed() {
        let cage = Grants {
            seccomp: Seccomp::Cage,
            ..Grants::default()
        };
        // SAFETY: plain system calls with numbers and one integer that outlives them.
        let option = |family: i32, level: i32, name: i32| unsafe {
            let socket = libc::syscall(libc::SYS_socket, family, libc::SOCK_STREAM, 0);
            let on = 1_i32;
            libc::syscall(libc::SYS_setsockopt, socket, level, name, &raw const on, 4)
        };
        for grants in [&Grants::default(), &cage] {
            let answer = |level, name| answer(grants, || option(libc::AF_UNIX, level, name));
            for name in [libc::SO_ATTACH_FILTER, libc::SO_ATTACH_REUSEPORT_CBPF] {
                assert_eq!(answer(libc::SOL_SOCKET, name), EPERM);
            }
            assert_eq!(answer(libc::SOL_SOCKET, libc::SO_KEEPALIVE), 0);
            // IPV6_V6ONLY has the number of SO_ATTACH_FILTER; a UNIX socket has no such level.
            let other = answer(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY);
            assert_eq!(other, libc::EOPNOTSUPP);
        }
    }

    #[test]
    fn options_and_advice_that_interrupt_every_cpu_are_refused_and_their_neighbours_are_not() {
        let cage = Grants {
            seccomp: Seccomp::Cage,
            ..Grants::default()
        };
        // SAFETY: plain system calls with numbers and one integer that outlives them.
        let option = |protocol: i32, level: i32, name: i32| unsafe {
            let socket = libc::syscall(libc::SYS_socket, libc::AF_INET, libc::SOCK_DGRAM, protocol);
            let value = 0_i32;
            libc::syscall(
                libc::SYS_setsockopt,
                socket,
                level,
                name,
                &raw const value,
                4,
            )
        };
        // SAFETY: advice on no memory.
        let advise = |advice: i32| unsafe { libc::syscall(libc::SYS_madvise, 0, 0, advice) };
        for grants in [&Grants::default(), &cage] {
            for level in [libc::IPPROTO_UDP, libc::IPPROTO_UDPLITE] {
                // A socket of UDP has the options of UDP-Lite as well on kernels that still know that protocol.
                for name in [100, libc::UDP_GRO] {
                    let refused = answer(grants, || option(libc::IPPROTO_UDP, level, name));
                    assert_eq!(refused, EPERM, "{level} {name}");
                }
            }
            let segment = answer(grants, || {
                option(libc::IPPROTO_UDP, libc::IPPROTO_UDP, libc::UDP_SEGMENT)
            });
            assert_eq!(segment, 0);
            assert_eq!(answer(grants, || advise(25)), EPERM);
            assert_eq!(answer(grants, || advise(libc::MADV_DONTNEED)), 0);
        }
    }

    #[test]
    fn huge_pages_asynchronous_contexts_and_netlink_are_the_default_levels_to_refuse() {
        let (default, cage) = (
            Grants::default(),
            Grants {
                seccomp: Seccomp::Cage,
                ..Grants::default()
            },
        );
        // SAFETY: plain system calls with numbers alone.
        let netlink = |protocol: i32| unsafe {
            libc::syscall(
                libc::SYS_socket,
                libc::AF_NETLINK,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                protocol,
            )
        };
        assert_eq!(answer(&default, || netlink(libc::NETLINK_ROUTE)), 0);
        for protocol in (1..32).chain([33]) {
            let answer = answer(&default, || netlink(protocol));
            assert_eq!(answer, libc::EAFNOSUPPORT, "{protocol}");
        }
        assert_eq!(answer(&cage, || netlink(libc::NETLINK_KOBJECT_UEVENT)), 0);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let map = |flags: i32| unsafe {
            libc::syscall(libc::SYS_mmap, 0, 4096, libc::PROT_READ, flags, -1, 0)
        };
        assert_eq!(answer(&default, || map(flags)), 0);
        assert_eq!(answer(&default, || map(flags | libc::MAP_HUGETLB)), EPERM);
        let contexts = || unsafe { libc::syscall(libc::SYS_io_setup, 1, 0) };
        assert_eq!(answer(&default, contexts), libc::ENOSYS);
        assert_eq!(answer(&cage, contexts), libc::EFAULT);
    }

    #[test]
    fn calls_that_nobody_looked_at_do_not_exist() {
        // SAFETY: no such call.
        let newer = || unsafe { libc::syscall(i64::from(calls::HIGHEST) + 1) };
        assert_eq!(answer(&Grants::default(), newer), libc::ENOSYS);
        let none = || unsafe { libc::syscall(-1) };
        assert_eq!(answer(&Grants::default(), none), libc::ENOSYS);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn calls_of_other_architectures_kill() {
        // SAFETY: getpid as an x32 program calls it.
        let x32 = || unsafe { libc::syscall(i64::from(X32) | libc::SYS_getpid) };
        assert_eq!(answer(&Grants::default(), x32), -libc::SIGSYS);
        let i386 = || {
            let number: i64;
            // SAFETY: getpid as a 32-bit program calls it; touches no memory.
            unsafe { std::arch::asm!("int 0x80", inlateout("rax") 20_i64 => number) };
            number
        };
        assert_eq!(answer(&Grants::default(), i386), -libc::SIGSYS);
    }

    #[test]
    fn every_refused_call_is_refused() {
        for refusal in policy(&Grants::default(), Network::None) {
            let arguments = |when: Option<&When>| {
                let mut arguments = [0_i64; 6];
                for when in when.into_iter().flat_map(When::all) {
                    arguments[usize::from(when.argument)] = match when.test {
                        Test::Masked { value, .. } => value.into(),
                        Test::NotNull => 1 << 32,
                    };
                }
                arguments
            };
            let whens: Vec<Option<&When>> = match refusal.when {
                [] => vec![None],
                some => some.iter().map(Some).collect(),
            };
            for when in whens {
                let [a, b, c, d, e, f] = arguments(when);
                // SAFETY: refused before it is looked at.
                let call = || unsafe { libc::syscall(refusal.number, a, b, c, d, e, f) };
                let answer = answer(&Grants::default(), call);
                assert_eq!(answer, refusal.errno, "{} {when:?}", refusal.name);
            }
        }
    }
}
