//! The commands that put something that already runs under a budget, and release it.

use std::str::FromStr;

use clap::Args;
use model::Duration;

/// A budget per period, as written on the command line: `3ms/10ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The budget, ns, above 0 and at most the period.
    pub budget_ns: i64,
    /// The period, ns, above 0.
    pub period_ns: i64,
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Budget, String> {
        if !text.contains('/') {
            return Err("write a budget as BUDGET/PERIOD, such as 3ms/10ms".to_owned());
        }
        let (budget_ns, period_ns) = two_times(text)?;
        if !(1..=period_ns).contains(&budget_ns) {
            return Err("the budget must be above 0 and at most the period".to_owned());
        }
        Ok(Budget {
            budget_ns,
            period_ns,
        })
    }
}

/// Cpus, as written on the command line: `0,2-3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus(pub Vec<u32>);

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Cpus, String> {
        match host::cpus::parse_list(text) {
            Ok(cpus) if !cpus.is_empty() => Ok(Cpus(cpus)),
            Ok(_) => Err("name at least one cpu".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Two times separated by `/`, ns.
pub(super) fn two_times(text: &str) -> Result<(i64, i64), String> {
    let (first, second) = text.split_once('/').unwrap_or((text, ""));
    let ns = |text: &str| -> Result<i64, String> {
        let time: Duration = text.trim().parse().map_err(|error| format!("{error}"))?;
        Ok(time.ns())
    };
    Ok((ns(first)?, ns(second)?))
}

/// Options of `hold`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo timecell hold --reserve 3ms/10ms web                     a container, by name or id
  sudo timecell hold --reserve 3ms/10ms --fifo 60 --cpu 1 web   the same, with the budget guaranteed
  sudo timecell hold --reserve 20ms/100ms backup.service        a systemd unit
  sudo timecell hold --reserve 5ms/50ms --cpu 0,1 web           so much of each of two cpus, and every thread on one of them
  sudo timecell hold --reserve 20ms/100ms 4711                  a process and what it started
  sudo timecell hold --list                                     what is held, and what it used
  sudo timecell release web                                     put everything back

The budget is enforced with the cgroup v2 freezer by processes that outlive this command. Without --fifo or --rr the threads keep their class: \
the budget is the most that ordinary threads get, and what real-time threads are guaranteed. All threads are confined to the one cpu, or \
with several each to one of them.

The cpus, class or group of a thread that others change are put back once. Changed again within a minute, or where podman, kubelet or \
systemd change its cpuset, the hold is broken: `timecell hold --list` and `timecell ps --machine` say so, nothing is guaranteed any more, and it \
is left alone.

What is started in it later (`podman exec`) has its own class, and does not run while real-time threads of the same budget use it up. A \
container or unit that is restarted (`podman restart`) is a new one that is not held: hold it again.

Exit codes: 0 held; 1 the system refused something; 2 there is no such container, unit or process, or it cannot be held; 3 there is no \
room for it beside what others hold, or with --fifo or --rr, users other than root could take it out of its budget; 4 no cgroup v2 freezer, or no permission.")]
pub struct Hold {
    /// Name or id of a container, name of a unit with its suffix, or id of a process.
    #[arg(value_name = "CONTAINER|PID|UNIT", required_unless_present = "list")]
    pub what: Option<String>,
    /// Budget per period, such as 3ms/10ms.
    #[arg(
        long,
        value_name = "BUDGET/PERIOD",
        allow_hyphen_values = true,
        required_unless_present = "list"
    )]
    pub reserve: Option<Budget>,
    /// Cpu to run on, or several, such as 0,1 or 0-3: then each has the budget for itself, and every thread runs on one of them, shared
    /// out in the order of their numbers [default: the first with room that it may use].
    #[arg(long, visible_alias = "cpus", value_name = "CPUS")]
    pub cpu: Option<Cpus>,
    /// Run all its threads as SCHED_FIFO with this priority.
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub fifo: Option<u8>,
    /// Run all its threads as SCHED_RR with this priority, in turns.
    #[arg(long, value_name = "PRIORITY", conflicts_with = "fifo", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub rr: Option<u8>,
    /// List all holds, and their use of cpu time.
    #[arg(long, conflicts_with_all = ["what", "reserve", "cpu", "fifo", "rr"])]
    pub list: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `release`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo timecell release web            a container, by name or id
  sudo timecell release --all

Its threads get back their cpus and class, and a process that was moved out of its cgroup goes back there. What is not as \
    `timecell hold` left it is left alone: a cpuset that others have set, a class or cpus that a thread was given meanwhile.

Exit codes: 0 released, or it had ended; 1 something could not be put back; 2 it is not held; 4 no permission.")]
pub struct Release {
    /// Container, unit or process, as `timecell hold --list` names it.
    #[arg(value_name = "CONTAINER|PID|UNIT", required_unless_present = "all")]
    pub what: Option<String>,
    /// Release all that is held on this machine.
    #[arg(long, conflicts_with = "what")]
    pub all: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_a_list() {
        let cpus = |text: &str| text.parse::<Cpus>().map(|cpus| cpus.0);
        assert_eq!(cpus("0,2-3"), Ok(vec![0, 2, 3]));
        assert_eq!(cpus("1"), Ok(vec![1]));
        for text in ["", "a", "3-1", "-1"] {
            assert!(cpus(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_budget_has_two_times() {
        let ms = 1_000_000;
        let budget = "3ms/10ms".parse::<Budget>().unwrap();
        assert_eq!((budget.budget_ns, budget.period_ns), (3 * ms, 10 * ms));
        assert!("10ms/10ms".parse::<Budget>().is_ok());
        for text in [
            "3ms",
            "",
            "/",
            "3/10",
            "11ms/10ms",
            "0ms/10ms",
            "-1ms/10ms",
            "1ms/x",
        ] {
            assert!(text.parse::<Budget>().is_err(), "{text}");
        }
    }
}
