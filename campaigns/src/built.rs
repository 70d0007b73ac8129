//! The binary that campaigns run.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Failure;

/// `cargo`, which has started this program, in the root of the repository.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    cargo
}

/// The release build of timecell, made if need be.
pub fn timecell() -> Result<PathBuf, Failure> {
    let output = cargo()
        .args(["build", "--quiet", "--release", "--package", "timecell"])
        .args(["--bin", "timecell", "--message-format", "json"])
        .stderr(std::process::Stdio::inherit())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let path = (said.lines())
        .filter_map(|line| line.split_once("\"executable\":\"")?.1.split('"').next())
        .next_back();
    match path.filter(|_| output.status.success()) {
        Some(path) => Ok(path.into()),
        None => Err("timecell could not be built".into()),
    }
}
