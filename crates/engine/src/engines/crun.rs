//! `crun`: the OCI runtime in C.

use model::{EngineKind, Requirement};

use super::info::{Info, installed};
use super::runtime::Runtime;
use crate::{Cell, CellSpec, Engine, EngineError, Footprint, made, oci, programs};

pub(super) static INFO: Info = Info {
    engine: |_| Box::new(Crun),
    programs: || installed(&["crun"]),
    wipe: |cell| RUNTIME.wipe(cell),
    run: Some(|spec| RUNTIME.run(spec)),
    steps: Some(|spec| RUNTIME.steps(spec)),
    calls: None,
    apps: Some(&RUNTIME),
};

static RUNTIME: Runtime = Runtime {
    name: "crun",
    without_root: &["--cgroup-manager=disabled"],
    // What is before a colon would be taken for where to log.
    log_prefix: "file:",
};

struct Crun;

impl Engine for Crun {
    fn kind(&self) -> EngineKind {
        EngineKind::Crun
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![
            programs::requirement("crun", "crun"),
            programs::root("crun"),
            oci::layout("crun"),
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
        made::create(spec, || RUNTIME.make(spec), INFO.wipe)
    }
}
