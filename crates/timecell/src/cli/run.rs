//! The command that runs one program under a budget.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Args, ValueHint};
use model::{Duration, Enforcer};

use super::{Budget, enforcer};

/// A task, as written on the command line: `control=1ms/10ms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneTask {
    /// The name under which the program reports its jobs.
    pub name: String,
    /// Its worst-case execution time and its period, ns.
    pub work: Budget,
}

impl FromStr for OneTask {
    type Err = String;

    fn from_str(text: &str) -> Result<OneTask, String> {
        let (name, work) = text
            .split_once('=')
            .filter(|(_, work)| work.contains('/'))
            .ok_or("write a task as NAME=WCET/PERIOD, such as control=1ms/10ms")?;
        let length = name.chars().count();
        if !(1..=64).contains(&length) || name.chars().any(char::is_control) {
            return Err("a task's name must have 1 to 64 characters, before the `=`".to_owned());
        }
        let (wcet_ns, period_ns) = super::held::two_times(work)?;
        if !(1..=period_ns).contains(&wcet_ns) {
            return Err(
                "a task's execution time (WCET) must be above 0 and at most its period".to_owned(),
            );
        }
        Ok(OneTask {
            name: name.to_owned(),
            work: Budget {
                budget_ns: wcet_ns,
                period_ns,
            },
        })
    }
}

/// User and group of the program: `1000` or `1000:100`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

impl FromStr for Owner {
    type Err = String;

    fn from_str(text: &str) -> Result<Owner, String> {
        let (uid, gid) = text.split_once(':').unwrap_or((text, text));
        let number = |text: &str| {
            (text.parse::<u32>())
                .map_err(|_| "write a user as UID or UID:GID, such as 1000:100".to_owned())
        };
        Ok(Owner {
            uid: number(uid)?,
            gid: number(gid)?,
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

The program is a mission of one cell: admitted beside what runs on the machine, started, held to its budget from its first instruction, and watched. \
It shares this command's input and output, but with --image it has no input. Ctrl-C and other signals are passed on to it, and its exit status is \
returned. Ctrl-C, SIGTERM and SIGHUP give it --stop-timeout to end; a second one kills it at once. At the end, the jobs that it reported, \
the cpu time that it used and how often its budget was used up are printed to standard error.

Without --image, --rootfs or --bundle it is a plain process that sees the files and the network of this machine and starts in the current \
directory: without capabilities, as the user who called sudo, with PATH, HOME, USER, LOGNAME, LANG, LC_ALL, TERM and TZ from this command's \
environment.

If this command is killed (SIGKILL), the program keeps running, held as before; `timecell down NAME` ends it, and the same command line with the \
same --name adopts it.

Exit codes: the program's, or 128 plus the number of the signal that ended it, or that asked it to end if it had to be killed; 1 it could not be \
started; 2 bad usage, such as a program that does not exist or a budget that no machine could give; 3 the budget cannot be guaranteed; 4 a \
requirement is unmet."
)]
pub struct Run {
    /// Budget per period, such as 3ms/10ms [default: the least with which its tasks meet their deadlines].
    #[arg(long, value_name = "BUDGET/PERIOD", allow_hyphen_values = true)]
    pub reserve: Option<Budget>,
    /// Task that it runs, with its deadline at its period; NAME is the name under which it reports its jobs; may be repeated.
    #[arg(long, value_name = "NAME=WCET/PERIOD")]
    pub task: Vec<OneTask>,
    /// Declare that nothing but these tasks runs in the cell, so that an ample budget, which they cannot use up, suffices.
    #[arg(long, requires = "task")]
    pub only_tasks: bool,
    /// SCHED_FIFO priority of its threads [default: 89 to 10 by its period, the shorter the higher, if that can be admitted].
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub fifo: Option<u8>,
    /// SCHED_RR priority of its threads: those of one priority take turns.
    #[arg(long, value_name = "PRIORITY", conflicts_with = "fifo", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub rr: Option<u8>,
    /// Cpu to run on [default: the first with room].
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Enforcer of its budget [default: the cheapest that the kernel has].
    #[arg(long, value_name = "NAME", value_parser = enforcer::one_of(Enforcer::OF_CHOICE))]
    pub enforcer: Option<Enforcer>,
    /// Name of an image in podman's storage.
    #[arg(long, value_name = "NAME")]
    pub image: Option<String>,
    /// Root directory of its cell.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub rootfs: Option<PathBuf>,
    /// OCI bundle of its cell.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub bundle: Option<PathBuf>,
    /// Set an environment variable, or pass on the current one; may be repeated.
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// User and group ids of its processes; GID defaults to UID [default: those of the image or bundle, for a root directory unique ones,
    /// for a plain process those of the user who called sudo].
    #[arg(long, value_name = "UID[:GID]")]
    pub user: Option<Owner>,
    /// Let a container use the host's network; a plain process always does.
    #[arg(long)]
    pub network: bool,
    /// Memory limit, such as 64MiB [default: its share of the free memory].
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Time that it has to end after a signal, before it is killed.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub stop_timeout: Duration,
    /// Name of the mission, for `timecell ps` and others [default: run-PID].
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Print only the program's output, and errors.
    #[arg(long, short)]
    pub quiet: bool,
    /// Print all that admission and the start of the program had to say: limits, mutexes, the supervisor's own protection.
    #[arg(long, short, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Program and its arguments.
    #[arg(value_name = "PROGRAM", last = true, required_unless_present_any = ["image", "bundle"])]
    pub program: Vec<OsString>,
}

impl Run {
    /// The option that gives its threads a priority, and the priority.
    pub fn priority(&self) -> Option<(&'static str, u8)> {
        let fifo = self.fifo.map(|fifo| ("--fifo", fifo));
        fifo.or_else(|| Some(("--rr", self.rr?)))
    }
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
        for (text, told) in [
            ("control", "NAME=WCET/PERIOD"),
            ("1ms/10ms", "NAME=WCET/PERIOD"),
            ("a=1ms", "NAME=WCET/PERIOD"),
            ("=1ms/10ms", "name must have 1 to 64"),
            ("a=11ms/10ms", "execution time (WCET)"),
        ] {
            let why = text.parse::<OneTask>().unwrap_err();
            assert!(why.contains(told), "{text}: {why}");
        }
    }

    #[test]
    fn a_user_is_one_number_or_two() {
        let owner = |text: &str| text.parse::<Owner>().map(|owner| (owner.uid, owner.gid));
        assert_eq!(owner("1000"), Ok((1000, 1000)));
        assert_eq!(owner("1000:100"), Ok((1000, 100)));
        for text in ["", "app", "1:", ":1", "-1", "1:2:3"] {
            assert!(owner(text).is_err(), "{text}");
        }
    }
}
