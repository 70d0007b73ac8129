//! Programs and interpreters that are named through `/proc`: `/proc/self/exe` is the program of the process that makes the
//! cell, `/proc/self/fd/N` its open files. Neither is a file of the image, so neither is executed: names are checked before the
//! cell is made, and the path that the kernel resolves just before the program is executed.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

use host::foreign_file;
use rustix::fs::{CWD, PROC_SUPER_MAGIC, ResolveFlags, fstatfs};
use rustix::io::Errno;

use super::program::Program;
use super::root;

use crate::error::{Error, Result, refused};

/// Links that the kernel follows in one path, and more.
const MOST_LINKS: usize = 40;
/// Interpreters of interpreters that the kernel follows, and more.
const MOST_INTERPRETERS: usize = 6;
/// The longest path, and so the longest first line of a script that matters.
const MOST_BYTES: u64 = 4096;

/// Where every cell has links into `/proc`.
const INTO_PROC: [&str; 5] = [
    "/proc",
    "/dev/fd",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
];

/// Checks that program and interpreters, by their names in the image at `root`, are files of the image. Files that appear or are mounted later,
/// [`check_here`] checks again.
///
/// # Errors
/// One sentence, which names the program.
pub(crate) fn check_in(root: &Path, program: &Program) -> Result<()> {
    let name = program.args.first().map_or("", String::as_str);
    if name.contains('/') {
        return check_path(root, &program.cwd.join(name));
    }
    let path = (program.env.iter()).find_map(|variable| variable.strip_prefix("PATH="));
    for dir in path.unwrap_or_default().split(':') {
        if dir.is_empty() {
            continue;
        }
        let candidate = program.cwd.join(dir).join(name);
        check_path(root, &candidate)?;
        if on_host(root, &resolve(root, &candidate)).is_file() {
            break;
        }
    }
    Ok(())
}

fn check_path(root: &Path, program: &Path) -> Result<()> {
    let mut at = resolve(root, program);
    refuse("the program", program, &at)?;
    for _ in 0..MOST_INTERPRETERS {
        let Some(interpreter) = interpreter(root, &at).map_err(|why| unread(&at, &why))? else {
            break;
        };
        let found = resolve(root, &interpreter);
        let what = format!("the interpreter of {},", at.display());
        refuse(&what, &interpreter, &found)?;
        at = found;
    }
    Ok(())
}

fn refuse(what: &str, named: &Path, found: &Path) -> Result<()> {
    if INTO_PROC.iter().any(|proc| found.starts_with(proc)) {
        return Err(refusal(what, named));
    }
    Ok(())
}

fn refusal(what: &str, named: &Path) -> Error {
    refused!(
        "{what} {} leads through /proc to a file outside the cell; name a file in its image",
        named.display()
    )
}

/// Where a path of the cell leads, as far as links of the image say; not below `/proc`, which the image does not have.
fn resolve(root: &Path, path: &Path) -> PathBuf {
    let mut links = 0;
    let mut at = PathBuf::from("/");
    let mut left: Vec<PathBuf> = parts(path);
    while let Some(part) = left.pop() {
        match part.as_os_str().as_bytes() {
            b".." => {
                at.pop();
                continue;
            }
            _ => at.push(&part),
        }
        if INTO_PROC.iter().any(|proc| at == Path::new(proc)) {
            return at;
        }
        let Ok(target) = fs::read_link(on_host(root, &at)) else {
            continue;
        };
        links += 1;
        if links > MOST_LINKS {
            break;
        }
        at.pop();
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        left.extend(parts(&target));
    }
    at
}

/// The parts of a path, the last first.
fn parts(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        _ => None,
    });
    parts.collect()
}

fn on_host(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Checks that program and interpreters are files of the cell in whose root this process runs.
///
/// # Errors
/// One sentence, which names the program.
pub(super) fn check_here(program: &Path) -> Result<()> {
    let mut what = "the program".to_owned();
    let mut at = program.to_owned();
    for _ in 0..=MOST_INTERPRETERS {
        if is_magic(&at) {
            return Err(refusal(&what, &at));
        }
        let next = match interpreter(Path::new("/"), &at) {
            Ok(Some(next)) => next,
            // A program that this user may execute and not read has a loader of its own choice, which the kernel opens.
            Ok(None) => break,
            Err(why) if why.kind() == io::ErrorKind::PermissionDenied => break,
            Err(why) => return Err(unread(&at, &why)),
        };
        what = format!("the interpreter of {},", at.display());
        at = next;
    }
    Ok(())
}

/// Whether the kernel finds one of its own links on the way, or a file of `/proc` at its end.
fn is_magic(path: &Path) -> bool {
    match root::open_path(CWD, path, ResolveFlags::NO_MAGICLINKS) {
        Ok(found) => is_of_proc(&found),
        // Too many links, which is a loop, is the same error; such a path leads nowhere either.
        Err(Errno::LOOP) => true,
        // A kernel without this call, or a filter that hides it.
        Err(Errno::NOSYS | Errno::PERM) => {
            let found = resolve(Path::new("/"), path);
            INTO_PROC.iter().any(|proc| found.starts_with(proc))
        }
        // It is not there, or not for this user: that is said elsewhere.
        Err(_) => false,
    }
}

fn is_of_proc(file: &OwnedFd) -> bool {
    fstatfs(file).is_ok_and(|about| about.f_type == PROC_SUPER_MAGIC)
}

fn unread(program: &Path, why: &io::Error) -> Error {
    refused!("the program {} cannot be read: {why}", program.display())
}

/// The interpreter that a script or a dynamic program names; `None`: it has none, or is not there.
///
/// # Errors
/// When it cannot be read, so that its interpreter is not known.
fn interpreter(root: &Path, program: &Path) -> io::Result<Option<PathBuf>> {
    let file = match foreign_file::program(root, program) {
        Ok(file) => file,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut magic = [0; 4];
    let read = file.read_at(&mut magic, 0)?;
    Ok(match &magic[..read] {
        [b'#', b'!', ..] => of_script(file),
        b"\x7fELF" => of_elf(&file),
        _ => None,
    })
}

/// Whether a path leads to no file, or to a directory, device or FIFO: the kernel says so when it is executed.
fn is_missing(error: &io::Error) -> bool {
    if error.kind() == io::ErrorKind::InvalidInput {
        return true;
    }
    let known = [libc::ENOENT, libc::ENOTDIR, libc::ELOOP];
    error
        .raw_os_error()
        .is_some_and(|number| known.contains(&number))
}

fn of_script(file: File) -> Option<PathBuf> {
    let mut line = Vec::new();
    let mut file = BufReader::new(file.take(MOST_BYTES));
    file.read_until(b'\n', &mut line).ok()?;
    let words = line.get(2..)?.split(u8::is_ascii_whitespace);
    let first = words.into_iter().find(|word| !word.is_empty())?;
    Some(std::ffi::OsStr::from_bytes(first).into())
}

/// The dynamic loader of a 64-bit program in this machine's byte order; the kernel takes no other for one.
fn of_elf(file: &File) -> Option<PathBuf> {
    const LOADER: u32 = 3; // PT_INTERP
    let number =
        |bytes: &[u8]| -> u64 { bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)) };
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0).ok()?;
    let (at, size) = (number(&header[32..40]), number(&header[54..56]));
    for index in 0..number(&header[56..58]) {
        let mut segment = [0; 56];
        let place = at.checked_add(index * size)?;
        file.read_exact_at(&mut segment, place).ok()?;
        if number(&segment[..4]) != u64::from(LOADER) {
            continue;
        }
        let (from, bytes) = (number(&segment[8..16]), number(&segment[32..40]));
        let mut name = vec![0; usize::try_from(bytes.min(MOST_BYTES)).ok()?];
        file.read_exact_at(&mut name, from).ok()?;
        let end = name.iter().position(|byte| *byte == 0)?;
        return Some(std::ffi::OsStr::from_bytes(&name[..end]).into());
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::app::Ids;

    fn program(args: &[&str], path: &str) -> Program {
        Program {
            root_is_own: false,
            args: args.iter().map(|word| (*word).to_owned()).collect(),
            env: vec![format!("PATH={path}")],
            cwd: "/".into(),
            ids: Ids::NOBODY,
            hostname: "a".to_owned(),
        }
    }

    /// A 64-bit program of this byte order that has nothing but a loader.
    fn elf(loader: &str) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        file[..4].copy_from_slice(b"\x7fELF");
        file[32] = 64;
        file[54] = 56;
        file[56] = 1;
        file[64] = 3;
        file[64 + 8] = 120;
        file[64 + 32] = u8::try_from(loader.len() + 1).unwrap();
        file.extend(loader.as_bytes());
        file.push(0);
        file
    }

    #[test]
    fn what_leads_through_proc_is_refused_before_anything_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let bin = root.join("bin");
        fs::create_dir(&bin).unwrap();
        fs::write(bin.join("good"), "#!/bin/sh\n").unwrap();
        fs::write(bin.join("script"), "#! /proc/self/exe load\n").unwrap();
        fs::write(bin.join("nested"), "#!/bin/script\n").unwrap();
        fs::write(bin.join("loaded"), elf("/proc/self/exe")).unwrap();
        fs::write(bin.join("fine"), elf("/lib/ld.so")).unwrap();
        symlink("../proc/self", root.join("me")).unwrap();
        symlink("/me/exe", bin.join("far")).unwrap();
        symlink("loop", bin.join("loop")).unwrap();
        for (args, path) in [
            (["/proc/self/exe"], ""),
            (["proc/1/exe"], ""),
            (["/bin/../proc/thread-self/exe"], ""),
            (["/dev/fd/5"], ""),
            (["/dev/stdin"], ""),
            (["/bin/far"], ""),
            (["far"], "/usr/bin:/bin"),
            (["exe"], "/proc/self"),
            (["/bin/script"], ""),
            (["nested"], "/bin"),
            (["/bin/loaded"], ""),
        ] {
            let why = check_in(root, &program(&args, path))
                .unwrap_err()
                .to_string();
            assert!(why.contains("leads through /proc"), "{args:?}: {why}");
        }
        for name in ["good", "fine", "loop", "missing"] {
            check_in(root, &program(&[name], "/bin:/proc/self"))
                .or_else(|why| match name {
                    // Looked for in vain along the whole path.
                    "loop" | "missing" => Ok(()),
                    _ => Err(why),
                })
                .unwrap();
            check_in(root, &program(&[&format!("/bin/{name}")], "")).unwrap();
        }
        let why = check_in(root, &program(&["/bin/script"], ""))
            .unwrap_err()
            .to_string();
        assert!(
            why.starts_with("the interpreter of /bin/script, /proc/self/exe"),
            "{why}"
        );
    }

    #[test]
    fn the_kernel_is_asked_before_a_program_is_executed() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, what: &[u8]| {
            let path = dir.path().join(name);
            fs::write(&path, what).unwrap();
            path
        };
        let link = dir.path().join("link");
        symlink("/proc/self/exe", &link).unwrap();
        let behind_link = format!("#!{}\n", link.display());
        for magic in [
            PathBuf::from("/proc/self/exe"),
            PathBuf::from("/proc/self/root").join("bin/sh"),
            "/dev/stdin".into(),
            "/proc/self/status".into(),
            write("script", behind_link.as_bytes()),
            write("loaded", &elf("/proc/self/exe")),
            link,
        ] {
            let why = check_here(&magic).unwrap_err().to_string();
            assert!(why.contains("leads through /proc"), "{why}");
        }
        check_here(Path::new("/bin/sh")).unwrap();
        check_here(&write("plain", b"#!/bin/sh\n")).unwrap();
        check_here(Path::new("/nowhere")).unwrap();
    }
}
