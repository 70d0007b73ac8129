//! Behavioural tests at length: the same cases as in `cargo test`, longer or more often, which then print what they measured.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};

use super::Failure;
use super::built::cargo;

/// A campaign that is a case of the behavioural tests.
#[derive(Subcommand)]
pub enum Campaign {
    /// How long does one more cell with a budget wait for its admission, beside many that run?
    Admission {
        /// How often it is admitted.
        #[arg(long, default_value_t = 50)]
        rounds: u32,
        /// Cells that run beside it.
        #[arg(long, default_value_t = 64)]
        cells: u32,
    },
    /// What does each attack that once succeeded get now, and how late is a critical cell beside it?
    Attacks {
        /// These attacks, separated by commas; an unknown name lists all.
        #[arg(long, default_value = "all")]
        only: String,
        /// How long each attack goes on.
        #[arg(long, default_value_t = 5)]
        seconds: u32,
        /// Mechanism that holds the critical cell where the attack leaves that open, instead of the first that there is.
        #[arg(long, value_parser = ["rt-cgroup", "deadline", "freezer", "cpuset-only"])]
        enforcer: Option<String>,
        /// Against this timecell, such as an earlier one, instead of the one built here.
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
        /// With the binary as it is released.
        #[arg(long)]
        release: bool,
    },
    /// Is anything lost, or left behind, when processes are killed and disks fill up during experiments?
    Faults {
        /// Number of runs.
        #[arg(long, default_value_t = 100)]
        runs: u32,
        /// Seed, instead of the time.
        #[arg(long)]
        seed: Option<u64>,
        /// Number of the first run, to repeat one of them.
        #[arg(long)]
        first: Option<u32>,
    },
    /// What does a critical cell notice of a hostile one?
    Hostile {
        /// How long each attack is watched.
        #[arg(long, default_value_t = 20)]
        seconds: u32,
        /// Only this mechanism.
        #[arg(long, value_parser = ["rt-cgroup", "deadline", "freezer"])]
        enforcer: Option<String>,
    },
    /// Do cells run on when their supervisor is killed at random moments?
    Killed {
        /// Number of kills.
        #[arg(long, default_value_t = 200)]
        rounds: u32,
        /// Seed of the moments, instead of the time.
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Is what is proved what runs, beside a cell that spins and while nothing happens?
    Proved {
        /// Seconds of each program, and of the idle cells, under each mechanism.
        #[arg(long, default_value_t = 600)]
        seconds: u32,
        /// Idle cells together.
        #[arg(long, default_value_t = 64)]
        cells: u32,
        /// One of both.
        #[arg(long)]
        only: Option<Proved>,
    },
    /// How long is a cell gone after a crash and after a wedge (heartbeat 40 ms)?
    Recovery {
        /// Failures of each kind.
        #[arg(long, default_value_t = 50)]
        rounds: u32,
    },
    /// Does a run by ssh arrive whole when its link is cut at random moments?
    Remote {
        /// Number of cuts.
        #[arg(long, default_value_t = 20)]
        cuts: u32,
    },
}

/// A part of `proved`.
#[derive(Clone, Copy, ValueEnum)]
pub enum Proved {
    /// Programs that set up their threads in seven ways.
    Threads,
    /// Idle cells, whose bounds nothing withdraws.
    Idle,
}

/// The cases to run and how: the tests' filter, their variables and whether they are a release build's.
struct Cases {
    filter: String,
    set: Vec<(&'static str, Option<String>)>,
    is_release: bool,
}

/// Runs the cases; exits as the tests do.
///
/// # Errors
///
/// If the tests cannot be started.
pub fn run(campaign: &Campaign) -> Result<ExitCode, Failure> {
    let cases = cases(campaign)?;
    let mut tests = cargo();
    tests.args(["test", "--package", "timecell", "--test", "behaviour"]);
    if cases.is_release {
        tests.arg("--release");
    }
    tests.args(["--", &cases.filter, "--nocapture", "--test-threads", "1"]);
    for (name, value) in &cases.set {
        if let Some(value) = value {
            tests.env(name, value);
        }
    }
    // A campaign's case takes as long as it takes, and once.
    let status = tests.env("TIMECELL_TEST_ONCE", "1").status()?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

fn cases(campaign: &Campaign) -> Result<Cases, Failure> {
    let number = |number: u32| Some(number.to_string());
    Ok(match campaign {
        Campaign::Admission { rounds, cells } => Cases {
            filter: "missions_admission".to_owned(),
            set: vec![
                ("TIMECELL_ADMISSION_ROUNDS", number(*rounds)),
                ("TIMECELL_ADMISSION_CELLS", number(*cells)),
            ],
            is_release: true,
        },
        Campaign::Attacks {
            only,
            seconds,
            enforcer,
            binary,
            release,
        } => Cases {
            filter: "".to_owned(),
            set: vec![
                ("TIMECELL_ATTACKS", Some(only.clone())),
                ("TIMECELL_ATTACKS_SECONDS", number(*seconds)),
                ("TIMECELL_TEST_ENFORCER", enforcer.clone()),
                (
                    "TIMECELL_TEST_BINARY",
                    binary.as_deref().map(absolute).transpose()?,
                ),
            ],
            is_release: *release,
        },
        Campaign::Faults { runs, seed, first } => Cases {
            filter: "faults::the_machine_is_as_before".to_owned(),
            set: vec![
                ("TIMECELL_FAULT_RUNS", number(*runs)),
                ("TIMECELL_FAULT_SEED", seed.map(|seed| seed.to_string())),
                ("TIMECELL_FAULT_FIRST", first.and_then(number)),
            ],
            is_release: false,
        },
        Campaign::Hostile { seconds, enforcer } => Cases {
            filter: match enforcer {
                None => "hostile::".to_owned(),
                Some(name) => format!(
                    "hostile::a_critical_cell_held_by_{}_",
                    name.replace('-', "_")
                ),
            },
            set: vec![("TIMECELL_HOSTILE_SECONDS", number(*seconds))],
            is_release: false,
        },
        Campaign::Killed { rounds, seed } => Cases {
            filter: "missions_killed".to_owned(),
            set: vec![
                ("TIMECELL_KILL_ROUNDS", number(*rounds)),
                ("TIMECELL_KILL_SEED", seed.map(|seed| seed.to_string())),
            ],
            is_release: false,
        },
        Campaign::Proved {
            seconds,
            cells,
            only,
        } => Cases {
            filter: match only {
                None => "proved::",
                Some(Proved::Threads) => "proved::threads",
                Some(Proved::Idle) => "proved::nothing",
            }
            .to_owned(),
            set: vec![
                ("TIMECELL_PROVED_SECONDS", number(*seconds)),
                ("TIMECELL_PROVED_CELLS", number(*cells)),
            ],
            is_release: false,
        },
        Campaign::Recovery { rounds } => Cases {
            filter: "missions_recovery".to_owned(),
            set: vec![("TIMECELL_RECOVERY_ROUNDS", number(*rounds))],
            is_release: true,
        },
        Campaign::Remote { cuts } => Cases {
            filter: "remote::a_run_by_ssh".to_owned(),
            set: vec![("TIMECELL_REMOTE_CUTS", number(*cuts))],
            is_release: false,
        },
    })
}

fn absolute(path: &Path) -> Result<String, Failure> {
    let path = path
        .canonicalize()
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.display().to_string())
}
