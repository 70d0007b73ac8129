//! A cell whose open files have so long a text in `/proc` that its supervisor would read for minutes, and a process with arguments without end
//! that is to be held.

use std::ffi::CString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Instant;

use host::process::Stat;

use super::scene::{Scene, Setting, program};
use super::{AT_IT, Attack, Before, Now, WORD, say};
use crate::missions_hold::{nothing_is_held, release};
use crate::support::{Need, begun, end_of, own_program, timecell};

pub const DESCRIPTORS: Attack = Attack {
    name: "descriptors",
    tries: "SIGTERM blocked, and many watches of files under all its descriptors; how long its end takes",
    before: Before {
        got: "not tried; at 2e77e988 no other cell is served for 125 s",
        neighbour: "not recorded",
    },
    needs: &[Need::Root, Need::TwoCpus, Need::AnyEnforcer(400)],
    deed: watch,
    run: run_watched,
};

pub const ARGUMENTS: Attack = Attack {
    name: "arguments",
    tries: "a process that declares 300 GiB of arguments, to be held",
    before: Before {
        got: "not tried; at 2e77e988 `hold` ends out of memory",
        neighbour: "not recorded",
    },
    needs: &[
        Need::Alone,
        Need::Root,
        Need::RealTime,
        Need::Freezer,
        Need::TwoCpus,
    ],
    deed: declare,
    run: hold,
};

fn run_watched(_: u64) -> Now {
    let hostile = program("hostile", "descriptors", &[], "class = \"other\"");
    let hostile = hostile.replace("\"64MiB\"", "\"512MiB\"");
    let scene = Scene::start(&Setting::beside(&hostile));
    let began = Instant::now();
    let words = ["stop", "--dir", "state", "hostile"];
    let status = end_of(begun(scene.dir(), &words));
    let took = began.elapsed().as_secs_f64();
    Now {
        got: match status {
            Some(_) => format!("stopped in {took:.1} s"),
            None => format!("not stopped within {took:.0} s"),
        },
        held: status.is_some_and(|status| status.success()),
        neighbour: Some(match status {
            Some(_) => scene.end(),
            None => scene.abandon(),
        }),
    }
}

/// The program in the cell.
fn watch(_: &[&str]) {
    const MOST: u32 = 60_000;
    // SAFETY: the set is initialised before it is used; paths end with a NUL; the descriptors are this process's own.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        let watch = libc::inotify_init1(0);
        let watched = |number: &u32| {
            let path = format!("/dev/shm/{number}");
            let made = std::fs::write(&path, "").is_ok();
            let path = CString::new(path).unwrap();
            made && libc::inotify_add_watch(watch, path.as_ptr(), libc::IN_MODIFY) >= 0
        };
        let count = (0..MOST).take_while(watched).count();
        while libc::dup(watch) >= 0 {}
        println!("{count} watches");
    }
    say(AT_IT);
}

#[expect(clippy::zombie_processes, reason = "waited for by its number")]
fn hold(_: u64) -> Now {
    /// Spares the machine where they are read.
    const MOST_BYTES: u64 = 2 << 30;
    let mut command = Command::new(own_program());
    command.args([WORD, "arguments"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let at_it = lines.any(|line| line.unwrap() == AT_IT);
    assert!(at_it, "it declares nothing");
    let id = child.id().to_string();
    let mut hold = timecell();
    hold.args(["hold", "--reserve", "5ms/50ms", "--cpu", "1", &id]);
    let most = libc::rlimit {
        rlim_cur: MOST_BYTES,
        rlim_max: MOST_BYTES,
    };
    // SAFETY: one system call, which takes no memory.
    unsafe {
        hold.pre_exec(move || {
            libc::setrlimit(libc::RLIMIT_AS, &raw const most);
            Ok(())
        });
    }
    let hold = hold.stdout(Stdio::null()).spawn().unwrap();
    let mut status = 0;
    // SAFETY: plain data, which the call fills; our own child, that nobody else waits for.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        libc::wait4(hold.id().cast_signed(), &raw mut status, 0, &raw mut used);
        used.ru_maxrss >> 10
    };
    if status == 0 {
        release(&id).ends_with(0);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    nothing_is_held();
    Now {
        got: format!("`hold` takes {used} MiB and ends with {status}"),
        held: status == 0 && used < 512,
        neighbour: None,
    }
}

/// The program that is to be held, named like those that hold others: their arguments are read.
fn declare(_: &[&str]) {
    const BYTES: u64 = 300 << 30;
    /// A file number of -1 behind a length of 0: neither an auxiliary vector nor another program.
    const NO_MORE: u64 = (u32::MAX as u64) << 32;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let stat = Stat::of(std::process::id().cast_signed()).unwrap();
    let field = |number| stat.field::<u64>(number).unwrap();
    // SAFETY: memory that nobody uses, and addresses in the order of `prctl_mm_map`.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"timecell-holder".as_ptr());
        let length = BYTES as usize;
        let at = libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        let begin = at.addr() as u64;
        let (code, data) = ([field(26), field(27)], [field(45), field(46)]);
        let heap = [field(47), libc::sbrk(0).addr() as u64];
        let [stack, environment @ ..] = [field(28), field(50), field(51)];
        let map = [code, data, heap].concat();
        let map = [
            &map[..],
            &[stack, begin, begin + BYTES],
            &environment,
            &[0, NO_MORE],
        ]
        .concat();
        let (what, size) = (libc::PR_SET_MM_MAP, size_of_val(&map[..]));
        let done = libc::prctl(libc::PR_SET_MM, what, map.as_ptr(), size, 0);
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
    say(AT_IT);
}
