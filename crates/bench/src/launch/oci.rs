//! OCI runtimes: the linked-in one, crun and runc; in one command, or one command for each step.

use engine::{CellSpec, Rights, User};
use model::{EngineKind, Size};
use probe::{Life, clock};

use super::{Launched, Launcher, Stage, page_in_cell, timed, told};

/// How an OCI runtime is driven.
pub(crate) struct Oci {
    pub kind: EngineKind,
    /// The user who drives it, if not ourselves.
    pub user: Option<User>,
    /// create, start and delete as commands of their own, for runtimes that are programs.
    pub in_steps: bool,
    /// Limits of cpu time and memory.
    pub limits: Size,
}

impl Launcher for Oci {
    fn launch(&mut self, stage: &Stage, number: u32) -> Result<Launched, String> {
        stage.life.reset();
        let name = format!("{number}-{}", self.kind);
        let words = Life::ending(&page_in_cell());
        let spec = stage
            .spec(
                &name,
                self.kind,
                self.user.as_ref(),
                words,
                Rights {
                    limits: self.limits,
                    ..Rights::default()
                },
            )
            .map_err(|error| error.to_string())?;
        let launched = if self.in_steps {
            in_steps(stage, &spec)
        } else {
            at_once(stage, &spec)
        };
        // Also after a failure: the next launch must not meet a runtime's half-made remains.
        let swept = engine::sweep(&spec.work_dir).map_err(|error| error.to_string());
        let _ = std::fs::remove_dir_all(&spec.work_dir);
        launched.and_then(|launched| swept.map(|()| launched))
    }
}

fn at_once(stage: &Stage, spec: &CellSpec) -> Result<Launched, String> {
    let mut command = engine::run_command(spec).map_err(|error| error.to_string())?;
    let stamps = engine::stamps_file(spec);
    if spec.engine == EngineKind::Embedded {
        command.env(engine::STAMPS, &stamps);
    }
    let (asked, gone) = timed(&mut command, &spec.work_dir.join("log"))?;
    let mut launched = told(stage, asked, gone)?;
    if let Ok(text) = std::fs::read_to_string(&stamps) {
        let step = |line: &str| {
            let (ns, step) = line.split_once(' ')?;
            Some((step.to_owned(), ns.parse().ok()?))
        };
        launched.steps = text.lines().filter_map(step).collect();
        let at = |name: &str| {
            let step = launched.steps.iter().find(|(step, _)| step == name);
            step.map(|(_, ns)| *ns)
        };
        launched.created = at("cgroups joined").filter(|ns| *ns <= launched.first);
        launched.ended = at("payload executed and ended").filter(|ns| *ns >= launched.last);
    }
    Ok(launched)
}

fn in_steps(stage: &Stage, spec: &CellSpec) -> Result<Launched, String> {
    let log = spec.work_dir.join("log");
    let mut steps = engine::step_commands(spec).map_err(|error| error.to_string())?;
    let (asked, created) = timed(&mut steps.create, &log)?;
    let pid = engine::payload_pid(spec).ok_or("the runtime gave no pid")?;
    let payload = host::pidfd::open(pid).map_err(|error| format!("process {pid}: {error}"))?;
    timed(&mut steps.start, &log)?;
    if !host::pidfd::ended_within(&payload, std::time::Duration::from_secs(10)) {
        return Err("the payload did not end within 10 s".to_owned());
    }
    let ended = clock::now();
    let (_, gone) = timed(&mut steps.delete, &log)?;
    let told = told(stage, asked, gone)?;
    Ok(Launched {
        created: Some(created),
        ended: Some(ended),
        ..told
    })
}
