//! Campaigns: tests and measurements that take longer, or more of a machine, than a test may.
//!
//! `cargo campaign --help` lists them.

mod at_length;
mod built;
mod cost;
mod deaths;
mod decide;
mod shared;
mod signals;
mod spinners;
mod storms;

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Tests and measurements that take longer, or more of a machine, than a test may.
///
/// They need root. Most keep a cpu busy with real-time threads: run them on a machine that nobody else needs.
#[derive(Parser)]
#[command(name = "campaigns")]
struct Arguments {
    #[command(subcommand)]
    campaign: Campaign,
    /// File to lock meanwhile, where others measure on the same machine.
    #[arg(long, global = true, value_name = "FILE")]
    lock: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Campaign {
    #[command(flatten)]
    AtLength(at_length::Campaign),
    Cost(cost::Options),
    Deaths(deaths::Options),
    Decide(decide::Options),
    Spinners(spinners::Options),
    Storms(storms::Options),
    /// The critical task of `storms`.
    #[command(hide = true)]
    StormsCritical {
        turns: u64,
    },
    /// An attack of `storms`.
    #[command(hide = true)]
    StormsAttack {
        name: String,
        turn: u64,
        turns: u64,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("campaigns: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.campaign {
        // These run in cells of `storms`, some of them without rights.
        Campaign::StormsCritical { turns } => {
            storms::critical::run(*turns);
            return Ok(ExitCode::SUCCESS);
        }
        Campaign::StormsAttack { name, turn, turns } => {
            storms::attacks::run(name, *turn, *turns)?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => (),
    }
    if !rustix::process::geteuid().is_root() {
        return Err("real-time classes and control groups need root: run it with sudo".into());
    }
    // Held until this process ends.
    let _lock = match &arguments.lock {
        Some(path) => {
            let file =
                File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
            file.lock()?;
            Some(file)
        }
        None => None,
    };
    match &arguments.campaign {
        Campaign::AtLength(campaign) => return at_length::run(campaign),
        Campaign::Cost(options) => cost::run(options)?,
        Campaign::Deaths(options) => deaths::run(options)?,
        Campaign::Decide(options) => decide::run(options)?,
        Campaign::Spinners(options) => spinners::run(options)?,
        Campaign::Storms(options) => storms::run(options)?,
        Campaign::StormsCritical { .. } | Campaign::StormsAttack { .. } => (),
    }
    Ok(ExitCode::SUCCESS)
}
