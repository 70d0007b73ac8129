//! Cells that run applications, in every engine whose needs are met here: what they see and may, how they are created,
//! stopped, taken over and removed, and every way out of them that was thought of.

#[path = "../../../host/tests/needs/mod.rs"]
mod needs;
mod program;
mod support;
mod things;

use engine::app::AppSpec;
use libtest_mimic::Trial;
use model::EngineKind;

type Behaviour = fn(EngineKind);

/// What holds in every engine that makes containers.
const EVERYWHERE: [(&str, Behaviour); 1] = [(
    "says_hello_and_leaves_nothing",
    things::says_hello_and_leaves_nothing,
)];

fn main() {
    // The program that the cells run is this one.
    program::run_if_asked();
    // The programs of cells are then handed to this process, which learns how they end.
    engine::app::become_subreaper().expect("any process may become a subreaper");
    let mut trials: Vec<Trial> = Vec::new();
    for kind in [
        EngineKind::Embedded,
        EngineKind::Crun,
        EngineKind::Runc,
        EngineKind::Podman,
    ] {
        let spec = AppSpec::new(
            "x",
            kind,
            engine::app::Image::Rootfs("/".into()),
            "/".as_ref(),
        );
        let unmet = engine::app::requirements(&spec)
            .into_iter()
            .find(|need| !need.met)
            .map(|need| need.reason)
            .or_else(support::no_busybox);
        for (behaviour, run) in EVERYWHERE {
            let name = format!("{kind}::{behaviour}");
            trials.push(needs::trial(&name, unmet.as_deref(), move || run(kind)));
        }
    }
    needs::run(trials, true);
}
