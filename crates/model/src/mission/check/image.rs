//! Checks of image, engine and command.

use crate::EngineKind;
use crate::file::Faults;
use crate::mission::{Cell, Image, Place};

/// Whether image, engine and command go together.
pub(super) fn check(cell: &Cell, place: &Place, faults: &mut Faults<'_>) {
    if !faults.is_clear(&place.key("image")) {
        return;
    }
    let image = &cell.image;
    let kind = image.key();
    if !faults.is_clear(&place.key("image").key(kind)) {
        return;
    }
    let engines = EngineKind::of_missions_from(image.kind());
    if !engines.contains(&cell.engine) {
        let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
        let what = format!("engine `{}` makes no cell of a {kind}", cell.engine);
        let fix = format!("set `engine` to one of {}", names.join(", "));
        let keys = if faults.says(&place.key("engine")) {
            ["engine", "image"]
        } else {
            ["image", "engine"]
        };
        faults.report(place, &keys, what, fix);
    }
    let says_command = faults.says(&place.key("command"));
    match image {
        Image::Rootfs(_) if !says_command => {
            let place = place.clone();
            faults.report(
                &place,
                &["command"],
                format!(
                    "cell `{}` has a root filesystem and no `command`",
                    cell.name
                ),
                "add a line such as `command = [\"/usr/bin/control\"]`",
            );
        }
        Image::Binary(_) if says_command => faults.report(
            place,
            &["command"],
            "the binary of the image is the program, and `command` names another",
            "remove the line; arguments stand in `args`",
        ),
        Image::Bundle(_) if !cell.args.is_empty() && !says_command => faults.report(
            place,
            &["args"],
            "a bundle has program and arguments in one, which `args` alone cannot change",
            "write `command` as well, or neither",
        ),
        _ => {}
    }
    if cell.command.first().is_some_and(String::is_empty) {
        faults.report(
            place,
            &["command"],
            "the program of `command` has no name",
            "write it first, such as [\"/usr/bin/control\", \"-v\"]",
        );
    }
}
