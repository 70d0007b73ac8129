//! Ways out of a cell, one function each: the calls of a hostile program, with arguments that would succeed.

mod scheduling;

use std::ffi::CStr;
use std::fs;
use std::io;

use libc::{c_long, syscall};

pub use scheduling::set_class;
use scheduling::{
    core_scheduling, deadline, deadline_of_child, inherit, set_affinity, set_io_priority,
    set_niceness, set_parameter,
};

/// A way out.
pub struct Attack {
    pub name: &'static str,
    attempt: fn() -> i64,
    /// The answer with the filter.
    pub refused: Refused,
    /// The answer without it, with the capabilities that the kernel requires for it.
    pub control: Control,
    pub capabilities: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    With(i32),
    /// With this, unless the cell's calls are answered with its grants: then they succeed, and nothing else comes of them.
    Unanswered(i32),
    /// By being killed with SIGSYS.
    Deadly,
}

/// The outcome without a filter: it works, or at least gets past the check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    Works,
    /// The kernel checks the arguments, which are harmless nonsense, and answers this.
    Says(i32),
    /// A kernel that was built without it answers this.
    WorksOrSays(i32),
    /// Depends on how the kernel was built, but is not the filter's answer.
    Differs,
}

/// Makes the attempt and returns its outcome.
pub fn attempt(name: &str) {
    let attack = all().into_iter().find(|attack| attack.name == name);
    say(name, (attack.expect("an attack of this name").attempt)());
}

/// Lowers the limit of core files by both calls. It is refused, as EPERM says here, where both succeed and the limit is as before.
fn lower_core_limit() -> i64 {
    let none = [0_u64; 2];
    let mut left = [0_u64; 2];
    let core = libc::RLIMIT_CORE;
    // SAFETY: structures of two numbers.
    let answers = unsafe {
        [
            syscall(libc::SYS_setrlimit, core, &raw const none),
            syscall(libc::SYS_prlimit64, 0, core, &raw const none, 0),
            syscall(libc::SYS_prlimit64, 0, core, 0, &raw mut left),
        ]
    };
    if answers != [0; 3] || left != [1; 2] {
        return 0;
    }
    // SAFETY: the calling thread's own.
    unsafe { *libc::__errno_location() = libc::EPERM };
    -1
}

/// Tries to get beyond a priority that was granted.
pub fn raise(words: &[&str]) {
    let granted: i32 = words[0].parse().unwrap();
    let parameter =
        |priority: i32| call(unsafe { syscall(libc::SYS_sched_setparam, 0, &raw const priority) });
    let tries: [(&str, &dyn Fn() -> i64); 6] = [
        ("keep", &|| parameter(granted)),
        ("raise", &|| parameter(granted + 1)),
        ("raise-all", &|| set_class(libc::SCHED_FIFO, 99)),
        ("round-robin", &|| set_class(libc::SCHED_RR, granted)),
        ("deadline", &deadline),
        ("other", &|| set_class(libc::SCHED_OTHER, 0)),
    ];
    for (name, attempt) in tries {
        say(name, attempt());
        let mut priority = 0_i32;
        // SAFETY: a pointer to one integer, the layout of the kernel's sched_param.
        let policy = unsafe {
            syscall(libc::SYS_sched_getparam, 0, &raw mut priority);
            syscall(libc::SYS_sched_getscheduler, 0)
        };
        println!("now {policy} {priority}");
    }
}

/// The outcome of an attempt that was just made.
fn say(name: &str, answer: i64) {
    let error = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    if answer >= 0 {
        println!("{name} done");
    } else {
        println!("{name} {error}");
    }
}

const EPERM: Refused = Refused::With(libc::EPERM);
const ADMIN: &[&str] = &["CAP_SYS_ADMIN"];
const NICE: &[&str] = &["CAP_SYS_NICE"];

const fn attack(name: &'static str, attempt: fn() -> i64) -> Attack {
    Attack {
        name,
        attempt,
        refused: EPERM,
        control: Control::Works,
        capabilities: &[],
    }
}

/// One by a call for a class, a priority or cpus.
const fn of_class(name: &'static str, attempt: fn() -> i64) -> Attack {
    Attack {
        refused: Refused::Unanswered(libc::EPERM),
        ..attack(name, attempt)
    }
}

impl Attack {
    const fn needs(self, capabilities: &'static [&'static str]) -> Attack {
        Attack {
            capabilities,
            ..self
        }
    }

    const fn otherwise(self, control: Control) -> Attack {
        Attack { control, ..self }
    }

    /// Refused as a kernel without such a family does.
    const fn without_family(self) -> Attack {
        Attack {
            refused: Refused::With(libc::EAFNOSUPPORT),
            control: Control::WorksOrSays(libc::EAFNOSUPPORT),
            ..self
        }
    }

    #[cfg(target_arch = "x86_64")]
    const fn deadly(self) -> Attack {
        Attack {
            refused: Refused::Deadly,
            control: Control::Differs,
            ..self
        }
    }
}

/// Every attack on the calls that the filter guards.
pub fn all() -> Vec<Attack> {
    #[allow(unused_mut)]
    let mut all = vec![
        // More cpu time than was granted.
        of_class("deadline", deadline).needs(NICE),
        of_class("deadline-thread", || in_thread(deadline)).needs(NICE),
        of_class("deadline-child", || in_child(libc::SIGCHLD, deadline)).needs(NICE),
        of_class("deadline-vfork", || {
            in_child(libc::CLONE_VFORK | libc::SIGCHLD, deadline)
        })
        .needs(NICE),
        of_class("deadline-of-child", deadline_of_child).needs(NICE),
        of_class("deadline-by-setscheduler", || {
            const SCHED_DEADLINE: i32 = 6;
            set_class(SCHED_DEADLINE, 0)
        })
        .needs(NICE)
        .otherwise(Control::Says(libc::EINVAL)),
        of_class("fifo", || set_class(libc::SCHED_FIFO, 1)).needs(NICE),
        of_class("round-robin", || set_class(libc::SCHED_RR, 1)).needs(NICE),
        of_class("sched_setparam", set_parameter),
        of_class("sched_setaffinity", set_affinity),
        attack("setpriority", set_niceness).needs(NICE),
        attack("ioprio_set", set_io_priority).needs(ADMIN),
        attack("core-scheduling", core_scheduling).otherwise(Control::Differs),
        // The budget of a thread that runs for another.
        Attack {
            refused: Refused::With(libc::ENOSYS),
            ..attack("inherit", || inherit(8))
        },
        Attack {
            refused: Refused::With(libc::ENOSYS),
            ..attack("inherit-private", || inherit(128 | 8))
        },
        // Other namespaces.
        attack("unshare-user", || unshare(libc::CLONE_NEWUSER)),
        attack("unshare-mount", || unshare(libc::CLONE_NEWNS)).needs(ADMIN),
        attack("clone-user", clone_user),
        Attack {
            refused: Refused::With(libc::ENOSYS),
            ..attack("clone3", clone3_user)
        },
        attack("setns", enter_namespace).needs(ADMIN),
        // Another view of the files.
        attack("mount", mount_tmpfs).needs(ADMIN),
        attack("remount-root", remount_root).needs(ADMIN),
        attack("umount2", unmount).needs(ADMIN),
        attack("pivot_root", pivot_root)
            .needs(ADMIN)
            .otherwise(Control::Says(libc::EBUSY)),
        attack("open_tree", open_tree).needs(ADMIN),
        attack("move_mount", move_mount)
            .needs(ADMIN)
            .otherwise(Control::Differs),
        attack("fsopen", open_file_system).needs(ADMIN),
        attack("mount_setattr", mount_attributes).needs(ADMIN),
        attack("open_by_handle_at", open_by_handle).needs(&["CAP_DAC_READ_SEARCH"]),
        // The machine.
        attack("clock_settime", set_clock)
            .needs(&["CAP_SYS_TIME"])
            .otherwise(Control::Says(libc::EINVAL)),
        attack("adjtimex", adjust_clock),
        attack("bpf", bpf_map).needs(&["CAP_BPF", "CAP_SYS_ADMIN"]),
        attack("init_module", load_module)
            .needs(&["CAP_SYS_MODULE"])
            .otherwise(Control::Differs),
        attack("kexec_load", kexec)
            .needs(&["CAP_SYS_BOOT"])
            .otherwise(Control::Differs),
        attack("reboot", reboot)
            .needs(&["CAP_SYS_BOOT"])
            .otherwise(Control::Says(libc::EINVAL)),
        attack("swapon", swap)
            .needs(ADMIN)
            .otherwise(Control::Differs),
        attack("quotactl", quota)
            .needs(ADMIN)
            .otherwise(Control::Differs),
        // Sockets that no network namespace divides.
        attack("socket-vsock", || socket(libc::AF_VSOCK, libc::SOCK_STREAM)).without_family(),
        attack("socket-vsock-high-bits", || {
            const ABOVE: i64 = 1 << 32;
            call(unsafe { syscall(libc::SYS_socket, ABOVE | 40, libc::SOCK_STREAM, 0) })
        })
        .without_family(),
        attack("socket-alg", || socket(libc::AF_ALG, libc::SOCK_SEQPACKET)).without_family(),
        attack("socketpair-tipc", || {
            let mut pair = [0; 2];
            let kind = libc::SOCK_SEQPACKET;
            call(unsafe { syscall(libc::SYS_socketpair, libc::AF_TIPC, kind, 0, &raw mut pair) })
        })
        .without_family(),
        // At 0, the machine's crash handler would be run for it, outside.
        attack("core-limit", lower_core_limit),
        // Other processes, and large parts of the kernel.
        attack("ptrace", trace),
        attack("process_vm_readv", read_memory),
        attack("add_key", add_key),
        attack("keyctl", key_control),
        // For each of these the kernel interrupts every cpu.
        attack("udp_encap", || udp_option(libc::IPPROTO_UDP, 100, 2)),
        attack("udp_gro", || {
            udp_option(libc::IPPROTO_UDP, libc::UDP_GRO, 1)
        }),
        attack("udplite_gro", || {
            udp_option(libc::IPPROTO_UDPLITE, libc::UDP_GRO, 1)
        })
        .otherwise(Control::Differs),
        attack("madvise-collapse", || {
            call(unsafe { syscall(libc::SYS_madvise, 0, 0, 25) })
        })
        .otherwise(Control::Differs),
        attack("mbind-move", || {
            call(unsafe { syscall(libc::SYS_mbind, 0, 0, 0, 0, 0, 2) })
        })
        .otherwise(Control::Differs),
        attack("move_pages", || {
            call(unsafe { syscall(libc::SYS_move_pages, 0, 0, 0, 0, 0, 2) })
        })
        .otherwise(Control::Differs),
        Attack {
            refused: Refused::With(libc::ENOSYS),
            ..attack("memfd_secret", || call(unsafe { syscall(447, 0) }))
                .otherwise(Control::Differs)
        },
        attack("perf_event_open", count_events).needs(&["CAP_PERFMON"]),
        attack("userfaultfd", user_faults).otherwise(Control::Differs),
        attack("io_uring_setup", io_uring).otherwise(Control::Differs),
        attack("personality", personality),
    ];
    #[cfg(target_arch = "x86_64")]
    all.extend([
        attack("iopl", || call(unsafe { syscall(libc::SYS_iopl, 0) })).otherwise(Control::Differs),
        attack("x32", x32).deadly(),
        attack("i386", i386).deadly(),
    ]);
    all
}

fn call(answer: c_long) -> i64 {
    answer
}

fn socket(family: i32, kind: i32) -> i64 {
    call(unsafe { syscall(libc::SYS_socket, family, kind, 0) })
}

/// The outcome of an attempt in a separate thread.
fn in_thread(attempt: fn() -> i64) -> i64 {
    let (answer, error) = std::thread::spawn(move || (attempt(), errno()))
        .join()
        .expect("the attempt returns");
    answered(answer, error)
}

/// The outcome of an attempt in a child that is created with these flags.
fn in_child(flags: i32, attempt: fn() -> i64) -> i64 {
    let child = unsafe { syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if child == 0 {
        let answer = attempt();
        let error = if answer < 0 { errno() } else { 0 };
        unsafe { libc::_exit(error) };
    }
    if child < 0 {
        return child;
    }
    let mut status = 0;
    unsafe { libc::waitpid(child as i32, &raw mut status, 0) };
    match libc::WEXITSTATUS(status) {
        0 => 0,
        error => answered(-1, error),
    }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Adopts the answer that another thread got as this one's.
fn answered(answer: i64, error: i32) -> i64 {
    unsafe { *libc::__errno_location() = error };
    answer
}

fn unshare(what: i32) -> i64 {
    call(unsafe { syscall(libc::SYS_unshare, what) })
}

fn clone_user() -> i64 {
    let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
    let answer = unsafe { syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if answer == 0 {
        unsafe { libc::_exit(0) };
    }
    call(answer)
}

fn clone3_user() -> i64 {
    // struct clone_args, in its first version.
    let mut arguments = [0_u64; 8];
    arguments[0] = libc::CLONE_NEWUSER.cast_unsigned().into();
    arguments[4] = libc::SIGCHLD.cast_unsigned().into();
    let answer = unsafe { syscall(libc::SYS_clone3, arguments.as_ptr(), 64) };
    if answer == 0 {
        unsafe { libc::_exit(0) };
    }
    call(answer)
}

fn enter_namespace() -> i64 {
    let Ok(namespace) = fs::File::open("/proc/self/ns/uts") else {
        return -1;
    };
    let fd = std::os::fd::AsRawFd::as_raw_fd(&namespace);
    call(unsafe { syscall(libc::SYS_setns, fd, 0) })
}

fn mount(source: &CStr, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> i64 {
    let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
    call(unsafe {
        syscall(
            libc::SYS_mount,
            source.as_ptr(),
            target.as_ptr(),
            kind,
            flags,
            0,
        )
    })
}

fn mount_tmpfs() -> i64 {
    mount(c"tmpfs", c"/dev/shm", Some(c"tmpfs"), 0)
}

fn remount_root() -> i64 {
    mount(c"none", c"/", None, libc::MS_REMOUNT | libc::MS_BIND)
}

fn unmount() -> i64 {
    call(unsafe { syscall(libc::SYS_umount2, c"/proc/sys".as_ptr(), libc::MNT_DETACH) })
}

fn pivot_root() -> i64 {
    let root = c"/".as_ptr();
    call(unsafe { syscall(libc::SYS_pivot_root, root, root) })
}

fn open_tree() -> i64 {
    call(unsafe {
        syscall(
            libc::SYS_open_tree,
            libc::AT_FDCWD,
            c"/".as_ptr(),
            libc::OPEN_TREE_CLONE,
        )
    })
}

fn move_mount() -> i64 {
    let (from, to) = (c"/dev/shm".as_ptr(), c"/dev/shm".as_ptr());
    let here = libc::AT_FDCWD;
    call(unsafe { syscall(libc::SYS_move_mount, here, from, here, to, 0) })
}

fn open_file_system() -> i64 {
    call(unsafe { syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0) })
}

fn mount_attributes() -> i64 {
    // struct mount_attr: takes nothing away but "read-only".
    let attributes = [0_u64, 1, 0, 0];
    call(unsafe {
        syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            c"/".as_ptr(),
            0,
            attributes.as_ptr(),
            32,
        )
    })
}

/// The way in which containers read files outside their root, through a handle of a file inside.
fn open_by_handle() -> i64 {
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        handle: [u8; 128],
    }
    let mut handle = Handle {
        bytes: 128,
        kind: 0,
        handle: [0; 128],
    };
    let Ok(dir) = fs::File::open("/dev/shm") else {
        return -1;
    };
    let dir = std::os::fd::AsRawFd::as_raw_fd(&dir);
    let mut mount = 0_i32;
    let answer = unsafe {
        syscall(
            libc::SYS_name_to_handle_at,
            dir,
            c"".as_ptr(),
            &raw mut handle,
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    };
    if answer != 0 {
        return answer;
    }
    call(unsafe { syscall(libc::SYS_open_by_handle_at, dir, &raw mut handle, 0) })
}

fn set_clock() -> i64 {
    let time = [0_i64, -1];
    call(unsafe { syscall(libc::SYS_clock_settime, 0, time.as_ptr()) })
}

fn adjust_clock() -> i64 {
    // Does not request any change.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    call(unsafe { syscall(libc::SYS_adjtimex, &raw mut timex) })
}

fn bpf_map() -> i64 {
    // An array of one number.
    let attributes = [2_u32, 4, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    call(unsafe { syscall(libc::SYS_bpf, 0, attributes.as_ptr(), 48) })
}

fn load_module() -> i64 {
    call(unsafe { syscall(libc::SYS_init_module, 0, 0, c"".as_ptr()) })
}

fn kexec() -> i64 {
    call(unsafe { syscall(libc::SYS_kexec_load, 0, 1, 0, 0xffff) })
}

fn reboot() -> i64 {
    // Wrong magic numbers: nothing happens.
    call(unsafe { syscall(libc::SYS_reboot, 1, 2, 3, 0) })
}

fn swap() -> i64 {
    call(unsafe { syscall(libc::SYS_swapon, c"/nowhere".as_ptr(), 0) })
}

fn quota() -> i64 {
    call(unsafe {
        syscall(
            libc::SYS_quotactl,
            0x80_0002_u32,
            c"/nowhere".as_ptr(),
            0,
            0,
        )
    })
}

fn trace() -> i64 {
    call(unsafe { syscall(libc::SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0) })
}

fn read_memory() -> i64 {
    let (from, mut to) = (7_u64, 0_u64);
    let local = [(&raw mut to) as u64, 8];
    let remote = [(&raw const from) as u64, 8];
    let pid = std::process::id();
    call(unsafe {
        syscall(
            libc::SYS_process_vm_readv,
            pid,
            local.as_ptr(),
            1,
            remote.as_ptr(),
            1,
            0,
        )
    })
}

const PROCESS_KEYRING: i32 = -2;

fn add_key() -> i64 {
    call(unsafe {
        syscall(
            libc::SYS_add_key,
            c"user".as_ptr(),
            c"timecell-test".as_ptr(),
            c"x".as_ptr(),
            1,
            PROCESS_KEYRING,
        )
    })
}

fn key_control() -> i64 {
    const GET_KEYRING_ID: i32 = 0;
    call(unsafe { syscall(libc::SYS_keyctl, GET_KEYRING_ID, PROCESS_KEYRING, 1) })
}

fn udp_option(level: i32, name: i32, value: i32) -> i64 {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM);
    call(unsafe {
        syscall(
            libc::SYS_setsockopt,
            socket,
            level,
            name,
            &raw const value,
            4,
        )
    })
}

fn count_events() -> i64 {
    // perf_event_attr in its first version: the software event cpu-clock, of this thread, outside the kernel.
    let mut attributes = [0_u64; 8];
    attributes[0] = 64 << 32 | 1;
    attributes[5] = 1 << 5 | 1 << 6;
    call(unsafe { syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0) })
}

fn user_faults() -> i64 {
    const USER_MODE_ONLY: i32 = 1;
    call(unsafe { syscall(libc::SYS_userfaultfd, USER_MODE_ONLY) })
}

fn io_uring() -> i64 {
    let mut parameters = [0_u8; 120];
    call(unsafe { syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) })
}

fn personality() -> i64 {
    const ADDR_NO_RANDOMIZE: u32 = 0x004_0000;
    call(unsafe { syscall(libc::SYS_personality, ADDR_NO_RANDOMIZE) })
}

/// The same calls by other numbers.
#[cfg(target_arch = "x86_64")]
fn x32() -> i64 {
    call(unsafe { syscall(0x4000_0000 | libc::SYS_getpid) })
}

/// The same calls by the numbers of another architecture.
#[cfg(target_arch = "x86_64")]
fn i386() -> i64 {
    let answer: i64;
    unsafe { std::arch::asm!("int 0x80", inlateout("rax") 20_i64 => answer) };
    answer
}
