//! The hidden command `timecell oci-child`: our own program, executed again as a single-threaded process that makes a cell and, for
//! some engines, becomes it.

use std::fs;
use std::io::Write as _;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use host::sched::Class;
use rustix::fs::Mode;
use rustix::process::{setpriority_process, umask};
use rustix::thread::{set_name, set_thread_groups};

use crate::app::AppSpec;
use crate::app::making::{APP, Handed};
use crate::app::program;
use crate::app::sources::Sources;
use crate::engines::{embedded, info};
use crate::error::{Doing, Result, refused};
use crate::{agent, made, note, process};

/// Obeys the arguments of `oci-child`, which an engine put there. Returns the exit code.
///
/// Call it before any thread is started.
pub fn child(words: &[String]) -> i32 {
    let done = match words.split_first() {
        Some((word, words)) if word == APP => application(words),
        Some((word, words)) if word == agent::WORD => agent::run(words),
        _ => embedded::child(words),
    };
    match done {
        Ok(()) => 0,
        Err(why) => match writeln!(std::io::stderr(), "{why}") {
            Ok(()) => 1,
            Err(_) => UNSAID,
        },
    }
}

/// The exit code of a child that could not write its error to its log, as when the disk is full.
pub(crate) const UNSAID: i32 = 74;

/// Makes the cell of an application whose note is in a directory; `words` are those that [`crate::app::Launcher`] put behind [`APP`].
fn application(words: &[String]) -> Result<()> {
    embedded::Errors::listen();
    let [parent, work_dir, sources, ends @ ..] = words else {
        return Err("oci-child: arguments are missing".into());
    };
    let numbers = |words: &mut dyn Iterator<Item = &str>| -> Vec<RawFd> {
        words.filter_map(|word| word.parse().ok()).collect()
    };
    let ends = numbers(&mut ends.iter().map(String::as_str));
    let [stdout, stderr, report, ref agent @ ..] = ends[..] else {
        return Err("oci-child: descriptors are missing".into());
    };
    process::die_with(parent)?;
    // Executed by the number of a descriptor, it would have that for its name.
    let _ = set_name(c"timecell");
    let spec: AppSpec = note::read_whole(Path::new(work_dir))?;
    be_ordinary(spec.oom_score_adj)?;
    let program = program::kept(&made::state(&spec))?;
    let sources = numbers(&mut sources.split(',')).into_iter();
    // SAFETY: handed down by the supervisor for this, and nobody else's here.
    let sources = sources.map(|source| unsafe { OwnedFd::from_raw_fd(source) });
    let handed = Handed {
        stdout,
        stderr,
        report,
        agent: agent.first().copied(),
        sources: Sources::handed(&spec, program.as_ref(), sources.collect())?,
        program,
    };
    match info(spec.engine).apps {
        Some(engine) => engine.child(&spec, handed),
        None => Err(refused!(
            "{} cannot make cells of applications",
            spec.engine
        )),
    }
}

/// Gives up a supervisor's properties that no cell may inherit: class, niceness, cpus, groups, protection when memory is short.
fn be_ordinary(oom_score_adj: u16) -> Result<()> {
    host::sched::set_class(0, &Class::Other)?;
    let cpus = host::cpus::possible()?;
    host::sched::set_affinity(0, &cpus)?;
    setpriority_process(None, 0).doing(|| "cannot reset the niceness")?;
    // This process has one thread.
    set_thread_groups(&[]).doing(|| "cannot leave the supplementary groups")?;
    umask(Mode::WGRP | Mode::WOTH);
    let protection = "/proc/self/oom_score_adj";
    let own = host::file::text(protection).unwrap_or_default();
    // A score above the cell's stays: only lowering it is privileged.
    if own
        .trim()
        .parse::<i32>()
        .is_ok_and(|own| own < i32::from(oom_score_adj))
    {
        let wanted = oom_score_adj.to_string();
        fs::write(protection, wanted).doing(|| protection)?;
    }
    Ok(())
}
