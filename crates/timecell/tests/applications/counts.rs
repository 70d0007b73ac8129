//! The resources of which the machine has a certain number, and how many of them one cell gets.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use engine::app::Ended;
use model::EngineKind;

use crate::support::{Place, run};

/// The memory of a cell here.
const MEMORY: u64 = 64 << 20;
/// Pseudo terminals of a cell.
const TERMINALS: u64 = 64;

/// Takes one more of something; how many that were, none when there are no more.
type Take = fn(&mut Vec<RawFd>) -> u64;

/// All of them, and how many a cell gets at most in this test.
const ALL: [(&str, Take, u64); 11] = [
    ("pseudo terminals", terminal, TERMINALS),
    ("bytes of TCP", tcp, 8 * MEMORY),
    ("bytes of UDP", udp, 2 * MEMORY),
    ("bytes of unix sockets", unix, MEMORY),
    ("bytes of pipes", pipe, MEMORY),
    ("inotify watches", watch, 2_000_000),
    ("epoll watches", polled, 2_000_000),
    ("SysV queues", queue, 40_000),
    ("SysV semaphores", semaphores, 2_000_000),
    ("SysV shared bytes", shared, MEMORY),
    ("names that do not exist", missing, 1_000_000),
];

/// Takes of one until there are no more, and tells on the way how many there were: the process may be killed.
pub fn take(words: &[&str]) {
    let (_, take, most) = (ALL.iter().find(|(name, ..)| *name == words[0])).unwrap();
    let (mut held, mut told, mut count) = (Vec::new(), 0, 0);
    while count <= *most {
        let more = take(&mut held);
        count += more;
        if more == 0 || count >= told + told / 16 {
            println!("{count}");
            told = count;
        }
        if more == 0 {
            break;
        }
    }
    // Others look for theirs meanwhile.
    std::thread::sleep(std::time::Duration::from_millis(200));
}

/// How many a cell of this engine got, and how it ended.
fn taken(kind: EngineKind, name: &str) -> (u64, Ended) {
    let place = Place::new(kind);
    let mut spec = place.itself(kind, &["take", name]);
    spec.limits.memory_bytes = Some(MEMORY);
    spec.grants.open_files = 16_384;
    let (ended, text) = run(&spec);
    let last = text.lines().last().unwrap_or_default();
    (
        last.parse().unwrap_or_else(|_| panic!("{name}: {text}")),
        ended,
    )
}

/// The machine has 4,096 of them.
pub fn pseudo_terminals_are_bounded(kind: EngineKind) {
    assert_eq!(taken(kind, "pseudo terminals").0, TERMINALS);
}

/// However much one cell takes, the machine has some left. Prints how many that are.
pub fn one_cell_does_not_take_all_there_are(kind: EngineKind) {
    for (name, take, most) in ALL {
        let (count, ended) = taken(kind, name);
        println!("{kind}: {name}: {count}, {ended:?}");
        assert!(count > 0 && count <= most, "{name}: {count}");
        let mut held = Vec::new();
        assert!(take(&mut held) > 0, "{name}: the machine has none left");
        for descriptor in held {
            // SAFETY: opened here.
            unsafe { libc::close(descriptor) };
        }
    }
}

/// A descriptor that stays, as its number.
fn kept(descriptor: RawFd, held: &mut Vec<RawFd>) -> u64 {
    if descriptor < 0 {
        return 0;
    }
    held.push(descriptor);
    1
}

fn terminal(held: &mut Vec<RawFd>) -> u64 {
    // SAFETY: a path that ends in NUL.
    kept(
        unsafe { libc::open(c"/dev/ptmx".as_ptr(), libc::O_RDWR | libc::O_NOCTTY) },
        held,
    )
}

/// Fills a descriptor that takes bytes without waiting.
fn filled(descriptor: RawFd, mut send: impl FnMut(&[u8]) -> std::io::Result<usize>) -> u64 {
    // SAFETY: an open descriptor.
    unsafe { libc::fcntl(descriptor, libc::F_SETFL, libc::O_NONBLOCK) };
    let bytes = [1; 16_000];
    std::iter::from_fn(|| send(&bytes).ok())
        .map(|sent| sent as u64)
        .sum()
}

fn tcp(held: &mut Vec<RawFd>) -> u64 {
    let Ok(listener) = TcpListener::bind("127.0.0.1:0") else {
        return 0;
    };
    let Ok(mut stream) = TcpStream::connect(listener.local_addr().unwrap()) else {
        return 0;
    };
    let Ok((other, _)) = listener.accept() else {
        return 0;
    };
    let bytes = filled(stream.as_raw_fd(), |bytes| stream.write(bytes));
    held.extend([stream, other].map(IntoRawFd::into_raw_fd));
    bytes
}

fn udp(held: &mut Vec<RawFd>) -> u64 {
    let pair = || UdpSocket::bind("127.0.0.1:0").ok();
    let (Some(one), Some(other)) = (pair(), pair()) else {
        return 0;
    };
    one.connect(other.local_addr().unwrap()).unwrap();
    // Nothing tells the sender that the receiver has no more room.
    let mut left = 20;
    filled(one.as_raw_fd(), |bytes| {
        left -= 1;
        match left {
            0 => Err(std::io::ErrorKind::WouldBlock.into()),
            _ => one.send(bytes),
        }
    });
    let mut arrived = 0;
    // SAFETY: an open descriptor and a number.
    unsafe { libc::ioctl(other.as_raw_fd(), libc::FIONREAD, &raw mut arrived) };
    held.push(other.into_raw_fd());
    u64::try_from(arrived).unwrap_or(0)
}

fn unix(held: &mut Vec<RawFd>) -> u64 {
    let Ok((one, other)) = UnixDatagram::pair() else {
        return 0;
    };
    let bytes = filled(one.as_raw_fd(), |bytes| one.send(bytes));
    held.extend([one, other].map(IntoRawFd::into_raw_fd));
    bytes
}

fn pipe(held: &mut Vec<RawFd>) -> u64 {
    let Ok((reader, mut writer)) = std::io::pipe() else {
        return 0;
    };
    // SAFETY: an open descriptor.
    unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, 1 << 20) };
    let bytes = filled(writer.as_raw_fd(), |bytes| writer.write(bytes));
    held.push(reader.into_raw_fd());
    held.push(writer.into_raw_fd());
    bytes
}

/// One instance that watches all that is in `/sys`.
fn watch(held: &mut Vec<RawFd>) -> u64 {
    // SAFETY: no memory is involved.
    if kept(unsafe { libc::inotify_init1(0) }, held) == 0 {
        return 0;
    }
    let mut left = vec![PathBuf::from("/sys")];
    let mut count = 0;
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(name) =
                std::ffi::CString::new(entry.path().into_os_string().into_encoded_bytes())
            else {
                continue;
            };
            // SAFETY: a path that ends in NUL.
            count += u64::from(
                unsafe {
                    libc::inotify_add_watch(held[held.len() - 1], name.as_ptr(), libc::IN_ATTRIB)
                } >= 0,
            );
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(entry.path());
            }
        }
    }
    count
}

/// One instance that watches a descriptor under each number that is left.
fn polled(held: &mut Vec<RawFd>) -> u64 {
    const EACH: usize = 2_000;
    while held.len() < EACH {
        // SAFETY: no memory is involved.
        if kept(unsafe { libc::eventfd(0, 0) }, held) == 0 {
            return 0;
        }
    }
    // SAFETY: no memory is involved.
    let poll = unsafe { libc::epoll_create1(0) };
    let mut wanted = libc::epoll_event { events: 0, u64: 0 };
    let count = held[..EACH].iter().filter(|descriptor| {
        // SAFETY: open descriptors, and a structure on the stack.
        unsafe { libc::epoll_ctl(poll, libc::EPOLL_CTL_ADD, **descriptor, &raw mut wanted) == 0 }
    });
    let count = count.count() as u64;
    count * kept(poll, held)
}

/// Objects of System V are gone with the cell's own namespace; on the machine they are removed at once.
fn removed(is_made: bool, remove: impl FnOnce() -> libc::c_int) -> u64 {
    // The first process of a cell takes them.
    if std::process::id() != 1 {
        remove();
    }
    u64::from(is_made)
}

fn queue(_: &mut Vec<RawFd>) -> u64 {
    // SAFETY: no memory is involved.
    unsafe {
        let made = libc::msgget(libc::IPC_PRIVATE, 0o600);
        removed(made >= 0, || {
            libc::msgctl(made, libc::IPC_RMID, std::ptr::null_mut())
        })
    }
}

fn semaphores(_: &mut Vec<RawFd>) -> u64 {
    const EACH: i32 = 1_000;
    // SAFETY: no memory is involved.
    unsafe {
        let made = libc::semget(libc::IPC_PRIVATE, EACH, 0o600);
        1_000 * removed(made >= 0, || libc::semctl(made, 0, libc::IPC_RMID))
    }
}

fn shared(_: &mut Vec<RawFd>) -> u64 {
    const EACH: usize = 1 << 20;
    // SAFETY: the segment is attached for as long as it is written to.
    unsafe {
        let made = libc::shmget(libc::IPC_PRIVATE, EACH, 0o600);
        let at = libc::shmat(made, std::ptr::null(), 0);
        if made < 0 || at as isize == -1 {
            return 0;
        }
        std::ptr::write_bytes(at.cast::<u8>(), 1, EACH);
        libc::shmdt(at);
        EACH as u64
            * removed(true, || {
                libc::shmctl(made, libc::IPC_RMID, std::ptr::null_mut())
            })
    }
}

/// Names that were looked for, which the kernel keeps in case somebody asks again.
fn missing(held: &mut Vec<RawFd>) -> u64 {
    const EACH: u64 = 10_000;
    held.push(-1);
    let round = held.len();
    for number in 0..EACH {
        let _ = fs::metadata(format!("/dev/shm/no-{round}-{number}"));
    }
    EACH
}
