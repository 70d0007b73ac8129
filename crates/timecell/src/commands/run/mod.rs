//! `timecell run`: runs one program under a budget, as a mission of one cell made in memory.

mod mission;
mod other;
mod priority;
mod words;

use std::fmt::Write as _;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use supervise::End;
use supervise::admit::{Admission, Outcome};
use supervise::control::orphaned;
use supervise::held::HeldError;
use supervise::ledger::Ledger;
use supervise::machine::{Here, bundle_notes};
use supervise::run::{
    Event, Inputs, Notify, Options, OutputTo, RunError, Signals, Used, dir_of_one, keep,
};

use super::logs::Reader;
use super::up::{Entered, enter_unless};
use crate::cli::Run;
use crate::exit::{CommandError, Ended};
use crate::out;
use crate::printer::Printer;
use mission::{CELL, inputs};
use words::Why;

/// Interval between two looks at the output of a program whose engine owns its streams.
const LOOK: Duration = Duration::from_millis(20);
/// A shell's addition to the number of the signal that ended a program.
const BY_SIGNAL: i32 = 128;
/// If a program ran for less, ns, its share of the cpu means nothing: it includes the creation of its cell.
const SHORT_NS: i64 = 50_000_000;

/// Runs the program to its end; exits with its status.
pub fn run(options: &Run) -> Result<Ended, CommandError> {
    if !rustix::process::geteuid().is_root() {
        return Err(HeldError::NotRoot.into());
    }
    let here = Here::default();
    let name = match &options.name {
        Some(name) => name.clone(),
        None => free_name(std::process::id(), |name| dir_of_one(name).exists()),
    };
    let dir = dir_of_one(&name);
    let ledger = Ledger::default();
    let entered = |priorities: Option<(u8, u8)>| {
        let inputs = inputs(options, &name, priorities, &here)?;
        enter_unless(inputs, &here, &dir, &ledger, |inputs| {
            Ok(other::refuse(&dir, &inputs.text)?)
        })
    };
    let Entered {
        plan,
        facts,
        name: own_name,
        held: _held,
    } = match (options.priority(), other::priorities(&dir)) {
        (Some((_, own)), _) => entered(Some((own, own)))?,
        // Those that the same command line had before.
        (None, Some(before)) => entered(before)?,
        (None, None) => {
            let by_period = priority::by_period(options, &ledger.entries()?);
            let first = entered(by_period)?;
            match first.plan.admission.is_admitted() || by_period.is_none() {
                true => first,
                // A priority above others may take too much of their grants.
                false => {
                    drop(first);
                    entered(None)?
                }
            }
        }
    };
    if !plan.admission.is_admitted() {
        if orphaned(&dir).is_none() {
            own_name.forget();
        }
        let has_both = options.reserve.is_some() && !options.task.is_empty();
        refusals(&plan.admission)
            .iter()
            .for_each(|why| out::error(&words::refusal(why, options.priority(), has_both)));
        return Ok(Ended::VerdictFails);
    }
    let of_bundle = bundle_notes(&plan.inputs.file);
    let told = |note: &&String| match options.verbose {
        true => true,
        false => !options.quiet && of_bundle.contains(note),
    };
    (plan.admission.notes.iter().filter(told))
        .for_each(|note| out::note(&format!("note    {}", words::note(note))));
    if !options.quiet {
        for cell in plan.admission.cells.iter().filter_map(Outcome::assumed) {
            out::note(&format!(
                "note    {cell}: admitted for its tasks only: the guarantee assumes that nothing else runs in it (--only-tasks says so)"
            ));
        }
    }
    // A plain process finds its job page there.
    let made = DirBuilder::new().mode(0o711).recursive(true).create(&dir);
    made.map_err(|source| CommandError::File {
        path: dir.clone(),
        doing: "create it",
        source,
    })?;
    let signals = Signals::take_for_one()?;
    let mut read = |_: &Path| -> Result<Inputs, Vec<String>> {
        Err(vec![
            "this mission was made from a command line, and cannot be updated".to_owned(),
        ])
    };
    let follow = (options.image.is_some())
        .then(|| Follow::start(&dir))
        .transpose();
    let follow = follow.map_err(RunError::no_printer)?;
    let options_of_run = Options {
        dir: dir.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ledger,
        output: OutputTo::Own,
    };
    let mut seen = Seen::default();
    let mut printer = Printer::of_errors().map_err(RunError::no_printer)?;
    let mut tell = |event: &Event| {
        // Without --task, nobody expects jobs to be reported.
        if matches!(event, Event::Unwatched { .. }) && options.task.is_empty() {
            return;
        }
        if let Some(line) = seen.see(event, options.quiet, options.verbose) {
            printer.print(&line);
        }
    };
    // A program's service manager is not notified for it.
    let notify = Notify::default();
    let kept = keep(
        plan,
        &facts,
        &mut read,
        &options_of_run,
        notify,
        &signals,
        &mut tell,
    );
    if let Some(follow) = follow {
        follow.end();
    }
    if kept.is_ok() && !options.quiet {
        report(&seen).iter().for_each(|line| printer.print(line));
    }
    // Output without a reader by now never has one.
    let _ = printer.finish();
    kept?;
    // All that is of use in it has been printed.
    let _ = std::fs::remove_dir_all(&dir);
    own_name.forget();
    Ok(seen.status(signals.last()))
}

/// A name that nothing else has, not even a killed command whose process had the same id: its cell may still run.
fn free_name(pid: u32, is_taken: impl Fn(&str) -> bool) -> String {
    let first = format!("run-{pid}");
    let others = (2_u64..).map(|number| format!("run-{pid}-{number}"));
    let mut names = std::iter::once(first.clone()).chain(others);
    names.find(|name| !is_taken(name)).unwrap_or(first)
}

/// The supervisor's reports while the program runs.
#[derive(Debug, Default)]
struct Seen {
    started: bool,
    used: Option<Used>,
    end: Option<End>,
    asked: bool,
}

impl Seen {
    /// The line to print for an event, if any. Most notes on the start of the program are for users who ask for more.
    fn see(&mut self, event: &Event, quiet: bool, verbose: bool) -> Option<String> {
        let line = match event {
            Event::Note { .. } if !self.started && !verbose => return None,
            Event::Held { what, .. } if what.starts_with("mutexes: ") && !verbose => return None,
            Event::Started { pid, guarantee, .. } => {
                Signals::hand_on_to(*pid);
                self.started = true;
                format!("note    process {pid}: {guarantee}")
            }
            // Started by an earlier command of this name that was killed.
            Event::Adopted { pid, .. } => {
                Signals::hand_on_to(*pid);
                format!(
                    "note    process {pid} was already running and is adopted; its output goes where it went before"
                )
            }
            Event::Used { used, .. } => {
                Signals::hand_on_to(0);
                self.used = Some((**used).clone());
                return None;
            }
            Event::Ended { end, asked, .. } => {
                (self.end, self.asked) = (Some(*end), *asked);
                return None;
            }
            Event::NotStarted { why, .. } => {
                return Some(format!("error: it could not be started: {why}"));
            }
            Event::Stays { .. } | Event::Incident(_) => return None,
            other => format!("note    {}", words::note(&other.to_string())),
        };
        (!quiet).then_some(line)
    }

    /// The exit status, as a shell reports it; `signal` is the last one received.
    fn status(&self, signal: Option<i32>) -> Ended {
        match self.end {
            Some(End::Exited { code }) => Ended::Program(code),
            // A program that was asked to end and had to be killed reports the signal that asked; one that crashed reports its own.
            Some(End::Killed { signal: by, .. }) => {
                let asked = signal.filter(|_| self.asked && by == libc::SIGKILL);
                Ended::Program(BY_SIGNAL + asked.unwrap_or(by))
            }
            Some(End::Unknown) | None => Ended::Failed,
        }
    }
}

/// The program's use of resources, one line for the cell and one for each task.
fn report(seen: &Seen) -> Vec<String> {
    let Some(used) = &seen.used else {
        return Vec::new();
    };
    let end = seen.end.map_or(String::new(), |end| format!("; {end}"));
    let tasks = used.tasks.iter().map(|task| {
        let worst = task.worst_response_ns.map_or(String::new(), |ns| {
            format!(", longest response {}", report::time(ns as f64))
        });
        format!(
            "note    {}: {}, {} late{worst}",
            task.task,
            report::plural(task.jobs, "job"),
            task.late
        )
    });
    [format!("note    {}{end}", sum(used))]
        .into_iter()
        .chain(tasks)
        .collect()
}

/// Time, cpu and budget in a sentence.
fn sum(used: &Used) -> String {
    let time = |ns: i64| report::time(ns as f64);
    let mut text = format!("ran for {}", time(used.lasted_ns));
    match used.cpu_ns {
        Some(cpu) => {
            let _ = write!(text, ", used {} of cpu time", time(cpu));
            let share = cpu as f64 * 100.0 / used.lasted_ns.max(1) as f64;
            let _ = match used.lasted_ns < SHORT_NS {
                true => write!(text, ", including its start"),
                false => write!(text, " ({share:.1} %)"),
            };
        }
        None => text.push_str("; the kernel does not report its cpu time"),
    }
    match used.counted {
        Some(counted) => {
            let _ = write!(
                text,
                "; its budget was used up in {} of {}, and overrun by at most {}",
                report::grouped(counted.exhausted),
                report::plural(counted.periods, "period"),
                time(counted.overrun_ns)
            );
        }
        None => text.push_str("; this enforcer does not count how often its budget was used up"),
    }
    text
}

/// Why the program is not admitted, one sentence per reason.
fn refusals(admission: &Admission) -> Vec<Why> {
    let of_cell = admission.cells.iter().filter_map(|outcome| match outcome {
        Outcome::Refused(refused) => Some(Why {
            text: match &refused.witness {
                Some(late) => format!("not admitted: {}; {late}", refused.why),
                None => format!("not admitted: {}", refused.why),
            },
            is_late: refused.witness.is_some(),
        }),
        _ => None,
    });
    let of_all = admission.refusals.iter().map(|text| Why {
        text: text.clone(),
        is_late: false,
    });
    of_cell.chain(of_all).collect()
}

/// Prints the output of a program whose engine owns its streams, as it is written.
struct Follow {
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Follow {
    fn start(dir: &Path) -> std::io::Result<Follow> {
        let place = dir.join("cells").join(CELL);
        let over = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&over);
        let thread = std::thread::Builder::new().name("timecell-follow".to_owned());
        let thread = thread.spawn(move || {
            let mut reader = Reader::default();
            loop {
                // Read before the last look, which then sees everything.
                let last = theirs.load(Ordering::SeqCst);
                let mut bytes = Vec::new();
                // The first look finds the file, the second its contents.
                for _ in 0..2 {
                    let _ = reader.go_on(&place, &mut bytes);
                }
                if !bytes.is_empty() {
                    out::foreign_raw(&bytes);
                }
                if last {
                    return;
                }
                std::thread::sleep(LOOK);
            }
        })?;
        Ok(Follow { over, thread })
    }

    /// Prints the rest.
    fn end(self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_asked_to_end_ended_by_that_signal() {
        let seen = |end, asked| Seen {
            started: true,
            end: Some(end),
            asked,
            used: None,
        };
        let by = |signal| End::Killed {
            signal,
            core_dumped: false,
        };
        let killed = by(libc::SIGKILL);
        assert_eq!(seen(End::Exited { code: 7 }, false).status(None).code(), 7);
        assert_eq!(seen(killed, true).status(Some(libc::SIGINT)).code(), 130);
        assert_eq!(seen(killed, false).status(None).code(), 137);
        // It ended by itself all the same.
        let crashed = seen(by(libc::SIGSEGV), true).status(Some(libc::SIGINT));
        assert_eq!(crashed.code(), 139);
        let asked = seen(by(libc::SIGINT), true).status(Some(libc::SIGINT));
        assert_eq!(asked.code(), 130);
        assert_eq!(Seen::default().status(None).code(), 1);
    }

    #[test]
    fn the_name_of_one_that_was_killed_is_not_taken_again() {
        assert_eq!(free_name(7, |_| false), "run-7");
        assert_eq!(free_name(7, |name| name == "run-7"), "run-7-2");
        let three = ["run-7", "run-7-2", "run-7-3"];
        assert_eq!(free_name(7, |name| three.contains(&name)), "run-7-4");
    }

    #[test]
    fn one_that_is_taken_over_is_told_of() {
        let adopted = Event::Adopted {
            cell: CELL.to_owned(),
            // No process has it, and none is to get a signal.
            pid: 0,
        };
        let said = Seen::default().see(&adopted, false, false).unwrap();
        assert!(said.contains("is adopted"), "{said}");
        assert_eq!(Seen::default().see(&adopted, true, false), None);
    }
}
