//! `timecell up`: admits a mission and keeps it running until it is told to end.

use std::path::{Path, PathBuf};

use model::InputError;
use model::mission::MissionFile;
use supervise::admit::{Facts, find_fixes};
use supervise::control::ControlError;
use supervise::ledger::{Entry, Holder, Holding, Ledger, LedgerError, NameLock};
use supervise::machine::{Here, bundle_notes};
use supervise::run::{
    Asked, Event, Inputs, Notify, Options, OutputTo, Plan, RunError, Signals, keep,
};
use supervise::state::Text;

use super::admit::{latency, measured, mission_text, text};
use crate::cli::Up;
use crate::exit::{CommandError, Ended};
use crate::out;
use crate::printer::Printer;

/// Runs in the foreground. Exit code 3 if a guarantee cannot be kept; then nothing is started; or if a bound was withdrawn meanwhile.
pub fn run(options: &Up) -> Result<Ended, CommandError> {
    let notify = Notify::of_environment();
    // SAFETY: no other thread runs yet. Cells and engines must not notify systemd in place of the supervisor.
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
        return Ok(Ended::VerdictFails);
    }
    let signals = Signals::take()?;
    let mut printer = Printer::start().map_err(RunError::no_printer)?;
    let mut was_withdrawn = false;
    let mut tell = |event: &Event| {
        was_withdrawn |= is_withdrawal(event);
        if !is_told_already(event) {
            printer.print(&event.to_string());
        }
    };
    let supply = options.supply.clone();
    // An update is read in the thread that watches the cells, which must not wait for images.
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
        // If standard error has no reader either, nothing more can be done.
        let _ = errors.finish();
    }
    Ok(match asked? {
        Asked::GivenUp => Ended::Failed,
        Asked::Signal | Asked::Down | Asked::NothingLeft if was_withdrawn => Ended::VerdictFails,
        Asked::Signal | Asked::Down | Asked::NothingLeft => Ended::Fine,
    })
}

fn is_withdrawal(event: &Event) -> bool {
    matches!(
        event,
        Event::Bound {
            withdrawn: Some(_),
            ..
        }
    )
}

/// A mission with its decision of admission, which holds its grants until dropped.
pub(super) struct Entered {
    pub(super) plan: Plan,
    pub(super) facts: Facts,
    /// Locks the name: another holder of it would be taken for this mission.
    pub(super) name: NameLock,
    /// `None` if it was not admitted.
    pub(super) held: Option<Holding>,
}

/// Locks a mission's name, decides about its admission beside all that runs, and enters its grants in the machine's ledger.
///
/// # Errors
/// If another mission has the name or the directory, or the ledger cannot be used.
pub(super) fn enter(
    inputs: Inputs,
    here: &Here,
    dir: &Path,
    ledger: &Ledger,
) -> Result<Entered, CommandError> {
    enter_unless(inputs, here, dir, ledger, |_| Ok(()))
}

/// The same, unless `refuses` returns a reason; it is called while the name is locked.
///
/// # Errors
/// As [`enter`], and that of `refuses`.
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
    // Nobody else decides until the grants of this mission are entered.
    let locked = ledger.lock()?;
    let others = locked.others(&holder)?;
    // The holdings of a killed supervisor's cells remain theirs.
    let own = locked.own(&holder)?;
    let facts = (here.facts().for_mission(&mission, &others, &[]))
        .taking_over(inputs.mission(), own.as_ref());
    let mut plan = inputs.admitted(&facts);
    (plan.admission.notes).extend(bundle_notes(&plan.inputs.file));
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
        Asked::NothingLeft => "no cell runs any more, and none will be restarted".to_owned(),
        Asked::GivenUp => {
            "no cell runs any more, and none will be restarted; some have failed".to_owned()
        }
    }
}

/// Path and text of the mission file: the named one, or the last admitted one.
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
                    "note: the last supervisor did not end the mission; it is resumed as last admitted",
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

/// Everything that admission of a mission depends on.
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

/// The same for an update, with the errors as sentences for the requester.
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

/// Whether a line would only repeat the lines about the end of a program and its restart, or the output of `ps`.
fn is_told_already(event: &Event) -> bool {
    match event {
        Event::Incident(incident) => incident.observed.what == "exit",
        Event::Used { .. } => true,
        _ => false,
    }
}
