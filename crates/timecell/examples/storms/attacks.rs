//! Attacks that turn into interrupts, or into work in the kernel on somebody else's account. One entry and one function each.

use std::fs::File;
use std::io::Write as _;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::ptr::null_mut;

use crate::turns::{QUIET_NS, TURN_NS, at, now_ns, sleep_until};

/// An attack.
pub struct Attack {
    pub name: &'static str,
    /// What it does, for the table.
    pub what: &'static str,
    /// Prepares it; what comes back is called again and again while its turn lasts, with the end of that, and may go beyond it
    /// only briefly.
    begin: fn() -> Box<dyn FnMut(u64)>,
}

/// One entry for each.
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "posix-timers",
        what: "90,000 POSIX timers for one instant",
        begin: posix_timers,
    },
    Attack {
        name: "timerfds",
        what: "as many timerfds as it may open for one instant",
        begin: timerfds,
    },
    Attack {
        name: "itimers",
        what: "interval timers of 50 us in 60 processes",
        begin: itimers,
    },
    Attack {
        name: "loopback",
        what: "packets to itself over loopback, 4 threads",
        begin: loopback,
    },
    Attack {
        name: "page-faults",
        what: "page faults: 64 MiB mapped, touched, unmapped",
        begin: page_faults,
    },
    Attack {
        name: "mprotect",
        what: "mprotect beside 4 spinning threads (TLB shootdowns)",
        begin: mprotect,
    },
    Attack {
        name: "membarrier",
        what: "membarrier beside 4 spinning threads",
        begin: membarrier,
    },
    Attack {
        name: "fork",
        what: "fork and exit without end",
        begin: fork,
    },
    Attack {
        name: "fsync",
        what: "writing and fsync on the disk, 4 threads",
        begin: fsync,
    },
];

/// Attacks in its turns for as long as so many turns of all kinds take.
pub fn run(name: &str, turn: u64, turns: u64) -> Result<(), String> {
    let attack = (ATTACKS.iter().find(|attack| attack.name == name))
        .ok_or_else(|| format!("there is no attack `{name}`"))?;
    let end = now_ns() + turns * TURN_NS;
    let mut step = (attack.begin)();
    while now_ns() < end {
        let now = now_ns();
        let (whose, into) = at(now);
        if whose as u64 == turn && into < TURN_NS - QUIET_NS {
            step(now - into + TURN_NS - QUIET_NS);
        } else {
            sleep_until(now - into + TURN_NS);
        }
    }
    Ok(())
}

/// An instant a little later, at which many timers are to expire, and its end.
fn spec(ns: u64) -> libc::itimerspec {
    let zero = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    libc::itimerspec {
        it_interval: zero,
        it_value: libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        },
    }
}

fn posix_timers() -> Box<dyn FnMut(u64)> {
    const WANTED: usize = 90_000;
    let mut timers: Vec<libc::timer_t> = Vec::new();
    // SAFETY: structures on the stack that the kernel reads or fills.
    let signals = unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut signals);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const signals, null_mut());
        while timers.len() < WANTED {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_SIGNAL;
            event.sigev_signo = libc::SIGRTMIN() + 1;
            let mut timer: libc::timer_t = std::mem::zeroed();
            if libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) != 0 {
                break;
            }
            timers.push(timer);
        }
        signals
    };
    println!("posix-timers: {} timers", timers.len());
    Box::new(move |end| {
        // As late as counts, since arming them all takes long on a busy cpu.
        let when = spec(end - QUIET_NS);
        for timer in &timers {
            // SAFETY: a timer of this process and a structure on the stack.
            unsafe {
                libc::timer_settime(*timer, libc::TIMER_ABSTIME, &raw const when, null_mut());
            }
        }
        sleep_until(end);
        let none = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: structures on the stack.
        while unsafe { libc::sigtimedwait(&raw const signals, null_mut(), &raw const none) } > 0 {}
    })
}

fn timerfds() -> Box<dyn FnMut(u64)> {
    let mut timers: Vec<File> = Vec::new();
    loop {
        // SAFETY: no memory is involved; a new descriptor is owned by its file.
        let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, 0) };
        if timer < 0 {
            break;
        }
        timers.push(unsafe { File::from_raw_fd(timer) });
    }
    println!("timerfds: {} timers", timers.len());
    Box::new(move |end| {
        let when = spec(end - QUIET_NS);
        for timer in &timers {
            // SAFETY: a descriptor of this process and a structure on the stack.
            unsafe {
                libc::timerfd_settime(
                    timer.as_raw_fd(),
                    libc::TFD_TIMER_ABSTIME,
                    &raw const when,
                    null_mut(),
                );
            }
        }
        sleep_until(end);
    })
}

/// Does nothing, so that the kernel arms the timer anew.
extern "C" fn ignore(_signal: libc::c_int) {}

fn itimers() -> Box<dyn FnMut(u64)> {
    Box::new(|end| {
        let mut children = Vec::new();
        for _ in 0..60 {
            // SAFETY: the child calls nothing but the kernel.
            match unsafe { libc::fork() } {
                0 => unsafe {
                    libc::signal(libc::SIGALRM, ignore as *const () as libc::sighandler_t);
                    let often = libc::timeval {
                        tv_sec: 0,
                        tv_usec: 50,
                    };
                    let timer = libc::itimerval {
                        it_interval: often,
                        it_value: often,
                    };
                    libc::setitimer(libc::ITIMER_REAL, &raw const timer, null_mut());
                    while now_ns() < end {
                        libc::pause();
                    }
                    libc::_exit(0)
                },
                child if child > 0 => children.push(child),
                _ => break,
            }
        }
        for child in children {
            // SAFETY: a child of this process.
            unsafe { libc::waitpid(child, null_mut(), 0) };
        }
    })
}

/// Calls something again and again in so many threads until then.
fn in_threads(many: usize, end: u64, work: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for at in 0..many {
            let work = &work;
            scope.spawn(move || {
                while now_ns() < end {
                    work(at);
                }
            });
        }
    });
}

fn loopback() -> Box<dyn FnMut(u64)> {
    let sockets: Vec<UdpSocket> = (0..4)
        .map(|_| UdpSocket::bind("127.0.0.1:0").expect("a cell has a loopback device"))
        .collect();
    let to = sockets[0].local_addr().expect("the socket is bound");
    let sent = sockets[1].send_to(&[0; 1_024], to);
    println!(
        "loopback: {} sockets, first packet: {sent:?}",
        sockets.len()
    );
    sent.expect("loopback is up");
    Box::new(move |end| {
        in_threads(sockets.len(), end, |at| {
            let socket = &sockets[at];
            if let Ok(to) = socket.local_addr() {
                for _ in 0..64 {
                    let _ = socket.send_to(&[0; 1_024], to);
                }
            }
        });
    })
}

/// Fresh memory of this process.
fn map(bytes: usize) -> *mut u8 {
    // SAFETY: a new mapping.
    unsafe {
        libc::mmap(
            null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
        .cast()
    }
}

fn page_faults() -> Box<dyn FnMut(u64)> {
    const BYTES: usize = 64 << 20;
    Box::new(|end| {
        while now_ns() < end {
            let memory = map(BYTES);
            for at in (0..BYTES).step_by(4_096) {
                // SAFETY: within the mapping, which nobody else knows.
                unsafe { memory.add(at).write_volatile(1) };
            }
            // SAFETY: the mapping just made.
            unsafe { libc::munmap(memory.cast(), BYTES) };
        }
    })
}

/// One thread does something to the memory of all while four others keep it loaded on their cpus.
fn beside_spinners(end: u64, work: impl Fn() + Sync) {
    in_threads(5, end, |at| match at {
        0 => work(),
        _ => std::hint::spin_loop(),
    });
}

fn mprotect() -> Box<dyn FnMut(u64)> {
    let memory = map(4_096) as usize;
    Box::new(move |end| {
        beside_spinners(end, || {
            let memory = memory as *mut libc::c_void;
            // SAFETY: memory that nobody but this thread touches, and only while it may.
            unsafe {
                libc::mprotect(memory, 4_096, libc::PROT_READ | libc::PROT_WRITE);
                memory.cast::<u8>().write_volatile(1);
                libc::mprotect(memory, 4_096, libc::PROT_READ);
            }
        });
    })
}

fn membarrier() -> Box<dyn FnMut(u64)> {
    const REGISTER: libc::c_int = 1 << 4;
    const EXPEDITED: libc::c_int = 1 << 3;
    // SAFETY: no memory is involved.
    let call = |what: libc::c_int| unsafe { libc::syscall(libc::SYS_membarrier, what, 0, 0) };
    println!("membarrier: {}", call(REGISTER));
    Box::new(move |end| {
        beside_spinners(end, || {
            call(EXPEDITED);
        });
    })
}

fn fork() -> Box<dyn FnMut(u64)> {
    Box::new(|end| {
        while now_ns() < end {
            // SAFETY: the child ends at once.
            unsafe {
                match libc::fork() {
                    0 => libc::_exit(0),
                    child => libc::waitpid(child, null_mut(), 0),
                };
            }
        }
    })
}

fn fsync() -> Box<dyn FnMut(u64)> {
    let own = std::process::id();
    Box::new(move |end| {
        in_threads(4, end, |at| {
            let path = format!("/room/{own}-{at}");
            let written = File::create(&path).and_then(|mut file| {
                file.write_all(&[0; 64 << 10])?;
                file.sync_all()
            });
            if written.is_err() {
                sleep_until(end);
            }
        });
    })
}
