//! `bare`: a plain process in a session of the coordinator. It sees the machine as it is, so arguments that name
//! `/cell` are rewritten to the shared directory itself.

mod app;

use std::os::unix::process::CommandExt;
use std::process::Command;

use model::{EngineKind, Requirement};

use super::info::Info;
use crate::error::Result;
use crate::made::{self, Payload};
use crate::note::MARK;
use crate::{Cell, CellSpec, Engine, EngineError, Footprint, cgroups, process};

pub(super) static INFO: Info = Info {
    engine: |_| Box::new(Bare),
    programs: Vec::new,
    // Cells of applications have groups.
    wipe: |cell| cgroups::remove(cell.id()),
    run: None,
    steps: None,
    calls: None,
    apps: Some(&app::Cells),
};

struct Bare;

impl Engine for Bare {
    fn kind(&self) -> EngineKind {
        EngineKind::Bare
    }

    fn requirements(&self) -> Vec<Requirement> {
        Vec::new()
    }

    fn version(&self) -> Option<String> {
        let release = host::file::text("/proc/sys/kernel/osrelease").ok()?;
        Some(format!("Linux {}", release.trim()))
    }

    fn cell_sets_class(&self) -> bool {
        true
    }

    fn footprint(&self) -> Footprint {
        Footprint::PROCESS
    }

    fn create(&self, spec: &CellSpec) -> Result<Box<dyn Cell>, EngineError> {
        // It is nothing but processes.
        made::create(spec, || make(spec), |_| Ok(()))
    }
}

fn make(spec: &CellSpec) -> Result<Payload> {
    let mut command = Command::new(spec.rootfs.join("timecell"));
    command.env_clear();
    begin(command, spec, &spec.words)
}

/// Starts the command of a process that sees the machine as it is, with these words behind it.
pub(super) fn begin(mut command: Command, spec: &CellSpec, words: &[String]) -> Result<Payload> {
    let shared = spec.shared.display().to_string();
    command
        .args(words.iter().map(|word| outside(word, &shared)))
        .env(MARK, &spec.id)
        // Ctrl-C at the terminal is for the coordinator, which then ends its cells in order.
        .process_group(0);
    let child = process::spawn(&mut command, &made::log(spec))?;
    Ok(Payload {
        pid: child.id().cast_signed(),
        child: Some(child),
        helper: None,
    })
}

/// `/cell/x` or `key=/cell/x` with the shared directory in place of `/cell`.
fn outside(word: &str, shared: &str) -> String {
    let (key, path) = match word.split_once('=') {
        Some((key, path)) => (format!("{key}="), path),
        None => (String::new(), word),
    };
    match path.strip_prefix("/cell") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{key}{shared}{rest}"),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_speak_of_the_cell_are_turned() {
        assert_eq!(
            outside("control=/cell/control", "/dev/shm/x"),
            "control=/dev/shm/x/control"
        );
        assert_eq!(outside("/cell", "/s"), "/s");
        assert_eq!(outside("samples=/cellar/x", "/s"), "samples=/cellar/x");
        assert_eq!(outside("slot=3", "/s"), "slot=3");
    }
}
