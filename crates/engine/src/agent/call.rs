//! One call that changes class, priority or cpus of a thread: read from its caller's memory, checked as the kernel checks it,
//! and answered with the grant.

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use freezer::page::Down;
use host::sched::{self, Attributes, Class, SCHED_DEADLINE};

use super::page::{Excess, Page};
use crate::app::{Granted, RealTime};

const RESET_ON_FORK: i32 = libc::SCHED_RESET_ON_FORK;
/// Flags of sched_setattr(2): children start as OTHER; the policy, or its parameters, stay.
const FLAG_RESET_ON_FORK: u64 = 0x01;
const FLAG_KEEP_POLICY: u64 = 0x08;
const FLAG_KEEP_PARAMETERS: u64 = 0x10;
/// The first version of the kernel's `struct sched_attr`, bytes.
const ATTRIBUTES: usize = 48;
/// Bytes of a cpu mask that are looked at: 65,536 cpus.
const MOST_MASK: usize = 8192;

/// The error number of a call.
pub(super) type Answer = Result<(), i32>;

/// The judge of a cell's calls.
pub(super) struct Judge<'a> {
    pub(super) page: &'a Page,
    pub(super) granted: &'a Granted,
    pub(super) setter: &'a Setter<'a>,
    /// Whether a thread is the cell's, where it has no pid namespace of its own.
    pub(super) is_own: &'a dyn Fn(i32) -> bool,
}

/// A class as a caller asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked {
    policy: i32,
    priority: i32,
    resets_on_fork: bool,
}

impl Judge<'_> {
    /// Answers a call, whose caller is known to wait once `waits` says so after its memory was read.
    pub(super) fn answer(&self, call: &libc::seccomp_notif, waits: &dyn Fn() -> bool) -> Answer {
        self.page.count();
        let number = libc::c_long::from(call.data.nr);
        if number == libc::SYS_futex {
            self.page.note_excess(Excess::INHERITANCE);
            return Err(libc::ENOSYS);
        }
        let caller = call.pid.cast_signed();
        let [first, second, third, ..] = call.data.args;
        // The kernel takes ids and policies as 32 bits.
        let (asked, policy) = (first as u32 as i32, second as u32 as i32);
        if asked < 0 {
            return Err(libc::EINVAL);
        }
        let target = if asked == 0 { caller } else { asked };
        let memory = Memory { caller, waits };
        if number == libc::SYS_sched_setaffinity {
            let mask = memory.mask(second, third)?;
            self.target(caller, target)?;
            return self.cpus(target, &mask);
        }
        let asked = match number {
            libc::SYS_sched_setscheduler => memory.scheduler(policy, third)?,
            libc::SYS_sched_setparam => {
                let priority = memory.priority(second)?;
                let now = self.target(caller, target)?;
                // Of a thread without a real-time class, as it runs; it may be one that has asked for another.
                let policy = (self.page.asked_policy(target.cast_unsigned()))
                    .unwrap_or(now.policy.cast_signed());
                Asked {
                    policy,
                    priority,
                    resets_on_fork: now.resets_on_fork(),
                }
            }
            libc::SYS_sched_setattr => {
                let now = self.target(caller, target)?;
                memory.attributes(second, third, &now)?
            }
            _ => return Err(libc::ENOSYS),
        };
        let now = self.target(caller, target)?;
        self.class(target, asked.checked()?, &now)
    }

    /// The thread that a call is about, as it runs now.
    fn target(&self, caller: i32, target: i32) -> Result<Attributes, i32> {
        let own = std::process::id().cast_signed();
        if target == own {
            return Err(libc::ESRCH);
        }
        if target != caller && !(self.is_own)(target) {
            return Err(libc::EPERM);
        }
        Attributes::of(target).map_err(|error| number(&error))
    }

    fn class(&self, target: i32, asked: Asked, now: &Attributes) -> Answer {
        let thread = target.cast_unsigned();
        let is_deadline = asked.policy == SCHED_DEADLINE;
        let is_real_time = is_deadline || is_fixed(asked.policy);
        if is_deadline && !matches!(self.granted.real_time, RealTime::ByTask) {
            self.page.note_excess(Excess::DEADLINE);
        }
        if is_real_time && matches!(self.granted.real_time, RealTime::None) {
            self.page.note_excess(Excess::REAL_TIME);
            return Err(libc::EPERM);
        }
        self.page.note(
            thread,
            asked.policy.cast_unsigned(),
            asked.priority.cast_unsigned(),
        );
        if let Some(class) = self.page.granted(thread) {
            return self.setter.set(target, &class, now.resets_on_fork());
        }
        let priority = u8::try_from(asked.priority).unwrap_or(0);
        let class = match self.granted.real_time {
            _ if !is_real_time => Class::of_policy(asked.policy, 0),
            // It gets its class once its task is known.
            RealTime::ByTask | RealTime::None => return Ok(()),
            RealTime::Band {
                lowest,
                highest,
                round_robin,
            } => {
                let priority = match is_deadline {
                    true => highest,
                    false => priority.clamp(lowest, highest),
                };
                // Of one priority, either class takes no more from others than the other.
                match asked.policy == libc::SCHED_RR || is_deadline && round_robin {
                    true => Class::RoundRobin { priority },
                    false => Class::Fifo { priority },
                }
            }
        };
        self.setter.set(target, &class, asked.resets_on_fork)
    }

    fn cpus(&self, target: i32, asked: &[u32]) -> Answer {
        if asked.is_empty() {
            return Err(libc::EINVAL);
        }
        let own = &self.granted.cpus;
        let both: Vec<u32> = (asked.iter().copied())
            .filter(|cpu| own.contains(cpu))
            .collect();
        let cpus = match (both.is_empty(), self.granted.real_time) {
            (true, _) => {
                self.page.note_excess(Excess::CPUS);
                own
            }
            // The kernel takes no thread into SCHED_DEADLINE, and lets none in it choose, on a part of them.
            (_, RealTime::ByTask) if both != *own => {
                self.page.note_excess(Excess::FEWER_CPUS);
                own
            }
            _ => &both,
        };
        sched::set_affinity(target, cpus).map_err(|_| libc::EINVAL)
    }
}

impl Asked {
    /// As the kernel checks it, but for rights.
    fn checked(self) -> Result<Asked, i32> {
        const KNOWN: [i32; 6] = [
            libc::SCHED_OTHER,
            libc::SCHED_FIFO,
            libc::SCHED_RR,
            libc::SCHED_BATCH,
            libc::SCHED_IDLE,
            SCHED_DEADLINE,
        ];
        let priorities = if is_fixed(self.policy) { 1..=99 } else { 0..=0 };
        match KNOWN.contains(&self.policy) && priorities.contains(&self.priority) {
            true => Ok(self),
            false => Err(libc::EINVAL),
        }
    }
}

const fn is_fixed(policy: i32) -> bool {
    policy == libc::SCHED_FIFO || policy == libc::SCHED_RR
}

/// The setter of granted classes.
pub(super) struct Setter<'a> {
    pub(super) page: &'a Page,
    /// Whether the cell's threads are lowered; `None`: they never are.
    pub(super) down: Option<RefCell<Down>>,
}

/// How often it is seen whether a cell has a budget again.
const AGAIN: Duration = Duration::from_micros(500);

impl Setter<'_> {
    /// Puts a thread into the class that was granted to it, once the cell has a budget: a thread that asks without one
    /// waits for it like the cell's real-time threads. If the budget ends meanwhile, the thread is lowered like the
    /// others, whether it was seen before or after it got the class.
    pub(super) fn set(&self, target: i32, class: &Class, resets_on_fork: bool) -> Answer {
        loop {
            while self.is_down() {
                std::thread::sleep(AGAIN);
            }
            set_unless_suspended(self.page, target, class, resets_on_fork)?;
            if !class.is_real_time() || !self.is_down() {
                return Ok(());
            }
            set(target, &Class::Idle, resets_on_fork)?;
        }
    }

    fn is_down(&self) -> bool {
        (self.down.as_ref()).is_some_and(|down| down.borrow_mut().is_now())
    }
}

/// Puts a thread into the class that was granted to it, unless the cell may have no real-time class now. That may change meanwhile: the
/// thread then has none in the end, whether this or the supervisor comes last.
fn set_unless_suspended(page: &Page, target: i32, class: &Class, resets_on_fork: bool) -> Answer {
    if class.is_real_time() && page.is_suspended() {
        return Ok(());
    }
    set(target, class, resets_on_fork)?;
    if class.is_real_time() && page.is_suspended() {
        return set(target, &Class::Other, resets_on_fork);
    }
    Ok(())
}

fn set(target: i32, class: &Class, resets_on_fork: bool) -> Answer {
    // A thread of SCHED_DEADLINE cannot make others otherwise.
    let resets_on_fork = resets_on_fork || matches!(class, Class::Deadline { .. });
    match sched::get_class_and_reset(target) {
        Ok(now) if now == (class.clone(), resets_on_fork) => return Ok(()),
        // The kernel would go on counting its bandwidth.
        Ok((Class::Deadline { .. }, _)) if !matches!(class, Class::Deadline { .. }) => {
            sched::bandwidth::leave(target).map_err(|_| libc::EBUSY)?;
        }
        _ => {}
    }
    sched::set_unexplained(target, class, resets_on_fork).map_err(|error| number(&error))
}

pub(super) fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EINVAL)
}

/// The memory of a waiting caller.
struct Memory<'a> {
    caller: i32,
    waits: &'a dyn Fn() -> bool,
}

impl Memory<'_> {
    /// The arguments of sched_setscheduler(2).
    fn scheduler(&self, policy: i32, parameters: u64) -> Result<Asked, i32> {
        if policy < 0 {
            return Err(libc::EINVAL);
        }
        Ok(Asked {
            policy: policy & !RESET_ON_FORK,
            priority: self.priority(parameters)?,
            resets_on_fork: policy & RESET_ON_FORK != 0,
        })
    }

    /// The priority in a `struct sched_param`.
    fn priority(&self, at: u64) -> Result<i32, i32> {
        if at == 0 {
            return Err(libc::EINVAL);
        }
        let mut bytes = [0; 4];
        self.read(at, &mut bytes)?;
        Ok(i32::from_ne_bytes(bytes))
    }

    /// The arguments of sched_setattr(2), for a thread that runs as `now` says.
    fn attributes(&self, at: u64, flags: u64, now: &Attributes) -> Result<Asked, i32> {
        if at == 0 || flags as u32 != 0 {
            return Err(libc::EINVAL);
        }
        let mut bytes = [0; ATTRIBUTES];
        self.read(at, &mut bytes[..4])?;
        let number = |bytes: &[u8; ATTRIBUTES], from: usize| {
            let mut part = [0; 4];
            part.copy_from_slice(&bytes[from..from + 4]);
            u32::from_ne_bytes(part)
        };
        // 0 stands for the first version.
        let size = number(&bytes, 0);
        if size != 0 && (size as usize) < ATTRIBUTES {
            return Err(libc::E2BIG);
        }
        self.read(at, &mut bytes)?;
        let flags = number(&bytes, 8);
        let has = |flag: u64| flags & flag as u32 != 0;
        let policy = match has(FLAG_KEEP_POLICY) {
            true => now.policy,
            false => number(&bytes, 4),
        };
        let priority = match has(FLAG_KEEP_PARAMETERS) {
            true => now.priority,
            false => number(&bytes, 20),
        };
        Ok(Asked {
            policy: policy.cast_signed(),
            priority: priority.cast_signed(),
            resets_on_fork: has(FLAG_RESET_ON_FORK),
        })
    }

    /// The cpus in the mask of sched_setaffinity(2).
    fn mask(&self, bytes: u64, at: u64) -> Result<Vec<u32>, i32> {
        let length = (bytes as u32 as usize).min(MOST_MASK);
        let mut mask = vec![0; length];
        self.read(at, &mut mask)?;
        let bits = mask.iter().enumerate().flat_map(|(place, byte)| {
            (0..8)
                .filter(move |bit| byte & (1 << bit) != 0)
                .map(move |bit| place as u32 * 8 + bit)
        });
        Ok(bits.collect())
    }

    /// Fills the buffer, from a caller that has waited all the while.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), i32> {
        let length = into.len();
        let to = libc::iovec {
            iov_base: into.as_mut_ptr().cast(),
            iov_len: length,
        };
        let from = libc::iovec {
            iov_base: at as *mut libc::c_void,
            iov_len: length,
        };
        // SAFETY: the kernel writes into the buffer, whose length it is told; the other address is the caller's.
        let read =
            unsafe { libc::process_vm_readv(self.caller, &raw const to, 1, &raw const from, 1, 0) };
        match usize::try_from(read) {
            Ok(read) if read == length && (self.waits)() => Ok(()),
            // Nobody hears this answer.
            Ok(read) if read == length => Err(libc::ESRCH),
            _ => Err(libc::EFAULT),
        }
    }
}
