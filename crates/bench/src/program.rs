//! Trying a program of the user's before it is measured: does it report its jobs, and how long do they take?

use std::fs::File;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use model::ProgramLoad;
use probe::TaskOnPage;

/// Longest time for a program to open a task or to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long jobs are watched, and how many of them are enough.
const WATCHED: Duration = Duration::from_secs(3);
const ENOUGH: usize = 20;
/// Least time for a program to open its other tasks after its first.
const OPENED: Duration = Duration::from_millis(300);
/// Between two looks: a hundredth of the time that has passed, within these.
const LOOKS: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(5)];
/// How long a program is stopped to see whether it catches up, within these, and how often.
const STOPPED_PERIODS: i64 = 40;
const STOPPED: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];
const STOPS: u32 = 3;
/// Most of its complaints that an error quotes, bytes.
const MOST_BYTES: u64 = 600;

/// A program's own behaviour.
#[derive(Debug, Clone, PartialEq)]
pub enum Tried {
    /// It reports jobs.
    Reports {
        /// Its tasks, that which is to be compared first: the one that was asked for, or else the one of the shortest period.
        tasks: Vec<TriedTask>,
        /// How long it takes to catch up after a stop, as a share of the stopped time; `None` if it was not seen to.
        catches_up: Option<f64>,
    },
    /// It ends by itself after so long, ns, and reports nothing.
    Ends {
        /// Of two executions the longer.
        after_ns: i64,
    },
    /// Does neither within so many seconds.
    Endless {
        /// How long it was waited for.
        within: u64,
    },
}

/// A task of a program that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedTask {
    /// Its name.
    pub name: String,
    /// The median of the time between two releases, ns, if it was seen.
    pub period_ns: Option<i64>,
}

/// Runs the program once as a plain process, and again if it has ended; `task` is the one to be compared.
///
/// # Errors
/// When it cannot be started, fails, or has no such task.
pub fn try_program(words: &[String], task: Option<&str>) -> Result<Tried, String> {
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let first = once(words, place.path(), "1", task)?;
    let Tried::Ends { after_ns } = first else {
        return Ok(first);
    };
    // Once more: the first brings it into memory.
    match once(words, place.path(), "2", task)? {
        Tried::Ends { after_ns: again_ns } => Ok(Tried::Ends {
            after_ns: again_ns.max(after_ns.min(2 * again_ns)),
        }),
        other => Ok(other),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "in a directory that nobody else writes to"
)]
fn once(words: &[String], place: &Path, name: &str, task: Option<&str>) -> Result<Tried, String> {
    let io = |error: std::io::Error| error.to_string();
    let (page, log) = (place.join(name), place.join(format!("{name}.log")));
    probe::prepare_page(&page, false).map_err(io)?;
    let complaints = File::create(&log).map_err(io)?;
    let (path, arguments) = words.split_first().ok_or("no program is named")?;
    let began = Instant::now();
    let child = Command::new(path)
        .args(arguments)
        .env("TIMECELL_PAGE", &page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(complaints)
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start: {error}"))?;
    let mut running = Running(child);
    running.before_others();
    let mut opened: Option<Instant> = None;
    loop {
        let seen = probe::tasks_on(&page).map_err(io)?;
        let ended = running.0.try_wait().map_err(io)?;
        if !seen.is_empty() {
            let since = opened.get_or_insert_with(Instant::now);
            let enough =
                since.elapsed() > OPENED && seen.iter().all(|task| task.spans.len() >= ENOUGH);
            if enough || since.elapsed() > WATCHED || ended.is_some() {
                failed(ended, &log)?;
                let tasks = in_order(&seen, task)?;
                let catches_up = match (ended, tasks.first()) {
                    (
                        None,
                        Some(TriedTask {
                            name,
                            period_ns: Some(period_ns),
                        }),
                    ) => catches_up(&running, &page, name, *period_ns).map_err(io)?,
                    _ => None,
                };
                return Ok(Tried::Reports { tasks, catches_up });
            }
        } else if let Some(status) = ended {
            let after_ns = began.elapsed().as_nanos() as i64;
            failed(Some(status), &log)?;
            return Ok(Tried::Ends { after_ns });
        } else if began.elapsed() > PATIENCE {
            return Ok(Tried::Endless {
                within: PATIENCE.as_secs(),
            });
        }
        let [least, most] = LOOKS;
        std::thread::sleep((began.elapsed() / 100).clamp(least, most));
    }
}

/// The tasks with their periods, that which is to be compared first.
fn in_order(seen: &[TaskOnPage], wanted: Option<&str>) -> Result<Vec<TriedTask>, String> {
    let mut tasks: Vec<TriedTask> = (seen.iter())
        .map(|task| {
            let releases: Vec<i64> = task.spans.iter().map(|(release, _)| *release).collect();
            TriedTask {
                name: task.name.clone(),
                period_ns: median_step(&releases),
            }
        })
        .collect();
    if let Some(wanted) = wanted.filter(|wanted| tasks.iter().all(|task| task.name != **wanted)) {
        let names: Vec<String> = tasks
            .iter()
            .map(|task| format!("`{}`", task.name))
            .collect();
        return Err(format!(
            "reports no jobs of a task `{wanted}`; its tasks are {}",
            names.join(", ")
        ));
    }
    // Of equal periods the one that was opened first.
    let is_other = |task: &TriedTask| wanted.is_some_and(|wanted| task.name != wanted);
    tasks.sort_by_key(|task| (is_other(task), task.period_ns.unwrap_or(i64::MAX)));
    Ok(tasks)
}

/// Stops the program for a while, as turns do, and measures how long it then works on the jobs due meanwhile, as a share of that time; the
/// median of several tries, since the machine may be late, too.
fn catches_up(
    running: &Running,
    page: &Path,
    task: &str,
    period_ns: i64,
) -> std::io::Result<Option<f64>> {
    let stopped = Duration::from_nanos((period_ns * STOPPED_PERIODS).unsigned_abs())
        .clamp(STOPPED[0], STOPPED[1]);
    let mut shares = Vec::new();
    for _ in 0..STOPS {
        running.signal(libc::SIGSTOP);
        std::thread::sleep(stopped);
        let again_ns = probe::clock::now();
        running.signal(libc::SIGCONT);
        let began = Instant::now();
        // The page has its last jobs only: those that were due are looked for all the time.
        let mut made_up = 0;
        while began.elapsed() < stopped + WATCHED {
            std::thread::sleep(LOOKS[1] / 5);
            let tasks = probe::tasks_on(page)?.into_iter();
            let spans = (tasks
                .filter(|seen| seen.name == task)
                .map(|seen| seen.spans))
            .next();
            let spans = spans.unwrap_or_default();
            if let Some(behind_ns) = behind_ns(&spans, again_ns, &mut made_up) {
                shares.push(behind_ns as f64 / stopped.as_nanos() as f64);
                break;
            }
        }
        // A program that skips releases does so each time.
        if shares.last() == Some(&0.0) {
            break;
        }
    }
    shares.sort_by(f64::total_cmp);
    Ok(shares.get(shares.len() / 2).copied())
}

/// How long a program that goes on at this instant works for jobs due before, ns, of its jobs as (release, end); 0 if it skips them, and
/// `None` as long as it is at it. `made_up`: the most jobs of that kind seen so far.
fn behind_ns(spans: &[(i64, i64)], again_ns: i64, made_up: &mut usize) -> Option<i64> {
    let was_due = |span: &&(i64, i64)| span.0 < again_ns && span.1 > again_ns;
    *made_up = spans.iter().filter(was_due).count().max(*made_up);
    let caught_up_ns = caught_up(spans, again_ns)?;
    // One is the job in which it was stopped, or for which it waited.
    match *made_up {
        0 | 1 => Some(0),
        _ => Some(caught_up_ns - again_ns),
    }
}

/// The first release since then that found nothing before it to be done, of jobs as (release, end).
fn caught_up(spans: &[(i64, i64)], since_ns: i64) -> Option<i64> {
    let in_time = |pair: &&[(i64, i64)]| pair[1].0 >= since_ns && pair[0].1 <= pair[1].0;
    spans.windows(2).find(in_time).map(|pair| pair[1].0)
}

/// An error unless it exited with 0.
fn failed(ended: Option<ExitStatus>, log: &Path) -> Result<(), String> {
    let Some(status) = ended.filter(|status| !status.success()) else {
        return Ok(());
    };
    let mut said = Vec::new();
    let _ = File::open(log).and_then(|log| log.take(MOST_BYTES).read_to_end(&mut said));
    let said = String::from_utf8_lossy(&said).trim().replace('\n', "; ");
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exits with status {code}"),
        (None, signal) => format!("is killed by signal {}", signal.unwrap_or(0)),
    };
    Err(match said.is_empty() {
        true => how,
        false => format!("{how}, saying: {said}"),
    })
}

/// The median of the times between neighbours; `None` of fewer than two.
fn median_step(releases: &[i64]) -> Option<i64> {
    let mut steps: Vec<i64> = releases
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        // Releases in one rush, after a pause of the machine, are no period.
        .filter(|step| step >= model::Limits::PERIOD_NS.start())
        .collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).copied()
}

/// A child that is ended when this is dropped.
struct Running(Child);

impl Running {
    /// Raises it above ordinary work as far as allowed: a program that others delay shows a period that is not its own. Real-time classes
    /// need a program known to end.
    fn before_others(&self) {
        // SAFETY: no memory is involved; a refusal leaves it where it is.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, self.0.id(), -20) };
    }

    /// Sends a signal to its group, and so to its descendants, too. Until it is waited for, its pid cannot be reused.
    fn signal(&self, signal: libc::c_int) {
        // SAFETY: no memory is involved.
        unsafe { libc::kill(-self.0.id().cast_signed(), signal) };
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
        let _ = self.0.wait();
    }
}

/// The program of an experiment file as a plain process finds it: beside the file, unless its path is absolute or has no directory.
///
/// # Errors
/// When it does not exist, or is a directory.
pub fn resolve_program(what: &str, program: &mut ProgramLoad) -> Result<(), String> {
    let beside = Path::new(what).parent().unwrap_or(Path::new(""));
    let named = beside.join(program.path());
    // Not the file behind a link: some programs go by their name.
    let found = std::path::absolute(&named).and_then(|path| Ok((path.metadata()?, path)));
    let (about, found) =
        found.map_err(|error| format!("cannot find the program {}: {error}", program.path()))?;
    if about.is_dir() {
        return Err(format!(
            "{} is a directory; name a program in it",
            program.path()
        ));
    }
    let found = found.into_os_string().into_string();
    let found = found.map_err(|path| format!("{path:?} is not UTF-8 text"))?;
    if let Some(path) = program.words.first_mut() {
        *path = found;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ProgramJobs;

    fn tried(script: &str) -> Result<Tried, String> {
        try_program(&["/bin/sh", "-c", script].map(str::to_owned), None)
    }

    #[test]
    fn a_program_that_ends_is_timed() {
        let Ok(Tried::Ends { after_ns }) = tried("sleep 0.05") else {
            panic!("it ends and reports nothing");
        };
        assert!(after_ns >= 50_000_000, "{after_ns}");
    }

    #[test]
    fn it_goes_before_ordinary_work_where_that_is_allowed() {
        let before = "test \"$(nice)\" -eq -20";
        let is_root = crate::place::uid() == 0;
        let late_enough = format!("sleep 0.05; {before}");
        match tried(&late_enough) {
            Ok(Tried::Ends { .. }) => {}
            other => assert!(!is_root, "{other:?}"),
        }
    }

    #[test]
    fn a_program_that_fails_is_told_with_its_words() {
        let told = tried("echo no such device >&2; exit 3").unwrap_err();
        assert_eq!(told, "exits with status 3, saying: no such device");
        assert_eq!(tried("kill -9 $$").unwrap_err(), "is killed by signal 9");
        let missing = try_program(&["/nonexistent".to_owned()], None).unwrap_err();
        assert!(
            missing.starts_with("cannot start: No such file"),
            "{missing}"
        );
    }

    #[test]
    fn the_period_is_the_usual_step() {
        let us = |releases: &[i64]| {
            let releases: Vec<i64> = releases.iter().map(|at| at * 1_000).collect();
            median_step(&releases)
        };
        assert_eq!(us(&[0, 10, 20, 90, 100]), Some(10_000));
        assert_eq!(us(&[5]), None);
        assert_eq!(us(&[0, 2, 3, 4, 5, 6]), None);
    }

    #[test]
    fn a_program_has_caught_up_once_nothing_waits() {
        // Two that were due before 100, one that they delayed, and one in time.
        let spans = [(80, 110), (90, 120), (101, 130), (131, 140), (150, 160)];
        assert_eq!(caught_up(&spans, 100), Some(131));
        assert_eq!(caught_up(&spans[..3], 100), None);
        assert_eq!(caught_up(&[], 100), None);
        let behind = |spans: &[(i64, i64)]| behind_ns(spans, 100, &mut 0);
        assert_eq!(behind(&spans), Some(31));
        assert_eq!(behind(&spans[..3]), None);
        // By the time that it has caught up, those jobs may have been written over.
        let mut made_up = 0;
        assert_eq!(behind_ns(&spans[..3], 100, &mut made_up), None);
        assert_eq!(behind_ns(&spans[2..], 100, &mut made_up), Some(31));
        // However short its jobs, their sum is its need.
        let short = [(70, 101), (80, 102), (90, 103), (110, 111), (120, 121)];
        assert_eq!(behind(&short), Some(10));
        // It finishes the job that it was stopped in, and goes on at the next release.
        let skips = [(40, 50), (50, 104), (110, 120), (120, 130)];
        assert_eq!(behind(&skips), Some(0));
    }

    #[test]
    fn a_program_is_found_beside_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let beside = dir.path().join("app");
        std::fs::write(&beside, "").unwrap();
        let file = dir.path().join("x.toml");
        let mut program =
            ProgramLoad::new(vec!["./app".to_owned()], ProgramJobs::Executions).unwrap();
        resolve_program(file.to_str().unwrap(), &mut program).unwrap();
        assert_eq!(Path::new(program.path()), dir.path().join("./app"));
        let mut program =
            ProgramLoad::new(vec!["./other".to_owned()], ProgramJobs::Executions).unwrap();
        let told = resolve_program(file.to_str().unwrap(), &mut program).unwrap_err();
        assert!(told.contains("other"), "{told}");
    }
}
