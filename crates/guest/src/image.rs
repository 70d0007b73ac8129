//! The initial file system of a guest: our program as its first process, what Debian packages bring, and files of the user's.

use std::fs::{self, File};
use std::io::{BufWriter, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use model::Board;

use crate::GuestError;
use crate::apt::Package;
use crate::cache::Cache;
use crate::elf::Program;
use crate::modules::Module;
use crate::packages::{self, Request};
use crate::tree::Tree;

/// Where programs run in the guest, and where the user's files are.
pub const WORK: &str = "/board";

/// Where the drivers are that the guest's first process loads, in the order of their names.
pub(crate) const MODULES: &str = "/modules";

/// The initial file system, complete.
#[derive(Debug)]
pub struct Image {
    /// The archive; the file has no name and is gone with its last user.
    pub file: File,
    /// Its size.
    pub bytes: u64,
}

/// What of packages no guest needs: it has no network that containers could be connected to.
const LEFT_OUT: [&str; 7] = [
    "usr/lib/cni",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/lintian",
    "usr/share/bash-completion",
    "usr/share/info",
];

/// Programs with the files without which they do not start: OpenSSH's server takes keys only, and podman's storage needs no module.
const CONFIGURATIONS: [(&str, &str, &str); 2] = [
    (
        "usr/sbin/sshd",
        "etc/ssh/sshd_config",
        "PasswordAuthentication no\nUsePAM no\nSubsystem sftp internal-sftp\n",
    ),
    (
        "usr/bin/podman",
        "etc/containers/storage.conf",
        "[storage]\ndriver = \"vfs\"\nrunroot = \"/run/containers\"\ngraphroot = \"/var/lib/containers\"\n",
    ),
];

/// Makes the initial file system of a board, with the drivers that its kernel loads: packages of the board are downloaded where they
/// are not in the cache, or anew if `again`.
///
/// # Errors
/// If a package is not to be had, a file cannot be read, or the disk is full.
pub fn make(
    cache: &Cache,
    board: &Board,
    (program, modules): (&Program, &[Module]),
    files: &[PathBuf],
    again: bool,
    tell: &dyn Fn(&str),
) -> Result<Image, GuestError> {
    let tree = tree(cache, board, program, files, again, tell)?;
    written(cache, with_modules(tree, modules))
}

/// The initial file system of a board whose root is elsewhere: our program, and the drivers that lead there.
///
/// # Errors
/// If the disk is full.
pub(crate) fn first(
    cache: &Cache,
    program: &Program,
    modules: &[Module],
) -> Result<Image, GuestError> {
    written(cache, with_modules(system(&program.loaded), modules))
}

fn with_modules(mut tree: Tree, modules: &[Module]) -> Tree {
    for (place, module) in modules.iter().enumerate() {
        let path = format!("{}/{place:03}-{}.ko", &MODULES[1..], module.name);
        tree.text(&path, 0o644, module.bytes.clone());
    }
    tree
}

/// The system of a board: our program, its packages and the user's files.
///
/// # Errors
/// If a package is not to be had, or a file cannot be read.
pub(crate) fn tree(
    cache: &Cache,
    board: &Board,
    program: &Program,
    files: &[PathBuf],
    again: bool,
    tell: &dyn Fn(&str),
) -> Result<Tree, GuestError> {
    let found = self::packages(cache, board, again, tell)?;
    let mut tree = system(&program.loaded);
    found
        .iter()
        .try_for_each(|package| add_package(&mut tree, cache, package))?;
    configure(&mut tree);
    for file in files {
        let name = file
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let about = fs::metadata(file).map_err(GuestError::file(file, "take it along"))?;
        match name {
            Some(name) if about.is_file() => {
                let mode = if about.permissions().mode() & 0o111 == 0 {
                    0o644
                } else {
                    0o755
                };
                let path = format!("{}/{name}", &WORK[1..]);
                if tree.has(&path) {
                    return Err(model::InputError::new(
                        file.display().to_string(),
                        "another file of this name is taken along",
                        "rename one of them",
                    )
                    .into());
                }
                tree.file(&path, mode, file);
            }
            _ => {
                return Err(model::InputError::new(
                    file.display().to_string(),
                    "it is no file",
                    "name the files in it",
                )
                .into());
            }
        }
    }
    Ok(tree)
}

/// The packages of a board, in the cache afterwards: downloaded where they are not there, or anew if `again`.
///
/// # Errors
/// If one of them is not to be had.
pub fn packages(
    cache: &Cache,
    board: &Board,
    again: bool,
    tell: &dyn Fn(&str),
) -> Result<Vec<Package>, GuestError> {
    let request = Request {
        release: &board.kernel.release,
        architecture: board.architecture,
        names: &board.packages,
    };
    packages::get(cache, &request, &|_| true, again, tell)
}

fn written(cache: &Cache, tree: Tree) -> Result<Image, GuestError> {
    let file = cache.nameless()?;
    let place = cache.dir().to_owned();
    let told = || GuestError::file(&place, "write the guest's initial file system");
    let out = tree.write(BufWriter::new(file)).map_err(told())?;
    let mut file = out
        .into_inner()
        .map_err(|error| told()(error.into_error()))?;
    let bytes = file.stream_position().map_err(told())?;
    Ok(Image { file, bytes })
}

fn add_package(tree: &mut Tree, cache: &Cache, package: &Package) -> Result<(), GuestError> {
    let dir = packages::unpacked(cache, package, &[])?;
    let skip = |path: &str| {
        let below = |left: &&str| {
            path.strip_prefix(*left)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        LEFT_OUT.iter().any(below) || path.ends_with("/gconv")
    };
    tree.add_package(&dir, &skip)
        .map_err(GuestError::file(&dir, "read the package"))
}

/// Does what is needed of the packages' scripts, which are not run.
fn configure(tree: &mut Tree) {
    if tree.has("usr/bin/busybox") && !tree.has("usr/bin/sh") {
        tree.link("usr/bin/sh", "busybox");
    }
    for (program, path, text) in CONFIGURATIONS {
        if tree.has(program) {
            tree.text(path, 0o644, text);
        }
    }
}

/// What every guest has.
fn system(program: &[u8]) -> Tree {
    let mut tree = Tree::default();
    for (path, mode) in [
        ("dev", 0o755),
        ("proc", 0o755),
        ("root", 0o700),
        ("run", 0o755),
        ("sys", 0o755),
        ("tmp", 0o1777),
        (&WORK[1..], 0o1777),
    ] {
        tree.directory(path, mode);
    }
    tree.merge_usr();
    // For what the kernel and our program say before devtmpfs is there.
    tree.device("dev/console", 0o600, 5, 1);
    tree.device("dev/null", 0o666, 1, 3);
    tree.text(
        "etc/passwd",
        0o644,
        "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/tmp:/bin/sh\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n",
    );
    tree.text("etc/group", 0o644, "root:x:0:\nann:x:1000:\n");
    // For rootless containers.
    for ids in ["etc/subuid", "etc/subgid"] {
        tree.text(ids, 0o644, "ann:100000:65536\n");
    }
    tree.text("usr/bin/timecell", 0o755, program);
    tree.link("init", "usr/bin/timecell");
    tree
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::digest;
    use model::Architecture;

    fn board() -> Board {
        let text = "schema = 1\ntitle = \"b\"\narchitecture = \"x86_64\"\nconsole = \"ttyS0\"\nchannel = \"ttyS1\"\n[kernel]\n\
            file = \"a\"\n[qemu]\nmachine = \"q35\"\n";
        Board::parse("b", text).unwrap()
    }

    #[test]
    fn the_same_inputs_give_the_same_image_which_has_no_name() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        let program = Program {
            architecture: Architecture::X86_64,
            loaded: b"program".to_vec(),
        };
        let with = dir.path().join("mine.toml");
        fs::write(&with, "a").unwrap();
        let modules = [Module {
            name: "ext4".to_owned(),
            bytes: b"module".to_vec(),
        }];
        let image = || {
            let mut image = make(
                &cache,
                &board(),
                (&program, &modules),
                std::slice::from_ref(&with),
                false,
                &|_| (),
            )
            .unwrap();
            image.file.rewind().unwrap();
            (image.bytes, digest(&image.file).unwrap())
        };
        assert_eq!(image(), image());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        let error = make(
            &cache,
            &board(),
            (&program, &[]),
            &[dir.path().to_owned()],
            false,
            &|_| (),
        )
        .unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("it is no file; name the files in it"),
            "{error}"
        );
    }
}
