//! Checks of image, engine and command.

use crate::EngineKind;
use crate::file::Faults;
use crate::mission::{Cell, Image, Place};

/// Whether image, engine and command fit together.
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
        let what = format!(
            "engine `{}` cannot make a cell from `image.{kind}`",
            cell.engine
        );
        let fix = format!("set `engine` to {}", names.join(" or "));
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
                    "cell `{}` has a root filesystem but no `command`",
                    cell.name
                ),
                "add a line such as `command = [\"/usr/bin/control\"]`",
            );
        }
        Image::Binary(_) if says_command => faults.report(
            place,
            &["command"],
            "the image's binary is the program, but `command` names another",
            "remove the line; arguments go into `args`",
        ),
        Image::Bundle(_) if !cell.args.is_empty() && !says_command => faults.report(
            place,
            &["args"],
            "a bundle keeps program and arguments together, so `args` alone cannot change them",
            "set `command` as well, or neither",
        ),
        _ => {}
    }
    if cell.command.first().is_some_and(String::is_empty) {
        faults.report(
            place,
            &["command"],
            "the program of `command` has no name",
            "put it first, such as [\"/usr/bin/control\", \"-v\"]",
        );
    }
}
