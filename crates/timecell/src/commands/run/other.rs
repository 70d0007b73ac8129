//! Refuses to start if another program of the same name still runs, because the command that started it was killed.

use std::path::Path;

use model::InputError;
use model::mission::{Cell, Image, MissionFile};
use report::exact;
use supervise::control::{Orphaned, orphaned};

/// Checks that nothing but this command's program runs in its directory.
///
/// # Errors
/// Which program does, and how to end it.
pub(super) fn refuse(dir: &Path, text: &str) -> Result<(), InputError> {
    match orphaned(dir) {
        Some(other) if !is_same(&other, text) => Err(refusal(&other)),
        _ => Ok(()),
    }
}

/// The lowest and highest priority that an earlier command gave to the cell that runs in its directory; `None` if nothing does.
pub(super) fn priorities(dir: &Path) -> Option<Option<(u8, u8)>> {
    let file = orphaned(dir)?.file?;
    let file = MissionFile::parse("mission", &file.text).ok()?;
    let band = file.mission().cells.first()?.priorities;
    Some(band.map(|band| (band.lowest, band.highest)))
}

/// Whether it was started by the same command line, with the same variables.
fn is_same(other: &Orphaned, text: &str) -> bool {
    (other.file.as_ref()).is_some_and(|file| file.text == text)
}

fn refusal(other: &Orphaned) -> InputError {
    let called = other.called();
    let file = other.file.as_ref();
    let file = file.and_then(|file| MissionFile::parse("mission", &file.text).ok());
    let what = (file.as_ref())
        .and_then(|file| file.mission().cells.first())
        .map_or(String::new(), |cell| format!(", {}", command(cell)));
    InputError::new(
        &other.mission,
        format!(
            "another program of this name still runs, though its timecell was killed: {}{what}",
            other.who()
        ),
        format!(
            "end it with `timecell down {called}`, adopt it with the command line and environment that started it, or give this one \
             another --name"
        ),
    )
}

/// The program of a cell and its budget, in the form of a command line.
fn command(cell: &Cell) -> String {
    let image = match &cell.image {
        Image::Binary(program) => program.display().to_string(),
        Image::Rootfs(dir) => format!("--rootfs {}", dir.display()),
        Image::Bundle(dir) => format!("--bundle {}", dir.display()),
        Image::Reference(name) => format!("--image {name}"),
        Image::Inmate(file) => file.display().to_string(),
    };
    let reserve = cell.reservation.as_ref().map(|reserve| {
        let time = |time: model::Duration| exact(time.ns().unsigned_abs());
        let (budget, period) = (time(reserve.budget), time(reserve.period));
        format!("under {budget} in every {period}")
    });
    let words = (cell.command.iter().chain(&cell.args)).map(|word| plain(word));
    let all = [image].into_iter().chain(words).chain(reserve);
    all.collect::<Vec<String>>().join(" ")
}

/// A word with its control characters escaped.
fn plain(word: &str) -> String {
    let escape = |letter: char| match letter.is_control() {
        true => letter.escape_debug().to_string(),
        false => letter.to_string(),
    };
    word.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use supervise::state::Text;

    #[test]
    fn another_program_is_named_with_how_to_end_it() {
        let text = |args: &str| {
            format!(
                "schema = 1\nname = \"m\"\n[[cell]]\nname = \"app\"\nimage = {{ binary = \"/bin/sleep\" }}\nargs = [{args}]\n\
                 reservation = {{ budget = \"2ms\", period = \"10ms\" }}\n"
            )
        };
        assert_eq!(plain("it's\n\"a\""), "it's\\n\"a\"");
        let other = Orphaned {
            mission: "m".to_owned(),
            dir: supervise::run::dir_of_one("m"),
            file: Some(Text::new(text("\"60\""))),
            processes: vec![("app".to_owned(), Some(7))],
        };
        assert!(is_same(&other, &text("\"60\"")));
        assert!(!is_same(&other, &text("\"70\"")));
        let said = refusal(&other).to_string();
        for part in [
            "process 7 (`app`)",
            "/bin/sleep 60 under 2 ms in every 10 ms",
            "`timecell down m`",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
