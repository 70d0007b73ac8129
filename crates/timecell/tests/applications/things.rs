//! What cells are given, and how they run.

use engine::app::Ended;
use model::EngineKind;

use crate::support::{Place, run};

pub fn says_hello_and_leaves_nothing(kind: EngineKind) {
    let place = Place::new(kind);
    let (ended, output) = run(&place.script(kind, "echo hello; echo bad >&2; exit 7"));
    assert_eq!(ended, Ended::Exited(7), "{output}");
    assert_eq!(output, "hello\nbad\n");
}
