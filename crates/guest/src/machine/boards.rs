//! The boards that come with timecell, and those of users.

use std::path::{Path, PathBuf};

use host::given_file;
use model::{Board, InputError, InputErrors, nearest};

use crate::GuestError;

const BUILT_IN: [(&str, &str); 7] = [
    ("microvm", include_str!("../../data/microvm.toml")),
    ("pvh", include_str!("../../data/pvh.toml")),
    ("q35", include_str!("../../data/q35.toml")),
    (
        "raspberry-pi-3",
        include_str!("../../data/raspberry-pi-3.toml"),
    ),
    ("virt", include_str!("../../data/virt.toml")),
    ("x86-rt", include_str!("../../data/x86-rt.toml")),
    ("zcu102", include_str!("../../data/zcu102.toml")),
];

/// Names and files of the boards that come with timecell.
pub fn built_in() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILT_IN.into_iter()
}

/// The board of this name, or of the file at this path; and its short name. Relative paths in a file begin at its directory.
///
/// # Errors
/// If there is no such board or file, or the file has faults.
pub fn board(name: &str) -> Result<(Board, String), GuestError> {
    if let Some((name, text)) = built_in().find(|(known, _)| *known == name) {
        return Ok((Board::parse(name, text)?, name.to_owned()));
    }
    let path = Path::new(name);
    if !name.contains('/') && !path.exists() {
        let names: Vec<&str> = built_in().map(|(name, _)| name).collect();
        let meant = nearest(name, &names).map(|near| format!("did you mean `{near}`?"));
        let fix = meant.unwrap_or_else(|| {
            format!(
                "the boards are {}, or a path of a board's file",
                names.join(", ")
            )
        });
        return Err(InputError::new(name, "there is no such board", fix).into());
    }
    let text = given_file::text(path, Board::FILE_BYTES as u64).map_err(|error| {
        InputErrors::from(InputError::new(
            name,
            format!("cannot read it: {error}"),
            "",
        ))
    })?;
    let mut board = Board::parse(name, &text)?;
    let around = path.parent().unwrap_or(Path::new(""));
    let kernel = &mut board.kernel;
    kernel.file = kernel.file.take().map(|file| around.join(file));
    if kernel.package.is_none() {
        for module in &mut kernel.modules {
            *module = around.join(&*module).display().to_string();
        }
        kernel.device_tree = kernel.device_tree.take().map(|tree| around.join(tree));
    }
    let short = PathBuf::from(path.file_stem().unwrap_or_default());
    Ok((board, short.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boards_of_timecell_are_in_order() {
        for (name, _) in built_in() {
            let (board, short) = board(name).unwrap();
            assert_eq!(short, name);
            assert!(board.kernel.package.is_some(), "{name}");
        }
    }

    #[test]
    fn the_documentation_shows_a_board_as_it_is() {
        let page = include_str!("../../../../docs/src/boards.md");
        let (_, shown) = page.split_once("```toml\n").unwrap();
        let (shown, _) = shown.split_once("```").unwrap();
        let (_, file) = built_in().find(|(name, _)| *name == "zcu102").unwrap();
        assert!(file.ends_with(shown));
    }

    #[test]
    fn a_board_that_is_not_there_is_told_with_what_was_meant() {
        let said = board("zcu-102").unwrap_err().to_string();
        assert_eq!(
            said,
            "zcu-102: there is no such board; did you mean `zcu102`?"
        );
        let said = board("beaglebone").unwrap_err().to_string();
        assert!(
            said.contains("the boards are microvm, pvh, q35, raspberry-pi-3, virt, x86-rt, zcu102"),
            "{said}"
        );
        let said = board("/nowhere/b.toml").unwrap_err().to_string();
        assert!(said.contains("cannot read it"), "{said}");
    }

    #[test]
    fn files_of_a_board_are_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.toml");
        let text = "schema = 1\ntitle = \"b\"\narchitecture = \"x86_64\"\nconsole = \"ttyS0\"\nchannel = \"ttyS1\"\n[kernel]\n\
            file = \"vmlinuz\"\n[qemu]\nmachine = \"q35\"\n";
        std::fs::write(&path, text).unwrap();
        let (board, name) = board(path.to_str().unwrap()).unwrap();
        assert_eq!(
            (name.as_str(), board.kernel.file),
            ("mine", Some(dir.path().join("vmlinuz")))
        );
    }
}
