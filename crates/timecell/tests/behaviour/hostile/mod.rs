//! A hostile cell beside a critical one: in any attempt it stays confined, and the critical one keeps running and loses no
//! job. How long the critical jobs take meanwhile depends on the machine and is not asserted: the campaign `hostile`
//! prints it beside the bound of admission.

#[allow(dead_code, reason = "the attacks are those of the cells' own tests")]
#[path = "../../applications/attacks/mod.rs"]
pub mod attacks;
pub mod jobs;
pub mod program;
mod watch;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::missions::{Up, mission, name, nothing_is_left, pid_of};
use crate::support::{eventually, own_program, say};
use attacks::Refused;
use jobs::Job;
use program::{AT_IT, WORD};
use watch::Hostile;

/// How long each attack is watched, if its jobs are to be measured and printed.
const SECONDS_SET: &str = "TIMECELL_HOSTILE_SECONDS";

const PERIOD_NS: i64 = 200_000_000;
const WORK_NS: i64 = 1_000_000;
/// Number of jobs beside each attack in a test.
const JOBS: usize = 8;
/// How long a cell may take for anything that an idle machine does at once.
const PATIENCE: Duration = Duration::from_secs(60);
/// The grants of the hostile cell besides cpu time.
const PIDS: u64 = 24;
const MEMORY_BYTES: u64 = 192 << 20;

/// The attacks, by the arguments of the hostile program; the first is none, for the figures of the others to be compared with.
const ATTACKS: [&str; 6] = ["none", "fork-bomb", "spin", "memory", "escapes", "signals"];

/// Runs every attack and prints the times of the critical cell's jobs, if asked to.
#[case(
    a_critical_cell_held_by_rt_cgroup_goes_on_beside_every_attack("rt-cgroup");
    Root, RtGroups, TwoCpus, GroupBudget(100), Load
)]
#[case(
    a_critical_cell_held_by_deadline_goes_on_beside_every_attack("deadline");
    Root, Deadline, TwoCpus, Load
)]
#[case(
    a_critical_cell_held_by_freezer_goes_on_beside_every_attack("freezer");
    Root, RealTime, Freezer, TwoCpus, Load
)]
fn all(enforcer: &str) {
    let seconds: Option<u64> = set(SECONDS_SET).map(|text| text.parse().unwrap());
    let mut alone = None;
    let first = usize::from(seconds.is_none());
    for attack in &ATTACKS[first..] {
        let outcome = one(enforcer, attack, seconds);
        if seconds.is_some() {
            let alone = *alone.get_or_insert(outcome.p99_ns);
            outcome.print(enforcer, attack, alone);
        }
    }
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The times of the critical cell's jobs beside an attack.
struct Outcome {
    jobs: usize,
    p99_ns: i64,
    max_ns: i64,
    late: usize,
    bound_ns: i64,
}

impl Outcome {
    fn of(jobs: &[Job], bound_ns: i64) -> Outcome {
        let mut all: Vec<i64> = jobs.iter().map(Job::response_ns).collect();
        all.sort_unstable();
        Outcome {
            jobs: all.len(),
            p99_ns: all[(all.len() * 99).div_ceil(100) - 1],
            max_ns: all[all.len() - 1],
            late: all.iter().filter(|response| **response > bound_ns).count(),
            bound_ns,
        }
    }

    fn print(&self, enforcer: &str, attack: &str, alone_ns: i64) {
        let ms = |ns: i64| ns as f64 / 1e6;
        if attack == ATTACKS[0] {
            println!(
                "\n{enforcer}: a job of {} ms every {} ms, its response bounded by {:.3} ms (timecell admit)",
                ms(WORK_NS),
                ms(PERIOD_NS),
                ms(self.bound_ns)
            );
            println!(
                "{:<10} {:>6} {:>12} {:>12} {:>14} {:>18}",
                "attack", "jobs", "p99", "max", "p99 moved by", "beyond the bound"
            );
        }
        println!(
            "{attack:<10} {:>6} {:>9.3} ms {:>9.3} ms {:>11.3} ms {:>18}",
            self.jobs,
            ms(self.p99_ns),
            ms(self.max_ns),
            ms(self.p99_ns - alone_ns),
            self.late
        );
    }
}

/// A directory in memory that the critical cell mounts.
pub struct Out(tempfile::TempDir);

impl Out {
    pub fn new() -> Out {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let jobs = dir.path().join("jobs");
        jobs::make(&jobs);
        fs::set_permissions(&jobs, fs::Permissions::from_mode(0o666)).unwrap();
        Out(dir)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self) -> File {
        File::open(self.0.path().join("jobs")).unwrap()
    }
}

/// A cell that runs this test binary with these arguments.
pub fn itself(name: &str, words: &[&str], more: &str) -> String {
    let own = own_program();
    let words: Vec<String> = [WORD]
        .iter()
        .chain(words)
        .map(|word| format!("\"{word}\""))
        .collect();
    format!(
        "[[cell]]\nname = \"{name}\"\nimage = {{ binary = \"{}\" }}\nargs = [{}]\nstop_timeout = \"100ms\"\n{more}\n",
        own.display(),
        words.join(", ")
    )
}

fn cells(enforcer: &str, out: &Path, attack: &str) -> String {
    let ms = |ns: i64| ns / 1_000_000;
    let task = format!(
        "restart = {{ policy = \"never\" }}\ncriticality = \"hi\"\n\
         [[cell.task]]\nname = \"control\"\nwcet = \"2ms\"\nperiod = \"{}ms\"\n\
         [cell.rights]\nmounts = [{{ source = \"{}\", target = \"/out\", writable = true }}]\n",
        ms(PERIOD_NS),
        out.display()
    );
    let (period, work) = (PERIOD_NS.to_string(), WORK_NS.to_string());
    let critical = itself("critical", &["critical", &period, &work], &task);
    let hostile = match attack {
        "none" => String::new(),
        _ => {
            let more = format!(
                "reservation = {{ budget = \"10ms\", period = \"400ms\" }}\nneeds = [\"critical\"]\n\
                 restart = {{ backoff_min = \"10ms\", backoff_max = \"50ms\", limit = 100000 }}\n\
                 [cell.rights]\npids = {PIDS}\nmemory = \"{}MiB\"\n",
                MEMORY_BYTES >> 20
            );
            // A storm of signals would end this very test.
            itself("hostile", &[attack, &std::process::id().to_string()], &more)
        }
    };
    // On the same cpu, if the enforcer can keep them there.
    let cpus = match enforcer {
        "deadline" => String::new(),
        _ => format!(
            "cpus = {:?}\n",
            &host::sched::get_affinity(0).unwrap()[1..2]
        ),
    };
    format!("enforcer = \"{enforcer}\"\n{cpus}{critical}{hostile}")
}

fn one(enforcer: &str, attack: &str, seconds: Option<u64>) -> Outcome {
    let (dir, out) = (tempfile::tempdir().unwrap(), Out::new());
    mission(dir.path(), &cells(enforcer, out.0.path(), attack));
    // Others on this machine may hold the budget the cells need, for a while.
    eventually("the mission is admitted", || {
        say(dir.path(), &["admit", "mission.toml"]).code == Some(0)
    });
    let bound_ns = bound(dir.path());
    let mut up = Up::start(dir.path());
    let critical = pid_of(&up.until("critical: runs"));
    let file = out.file();
    let hostile = match attack {
        "none" => None,
        _ => Some(Hostile::new(
            &name(dir.path()),
            pid_of(&up.until("hostile: runs")),
            watch::granted(dir.path()),
        )),
    };
    let output = dir.path().join("state/cells/hostile/output");
    if hostile.is_some() {
        eventually("the attack is under way", || {
            fs::read_to_string(&output).is_ok_and(|said| said.contains(AT_IT))
        });
    }
    if attack == "memory" {
        up.until("hostile: killed for memory: limit");
        up.until("hostile: restarting");
    }
    let first = jobs::count(&file);
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    let end = until + PATIENCE;
    let enough = |now: usize| now >= first + JOBS && Instant::now() >= until;
    while !enough(jobs::count(&file)) {
        assert!(
            Instant::now() < end,
            "{attack}: the critical cell stands still"
        );
        if let Some(hostile) = &hostile {
            hostile.is_in_its_place(attack);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // It is the same process, and it has done every job.
    assert!(Path::new(&format!("/proc/{critical}")).exists(), "{attack}");
    let all = jobs::since(&file, 0);
    for (before, after) in all.iter().zip(&all[1..]) {
        assert_eq!(after.release_ns - before.release_ns, PERIOD_NS, "{attack}");
        assert!(before.end_ns <= after.begin_ns && after.begin_ns >= after.release_ns);
    }
    let said = fs::read_to_string(&output).unwrap_or_default();
    what_it_was_told(enforcer, attack, &said);
    up.end();
    nothing_is_left(dir.path());
    Outcome::of(&all[first..], bound_ns)
}

/// The bound on the critical task's response time by `timecell admit`.
fn bound(dir: &Path) -> i64 {
    let said = say(dir, &["admit", "mission.toml", "--json"]).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let cell = &json["admission"]["cells"][0];
    assert_eq!(cell["cell"], "critical");
    cell["tasks"][0]["response_ns"].as_i64().unwrap()
}

/// The hostile cell's own record of its attack.
fn what_it_was_told(enforcer: &str, attack: &str, said: &str) {
    let has = |line: &str| said.lines().any(|said| said == line);
    match attack {
        // The calls succeed, and give it the values that it had.
        "spin" => assert!(
            has("fifo as before") && has("round-robin as before"),
            "{said}"
        ),
        "fork-bomb" => assert!(has(&format!("fork Some({})", libc::EAGAIN)), "{said}"),
        "signals" => assert!(!said.contains("reached"), "{said}"),
        "escapes" => {
            // The freezer stops a thread that inherits a priority together with all others of the cell.
            let inherits = |name: &str| enforcer == "freezer" && name.starts_with("inherit");
            for attack in attacks::all()
                .into_iter()
                .filter(|attack| !inherits(attack.name))
            {
                let done = format!("{} done", attack.name);
                match attack.refused {
                    Refused::With(errno) => {
                        let refused = format!("{} {errno}", attack.name);
                        assert!(has(&refused), "{}: {said}", attack.name);
                        assert!(!has(&done), "{}", attack.name);
                    }
                    // Or the kernel's own answer to arguments that make no sense for the class that it asked for last.
                    Refused::Unanswered(_) => {
                        let nonsense = has(&format!("{} {}", attack.name, libc::EINVAL));
                        assert!(has(&done) || nonsense, "{}: {said}", attack.name);
                    }
                    Refused::Deadly => {}
                }
            }
        }
        _ => {}
    }
}

/// The state directory of a mission that [`Up`] keeps.
pub fn output(dir: &Path, cell: &str) -> PathBuf {
    dir.join("state/cells").join(cell).join("output")
}
