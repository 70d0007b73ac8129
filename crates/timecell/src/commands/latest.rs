//! `latest` in place of a run: the newest one in `runs`, or in `--out` for `bench`.

use std::path::{Path, PathBuf};

use model::InputError;

use crate::cli::Command;

/// The word.
const LATEST: &str = "latest";

/// Replaces `latest` on the command line by the newest run, unless something of that name exists.
///
/// # Errors
/// If there is no run.
pub fn resolve(command: &mut Command) -> Result<(), InputError> {
    let runs = PathBuf::from("runs");
    let (paths, around): (Vec<&mut PathBuf>, PathBuf) = match command {
        Command::Bench(options) => options.runs(),
        Command::Report(options) => (
            (options.paths.iter_mut())
                .chain(&mut options.judge.baseline)
                .collect(),
            runs,
        ),
        Command::Export(options) => (vec![&mut options.run], runs),
        _ => return Ok(()),
    };
    for path in paths {
        if path.as_os_str() == LATEST && !path.exists() {
            *path = newest(&around)?;
        }
    }
    Ok(())
}

/// The newest run in a directory, by name: the names start with the time at which the runs started.
///
/// # Errors
/// If there is none.
pub fn newest(around: &Path) -> Result<PathBuf, InputError> {
    let found = std::fs::read_dir(around).into_iter().flatten().flatten();
    found
        .map(|entry| entry.path())
        .filter(|path| path.join("run.json").is_file())
        .max()
        .ok_or_else(|| {
            InputError::new(
                LATEST,
                format!("there is no run in {}", around.display()),
                "run `timecell bench` here, or name a run directory",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_run_is_the_one_that_began_last() {
        let dir = tempfile::tempdir().unwrap();
        assert!(newest(&dir.path().join("none")).is_err());
        for (name, is_run) in [
            ("2026-01-02T000000-a", true),
            ("2026-01-03T000000-b", true),
            ("notes", false),
        ] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            if is_run {
                std::fs::write(dir.path().join(name).join("run.json"), "{}").unwrap();
            }
        }
        assert!(newest(dir.path()).unwrap().ends_with("2026-01-03T000000-b"));
    }
}
