//! File systems in partitions of an image, made and read by programs of Debian that need no mount: FAT32 by mtools, ext4 by mke2fs.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::cache::{Cache, Filling};
use crate::tree::Tree;
use crate::{GuestError, tail};

/// Sectors of a cluster: FAT32 has at least 65,525 clusters, which are 64 MiB.
const CLUSTER: &str = "2";
/// The time of everything in a FAT32 partition, seconds since 1970: its first day, 1 January 1980.
const DAY: &str = "315532800";
/// The error of a full disk, after which mtools go on and complain of what follows from it.
pub(crate) const FULL: &str = "No space left on device";

/// A partition of an image, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Partition<'f> {
    /// The image.
    pub file: &'f File,
    /// Where the partition begins.
    pub begin: u64,
    /// Its length.
    pub length: u64,
}

/// Makes a FAT32 file system of this serial number with the files of a tree. The same tree gives the same bytes.
///
/// # Errors
/// If mtools are not here, or fail, for instance on a full disk.
pub fn write_fat(
    cache: &Cache,
    tree: &Tree,
    serial: u32,
    to: Partition<'_>,
) -> Result<(), GuestError> {
    let filling = cache.fill()?;
    let dir = placed(&filling, tree)?;
    let listed = fs::read_dir(dir.path())
        .and_then(|found| found.map(|entry| Ok(entry?.path())).collect())
        .map_err(GuestError::file(dir.path(), "list it"));
    let mut paths: Vec<PathBuf> = listed?;
    paths.sort();
    let (serial, sectors) = (format!("{serial:08x}"), (to.length / 512).to_string());
    let mut format = mtools("mformat", to.file, to.begin);
    format.args(["-F", "-c", CLUSTER, "-T", &sectors]);
    format.args(["-v", "BOOT", "-N", &serial, "::"]);
    run("mformat", "mtools", &mut format)?;
    let mut copy = mtools("mcopy", to.file, to.begin);
    run("mcopy", "mtools", copy.arg("-s").args(paths).arg("::"))
}

/// The content of a file in the FAT32 file system that begins at this byte of an image, by its path with any letter case; `None` if it is not
/// there, damaged, or has more than `most` bytes.
///
/// # Errors
/// If mtools are not here.
pub fn read_fat(
    file: &File,
    begin: u64,
    path: &str,
    most: u64,
) -> Result<Option<Vec<u8>>, GuestError> {
    // Patterns to mtools, which no name of FAT32 has but for the bracket.
    if path.contains(['*', '?', '[']) {
        return Ok(None);
    }
    let program = "mtype";
    let mut command = mtools(program, file, begin);
    command.arg(format!("::/{}", path.trim_start_matches('/')));
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let unstarted = |error| unstarted(program, "mtools", &error);
    let mut child = command.spawn().map_err(unstarted)?;
    let mut bytes = Vec::new();
    // With its output closed it ends.
    let read = child
        .stdout
        .take()
        .map(|out| out.take(most + 1).read_to_end(&mut bytes));
    let is_whole = child.wait().map_err(unstarted)?.success() && matches!(read, Some(Ok(_)));
    Ok((is_whole && bytes.len() as u64 <= most).then_some(bytes))
}

/// Makes an ext4 file system with a tree whose files are root's: by root of a user namespace, unless it is root.
///
/// # Errors
/// If mke2fs is not here, or fails, for instance on a full disk.
pub fn write_ext4(cache: &Cache, tree: &Tree, to: Partition<'_>) -> Result<(), GuestError> {
    let filling = cache.fill()?;
    let dir = placed(&filling, tree)?;
    let mut command = match rustix::process::geteuid().is_root() {
        true => tool("mke2fs", to.file),
        false => {
            let mut command = tool("unshare", to.file);
            command.args(["--map-root-user", "mke2fs"]);
            command
        }
    };
    let offset = format!("offset={},root_owner=0:0", to.begin);
    command.args([
        "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-L", "timecell",
    ]);
    command.args(["-E", &offset, "-d"]);
    command.arg(dir.path()).arg(name(to.file));
    run(
        "mke2fs",
        "e2fsprogs",
        command.arg(format!("{}k", to.length >> 10)),
    )
}

fn placed(filling: &Filling<'_>, tree: &Tree) -> Result<TempDir, GuestError> {
    let dir = filling.unfinished()?;
    let told = GuestError::file(dir.path(), "lay out the files of a partition");
    tree.place(dir.path()).map_err(told)?;
    Ok(dir)
}

/// The name of an open file for programs that have it open as well.
fn name(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// A program of mtools, for the file system that begins at this byte of an image.
fn mtools(program: &str, file: &File, begin: u64) -> Command {
    let mut command = tool(program, file);
    command
        .envs([("MTOOLSRC", "/dev/null"), ("MTOOLS_SKIP_CHECK", "1")])
        .envs([("SOURCE_DATE_EPOCH", DAY), ("TZ", "UTC")])
        .args(["-i", &format!("{}@@{begin}", name(file))]);
    command
}

/// A program that has the image open and ends with this process. Nothing of the user's environment changes what it does.
fn tool(program: &str, file: &File) -> Command {
    let mut path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    path.push(":/usr/sbin:/sbin");
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs([("PATH", &*path), ("LC_ALL", "C.UTF-8".as_ref())])
        .stdin(Stdio::null());
    crate::machine::tie(&mut command, vec![file.as_raw_fd()]);
    command
}

/// Runs a program to its end; `package` is Debian's that has it.
fn run(program: &'static str, package: &str, command: &mut Command) -> Result<(), GuestError> {
    let done = command
        .output()
        .map_err(|error| unstarted(program, package, &error))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let full = said.contains(FULL).then_some(FULL);
    let line = full.unwrap_or_else(|| tail::reason(&said, program));
    // Of unshare.
    let absent = [
        format!("{program}: No such file"),
        format!("failed to execute {program}"),
    ];
    if absent.iter().any(|words| line.contains(words)) {
        return Err(unstarted(program, package, &io::ErrorKind::NotFound.into()));
    }
    let said = line.to_owned();
    Err(GuestError::Program { program, said })
}

fn unstarted(program: &'static str, package: &str, error: &io::Error) -> GuestError {
    match error.kind() {
        io::ErrorKind::NotFound => GuestError::unmet(
            format!("`{program}` is not here, which partitions of cards need"),
            format!("apt install {package}"),
        ),
        _ => GuestError::Program {
            program,
            said: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: u64 = 4096;
    const LENGTH: u64 = 66 << 20;

    /// An empty image; none if the programs of a package are not here, whose absence is told.
    fn made(
        package: &str,
        write: impl FnOnce(&Cache, Partition<'_>) -> Result<(), GuestError>,
    ) -> Result<Option<(TempDir, File)>, GuestError> {
        let dir = tempfile::tempdir().unwrap();
        let file = File::create_new(dir.path().join("image")).unwrap();
        file.set_len(BEGIN + LENGTH).unwrap();
        let part = Partition {
            file: &file,
            begin: BEGIN,
            length: LENGTH,
        };
        let written = write(&Cache::at(&dir.path().join("cache")), part);
        if let Err(GuestError::Unmet { fix, .. }) = &written {
            assert_eq!(*fix, format!("apt install {package}"));
            return Ok(None);
        }
        written?;
        let file = File::open(dir.path().join("image")).unwrap();
        Ok(Some((dir, file)))
    }

    fn fat(bytes: usize) -> Result<Option<(TempDir, File)>, GuestError> {
        let mut tree = Tree::default();
        tree.text("Image", 0o644, vec![7; bytes]);
        tree.text("system.dtb", 0o644, "");
        tree.text("extlinux/extlinux.conf", 0o644, "default");
        made("mtools", |cache, part| write_fat(cache, &tree, 1, part))
    }

    #[test]
    fn files_are_read_as_they_were_written() {
        let Some((dir, file)) = fat(5000).unwrap() else {
            return;
        };
        let read = |path: &str, most| read_fat(&file, BEGIN, path, most).unwrap();
        assert_eq!(read("/Image", 5000).unwrap(), [7; 5000]);
        assert_eq!(read("system.dtb", 9).unwrap(), b"");
        for path in ["/extlinux/extlinux.conf", "EXTLINUX/EXTLIN~1.CON"] {
            assert_eq!(read(path, 9).unwrap(), b"default", "{path}");
        }
        for path in ["Image/x", "BOOT", "imag", "I*"] {
            assert_eq!(read(path, 9000), None, "{path}");
        }
        assert_eq!(read("Image", 4999), None);
        assert_eq!(read_fat(&file, 0, "Image", 5000).unwrap(), None);
        // Times are in steps of two seconds.
        std::thread::sleep(std::time::Duration::from_millis(2100));
        let (again, _file) = fat(5000).unwrap().unwrap();
        let image = |dir: &TempDir| fs::read(dir.path().join("image")).unwrap();
        assert!(image(&dir) == image(&again));
    }

    #[test]
    fn dosfstools_find_no_fault() {
        let Some((dir, _file)) = fat(5000).unwrap() else {
            return;
        };
        let part = dir.path().join("part");
        let bytes = fs::read(dir.path().join("image")).unwrap();
        fs::write(&part, &bytes[BEGIN as usize..]).unwrap();
        let fsck = Command::new("/usr/sbin/fsck.fat")
            .arg("-n")
            .arg(&part)
            .output();
        // Where there is none, the boards are the judges.
        let Ok(fsck) = fsck else { return };
        let said = String::from_utf8_lossy(&fsck.stdout);
        assert!(fsck.status.success(), "{said}");
    }

    #[test]
    fn files_that_do_not_fit_are_an_error() {
        match fat(LENGTH as usize) {
            Err(error) => assert_eq!(error.to_string(), "mcopy: Disk full"),
            Ok(made) => assert!(made.is_none()),
        }
    }

    #[test]
    fn an_absent_program_is_told() {
        let error = run("mcopy", "mtools", &mut Command::new("/no/mcopy")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`mcopy` is not here, which partitions of cards need (apt install mtools)"
        );
    }

    #[test]
    fn files_of_the_root_are_of_root() {
        let mut tree = Tree::default();
        tree.text("etc/passwd", 0o640, "root");
        tree.link("usr/bin", "../bin");
        let Some((dir, _file)) =
            made("e2fsprogs", |cache, part| write_ext4(cache, &tree, part)).unwrap()
        else {
            return;
        };
        let image = format!("{}?offset={BEGIN}", dir.path().join("image").display());
        let asked = Command::new("/usr/sbin/debugfs")
            .args(["-R", "stat etc/passwd", &image])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&asked.stdout).into_owned();
        assert!(said.contains("Mode:  0640"), "{said}");
        assert!(said.contains("User:     0   Group:     0"), "{said}");
    }
}
