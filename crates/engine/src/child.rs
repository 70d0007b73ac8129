//! The hidden command `timecell oci-child`: our own program, executed once more as a process with one thread that makes a cell and, for
//! some engines, becomes it.

use std::fs;
use std::os::fd::RawFd;
use std::path::Path;

use host::file::at;
use host::sched::Class;
use rustix::fs::Mode;
use rustix::process::{setpriority_process, umask};
use rustix::thread::{set_name, set_thread_groups};

use crate::app::AppSpec;
use crate::app::making::{APP, Handed};
use crate::engines::{embedded, info};
use crate::{note, process};

/// Does what the words behind `oci-child` say, which an engine put there. Returns the exit code.
///
/// Must be called before any thread is started.
pub fn child(words: &[String]) -> i32 {
    let done = match words.split_first() {
        Some((word, words)) if word == APP => application(words),
        _ => embedded::child(words),
    };
    match done {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("{why}");
            1
        }
    }
}

/// Makes the cell of an application whose note is in a directory; `words` are what [`crate::app::Launcher`] put behind [`APP`].
fn application(words: &[String]) -> Result<(), String> {
    embedded::Errors::listen();
    let [parent, work_dir, ends @ ..] = words else {
        return Err("oci-child: words are missing".to_owned());
    };
    let ends: Vec<RawFd> = ends.iter().filter_map(|end| end.parse().ok()).collect();
    let [stdout, stderr, report] = ends[..] else {
        return Err("oci-child: descriptors are missing".to_owned());
    };
    let handed = Handed {
        stdout,
        stderr,
        report,
    };
    process::die_with(parent)?;
    // Executed by the number of a descriptor, it would have that for its name.
    let _ = set_name(c"timecell");
    let spec = read(Path::new(work_dir))?;
    be_ordinary(spec.oom_score_adj)?;
    match info(spec.engine).apps {
        Some(engine) => engine.child(&spec, handed),
        None => Err(format!("{} makes no cells of applications", spec.engine)),
    }
}

fn read(work_dir: &Path) -> Result<AppSpec, String> {
    let path = note::path(work_dir);
    let text = fs::read(&path).map_err(at(&path))?;
    Ok(serde_json::from_slice(&text).map_err(at(&path))?)
}

/// Gives up what a supervisor has and no cell is to inherit: class, niceness, cpus, groups, protection when memory is
/// short.
fn be_ordinary(oom_score_adj: u16) -> Result<(), String> {
    host::sched::set_class(0, &Class::Other).map_err(|error| error.to_string())?;
    let cpus = host::cpus::possible().map_err(|error| error.to_string())?;
    host::sched::set_affinity(0, &cpus).map_err(|error| error.to_string())?;
    setpriority_process(None, 0).map_err(|error| format!("cannot reset the niceness: {error}"))?;
    // This process has one thread.
    set_thread_groups(&[])
        .map_err(|error| format!("cannot leave the supplementary groups: {error}"))?;
    umask(Mode::WGRP | Mode::WOTH);
    let protection = "/proc/self/oom_score_adj";
    let own = fs::read_to_string(protection).unwrap_or_default();
    // Who is more ready to go than the cell is to be stays so: only the lowering of it is privileged.
    if own
        .trim()
        .parse::<i32>()
        .is_ok_and(|own| own < i32::from(oom_score_adj))
    {
        let wanted = oom_score_adj.to_string();
        fs::write(protection, wanted).map_err(|error| format!("{protection}: {error}"))?;
    }
    Ok(())
}
