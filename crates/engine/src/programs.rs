//! Finding programs, asking their versions, and the requirements that name them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use host::install::install;
use model::Requirement;

use crate::process;

/// Directories searched besides `PATH`: those of system programs are often missing there.
const MORE: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// The absolute path of a program, by its name, on the `PATH` or in the usual directories.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(MORE.map(PathBuf::from))
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|file| is_program(file))
}

/// Whether this is a file that somebody may execute; links are followed.
pub fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The first line that `name words...` prints; `None` if there is no such program or it fails.
pub(crate) fn first_line(name: &str, words: &[&str]) -> Option<String> {
    let answer = process::output(Command::new(find(name)?).args(words)).ok()?;
    let line = answer.out.lines().next()?.trim();
    (answer.status.success() && !line.is_empty()).then(|| line.to_owned())
}

/// The requirement that a program is installed; `package` is its name in Debian.
pub fn requirement(name: &str, package: &str) -> Requirement {
    match find(name) {
        Some(path) => Requirement::met(name, path.display().to_string()),
        None => Requirement::unmet(name, format!("`{name}` is not installed"), install(package)),
    }
}

/// The requirement that the effective user is root, which `engine` needs.
pub fn root(engine: &str) -> Requirement {
    if is_root() {
        Requirement::met("root", "running as root")
    } else {
        Requirement::unmet(
            "root",
            format!("{engine} needs root here"),
            "run it with `sudo`",
        )
    }
}

/// Whether the effective user is root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
