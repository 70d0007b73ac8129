//! A user's program in the root filesystem of cells, with the shared libraries that it is linked against.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Doing, Error, Result, refused};
use crate::rootfs::{RootfsError, check_static, io_at, make_dir};

/// Directory of programs in a root filesystem.
const PROGRAMS: &str = "program";

/// Where the cells of a root filesystem see this program once it is added.
pub fn seen(program: &Path) -> PathBuf {
    let name = program.file_name().unwrap_or(program.as_os_str());
    Path::new("/").join(PROGRAMS).join(name)
}

/// Copies the program into the root filesystem in `dir`, and the libraries that its loader would load, each where the loader finds
/// it. Files that it opens by itself are not known of.
///
/// # Errors
/// When it is no program of this machine, a library is missing, or a file cannot be copied.
pub fn add(dir: &Path, program: &Path) -> Result<(), RootfsError> {
    copy(program, &dir.join(PROGRAMS), &seen(program))?;
    for library in needed(program)? {
        let place = library.parent().unwrap_or(Path::new("/"));
        let place = place.strip_prefix("/").unwrap_or(place);
        copy(&library, &dir.join(place), &library)?;
    }
    Ok(())
}

/// Files that the program's loader would map beside it, itself among them; none for a static program.
///
/// # Errors
/// When it is no program of this machine, or a library is missing.
pub fn needed(program: &Path) -> Result<Vec<PathBuf>, RootfsError> {
    let interpreter = match check_static(program, program) {
        Ok(()) => return Ok(Vec::new()),
        Err(RootfsError::NotStatic {
            interpreter: Some(interpreter),
            ..
        }) => interpreter,
        Err(error) => return Err(error),
    };
    let failed = |error: Error| RootfsError::Libraries {
        program: program.to_owned(),
        source: Box::new(error),
    };
    // As ldd(1) does, without its shell script: both glibc's and musl's loaders know the option, and run nothing of the program.
    let listed = Command::new(&interpreter)
        .arg("--list")
        .arg(program)
        .stdin(Stdio::null())
        .output()
        .doing(|| interpreter.as_str())
        .map_err(failed)?;
    let told = String::from_utf8_lossy(&listed.stdout).into_owned();
    if !listed.status.success() {
        let why = String::from_utf8_lossy(&listed.stderr);
        return Err(failed(why.trim().replace('\n', "; ").into()));
    }
    let mut found = paths(&told).map_err(failed)?;
    let loader = PathBuf::from(interpreter);
    if !found.contains(&loader) {
        found.push(loader);
    }
    Ok(found)
}

/// The files in a loader's list: `libm.so.6 => /lib/libm.so.6 (0x7f..)`, `/lib64/ld-linux-x86-64.so.2 (0x7f..)`; a library that
/// the kernel brings has none.
fn paths(list: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for line in list.lines().map(str::trim) {
        let (name, place) = line.split_once(" => ").unwrap_or((line, line));
        if place.starts_with("not found") {
            return Err(refused!("library {name} is missing"));
        }
        let path = Path::new(place.rsplit_once(" (").map_or(place, |(path, _)| path));
        if path.is_absolute() && !found.contains(&path.to_owned()) {
            found.push(path.to_owned());
        }
    }
    Ok(found)
}

/// Copies a file into a directory below a root filesystem, as `as_seen` names it, unless it is there already.
fn copy(file: &Path, place: &Path, as_seen: &Path) -> Result<(), RootfsError> {
    let to = place.join(as_seen.file_name().unwrap_or_default());
    if to.exists() {
        return Ok(());
    }
    make_dir(place).map_err(io_at(place))?;
    fs::copy(file, &to).map_err(io_at(file))?;
    fs::set_permissions(&to, Permissions::from_mode(0o755)).map_err(io_at(&to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loaders_list_is_read() {
        let glibc = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f)\n\
                     \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = [
            "/lib/x86_64-linux-gnu/libm.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(paths(glibc).unwrap(), expected.map(PathBuf::from));
        let musl = "\t/lib/ld-musl-x86_64.so.1 (0x7f)\n\tlibc.musl-x86_64.so.1 => /lib/ld-musl-x86_64.so.1 (0x7f)\n";
        assert_eq!(
            paths(musl).unwrap(),
            [Path::new("/lib/ld-musl-x86_64.so.1")]
        );
        let error = paths("\tlibfoo.so => not found\n").unwrap_err();
        assert_eq!(error.to_string(), "library libfoo.so is missing");
    }

    #[test]
    fn a_linked_program_comes_with_its_libraries_and_runs_there() {
        let dir = tempfile::tempdir().unwrap();
        let program = Path::new("/bin/ls");
        add(dir.path(), program).unwrap();
        assert!(dir.path().join("program/ls").is_file());
        let needed = needed(program).unwrap();
        assert!(!needed.is_empty());
        for library in needed {
            let copied = dir.path().join(library.strip_prefix("/").unwrap());
            assert!(copied.is_file(), "{}", copied.display());
        }
        // Once more: present files stay.
        add(dir.path(), program).unwrap();
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        let error = add(dir.path(), &script).unwrap_err().to_string();
        assert!(error.contains("is not a 64-bit ELF program"), "{error}");
    }
}
