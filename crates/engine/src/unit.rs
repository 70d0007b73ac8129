//! Running systemd units: their control groups, as `systemctl` reports them. Nothing here starts or stops one.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::{process, programs};

/// How long systemd may take to answer about one unit.
const PATIENCE: Duration = Duration::from_secs(20);
/// There where systemd is the machine's init (sd_booted(3)).
const BOOTED: &str = "/run/systemd/system";
/// Of units that have processes (systemd.unit(5)).
const SUFFIXES: [&str; 3] = [".service", ".scope", ".slice"];

/// A running unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its name with the suffix.
    pub name: String,
    /// Its control group, from the top of each hierarchy, beginning with `/`.
    pub group: String,
    /// Its main process; `None`: it has none.
    pub pid: Option<i32>,
}

/// Why a unit is not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoUnit {
    /// No systemd.
    #[error(
        "`{0}` names a systemd unit, but systemd is not this machine's init (there is no {BOOTED})"
    )]
    NoSystemd(String),
    /// Not loaded, not active, or without processes.
    #[error("the unit `{0}` is not running; `systemctl status {0}` says why")]
    Stopped(String),
    /// The program that was asked, and why there is no answer.
    #[error("`{0}` does not answer: {1}")]
    Silent(String, String),
}

/// Whether this is the name of a unit that can have processes.
pub fn is_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    let stem = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix));
    stem.is_some_and(|stem| !stem.is_empty() && !stem.starts_with('-') && stem.chars().all(inner))
}

/// Whether systemd started this machine.
pub(crate) fn systemd_runs() -> bool {
    Path::new(BOOTED).exists()
}

/// The unit of this name ([`is_name`]).
///
/// # Errors
/// [`NoUnit`].
pub fn find(name: &str) -> Result<Unit, NoUnit> {
    let program = programs::find("systemctl").filter(|_| systemd_runs());
    let program = program.ok_or_else(|| NoUnit::NoSystemd(name.to_owned()))?;
    let mut show = Command::new(program);
    show.args([
        "show",
        "--property",
        "ControlGroup,MainPID,ActiveState",
        "--",
        name,
    ]);
    let silent = |why: String| NoUnit::Silent("systemctl".to_owned(), why);
    match process::output_within(&mut show, PATIENCE) {
        Ok(answer) if answer.status.success() => {
            read(name, &answer.out).ok_or_else(|| NoUnit::Stopped(name.to_owned()))
        }
        Ok(answer) => Err(silent(answer.why())),
        Err(why) => Err(silent(why.to_string())),
    }
}

/// The unit as `systemctl show` describes it; `None`: it does not run.
fn read(name: &str, out: &str) -> Option<Unit> {
    let value = |key: &str| {
        let mut lines = out.lines().filter_map(|line| line.split_once('='));
        lines
            .find(|(found, _)| *found == key)
            .map(|(_, value)| value.trim())
    };
    let group = value("ControlGroup").filter(|group| group.starts_with('/') && *group != "/")?;
    let active = value("ActiveState")?;
    (active != "inactive" && active != "failed").then(|| Unit {
        name: name.to_owned(),
        group: group.to_owned(),
        pid: value("MainPID")
            .and_then(|pid| pid.parse().ok())
            .filter(|pid| *pid > 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_units_that_run_have_a_group() {
        let out = "MainPID=77\nControlGroup=/system.slice/web.service\nActiveState=active\n";
        let unit = read("web.service", out).unwrap();
        assert_eq!(
            (unit.group.as_str(), unit.pid),
            ("/system.slice/web.service", Some(77))
        );
        let scope = "MainPID=0\nControlGroup=/user.slice/a.scope\nActiveState=active\n";
        assert_eq!(read("a.scope", scope).unwrap().pid, None);
        let stopped = "MainPID=0\nControlGroup=\nActiveState=inactive\n";
        assert_eq!(read("web.service", stopped), None);
        assert_eq!(
            read("web.service", &out.replace("=active", "=failed")),
            None
        );
        assert_eq!(read("web.service", ""), None);
    }

    #[test]
    fn names_of_units_are_told_from_those_of_containers() {
        for name in [
            "web.service",
            "user@0.service",
            "a-b.scope",
            "machine.slice",
        ] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "web",
            ".service",
            "a b.service",
            "-.slice",
            "a/b.service",
            "web.timer",
        ] {
            assert!(!is_name(name), "{name}");
        }
    }
}
