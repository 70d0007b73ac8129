//! `crun`: the OCI runtime in C.

use model::{EngineKind, Requirement};

use crate::identity::Identity;
use crate::{Cell, CellSpec, Engine, EngineError, Footprint, made, oci, programs};

/// The engine.
pub(crate) struct Crun;

impl Engine for Crun {
    fn kind(&self) -> EngineKind {
        EngineKind::Crun
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![
            programs::requirement("crun", "crun"),
            programs::root("crun"),
            layout("crun"),
        ]
    }

    fn version(&self) -> Option<String> {
        let line = programs::first_line("crun", &["--version"])?;
        Some(line.replace("crun version", "crun"))
    }

    fn cell_sets_class(&self) -> bool {
        true
    }

    fn footprint(&self) -> Footprint {
        // `crun run` waits beside the payload.
        Footprint {
            processes: 2,
            processes_beside: 1,
            keys: 1,
            ..Footprint::CONTAINER
        }
    }

    fn create(&self, spec: &CellSpec) -> Result<Box<dyn Cell>, EngineError> {
        made::create(spec, || oci::make("crun", spec), wipe)
    }
}

pub(crate) fn wipe(cell: &dyn Identity) -> Result<(), String> {
    oci::wipe("crun", cell)
}

/// That the layout of the cgroup mounts is one that this runtime accepts.
pub(crate) fn layout(runtime: &str) -> Requirement {
    const WHAT: &str = "cgroup layout";
    match host::cgroup::detect() {
        Err(error) => Requirement::unmet(WHAT, error.to_string(), "mount /proc"),
        Ok(cgroups) => match cgroups
            .refusals()
            .into_iter()
            .find(|no| no.runtime == runtime)
        {
            Some(no) => Requirement::unmet(WHAT, no.reason, no.mend),
            None => Requirement::met(WHAT, cgroups.layout().to_string()),
        },
    }
}
