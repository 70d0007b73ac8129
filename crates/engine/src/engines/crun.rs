//! `crun`: the OCI runtime in C.

use model::EngineKind;

use super::info::{Info, installed};
use super::runtime::{Program, Runtime};
use crate::{Footprint, oci};

pub(super) static INFO: Info = Info {
    engine: |_| {
        Box::new(Program {
            kind: EngineKind::Crun,
            runtime: &RUNTIME,
            needs: || vec![oci::layout("crun")],
            // `crun run` waits beside the payload.
            footprint: Footprint {
                processes: 2,
                processes_beside: 1,
                keys: 1,
                ..Footprint::CONTAINER
            },
            wipe: INFO.wipe,
        })
    },
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
    // crun takes the text before a colon for the kind of log.
    log_prefix: "file:",
};
