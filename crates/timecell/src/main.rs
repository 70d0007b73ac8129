//! timecell: real-time containers that keep time on Linux, and prove it.
//!
//! This crate parses arguments, calls the crates below, and prints.

// All writes of root go through `host::writer` or `record::output`; a test may write as it likes.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod cli;
mod commands;
mod crowd_row;
mod exit;
mod out;
mod printer;
mod progress;
mod top;

use std::process::exit;

use bench::BenchError;
use clap::FromArgMatches as _;
use guest::GuestError;
use rustix::fs::Mode;
use rustix::process::{geteuid, umask};
use supervise::control::ControlError;

use crate::cli::{Cli, Command};
use crate::exit::{CommandError, Ended};

fn main() {
    let words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    write_for_oneself();
    // Programs inside cells come first, before any of the command line's machinery.
    match words.first().map(String::as_str) {
        Some("probe") => exit(inside(&words[1..])),
        Some("load") => exit(bench::load::inside(&words[1..])),
        Some("oci-child") => exit(engine::child(&words[1..])),
        // The processes that hold cells with the freezer, beside the supervisor.
        Some(freezer::process::WORD) => exit(freezer::process::inside(
            &words[1..],
            supervise::held::watch,
        )),
        // What runs in a board that was booted.
        Some(guest::WORD) => exit(guest::inside(&words[1..])),
        // What carries out orders of another machine.
        Some(guest::remote::WORD) => exit(guest::remote::inside(&words[1..])),
        _ => {}
    }
    let all = cli::command();
    let words = cli::scenario_first(&all, std::env::args_os().collect());
    let parsed = all.clone().try_get_matches_from(&words);
    let read = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (mut command, matches) = match read {
        Ok((cli, matches)) => (cli.command, matches),
        Err(error) => exit(match cli::of_no_use(&all, &error, &words) {
            Some(error) => {
                out::error(&error.to_string());
                Ended::BAD_INPUT
            }
            None => {
                let code = misused(&error);
                if words.len() == 1 {
                    out::note(&commands::first::step());
                }
                code
            }
        }),
    };
    let given = commands::kinds::given(&command);
    let result = match cli::sent(&all, &matches, &words) {
        Ok(Some(sent)) => commands::remote::run(&sent),
        Ok(None) => (commands::latest::resolve(&mut command).map_err(CommandError::from))
            .and_then(|()| run(command)),
        Err(error) => Err(error.into()),
    };
    let code = match result {
        Ok(ended) => ended.code(),
        Err(error) => {
            match &error {
                CommandError::Inputs(faults)
                | CommandError::Bench(BenchError::Inputs(faults))
                | CommandError::Guest(GuestError::Inputs(faults)) => {
                    faults
                        .iter()
                        .for_each(|fault| out::error(&fault.to_string()));
                }
                CommandError::Guest(GuestError::Ssh { said, why }) => {
                    out::foreign_note(format!("{said}\n").as_bytes());
                    out::error(&why.to_string());
                }
                CommandError::Control(ControlError::Refused { why, .. }) => {
                    why.iter().for_each(|why| out::error(why));
                }
                error => out::error(&error.to_string()),
            }
            if error.code() == Ended::BAD_INPUT
                && let Some(hint) = given.and_then(|given| given.hint())
            {
                out::note(&format!("note    {hint}"));
            }
            error.code()
        }
    };
    exit(match out::lost() {
        Some(error) => {
            out::error(&format!("standard output: cannot write: {error}"));
            // A failing exit code is kept.
            if code == Ended::Fine.code() {
                Ended::Failed.code()
            } else {
                code
            }
        }
        None => code,
    });
}

/// Prints the fault of the command line, or the requested help; returns the exit code.
fn misused(error: &clap::Error) -> i32 {
    let text = error.render().to_string();
    // File names that a shell inserted may contain anything; without control characters, clap prints in colour.
    let foreign = std::env::args_os().any(|word| word.to_string_lossy().contains(char::is_control));
    if error.use_stderr() && foreign {
        out::note(text.trim_end());
    } else {
        let _ = error.print();
    }
    error.exit_code()
}

/// Files that root writes are nobody else's to write, under any inherited mask: later it trusts its files.
fn write_for_oneself() {
    let others = Mode::WGRP | Mode::WOTH;
    if geteuid().is_root() {
        umask(umask(others) | others);
    }
}

fn run(command: Command) -> Result<Ended, CommandError> {
    match command {
        Command::Demo => commands::demo::run(),
        Command::Doctor(options) => commands::doctor::run(&options),
        Command::Bench(options) => commands::bench::run(&options),
        Command::Report(options) => commands::report::run(&options),
        Command::Analyze(options) => commands::analyze::run(&options),
        Command::Export(options) => commands::export::run(&options),
        Command::Admit(options) => commands::admit::run(&options),
        Command::Up(options) => commands::up::run(&options),
        Command::Run(options) => commands::run::run(&options),
        Command::Ps(options) => commands::ps::run(&options),
        Command::Logs(options) => commands::logs::run(&options),
        Command::Events(options) => commands::events::run(&options),
        Command::Stop(options) => commands::control::stop(&options),
        Command::Start(options) => commands::control::start(&options),
        Command::Restart(options) => commands::control::restart(&options),
        Command::Update(options) => commands::update::run(&options),
        Command::Down(options) => commands::control::down(&options),
        Command::Hold(options) => commands::held::hold(&options),
        Command::Release(options) => commands::held::release(&options),
        Command::Top(options) => top::run(&options),
        Command::Board(options) => commands::board::run(&options),
        Command::Clean(options) => commands::clean::run(&options),
        Command::Completions(options) => commands::generate::completions(&options),
        Command::Man(options) => commands::generate::man(&options),
        Command::Schema { of } => commands::generate::schema(of),
        Command::Header { inmate } => commands::generate::header(inmate),
    }
}

/// The hidden commands that run as a cell's payload.
fn inside(words: &[String]) -> i32 {
    match words.split_first() {
        // The empty program, for timing an engine.
        Some((word, _)) if word == "nop" => Ended::Fine.code(),
        Some((word, [role])) if word == "demo" => commands::demo::inside(role),
        Some((word, rest)) if word == "life" => probe::life(rest),
        Some((word, rest)) if word == "oob" => probe::oob(rest),
        Some((word, rest)) if word == "queens" => probe::queens(rest),
        Some((word, rest)) if word == "boots" => probe::boots(rest),
        Some((word, rest)) if word == "bridge" => probe::bridge(rest),
        Some((word, rest)) if word == "machine" => probe::machine(rest),
        Some((word, rest)) if word == "partition" => probe::partition(rest),
        Some((word, rest)) if word == "beat" => probe::beat(rest),
        Some((word, rest)) if word == "mirror" => probe::mirror(rest),
        Some((word, rest)) if word == "set" => probe::set(rest),
        Some((word, rest)) if word == "supply" => probe::supply(rest),
        Some((word, rest)) if word == "run" => match probe::ProbeArgs::from_words(rest) {
            Ok(args) => probe::run(&args),
            Err(error) => {
                eprintln!("{error}");
                probe::EXIT_BAD_ARGS
            }
        },
        // Another program of the root filesystem, for comparison with the field's scripts.
        Some((word, [program, arguments @ ..])) if word == "exec" => {
            use std::os::unix::process::CommandExt;
            let error = std::process::Command::new(program).args(arguments).exec();
            eprintln!("{program}: {error}");
            127
        }
        _ => probe::EXIT_BAD_ARGS,
    }
}
