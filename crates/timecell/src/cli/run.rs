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
            .filter(|(_, work)| work.contains('/'))
            .ok_or("a task is said as NAME=WCET/PERIOD, such as control=1ms/10ms")?;
        let length = name.chars().count();
        if !(1..=64).contains(&length) || name.chars().any(char::is_control) {
            return Err("a task's name has 1 to 64 characters, before the `=`".to_owned());
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

/// Who runs the program: `1000` or `1000:100`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The user's number.
    pub uid: u32,
    /// The group's.
    pub gid: u32,
}

impl FromStr for Owner {
    type Err = String;

    fn from_str(text: &str) -> Result<Owner, String> {
        let (uid, gid) = text.split_once(':').unwrap_or((text, text));
        let number = |text: &str| {
            (text.parse::<u32>())
                .map_err(|_| "a user is said as UID or UID:GID, such as 1000:100".to_owned())
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

It is a mission of one cell: admitted beside what runs on the machine, started, held to its budget before its first instruction, and watched. \
Its input and output are this command's, but with --image it has no input. Ctrl-C and other signals go to it, and its exit status is \
returned. Ctrl-C, SIGTERM and SIGHUP give it --stop-timeout to end, and kill it at once if they come a second time. At the end standard error tells \
the jobs that it has reported, the cpu time that it used and how often its budget was used up.

Without --image, --rootfs or --bundle it is a plain process that sees the files and the network of this machine and begins in this \
directory: without capabilities, of the user who called sudo, with PATH, HOME, USER, LOGNAME, LANG, LC_ALL, TERM and TZ of this command's \
environment.

When this command is killed (SIGKILL) the program goes on, held as before; `timecell down NAME` ends it, and the same command line with the same \
--name takes it over.

Exit codes: the program's, and 128 and the number of the signal that ended it, or by which it was asked to end if it had to be killed; 1 it could \
not be started; 2 bad usage, such as no such program here or a budget that no machine could give; 3 the budget cannot be guaranteed; 4 a requirement \
is unmet."
)]
pub struct Run {
    /// Budget in every period, such as 3ms/10ms; without, the least with which the deadlines of its tasks hold.
    #[arg(long, value_name = "BUDGET/PERIOD", allow_hyphen_values = true)]
    pub reserve: Option<Budget>,
    /// A task that it runs, whose deadline is its period, by the name under which it reports its jobs; may be repeated.
    #[arg(long, value_name = "NAME=WCET/PERIOD")]
    pub task: Vec<OneTask>,
    /// Nothing runs in the cell but these tasks, so that an ample budget will do, one that they cannot use up.
    #[arg(long, requires = "task")]
    pub only_tasks: bool,
    /// SCHED_FIFO priority of its threads [default: by its period, the shorter the higher, 89 to 10, where that can be admitted].
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
    /// User and group of its processes, by their numbers; without a group that of the user's number [default: the image's or bundle's, of a
    /// directory one of its own, of a plain process whoever called sudo].
    #[arg(long, value_name = "UID[:GID]")]
    pub user: Option<Owner>,
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
        for (text, told) in [
            ("control", "NAME=WCET/PERIOD"),
            ("1ms/10ms", "NAME=WCET/PERIOD"),
            ("a=1ms", "NAME=WCET/PERIOD"),
            ("=1ms/10ms", "name has 1 to 64"),
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
