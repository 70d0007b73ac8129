//! `timecell board`: boots boards, and runs timecell in them.

use std::path::Path;
use std::time::Instant;

use guest::image::{self, WORK};
use guest::kernel;
use guest::machine::{self, Boots, Output};
use guest::{Cache, GuestError};

use super::fetched;
use super::found::program;
use crate::cli::{self, BoardCommand, Runs};
use crate::exit::{CommandError, Ended};
use crate::out;

/// Carries out what `board` is asked for.
pub fn run(options: &cli::Board) -> Result<Ended, CommandError> {
    match &options.command {
        BoardCommand::List => list(),
        BoardCommand::Fetch { board, refresh } => fetch_only(board, *refresh),
        BoardCommand::Boot(boots) => boot(boots),
        BoardCommand::Run(runs) => run_in(runs),
    }
}

fn list() -> Result<Ended, CommandError> {
    let boards: Result<Vec<_>, GuestError> = machine::built_in()
        .map(|(name, _)| machine::board(name))
        .collect();
    let mut text =
        String::from("board     processor  cpus  memory  kernel                what it is\n");
    for (board, name) in boards? {
        let kernel = board.kernel.package.as_deref().unwrap_or_default();
        let (processor, memory) = (board.architecture.name(), board.memory.to_string());
        text += &format!(
            "{name:<9} {processor:<10} {:>4}  {memory:<6}  {kernel:<20}  {}\n",
            board.cpus, board.title
        );
    }
    out::print(&text);
    Ok(Ended::Fine)
}

fn fetch_only(name: &str, refresh: bool) -> Result<Ended, CommandError> {
    let (board, _) = machine::board(name)?;
    let cache = Cache::of_user()?;
    let kernel = kernel::get(&cache, &board, refresh, &tell)?;
    image::packages(&cache, &board, refresh, &tell)?;
    out::print(&kernel.image.display().to_string());
    Ok(Ended::Fine)
}

fn tell(what: &str) {
    out::note(&format!("note    {what}"));
}

fn make(boots: &cli::Boots) -> Result<Boots, CommandError> {
    let board = machine::board(&boots.board)?;
    let program = program(
        board.0.architecture,
        boots.guest_binary.as_deref(),
        "--guest-binary",
    )?;
    let made = Boots::new(board, &program, &boots.with, boots.refresh, &tell)?;
    made.fits()?;
    Ok(made)
}

fn boot(options: &cli::Boots) -> Result<Ended, CommandError> {
    let made = make(options)?;
    Ok(Ended::Program(machine::console(
        &made,
        options.accel,
        &tell,
    )?))
}

fn run_in(options: &Runs) -> Result<Ended, CommandError> {
    let began = Instant::now();
    let made = make(&options.boots)?;
    let see: fn(&[u8]) = if options.console {
        out::foreign_note
    } else {
        |_| ()
    };
    let booted = machine::boot(&made, options.boots.accel, see)?;
    let label = if booted.kvm {
        "by KVM"
    } else {
        host::virt::NOT_REPRESENTATIVE
    };
    let ready = &booted.ready;
    out::note(&format!(
        "board   {}, {} cpus, Linux {} ({label}); up after {:.1} s",
        made.name,
        ready.cpus,
        ready.kernel,
        began.elapsed().as_secs_f64()
    ));
    if let Some(why) = &booted.note {
        out::note(&format!("note    {why}"));
    }
    let mut guest = booted.guest;
    let mut words = vec![options.program.clone()];
    words.extend(options.args.iter().cloned());
    let status = guest.run(&words, false, &mut show)?;
    let runs = format!("{WORK}/runs");
    let fill = |dir: &Path| guest.fetch(&made.cache, &runs, dir);
    fetched::keep(&options.out, fill, |dir| Ok(dir.to_owned()))?;
    if guest.lost() > 0 {
        out::note(&format!(
            "note    {} messages of the guest were lost on the line",
            guest.lost()
        ));
    }
    if !guest.off() {
        out::note("note    the guest did not switch itself off, and was ended");
    }
    Ok(Ended::Program(status))
}

pub(super) fn show(of: Output, bytes: &[u8]) {
    match of {
        Output::Out => out::foreign_raw(bytes),
        Output::Err => out::foreign_note(bytes),
    }
}
