//! A mission of a critical and a hostile cell, and the times of the critical jobs meanwhile.

use std::fmt;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use model::Enforcer;

use super::{AT_IT, THE_END, WORD};
use crate::hostile::{self, Out, jobs};
use crate::missions::{PATIENCE, Up, mission, name, nothing_is_left, pid_of, sweep};
use crate::support::{enforcer, own_program, say};

const PERIOD_NS: i64 = 20_000_000;
const WORK_NS: i64 = 1_000_000;

/// The critical cell has a job of 1 ms every 20 ms.
pub struct Setting<'a> {
    pub enforcer: Enforcer,
    /// The grants of the critical cell, as keys of its table.
    pub critical: &'a str,
    /// The hostile cell, as [`program`] writes it.
    pub hostile: &'a str,
}

impl<'a> Setting<'a> {
    /// For attacks that do not depend on the critical cell's enforcer: any that there is.
    pub fn beside(hostile: &'a str) -> Setting<'a> {
        let enforcer = enforcer().unwrap();
        let critical = match enforcer {
            Enforcer::RtCgroup => {
                "class = \"fifo\"\npriorities = { lowest = 80, highest = 90 }\n\
                 reservation = { budget = \"16ms\", period = \"40ms\" }"
            }
            Enforcer::Deadline => {
                "class = \"deadline\"\nreservation = { budget = \"4ms\", period = \"20ms\" }"
            }
            _ => {
                "class = \"fifo\"\npriorities = { lowest = 80, highest = 90 }\n\
                 [[cell.task]]\nname = \"t\"\nwcet = \"2ms\"\nperiod = \"20ms\""
            }
        };
        Setting {
            enforcer,
            critical,
            hostile,
        }
    }
}

/// The time of the critical cell's jobs beyond their own work.
pub struct Neighbour {
    enforcer: Enforcer,
    pub jobs: usize,
    pub late: usize,
    worst_ns: i64,
}

impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.jobs == 0 {
            return write!(
                f,
                "not asked: over before a job was ({})",
                self.enforcer.name()
            );
        }
        let worst_ms = self.worst_ns as f64 / 1e6;
        write!(
            f,
            "worst delay {worst_ms:.3} ms, {} of {} jobs late ({})",
            self.late,
            self.jobs,
            self.enforcer.name()
        )
    }
}

/// A cell `name` that runs the deed of an attack, with further words and keys of its table.
pub fn program(name: &str, attack: &str, words: &[&str], more: &str) -> String {
    let own = own_program();
    let words: Vec<String> = [WORD, attack]
        .iter()
        .chain(words)
        .map(|word| format!("\"{word}\""))
        .collect();
    format!(
        "[[cell]]\nname = \"{name}\"\nimage = {{ binary = \"{}\" }}\nargs = [{}]\nstop_timeout = \"100ms\"\n\
         restart = {{ policy = \"never\" }}\n{more}\n[cell.rights]\nmemory = \"64MiB\"\npids = 16\n",
        own.display(),
        words.join(", ")
    )
}

/// The critical cell of a mission, and its jobs.
pub struct Critical {
    enforcer: Enforcer,
    keys: String,
    jobs: File,
    /// Of these jobs, the first that counts.
    first: usize,
    /// Shown to the cell as long as it runs.
    out: Out,
}

impl Critical {
    /// Granted these keys of its table.
    pub fn granted(enforcer: Enforcer, keys: &str) -> Critical {
        let out = Out::new();
        Critical {
            enforcer,
            keys: keys.to_owned(),
            jobs: out.file(),
            first: 0,
            out,
        }
    }

    /// By any enforcer that there is.
    pub fn by_any() -> Critical {
        let setting = Setting::beside("");
        Critical::granted(setting.enforcer, setting.critical)
    }

    /// The first lines of a mission with this cell.
    pub fn lines(&self) -> String {
        let (period, work) = (PERIOD_NS.to_string(), WORK_NS.to_string());
        let shown = format!(
            "restart = {{ policy = \"never\" }}\ncriticality = \"hi\"\n{}\n[cell.rights]\n\
             mounts = [{{ source = \"{}\", target = \"/out\", writable = true }}]\n",
            self.keys,
            self.out.path().display()
        );
        let cell = hostile::itself("critical", &["critical", &period, &work], &shown);
        let cpus = match self.enforcer {
            Enforcer::Deadline => String::new(),
            _ => format!(
                "cpus = {:?}\n",
                &host::sched::get_affinity(0).unwrap()[1..2]
            ),
        };
        format!(
            "enforcer = \"{}\"\nlatency = \"200us\"\n{cpus}{cell}",
            self.enforcer.name()
        )
    }

    /// From now on its jobs count.
    pub fn begin(&mut self) {
        self.first = jobs::count(&self.jobs);
    }

    /// The time of its jobs since then.
    pub fn neighbour(&self) -> Neighbour {
        // Before the jobs are read: one that ends meanwhile is not one that waits.
        let now_ns = timecell_client::now_ns();
        let jobs = jobs::since(&self.jobs, self.first);
        // The job that is released by now is late as well, if it is.
        let waits = now_ns - jobs.last().map_or(now_ns, |job| job.release_ns + PERIOD_NS);
        let ended = jobs.iter().map(jobs::Job::response_ns);
        let all: Vec<i64> = ended.chain((!jobs.is_empty()).then_some(waits)).collect();
        Neighbour {
            enforcer: self.enforcer,
            jobs: jobs.len(),
            late: all.iter().filter(|response| **response > PERIOD_NS).count(),
            worst_ns: all.iter().max().map_or(0, |worst| (worst - WORK_NS).max(0)),
        }
    }
}

/// Waits until the mission of this directory is admitted: others of this machine may hold the budget its cells need, for a while.
pub fn until_admitted(dir: &Path) {
    let end = Instant::now() + PATIENCE;
    loop {
        let said = say(dir, &["admit", "mission.toml"]);
        if said.code == Some(0) {
            return;
        }
        assert!(Instant::now() < end, "{}{}", said.out, said.err);
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A mission that runs.
pub struct Scene {
    pub up: Up,
    dir: tempfile::TempDir,
    critical: Critical,
}

impl Scene {
    /// Starts the mission and waits until the attack is under way.
    pub fn start(setting: &Setting<'_>) -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let mut critical = Critical::granted(setting.enforcer, setting.critical);
        mission(dir.path(), &(critical.lines() + setting.hostile));
        until_admitted(dir.path());
        let mut up = Up::start(dir.path());
        up.until("critical: runs");
        pid_of(&up.told("hostile: runs"));
        critical.begin();
        let scene = Scene { up, dir, critical };
        scene.until(AT_IT);
        scene
    }

    /// The hostile cell's output so far.
    pub fn said(&self) -> String {
        self.said_by("hostile")
    }

    fn said_by(&self, cell: &str) -> String {
        let bytes = fs::read(hostile::output(self.dir.path(), cell)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until the hostile cell has said this line.
    pub fn until(&self, line: &str) {
        self.until_said("hostile", line);
    }

    /// Waits until a cell has said this line; returns its output by then.
    pub fn until_said(&self, cell: &str, line: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let said = self.said_by(cell);
            if said.lines().any(|said| said == line) {
                return said;
            }
            assert!(Instant::now() < end, "no `{line}` in:\n{said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Directory of the mission.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Name of the mission.
    pub fn name(&self) -> String {
        name(self.dir.path())
    }

    /// Waits until the hostile cell has nothing more to do; returns its output.
    pub fn to_the_end(&self) -> String {
        self.until(THE_END);
        self.said()
    }

    /// Ends the mission: nothing of it is left.
    pub fn end(mut self) -> Neighbour {
        let neighbour = self.critical.neighbour();
        // An earlier timecell says in other words that all have stopped.
        self.up.signal(libc::SIGINT);
        // 3: the attack has withdrawn a bound.
        let code = self.up.child.wait().unwrap().code();
        assert!(matches!(code, Some(0 | 3)), "{code:?}");
        nothing_is_left(self.dir.path());
        neighbour
    }

    /// Kills a supervisor that does not answer, and removes its remains.
    pub fn abandon(self) -> Neighbour {
        let neighbour = self.critical.neighbour();
        self.up.kill();
        sweep(self.dir.path());
        neighbour
    }
}

/// The number behind a word at the beginning of a line.
pub fn number(said: &str, word: &str) -> Option<f64> {
    let found = said.lines().find_map(|line| line.strip_prefix(word))?;
    found.trim().parse().ok()
}

/// Runs this in a view of the file system of its own, which these commands have changed.
pub fn changed_view<T: Send>(commands: &[String], run: impl FnOnce() -> T + Send) -> T {
    let changed = || {
        // SAFETY: no memory is involved; the namespace goes with this thread.
        let done = unsafe { libc::unshare(libc::CLONE_NEWNS) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        let alone = "mount --make-rslave /".to_owned();
        for command in [&alone].into_iter().chain(commands) {
            let mut words = command.split(' ');
            let status = Command::new(words.next().unwrap()).args(words).status();
            assert!(status.unwrap().success(), "{command}");
        }
        run()
    };
    std::thread::scope(|threads| threads.spawn(changed).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A directory for one attack which is no mission's.
pub fn place() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// The identity of a file's contents: its length and a sum of its bytes.
pub fn print_of(file: &Path) -> (usize, u64) {
    let bytes = fs::read(file).unwrap();
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (bytes.len(), sum)
}
