//! The attacks: one entry and one function each. They cause interrupts, or work that the kernel does on somebody else's account.

use std::fs::File;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd as _};
use std::ptr::null_mut;

use super::processes::in_processes;
use super::turns::{QUIET_NS, TURN_NS, at, now_ns, sleep_until};

/// An attack.
pub struct Attack {
    pub name: &'static str,
    /// Its description, for the table.
    pub what: &'static str,
    /// Memory of its cell.
    pub memory: &'static str,
    /// Turns of each kind in which it may still be preparing, and which do not count.
    pub warm_up: u64,
    /// Prepares it; the returned function is called again and again while its turn lasts, with the end of that, and may go beyond it
    /// only briefly.
    begin: fn() -> Box<dyn FnMut(u64)>,
}

/// The memory of an attack's cell, sockets in the kernel included; beyond that it is killed for memory, and nobody
/// else.
const FEW: &str = "256MiB";
const MANY: &str = "768MiB";

pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "posix-timers",
        what: "90,000 POSIX timers for one instant",
        memory: FEW,
        warm_up: 0,
        begin: posix_timers,
    },
    Attack {
        name: "timerfds",
        what: "as many timerfds as it may open for one instant",
        memory: FEW,
        warm_up: 0,
        begin: timerfds,
    },
    Attack {
        name: "itimers",
        what: "interval timers of 50 us in 60 processes",
        memory: FEW,
        warm_up: 0,
        begin: itimers,
    },
    Attack {
        name: "loopback",
        what: "packets to itself over loopback, 4 threads",
        memory: FEW,
        warm_up: 0,
        begin: loopback,
    },
    Attack {
        name: "page-faults",
        what: "page faults: 64 MiB mapped, touched, unmapped",
        memory: FEW,
        warm_up: 0,
        begin: page_faults,
    },
    Attack {
        name: "mprotect",
        what: "mprotect beside 4 spinning threads (TLB shootdowns)",
        memory: FEW,
        warm_up: 0,
        begin: mprotect,
    },
    Attack {
        name: "membarrier",
        what: "membarrier beside 4 spinning threads",
        memory: FEW,
        warm_up: 0,
        begin: membarrier,
    },
    Attack {
        name: "fork",
        what: "fork and exit without end",
        memory: FEW,
        warm_up: 0,
        begin: fork,
    },
    Attack {
        name: "vfork",
        what: "vfork and exit without end",
        memory: FEW,
        warm_up: 0,
        begin: vfork,
    },
    Attack {
        name: "fsync",
        what: "writing and fsync on the disk, 4 threads",
        memory: FEW,
        warm_up: 0,
        begin: fsync,
    },
    Attack {
        name: "timerfd-processes",
        what: "60 processes with 1,000 timerfds each for one instant",
        memory: FEW,
        warm_up: 1,
        begin: timerfd_processes,
    },
    Attack {
        name: "keepalive",
        what: "keepalive of 30,000 TCP connections over loopback, of 60 processes",
        memory: MANY,
        warm_up: 2,
        begin: keepalive,
    },
    Attack {
        name: "udp-sockets",
        what: "broadcasts to 60,000 UDP sockets bound to one port, of 60 processes",
        memory: MANY,
        warm_up: 2,
        begin: udp_sockets,
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
    let (count, step) = timerfds_of(usize::MAX);
    println!("timerfds: {count} timers");
    step
}

fn timerfd_processes() -> Box<dyn FnMut(u64)> {
    in_processes("timerfd-processes", PROCESSES, |_| timerfds_of(1_000))
}

/// As many timerfds as this process may open, and no more than so many.
fn timerfds_of(most: usize) -> (usize, Box<dyn FnMut(u64)>) {
    let mut timers: Vec<File> = Vec::new();
    while timers.len() < most {
        // SAFETY: no memory is involved; a new descriptor is owned by its file.
        let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, 0) };
        if timer < 0 {
            break;
        }
        timers.push(unsafe { File::from_raw_fd(timer) });
    }
    let count = timers.len();
    let step = move |end| {
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
    };
    (count, Box::new(step))
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

/// Processes of an attack that takes more descriptors than one may have: the default limit of a cell leaves room for these.
const PROCESSES: usize = 60;

/// Sets an option of a socket that is a number.
fn set(socket: &impl AsRawFd, level: i32, option: i32, value: i32) {
    let length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: a number on the stack, of the length that is said. Where it is refused, the attack is a weaker one.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            length,
        );
    }
}

/// Each connection has a timer for the case that its peer falls silent; they all run out a second after they were asked for.
fn keepalive() -> Box<dyn FnMut(u64)> {
    const EACH: usize = 500;
    in_processes("keepalive", PROCESSES, |_| {
        let mut ends: Vec<(TcpStream, TcpStream)> = Vec::new();
        let listener = TcpListener::bind("127.0.0.1:0").ok();
        let to = listener.as_ref().and_then(|l| l.local_addr().ok());
        while let Some((listener, to)) = listener.as_ref().zip(to)
            && ends.len() < EACH
            && let Ok(own) = TcpStream::connect(to)
            && let Ok((other, _)) = listener.accept()
        {
            set(&own, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 1);
            ends.push((own, other));
        }
        let count = ends.len();
        let step = move |end| {
            for (own, _) in &ends {
                set(own, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1);
            }
            sleep_until(end);
            for (own, _) in &ends {
                set(own, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 0);
            }
        };
        (count, Box::new(step))
    })
}

/// One broadcast is given to every one of them before its sender goes on.
fn udp_sockets() -> Box<dyn FnMut(u64)> {
    const EACH: usize = 1_000;
    const PORT: u16 = 47_000;
    /// The destination, to which half of the sockets are bound, for the kernel to take the one port so often.
    const ALL: Ipv4Addr = Ipv4Addr::new(127, 255, 255, 255);
    /// Each takes some 20 ms: others have their turn in between.
    const EVERY_NS: u64 = 100_000_000;
    in_processes("udp-sockets", PROCESSES, |process| {
        let mut sockets: Vec<UdpSocket> = Vec::new();
        // Further input and output needs a few descriptors as well.
        while sockets.len() < EACH {
            let to = [Ipv4Addr::UNSPECIFIED, ALL][sockets.len() % 2];
            match shared_port(to, PORT) {
                Some(socket) => sockets.push(socket),
                None => break,
            }
        }
        let count = sockets.len();
        let step = move |end| {
            if process > 0 {
                return;
            }
            let Ok(sender) = UdpSocket::bind("127.0.0.1:0") else {
                return;
            };
            let _ = sender.set_broadcast(true);
            while now_ns() + EVERY_NS < end {
                let _ = sender.send_to(&[0; 8], (ALL, PORT));
                sleep_until(now_ns() + EVERY_NS);
            }
            // Keeps them open, no more.
            std::hint::black_box(&sockets);
        };
        (count, Box::new(step))
    })
}

/// A socket bound to a port that others of this user are bound to, too, with room for no more than a few packets.
fn shared_port(to: Ipv4Addr, port: u16) -> Option<UdpSocket> {
    // SAFETY: no memory is involved; a new descriptor is owned by its socket.
    let socket = unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        (socket >= 0).then(|| UdpSocket::from_raw_fd(socket))?
    };
    set(&socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1);
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, 1);
    let place = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes(to.octets()),
        },
        sin_zero: [0; 8],
    };
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: an address on the stack, of the length that is said.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const place).cast(), length) };
    (bound == 0).then_some(socket)
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

fn vfork() -> Box<dyn FnMut(u64)> {
    extern "C" fn nothing(_: *mut libc::c_void) -> libc::c_int {
        0
    }
    let mut stack = vec![0_u8; 1 << 16];
    Box::new(move |end| {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        while now_ns() < end {
            let top = stack.as_mut_ptr_range().end.cast();
            // SAFETY: the child has this stack for itself, and ends before the call returns; nobody asks for its status.
            unsafe {
                let child = libc::clone(nothing, top, flags, null_mut());
                libc::waitpid(child, null_mut(), 0);
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
