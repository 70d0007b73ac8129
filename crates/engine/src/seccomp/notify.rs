//! System calls that are answered from outside the cell: the kernel's user notification (seccomp_unotify(2)), as a program
//! for the kernel and as the structures by which an agent receives and answers.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_USER_NOTIF, c_long};
use seccompiler::{BpfProgram, sock_filter};

use super::Test;
use super::calls::INHERITANCE;

/// The calls that change class, priority or cpus of a thread, by name and number.
pub(crate) const SCHEDULING: [(&str, c_long); 4] = [
    ("sched_setscheduler", libc::SYS_sched_setscheduler),
    ("sched_setparam", libc::SYS_sched_setparam),
    ("sched_setattr", libc::SYS_sched_setattr),
    ("sched_setaffinity", libc::SYS_sched_setaffinity),
];

/// Offset of the low 32 bits of an argument in seccomp_data, bytes.
const fn argument(number: u8) -> u32 {
    let low = if cfg!(target_endian = "big") { 4 } else { 0 };
    16 + 8 * number as u32 + low
}

/// How the calls of [`SCHEDULING`] are answered where they are not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// By the cell's agent.
    Agent,
    /// By the filter itself: success, without any effect.
    Nothing,
}

impl Answers {
    /// The best that this kernel has.
    pub(crate) fn here() -> Answers {
        let actions = host::file::text("/proc/sys/kernel/seccomp/actions_avail");
        let has = actions.is_ok_and(|all| all.split_whitespace().any(|name| name == "user_notif"));
        if has {
            Answers::Agent
        } else {
            Answers::Nothing
        }
    }

    /// The program that answers so, the operations of [`INHERITANCE`] as well where those are `refused`, and allows everything else.
    /// Calls of other architectures do not reach it: every other program of a cell's filter ends their callers.
    pub(super) fn program(self, refused: bool) -> BpfProgram {
        const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
        const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
        const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
        const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        let answer = match self {
            Answers::Agent => SECCOMP_RET_USER_NOTIF,
            Answers::Nothing => SECCOMP_RET_ERRNO,
        };
        let step = |code, k, jt, jf| sock_filter { code, jt, jf, k };
        let mut backwards = vec![
            step(RETURN, answer, 0, 0),
            step(RETURN, SECCOMP_RET_ALLOW, 0, 0),
        ];
        // Over the steps that were added before.
        let to_the_answer = |program: &BpfProgram| program.len() as u8 - 1;
        if refused {
            let allow = |program: &BpfProgram| program.len() as u8 - 2;
            let (mut of_all, mut operand) = (0, 0);
            for when in INHERITANCE.when {
                let Test::Masked { mask, value } = when.test else {
                    unreachable!("operations are numbers");
                };
                (of_all, operand) = (mask, when.argument);
                let jump = to_the_answer(&backwards);
                backwards.push(step(IF_EQUAL, value, jump, 0));
            }
            backwards.push(step(AND, of_all, 0, 0));
            backwards.push(step(LOAD, argument(operand), 0, 0));
            let jump = allow(&backwards);
            backwards.push(step(IF_EQUAL, INHERITANCE.number as u32, 0, jump));
        }
        for (_, number) in SCHEDULING {
            let jump = to_the_answer(&backwards);
            backwards.push(step(IF_EQUAL, number as u32, jump, 0));
        }
        // The number is the first field of seccomp_data.
        backwards.push(step(LOAD, 0, 0, 0));
        backwards.reverse();
        backwards
    }
}

/// Installs a program for the calling thread and all that it starts; returns the descriptor of those who answer.
///
/// # Errors
/// In the kernel's words; EBUSY where another program of the thread has a listener.
pub(super) fn install(program: &BpfProgram) -> io::Result<OwnedFd> {
    // Signals other than deadly ones wait for an answer that is under way (Linux 5.19).
    const WAIT_KILLABLE: libc::c_ulong = 1 << 5;
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_ptr().cast_mut().cast(),
    };
    let install = |flags: libc::c_ulong| {
        // SAFETY: a program that outlives the call, which copies it.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const filter,
            )
        };
        match i32::try_from(answer) {
            // SAFETY: a new descriptor of nobody else's.
            Ok(fd @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
            _ => Err(io::Error::last_os_error()),
        }
    };
    let listens = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    match install(listens | WAIT_KILLABLE) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => install(listens),
        installed => installed,
    }
}

/// Where calls arrive. It becomes readable with each, and hangs up once nobody has the filter any more (Linux 5.9).
#[derive(Debug)]
pub(crate) struct Listener(OwnedFd);

impl Listener {
    pub(crate) const fn new(listener: OwnedFd) -> Listener {
        Listener(listener)
    }

    /// The next call; `None`: its caller has been killed or interrupted since.
    pub(crate) fn receive(&self) -> io::Result<Option<libc::seccomp_notif>> {
        // SAFETY: a structure of numbers, which the kernel wants to be zero.
        let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        match self.control(libc::SECCOMP_IOCTL_NOTIF_RECV, (&raw mut call).cast()) {
            Ok(()) => Ok(Some(call)),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the caller still waits for the answer, so that its number still is its own.
    pub(crate) fn waits(&self, call: &libc::seccomp_notif) -> bool {
        let mut id = call.id;
        self.control(libc::SECCOMP_IOCTL_NOTIF_ID_VALID, (&raw mut id).cast())
            .is_ok()
    }

    /// Answers with an error number, 0 for success. Nobody may wait for it any more.
    pub(crate) fn answer(&self, call: &libc::seccomp_notif, errno: i32) {
        let mut answer = libc::seccomp_notif_resp {
            id: call.id,
            val: 0,
            error: -errno,
            flags: 0,
        };
        let _ = self.control(libc::SECCOMP_IOCTL_NOTIF_SEND, (&raw mut answer).cast());
    }

    fn control(&self, request: libc::Ioctl, argument: *mut libc::c_void) -> io::Result<()> {
        // SAFETY: each request is made with a structure of the type that it names.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), request, argument) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
