//! `jailhouse`: a partition of the machine beside Linux, of missions only. In Linux runs its keeper, a plain process of ours
//! ([`crate::app::partition`]).

use std::path::Path;

use jailhouse::driver::DEVICE;
use model::{EngineKind, Requirement};

use super::info::Info;
use crate::{Cell, CellSpec, Engine, EngineError, Footprint, made};

pub(super) static INFO: Info = Info {
    engine: |_| Box::new(Jailhouse),
    programs: Vec::new,
    wipe: |_| Ok(()),
    run: None,
    steps: None,
    calls: None,
    apps: None,
};

struct Jailhouse;

impl Engine for Jailhouse {
    fn kind(&self) -> EngineKind {
        EngineKind::Jailhouse
    }

    fn requirements(&self) -> Vec<Requirement> {
        let what = format!("the driver of Jailhouse, {DEVICE}");
        vec![match Path::new(DEVICE).exists() {
            true => Requirement::met(what, "it is there"),
            false => Requirement::unmet(
                what,
                format!("there is no {DEVICE}"),
                "load the module of Jailhouse that is built for this kernel (insmod jailhouse.ko)",
            ),
        }]
    }

    fn version(&self) -> Option<String> {
        // The driver tells it on the console only.
        None
    }

    fn cell_sets_class(&self) -> bool {
        false
    }

    fn footprint(&self) -> Footprint {
        Footprint::PROCESS
    }

    fn create(&self, spec: &CellSpec) -> Result<Box<dyn Cell>, EngineError> {
        let cause = crate::error::refused!("partitions beside Linux are not measured");
        Err(made::error(spec, "make a partition", cause))
    }
}
