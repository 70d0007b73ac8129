//! timecell for the processor of another machine.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use guest::{GuestError, Program};
use host::found::Found;
use model::{Architecture, InputError};

/// timecell for a processor: the one that `option` names, this one, or another that was built.
pub fn program(
    of: Architecture,
    given: Option<&Path>,
    option: &str,
) -> Result<Program, GuestError> {
    let own = || {
        std::env::current_exe()
            .ok()
            .filter(|_| Architecture::own() == Some(of))
    };
    let found = given.map(Path::to_owned).or_else(own).or_else(|| built(of));
    let path = found.ok_or_else(|| {
        let target = format!("{}-unknown-linux-musl", of.name());
        GuestError::unmet(
            format!("there is no timecell for {} here", of.name()),
            format!(
                "in a clone of the project: `rustup target add {target}`, then `cargo build --release --target {target} -p timecell`; or name \
                 one by {option}"
            ),
        )
    })?;
    let program = guest::program(&path)?;
    if program.architecture != of {
        let what = format!(
            "it is a program for {}, and the processor there is {}",
            program.architecture.name(),
            of.name()
        );
        return Err(InputError::new(
            path.display().to_string(),
            what,
            format!("name one by {option}"),
        )
        .into());
    }
    Ok(program)
}

/// timecell for a processor beside this one, or as cargo has built it in this directory.
fn built(of: Architecture) -> Option<PathBuf> {
    let beside = std::env::current_exe()
        .ok()?
        .with_file_name(format!("timecell-{}", of.name()));
    let target = format!("target/{}-unknown-linux-musl", of.name());
    let by_cargo =
        ["release", "debug"].map(|profile| Path::new(&target).join(profile).join("timecell"));
    let by_cargo = by_cargo.into_iter().filter(|path| is_own(path));
    (beside.is_file().then_some(beside).into_iter())
        .chain(by_cargo)
        .next()
}

/// Whether nobody but this user and root can have put a file there. This directory may be anybody's, and the program is to run as root.
fn is_own(path: &Path) -> bool {
    Found::at(path).is_ok_and(|found| {
        let about = found.metadata().ok();
        let is_ours = |about: std::fs::Metadata| {
            // SAFETY: no arguments, cannot fail.
            let own = unsafe { libc::geteuid() };
            about.is_file() && about.mode() & 0o022 == 0 && [0, own].contains(&about.uid())
        };
        found.is_own() && about.is_some_and(is_ours)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_others_can_change_is_not_taken() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("timecell");
        std::fs::write(&path, "").unwrap();
        assert!(is_own(&path));
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&path, 0o666);
        assert!(!is_own(&path));
        set(&path, 0o644);
        set(dir.path(), 0o777);
        assert!(!is_own(&path));
    }

    #[test]
    fn a_program_of_another_processor_is_refused() {
        let own = std::env::current_exe().unwrap();
        let other = match Architecture::own() {
            Some(Architecture::X86_64) => Architecture::Aarch64,
            _ => Architecture::X86_64,
        };
        let error = program(other, Some(&own), "--guest-binary")
            .unwrap_err()
            .to_string();
        assert!(error.contains("it is a program for"), "{error}");
        assert!(program(other, Some(Path::new("/nowhere")), "").is_err());
    }
}
