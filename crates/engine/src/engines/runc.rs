//! `runc`: the OCI runtime in Go.

use model::EngineKind;

use super::info::{Info, installed};
use super::runtime::{Program, Runtime};
use crate::Footprint;

pub(super) static INFO: Info = Info {
    engine: |_| {
        Box::new(Program {
            kind: EngineKind::Runc,
            runtime: &RUNTIME,
            needs: Vec::new,
            footprint: Footprint {
                keys: 1,
                ..Footprint::CONTAINER
            },
            wipe: INFO.wipe,
        })
    },
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
