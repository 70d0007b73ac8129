//! `runc`: the OCI runtime in Go.

use model::{EngineKind, Requirement};

use crate::identity::Identity;
use crate::{Cell, CellSpec, Engine, EngineError, Footprint, made, oci, programs};

/// The engine.
pub(crate) struct Runc;

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
        made::create(spec, || oci::make("runc", spec), wipe)
    }
}

pub(crate) fn wipe(cell: &dyn Identity) -> Result<(), String> {
    oci::wipe("runc", cell)
}
