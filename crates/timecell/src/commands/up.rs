//! `timecell up`: admits a mission and keeps it running until it is told to end.

use std::path::{Path, PathBuf};

use model::InputError;
use model::mission::MissionFile;
use supervise::admit::{Facts, find_fixes};
use supervise::control::ControlError;
use supervise::ledger::{Entry, Holder, Holding, Ledger, LedgerError, NameLock};
use supervise::machine::Here;
use supervise::run::{
    Asked, Event, Inputs, Notify, Options, OutputTo, Plan, RunError, Signals, keep,
};
use supervise::state::Text;

use super::admit::{latency, measured, mission_text, text};
use crate::cli::Up;
use crate::exit::{CommandError, Ended};
use crate::out;
use crate::printer::Printer;

/// Runs in the foreground. Exit code 3 when a guarantee cannot be kept; nothing was started then.
pub fn run(options: &Up) -> Result<Ended, CommandError> {
    let notify = Notify::of_environment();
    // SAFETY: no other thread runs yet. What cells and engines are started with must not speak for the supervisor.
    unsafe {
        for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] {
            std::env::remove_var(name);
        }
    }
    let here = Here::default();
    let (path, source) = source(options)?;
    let inputs = inputs(&path, source, &here, options.supply.as_deref())?;
    let name = inputs.mission().name.clone();
    let dir = match &options.dir {
        Some(dir) => std::path::absolute(dir).unwrap_or_else(|_| dir.clone()),
        None => super::control::base()?.join(&name),
    };
    let ledger = Ledger::default();
    let Entered {
        mut plan,
        facts,
        name: _name,
        held: _held,
    } = enter(inputs, &here, &dir, &ledger)?;
    let inputs = &plan.inputs;
    let fixes = (!plan.admission.is_admitted()).then(|| {
        let (measured, latency_ns) = (&inputs.measured, inputs.latency_ns);
        find_fixes(inputs.mission(), &facts, measured, latency_ns)
    });
    if let Some(fixes) = &fixes {
        plan.admission.advise(fixes);
    }
    out::print(&text(&inputs.file, &plan.admission, &facts, fixes.as_ref()));
    if !plan.admission.is_admitted() {
        return Ok(Ended::Missed);
    }
    let signals = Signals::take()?;
    let mut printer = Printer::start().map_err(RunError::no_printer)?;
    let mut tell = |event: &Event| {
        if !is_told_already(event) {
            printer.print(&event.to_string());
        }
    };
    let supply = options.supply.clone();
    // Read in the thread that watches the cells.
    let here = here.without_images();
    let mut read = |path: &Path| {
        let source = mission_text(path).map_err(|fault| vec![fault.to_string()])?;
        inputs_again(path, source, &here, supply.as_deref())
    };
    let options = Options {
        dir,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ledger,
        output: OutputTo::Log,
    };
    let asked = keep(
        plan, &facts, &mut read, &options, notify, &signals, &mut tell,
    );
    if let Ok(asked) = &asked {
        printer.print(&last_words(*asked, &options.dir));
    }
    if let Err(why) = printer.finish()
        && let Ok(mut errors) = Printer::of_errors()
    {
        errors.print(&why);
        // Who reads neither has been told all that can be.
        let _ = errors.finish();
    }
    Ok(match asked? {
        Asked::GivenUp => Ended::Failed,
        Asked::Signal | Asked::Down | Asked::NothingLeft => Ended::Fine,
    })
}

/// A mission that was decided about, and holds what it was granted as long as this lives.
pub(super) struct Entered {
    pub(super) plan: Plan,
    pub(super) facts: Facts,
    /// Whoever has the name would be taken for this mission's own.
    pub(super) name: NameLock,
    /// `None`: it was not admitted.
    pub(super) held: Option<Holding>,
}

/// Takes a mission's name, decides about it beside what runs, and enters in the machine's ledger what it is granted.
///
/// # Errors
/// When another one has the name or the directory, or the ledger cannot be used.
pub(super) fn enter(
    inputs: Inputs,
    here: &Here,
    dir: &Path,
    ledger: &Ledger,
) -> Result<Entered, CommandError> {
    enter_unless(inputs, here, dir, ledger, |_| Ok(()))
}

/// The same unless `refuses` has a reason, which is asked while nobody else can have the name.
///
/// # Errors
/// As [`enter`], and that one.
pub(super) fn enter_unless(
    inputs: Inputs,
    here: &Here,
    dir: &Path,
    ledger: &Ledger,
    refuses: impl FnOnce(&Inputs) -> Result<(), CommandError>,
) -> Result<Entered, CommandError> {
    let mission = inputs.mission().name.clone();
    host::ground::check(dir).map_err(ControlError::from)?;
    let name = ledger.name(&mission, dir)?;
    refuses(&inputs)?;
    let holder = Holder::Mission {
        name: mission.clone(),
        dir: dir.to_owned(),
    };
    // Nobody else decides until what is granted here is entered.
    let locked = ledger.lock()?;
    let others = locked.others(&holder)?;
    // What a killed supervisor's cells hold is theirs.
    let own = locked.own(&holder)?;
    let facts = (here.facts().for_mission(&mission, &others, &[]))
        .taking_over(inputs.mission(), own.as_ref());
    let plan = inputs.admitted(&facts);
    let held = if plan.admission.is_admitted() {
        let entry = Entry::own(holder).map_err(LedgerError::from)?;
        Some(locked.take(entry.holding(&plan.admission, &plan.inputs.measured))?)
    } else {
        drop(locked);
        None
    };
    Ok(Entered {
        plan,
        facts,
        name,
        held,
    })
}

fn last_words(asked: Asked, dir: &Path) -> String {
    match asked {
        Asked::Signal | Asked::Down => super::control::all_have_ended(dir),
        Asked::NothingLeft => "no cell runs any more, and none is to be restarted".to_owned(),
        Asked::GivenUp => {
            "no cell runs any more, and none is to be restarted, though some have failed".to_owned()
        }
    }
}

/// Path and text of the mission file: the one that is named, or the one that was admitted last.
fn source(options: &Up) -> Result<(PathBuf, String), CommandError> {
    let restored = |text: Text| (PathBuf::from(text.path.unwrap_or_default()), text.text);
    match (&options.mission, &options.dir) {
        (None, Some(dir)) => match supervise::run::last_admitted(dir)?.last {
            Some(text) => Ok(restored(text)),
            None => Err(ControlError::NoMission { dir: dir.clone() }.into()),
        },
        (Some(_), Some(dir)) if options.recover => match supervise::run::last_admitted(dir) {
            Ok(admitted) if admitted.unfinished.is_some() => {
                out::note(
                    "note: the last supervisor did not end the mission; it goes on as it was admitted last",
                );
                Ok(admitted.unfinished.map(restored).unwrap_or_default())
            }
            Ok(_) | Err(ControlError::NoMission { .. }) => named(options),
            Err(error) => Err(error.into()),
        },
        _ => named(options),
    }
}

fn named(options: &Up) -> Result<(PathBuf, String), CommandError> {
    let path = options.mission.clone().unwrap_or_default();
    let text = mission_text(&path)?;
    Ok((path, text))
}

/// All that a mission is decided by.
fn inputs(
    path: &Path,
    text: String,
    here: &Here,
    supply: Option<&Path>,
) -> Result<Inputs, CommandError> {
    let file = MissionFile::parse_on(&path.display().to_string(), &text, here)?;
    let measured = measured(supply, &file)?;
    Ok(Inputs {
        latency_ns: latency(&file)?,
        measured,
        text,
        file,
    })
}

/// The same for an update; its faults are sentences for whoever asked for it.
fn inputs_again(
    path: &Path,
    text: String,
    here: &Here,
    supply: Option<&Path>,
) -> Result<Inputs, Vec<String>> {
    inputs(path, text, here, supply).map_err(|error| match error {
        CommandError::Inputs(faults) => faults.iter().map(InputError::to_string).collect(),
        error => vec![error.to_string()],
    })
}

/// Whether a line would only repeat what the end of a program and its restart say, or what `ps` has told.
fn is_told_already(event: &Event) -> bool {
    match event {
        Event::Incident(incident) => incident.observed.what == "exit",
        Event::Used { .. } => true,
        _ => false,
    }
}
