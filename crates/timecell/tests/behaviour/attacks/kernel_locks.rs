//! A cell that has used up its budget stops where it is, even inside the kernel, with the locks that it holds there: a FIFO cell
//! that reads its mount table again and again, and how long mounting then takes elsewhere on the machine.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use model::Enforcer;

use super::scene::{Scene, Setting, place, program};
use super::{AT_IT, Attack, Before, Now, say};
use crate::support::{Need, enforcer};

pub const LOCKS: Attack = Attack {
    name: "kernel-locks",
    tries: "a real-time thread of 8 ms every 40 ms reads /proc/self/mountinfo without end; what a mount then takes on the host",
    before: Before {
        got: "not tried",
        neighbour: "not recorded",
    },
    needs: &[Need::Root, Need::TwoCpus, Need::AnyBudget(600)],
    deed,
    run,
};

/// Budget and period of the hostile cell, ms.
const BUDGET_MS: u64 = 8;
const PERIOD_MS: u64 = 40;

fn run(seconds: u64) -> Now {
    let alone = worst_mount(Duration::from_millis(500));
    let enforcer = enforcer().unwrap();
    let classes = match enforcer {
        Enforcer::Deadline => ["class = \"deadline\""; 2],
        _ => [
            "class = \"fifo\"\npriorities = { lowest = 50, highest = 60 }",
            "class = \"fifo\"\npriorities = { lowest = 20, highest = 30 }",
        ],
    };
    let [attacks, critical] = classes;
    let budget = format!(
        "{attacks}\nreservation = {{ budget = \"{BUDGET_MS}ms\", period = \"{PERIOD_MS}ms\" }}"
    );
    let hostile = program("hostile", "kernel-locks", &[], &budget);
    let scene = Scene::start(&Setting {
        enforcer,
        critical: &format!("{critical}\nreservation = {{ budget = \"12ms\", period = \"40ms\" }}"),
        hostile: &hostile,
    });
    let beside = worst_mount(Duration::from_secs(seconds));
    let neighbour = scene.end();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    Now {
        got: format!(
            "a mount waits {:.1} ms at most ({:.1} ms alone)",
            ms(beside),
            ms(alone)
        ),
        // Some periods, for those who wait one after the other on a busy machine; a lock that is never given back takes longer.
        held: beside <= Duration::from_secs(1),
        neighbour: Some(neighbour),
    }
}

/// The longest that making or undoing a mount took, in a mount namespace that nobody else has.
fn worst_mount(time: Duration) -> Duration {
    let measure = move || {
        let dir = place();
        // SAFETY: only this thread's view of the file system changes; every string ends with a nul.
        let private = unsafe {
            libc::unshare(libc::CLONE_NEWNS) == 0
                && mount(
                    c"none",
                    Path::new("/"),
                    None,
                    libc::MS_REC | libc::MS_PRIVATE,
                )
        };
        assert!(private, "{}", std::io::Error::last_os_error());
        let until = Instant::now() + time;
        let mut worst = Duration::ZERO;
        while Instant::now() < until {
            let begin = Instant::now();
            assert!(mount(c"tmpfs", dir.path(), Some(c"tmpfs"), 0));
            worst = worst.max(begin.elapsed());
            let begin = Instant::now();
            let path = nul(dir.path());
            // SAFETY: a string that ends with a nul.
            assert_eq!(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) }, 0);
            worst = worst.max(begin.elapsed());
            std::thread::sleep(Duration::from_micros(500));
        }
        worst
    };
    std::thread::spawn(measure).join().unwrap()
}

fn nul(path: &Path) -> std::ffi::CString {
    std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap()
}

fn mount(
    what: &std::ffi::CStr,
    on: &Path,
    kind: Option<&std::ffi::CStr>,
    flags: libc::c_ulong,
) -> bool {
    let kind = kind.map_or(std::ptr::null(), std::ffi::CStr::as_ptr);
    // SAFETY: strings that end with a nul, or none.
    unsafe {
        libc::mount(
            what.as_ptr(),
            nul(on).as_ptr(),
            kind,
            flags,
            std::ptr::null(),
        ) == 0
    }
}

/// The program in the cell.
fn deed(_: &[&str]) {
    say(AT_IT);
    loop {
        let _ = std::hint::black_box(fs::read("/proc/self/mountinfo"));
    }
}
