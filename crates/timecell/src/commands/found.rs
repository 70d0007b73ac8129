//! timecell for the processor of another machine.

use std::path::{Path, PathBuf};

use guest::{GuestError, Program};
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
    [beside]
        .into_iter()
        .chain(by_cargo)
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

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
