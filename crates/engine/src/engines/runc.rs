//! `runc`: the OCI runtime in Go.

use model::{EngineKind, Requirement};

use super::info::{Info, installed};
use super::runtime::Runtime;
use crate::{Cell, CellSpec, Engine, EngineError, Footprint, made, programs};

pub(super) static INFO: Info = Info {
    engine: |_| Box::new(Runc),
    programs: || installed(&["runc"]),
    wipe: |cell| RUNTIME.wipe(cell),
    run: Some(|spec| RUNTIME.run(spec)),
    steps: Some(|spec| RUNTIME.steps(spec)),
    calls: None,
    apps: Some(&RUNTIME),
};

static RUNTIME: Runtime = Runtime {
    name: "runc",
    without_root: &["--rootless", "true"],
    log_prefix: "",
};

struct Runc;

impl Engine for Runc {
    fn kind(&self) -> EngineKind {
        EngineKind::Runc
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![
            programs::requirement("runc", "runc"),
            programs::root("runc"),
        ]
    }

    fn version(&self) -> Option<String> {
        let line = programs::first_line("runc", &["--version"])?;
        Some(line.replace("runc version", "runc"))
    }

    fn cell_sets_class(&self) -> bool {
        true
    }

    fn footprint(&self) -> Footprint {
        Footprint {
            keys: 1,
            ..Footprint::CONTAINER
        }
    }

    fn create(&self, spec: &CellSpec) -> Result<Box<dyn Cell>, EngineError> {
        made::create(spec, || RUNTIME.make(spec), INFO.wipe)
    }
}
