//! The verbs that put what runs already under a budget, and let it go.

use std::str::FromStr;

use clap::Args;
use model::Duration;

/// A budget in every period, as the command line says it: `3ms/10ms`.
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
            return Err("a budget is said as BUDGET/PERIOD, such as 3ms/10ms".to_owned());
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

/// Two times with a `/` between them, ns.
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
  sudo timecell hold --reserve 3ms/10ms --fifo 60 --cpu 1 web   the same, sure to get it
  sudo timecell hold --reserve 20ms/100ms backup.service        a unit of systemd
  sudo timecell hold --reserve 20ms/100ms 4711                  a process and what it started
  sudo timecell hold --list                                     what is held, and what it used
  sudo timecell release web                                     everything as it was

The budget is held by the clock and the freezer of cgroup v2, by processes that go on when this command has ended. Without --fifo the \
threads keep their class: of ordinary ones the budget is the most that they get, of real-time ones what they are sure to get. All of \
them are kept to the one cpu.

What is started in it later (`podman exec`) comes with its own class, and gets no turn while real-time threads of the same budget use all of it. A \
container or unit that is started again (`podman restart`) is another one, and not held: hold it again.

Exit codes: 0 held; 1 the system refused something; 2 there is no such container, unit or process, or it cannot be held; 3 there is no \
room for it beside what others hold, or with --fifo others than root could take it out of its budget; 4 no freezer of cgroup v2, or no permission.")]
pub struct Hold {
    /// A container's name or id, a unit's name with its suffix, or a process's number.
    #[arg(value_name = "CONTAINER|PID|UNIT", required_unless_present = "list")]
    pub what: Option<String>,
    /// Budget in every period, such as 3ms/10ms.
    #[arg(
        long,
        value_name = "BUDGET/PERIOD",
        allow_hyphen_values = true,
        required_unless_present = "list"
    )]
    pub reserve: Option<Budget>,
    /// The cpu [default: the first that it may use and on which there is room].
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Give all its threads class SCHED_FIFO with this priority.
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub fifo: Option<u8>,
    /// Print what is held, with what it used.
    #[arg(long, conflicts_with_all = ["what", "reserve", "cpu", "fifo"])]
    pub list: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `release`.
#[derive(Debug, Args)]
#[command(
    after_help = "Its threads get back the cpus and the class that they had, as far as they have not chosen others themselves meanwhile, and a process \
    that was taken out of its group goes back there.

Exit codes: 0 let go, or it had ended; 1 something could not be put back; 2 it is not held; 4 no permission."
)]
pub struct Release {
    /// What was held: the container, unit or process; `timecell hold --list` names it.
    #[arg(value_name = "CONTAINER|PID|UNIT", required_unless_present = "all")]
    pub what: Option<String>,
    /// All that is held on this machine.
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
