//! The faults of a cell, how often each is repeated, and the time of a critical cell's jobs meanwhile.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{BOUND, RESTART};
use crate::attacks::{Critical, Neighbour, until_admitted};
use crate::missions::{Up, mission, pid_of, shell};
use crate::missions_recovery::gone_ns;
use crate::reporter::{Deed, NOTES, Reporter};

/// The number of repetitions.
const ROUNDS: usize = 5;

/// The fault of the cell `good`, and its detection.
#[derive(Clone, Copy)]
pub enum Fault {
    /// It is killed; its restart policy restarts it.
    Crashes,
    /// It reports no more jobs; a health rule restarts it.
    Wedges,
}

/// The fault of the cell `good`, and a critical cell of the same mission that is watched meanwhile.
pub struct Watched {
    fault: Fault,
    /// The cell, and the shortest time to watch it.
    critical: Option<(Critical, Duration)>,
}

impl Watched {
    /// The mission of these cells, of `good` and of the critical one.
    pub fn mission(&self, dir: &Path, bad: &str) {
        let critical = self.critical.as_ref().map(|(critical, _)| critical.lines());
        let critical = critical.unwrap_or_default();
        mission(dir, &format!("{critical}{bad}{}", self.fault.cell(dir)));
        if self.critical.is_some() {
            until_admitted(dir);
        }
    }

    /// Waits several times until the fault has hit `good` and it runs again.
    pub fn strikes(mut self, neighbour: &'static str, dir: &Path, up: &mut Up) -> Reaction {
        if let Some((critical, _)) = &mut self.critical {
            up.told("critical: runs");
            critical.begin();
        }
        let began = Instant::now();
        let reaction = self.fault.strikes(neighbour, dir, up);
        let critical = self.critical.map(|(critical, time)| {
            std::thread::sleep(time.saturating_sub(began.elapsed()));
            critical.neighbour()
        });
        Reaction {
            critical,
            ..reaction
        }
    }
}

/// The rule's timeout, ms.
const SILENCE_MS: u64 = 200;

impl Fault {
    /// Without a critical cell.
    pub fn alone(self) -> Watched {
        Watched {
            fault: self,
            critical: None,
        }
    }

    /// Beside a critical cell, which is watched for at least this many seconds.
    pub fn beside_a_critical_cell(self, seconds: u64) -> Watched {
        Watched {
            fault: self,
            critical: Some((Critical::by_any(), Duration::from_secs(seconds))),
        }
    }

    /// The cell `good`.
    pub fn cell(self, dir: &Path) -> String {
        match self {
            Fault::Crashes => shell("good", "/busybox sleep 1000", RESTART),
            Fault::Wedges => {
                let notes = dir.join("notes");
                shared(&notes);
                let wedges = Reporter {
                    period_ms: 5,
                    work_us: 100,
                    from: 20,
                    until: 21,
                    deed: Deed::Wedge,
                };
                format!(
                    "[[cell]]\nname = \"good\"\n{}stop_timeout = \"0ms\"\n{RESTART}\n\
                     rights = {{ mounts = [{{ source = \"{}\", target = \"{NOTES}\", writable = true }}] }}\n\
                     [[cell.health]]\nwhen = \"heartbeat\"\ntimeout = \"{SILENCE_MS}ms\"\ndo = \"restart\"\n",
                    wedges.lines(),
                    notes.display()
                )
            }
        }
    }

    /// Waits several times until it has hit the cell and the cell runs again.
    fn strikes(self, neighbour: &'static str, dir: &Path, up: &mut Up) -> Reaction {
        let (what, mut took) = match self {
            Fault::Crashes => ("killed until it runs again", killed_and_back(up)),
            Fault::Wedges => (
                "the end of its timeout until its first job",
                wedged_and_back(dir, up),
            ),
        };
        took.sort_unstable();
        Reaction {
            neighbour,
            what,
            took,
            critical: None,
        }
    }
}

/// How long it took each time.
pub struct Reaction {
    neighbour: &'static str,
    what: &'static str,
    /// The longest last.
    pub took: Vec<Duration>,
    /// The time of the critical cell's jobs meanwhile, if there is one.
    pub critical: Option<Neighbour>,
}

impl fmt::Display for Reaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reaction {
            neighbour,
            what,
            took,
            ..
        } = self;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        write!(
            f,
            "beside a cell that does this: {neighbour}; {what}, {} times: median {:.1} ms, longest {:.1} ms",
            took.len(),
            ms(took[took.len() / 2]),
            ms(took[took.len() - 1])
        )
    }
}

/// A directory in which cells may write.
pub fn shared(dir: &Path) {
    fs::create_dir(dir).unwrap();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).unwrap();
}

/// Kills `good` and waits until it runs again.
fn killed_and_back(up: &mut Up) -> Vec<Duration> {
    let mut pid = pid_of(&up.told("good: runs"));
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        std::thread::sleep(Duration::from_millis(200));
        let killed = Instant::now();
        // SAFETY: no memory is involved; the cell's first process.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
        pid = pid_of(&up.until("good: runs"));
        took.push(killed.elapsed());
        assert!(killed.elapsed() < BOUND, "{took:?}\n{}", up.said.join("\n"));
    }
    took
}

/// Waits until `good`, which wedges in every life, has started its first job once more; returns the times beyond the rule's timeout.
fn wedged_and_back(dir: &Path, up: &mut Up) -> Vec<Duration> {
    let notes = dir.join("notes/notes");
    let gone = || gone_ns(&fs::read_to_string(&notes).unwrap_or_default());
    let before = gone().len();
    let mut waits = Instant::now();
    let mut seen = before;
    while seen < before + ROUNDS {
        let now = gone().len();
        if now > seen {
            (seen, waits) = (now, Instant::now());
        }
        let said = up.said.join("\n");
        assert!(
            waits.elapsed() < BOUND,
            "{seen} of {before} + {ROUNDS}\n{said}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    // The rule has found them, nothing else.
    up.told("good: heartbeat: no report for ");
    let took = gone().split_off(before).into_iter().map(|ns| {
        let gone = Duration::from_nanos(ns.unsigned_abs());
        gone.checked_sub(Duration::from_millis(SILENCE_MS))
            .expect("a silence is found before it has lasted")
    });
    took.collect()
}
