//! The verb that runs one program under a budget.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Args, ValueHint};
use model::{Duration, Enforcer};

use super::{Budget, enforcer};

/// A task as the command line says it: `control=1ms/10ms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneTask {
    /// Its name, by which the program reports its jobs.
    pub name: String,
    /// Its execution time, ns, and its period, ns.
    pub work: Budget,
}

impl FromStr for OneTask {
    type Err = String;

    fn from_str(text: &str) -> Result<OneTask, String> {
        let (name, work) = text
            .split_once('=')
            .ok_or("a task is said as NAME=WCET/PERIOD, such as control=1ms/10ms")?;
        Ok(OneTask {
            name: name.to_owned(),
            work: work.parse()?,
        })
    }
}

/// Options of `run`.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("from").args(["image", "rootfs", "bundle"]),
    group = ArgGroup::new("needs").args(["reserve", "task"]).required(true).multiple(true),
    after_help = "Examples:
  sudo timecell run --reserve 3ms/10ms --fifo 60 --cpu 1 -- ./control
  sudo timecell run --reserve 3ms/10ms --image localhost/control:1 -- /control --fast
  sudo timecell run --task control=1ms/10ms --rootfs cells/control -- /usr/bin/control

It is a mission of one cell: admitted beside what runs on the machine, started, held to its budget before its first instruction, and watched. \
Its output is this command's, Ctrl-C and other signals go to it, and its exit status is returned. At the end standard error tells the \
jobs that it has reported, the cpu time that it used and how often its budget was used up.

Without --image, --rootfs or --bundle it is a plain process that sees the files and the network of this machine and begins in this \
directory: without capabilities, of the user who called sudo, with PATH, HOME, USER, LOGNAME, LANG, LC_ALL, TERM and TZ of this command's \
environment.

When this command is killed (SIGKILL) the program goes on, held as before; `timecell down NAME` ends it.

Exit codes: the program's, and 128 and the number of the signal that ended it; 1 it could not be started; 2 bad usage; 3 the budget cannot be \
guaranteed; 4 a requirement is unmet."
)]
pub struct Run {
    /// Budget in every period, such as 3ms/10ms; without, the least with which the deadlines of its tasks hold.
    #[arg(long, value_name = "BUDGET/PERIOD")]
    pub reserve: Option<Budget>,
    /// A task that it runs, whose deadline is its period, by the name under which it reports its jobs; may be repeated.
    #[arg(long, value_name = "NAME=WCET/PERIOD")]
    pub task: Vec<OneTask>,
    /// SCHED_FIFO priority of its threads [default: found by admission].
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub fifo: Option<u8>,
    /// The cpu [default: the first on which there is room].
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Mechanism that holds it [default: the cheapest that the kernel has].
    #[arg(long, value_name = "NAME", value_parser = enforcer::one_of(Enforcer::OF_MISSIONS))]
    pub enforcer: Option<Enforcer>,
    /// Image of podman's, by its name.
    #[arg(long, value_name = "NAME")]
    pub image: Option<String>,
    /// Directory that becomes the root of its cell.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub rootfs: Option<PathBuf>,
    /// OCI bundle.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub bundle: Option<PathBuf>,
    /// Set an environment variable, or hand on the one that is set here; may be repeated.
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// Let a container use the host's network; a plain process does.
    #[arg(long)]
    pub network: bool,
    /// Most memory that it may use, such as 64MiB [default: its share of what is free].
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// How long it may take to end after a signal that asks for it, before it is killed.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub stop_timeout: Duration,
    /// Name of the mission, by which `timecell ps` and others find it [default: run-PID].
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Say nothing but what the program says, and errors.
    #[arg(long, short)]
    pub quiet: bool,
    /// The program and its arguments.
    #[arg(value_name = "PROGRAM", last = true, required_unless_present_any = ["image", "bundle"])]
    pub program: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_a_name_and_two_times() {
        let task = "control=1ms/10ms".parse::<OneTask>().unwrap();
        assert_eq!(
            (task.name.as_str(), task.work.budget_ns),
            ("control", 1_000_000)
        );
        for text in ["control", "1ms/10ms", "a=1ms", "a=11ms/10ms"] {
            assert!(text.parse::<OneTask>().is_err(), "{text}");
        }
    }
}
