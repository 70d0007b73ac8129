//! A program in cells that reports its jobs: this test binary, whose arguments name its task.

use std::io::Write as _;
use std::time::Duration;

use timecell_client::{Client, now_ns};

use crate::support::own_program;

/// The first argument of the program.
const WORD: &str = "reports-jobs";

/// The program's jobs.
#[derive(Debug, Clone, Copy)]
pub struct Reporter {
    pub period_ms: i64,
    pub work_us: i64,
    /// The fate of each of these jobs, instead of its work.
    pub from: u64,
    pub until: u64,
    pub deed: Deed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Nothing.
    Work,
    /// The program kills itself by a signal.
    Crash,
    /// It does nothing, for ever.
    Wedge,
    /// It works four times as long.
    Long,
    /// Its job ends after its deadline, without any work.
    Late,
    /// It skips the releases of three periods, and is in time again.
    Skip,
    /// It has a child that works for ever, and invents jobs in time, twenty a period.
    Forge,
}

const DEEDS: [(&str, Deed); 7] = [
    ("work", Deed::Work),
    ("crash", Deed::Crash),
    ("wedge", Deed::Wedge),
    ("long", Deed::Long),
    ("late", Deed::Late),
    ("skip", Deed::Skip),
    ("forge", Deed::Forge),
];

impl Reporter {
    /// The image and arguments of a cell that runs it, as lines of a mission file.
    pub fn lines(&self) -> String {
        let (deed, _) = DEEDS.iter().find(|(_, deed)| *deed == self.deed).unwrap();
        let binary = own_program();
        format!(
            "image = {{ binary = \"{}\" }}\nargs = [\"{WORD}\", \"{}\", \"{}\", \"{}\", \"{}\", \"{deed}\"]\n",
            binary.display(),
            self.period_ms,
            self.work_us,
            self.from,
            self.until,
        )
    }
}

/// Runs as the program for ever, if this process was asked to.
pub fn run_if_asked() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [word, period, work, from, until, deed] = &words[..] else {
        return;
    };
    if word != WORD {
        return;
    }
    let (_, deed) = DEEDS.iter().find(|(name, _)| name == deed).unwrap();
    report(&Reporter {
        period_ms: period.parse().unwrap(),
        work_us: work.parse().unwrap(),
        from: from.parse().unwrap(),
        until: until.parse().unwrap(),
        deed: *deed,
    });
}

fn report(told: &Reporter) -> ! {
    let client = Client::open_from_env().unwrap();
    assert!(client.is_attached(), "there is no page");
    let mut task = client.task("loop").unwrap();
    println!("reports");
    note("begins", now_ns());
    let period_ns = told.period_ms * 1_000_000;
    let mut release_ns = now_ns();
    for job in 0.. {
        let skips = told.deed == Deed::Skip && (told.from..told.until).contains(&job);
        release_ns += if skips { 3 * period_ns } else { 0 };
        let left = u64::try_from(release_ns - now_ns()).unwrap_or(0);
        std::thread::sleep(Duration::from_nanos(left));
        task.begin_released(release_ns);
        if job == 0 {
            note("first job", now_ns());
        }
        let deed = match (told.from..told.until).contains(&job) {
            true => told.deed,
            false => Deed::Work,
        };
        if matches!(deed, Deed::Crash | Deed::Wedge) {
            note("fails", now_ns());
        }
        match deed {
            Deed::Work | Deed::Skip => spin(told.work_us * 1_000),
            Deed::Long => spin(told.work_us * 4_000),
            Deed::Late => std::thread::sleep(Duration::from_nanos(period_ns.unsigned_abs() * 2)),
            // SAFETY: the first process of a cell is not killed by signals that it does not handle, but an invalid access cannot be
            // kept from it.
            Deed::Crash => unsafe { std::ptr::null_mut::<u8>().write_volatile(0) },
            Deed::Forge => {
                // SAFETY: this process has one thread; the child only works.
                if job == told.from && unsafe { libc::fork() } == 0 {
                    spin(i64::MAX / 2);
                }
                for _ in 0..20 {
                    task.end();
                    task.begin_released(now_ns());
                }
            }
            Deed::Wedge => loop {
                std::thread::sleep(Duration::from_secs(1000));
            },
        }
        task.end();
        // Jobs that can no longer be in time are skipped.
        release_ns = (release_ns + period_ns).max(now_ns() - period_ns);
    }
    unreachable!("jobs go on for ever")
}

/// Directory in the cell, if any, in which the program records when it starts, starts its first job and fails.
pub const NOTES: &str = "/notes";

fn note(what: &str, at_ns: i64) {
    let path = std::path::Path::new(NOTES).join("notes");
    // Most cells have no such directory.
    if let Ok(mut file) = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
    {
        let _ = writeln!(file, "{at_ns} {what}");
    }
}

fn spin(ns: i64) {
    let mut used = cpu_ns();
    let end = used + ns;
    while used < end {
        used = cpu_ns();
    }
}

/// Cpu time of this thread: a job takes the same however often it is interrupted.
fn cpu_ns() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a time on the stack.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
