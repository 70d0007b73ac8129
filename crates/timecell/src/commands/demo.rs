//! `timecell demo`: a mission that runs as printed, because the program of its cells is timecell itself; and that program.

use std::path::Path;
use std::time::{Duration, Instant};

use timecell_client::{Client, now_ns};

use crate::exit::{CommandError, Ended};
use crate::out;

/// The mission, with a placeholder for the path of timecell.
const MISSION: &str = include_str!("demo.toml");
const PROGRAM: &str = "@timecell@";

/// Prints the mission.
pub fn run() -> Result<Ended, CommandError> {
    let program = std::env::current_exe().and_then(|program| program.canonicalize());
    let program = program.map_err(|source| CommandError::File {
        path: "/proc/self/exe".into(),
        doing: "find timecell's own file",
        source,
    })?;
    out::print(mission(&program).trim_end());
    Ok(Ended::Fine)
}

fn mission(program: &Path) -> String {
    // A basic string of TOML.
    let path = program.display().to_string();
    let path = path.replace('\\', "\\\\").replace('"', "\\\"");
    MISSION.replace(PROGRAM, &path)
}

/// The period of the control loop, as the mission has it.
const PERIOD: Duration = Duration::from_millis(100);
/// Execution time of one of its jobs.
const WORK: Duration = Duration::from_millis(2);
/// Policy of the loop out of band.
const EVL: evl::Policy = evl::Policy::Fifo { priority: 50 };
/// How long the failing cell runs.
const LIFE: Duration = Duration::from_secs(10);

/// The program of the cells: a control loop that reports its jobs, in band or as a thread of EVL, or a program that fails after a while.
pub fn inside(role: &str) -> i32 {
    // A signal that the first process of a cell does not handle does not end it.
    let end = end as extern "C" fn(libc::c_int);
    // SAFETY: the handler only leaves.
    unsafe { libc::signal(libc::SIGTERM, end as libc::sighandler_t) };
    match role {
        "control" => control(None).unwrap_or(Ended::Failed.code()),
        // A thread is pinned and its memory locked before it attaches.
        "evl" => match evl::Thread::attach(EVL) {
            Ok(thread) => control(Some(&thread)).unwrap_or(Ended::Failed.code()),
            Err(error) => {
                eprintln!("{error}");
                Ended::Failed.code()
            }
        },
        "flaky" => {
            println!("flaky runs, and will fail in {} s", LIFE.as_secs());
            std::thread::sleep(LIFE);
            println!("flaky fails, so that its restart can be seen");
            Ended::Failed.code()
        }
        _ => probe::EXIT_BAD_ARGS,
    }
}

/// At SIGTERM.
extern "C" fn end(_: libc::c_int) {
    // SAFETY: safe in a signal handler.
    unsafe { libc::_exit(0) }
}

/// Runs until it is told to end, out of band in this thread of EVL; `None` if the cell's job page cannot be used.
fn control(oob: Option<&evl::Thread>) -> Option<i32> {
    let client = Client::open_from_env()
        .inspect_err(|error| eprintln!("{error}"))
        .ok()?;
    let mut task = client
        .task("control")
        .inspect_err(|error| eprintln!("{error}"))
        .ok()?;
    // Under SCHED_DEADLINE a task's thread is found by its name.
    let _ = rustix::thread::set_name(c"control");
    println!("control runs, every {} ms", PERIOD.as_millis());
    let period_ns = i64::try_from(PERIOD.as_nanos()).ok()?;
    let mut release_ns = now_ns();
    loop {
        if let Some(thread) = oob {
            thread.sleep_until(release_ns);
        } else {
            let left = u64::try_from(release_ns - now_ns()).unwrap_or(0);
            std::thread::sleep(Duration::from_nanos(left));
        }
        task.begin_released(release_ns);
        let begun = Instant::now();
        while begun.elapsed() < WORK {
            std::hint::spin_loop();
        }
        task.end();
        release_ns += period_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mission_is_a_good_file_wherever_timecell_is() {
        for path in ["/usr/local/bin/timecell", "/a \"b\"/time\\cell"] {
            let text = mission(Path::new(path));
            let file = model::mission::MissionFile::parse("demo.toml", &text).unwrap();
            let mission = file.mission();
            assert_eq!(mission.cells[0].image.path(), Some(Path::new(path)));
            let timing = &mission.cells[0].tasks[0].timing;
            let of = |time: Duration| i64::try_from(time.as_nanos()).unwrap();
            assert_eq!(timing.period.ns(), of(PERIOD));
            assert!(timing.wcet.ns() > of(WORK));
        }
    }
}
