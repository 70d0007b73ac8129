//! The kernel of a guest, and the device tree of its board: from a Debian package, or files.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use model::{Board, InputError};

use crate::GuestError;
use crate::apt::Package;
use crate::bootable;
use crate::cache::{Cache, digest};
use crate::fdt;
use crate::given;
use crate::modules::{self, Module};
use crate::packages::{self, Request};

/// The files that a machine boots.
#[derive(Debug)]
pub struct Kernel {
    /// The kernel's image.
    pub image: PathBuf,
    /// The device tree, as the board's file changes it; the file has no name. `None`: the machine has its own.
    pub device_tree: Option<File>,
    /// The device tree as it was found, for a board that is there.
    pub plain_tree: Option<PathBuf>,
    /// The drivers that it is to load, in their order.
    pub modules: Vec<Module>,
    /// Name and version of the package, or the path of the file.
    pub from: String,
}

/// The kernel of a board, downloaded where it is not in the cache, or anew if `again`.
///
/// # Errors
/// If it is neither here nor to be had, is no kernel for the board's processor, or lacks the device tree.
pub fn get(
    cache: &Cache,
    board: &Board,
    again: bool,
    tell: &dyn Fn(&str),
) -> Result<Kernel, GuestError> {
    let mut kernel = match (&board.kernel.file, &board.kernel.package) {
        (Some(file), _) => from_file(cache, board, file),
        (None, Some(name)) => from_package(cache, board, name, again, tell),
        (None, None) => Err(GuestError::unmet(
            "the board has no kernel",
            "name a package or a file",
        )),
    }?;
    if board.kernel.unpacked {
        kernel.image = unpacked(cache, &kernel.image)?;
        bootable::check(&kernel.image, board.architecture)?;
    }
    Ok(kernel)
}

/// The kernel inside a bzImage, in the cache afterwards; an image that is unpacked is taken as it is.
fn unpacked(cache: &Cache, image: &Path) -> Result<PathBuf, GuestError> {
    let bytes = given::read(image, given::MOST)?;
    if bytes.starts_with(b"\x7fELF") {
        return Ok(image.to_owned());
    }
    let bad = |what: &str| InputError::new(image.display().to_string(), what, "");
    let payload = payload(&bytes).ok_or_else(|| bad("it is no bzImage of Linux"))?;
    let (program, words): (_, &[&str]) = match payload {
        // Behind the only stream is its length.
        [0xfd, b'7', b'z', ..] => ("xz", &["--decompress", "--stdout", "--single-stream"]),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ("zstd", &["--decompress", "--stdout", "--quiet"]),
        [0x1f, 0x8b, ..] => ("gzip", &["--decompress", "--stdout", "--quiet"]),
        _ => return Err(bad("it is packed by neither xz, zstd nor gzip").into()),
    };
    let told = |path| GuestError::file(path, "unpack the kernel");
    let key = digest(payload).map_err(told(image))?;
    if let Some(path) = cache.found("unpacked", &key) {
        return Ok(path);
    }
    let filling = cache.fill()?;
    let dir = filling.unfinished()?;
    let path = dir.path().join("vmlinux");
    let mut packed = cache.nameless()?;
    packed
        .write_all(payload)
        .and_then(|()| packed.rewind())
        .map_err(told(image))?;
    let out = File::create(&path).map_err(told(&path))?;
    let mut command = Command::new(program);
    let ran = command.args(words).stdin(packed).stdout(out).output();
    let ran = ran.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => GuestError::unmet(
            format!("`{program}` is not here, which unpacks the kernel"),
            format!("apt install {program}"),
        ),
        _ => told(image)(error),
    })?;
    // Of what follows the stream, zstd and gzip complain; that the kernel is whole is what counts. Behind each stream is its length.
    let length = payload
        .last_chunk()
        .map(|raw| u64::from(u32::from_le_bytes(*raw)));
    if Some(fs::metadata(&path).map_err(told(&path))?.len()) != length {
        return Err(GuestError::Program {
            program,
            said: String::from_utf8_lossy(&ran.stderr).trim().to_owned(),
        });
    }
    filling.keep(&path, "unpacked", &key)
}

/// The packed kernel in a bzImage (Documentation/arch/x86/boot.rst of Linux: protocol 2.08).
fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| {
        let raw = image.get(at..at + 4)?;
        Some(u32::from_le_bytes(raw.try_into().ok()?) as usize)
    };
    let sectors = match *image.get(0x1f1)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let version = u16::from_le_bytes(image.get(0x206..0x208)?.try_into().ok()?);
    if image.get(0x202..0x206)? != b"HdrS" || version < 0x208 {
        return None;
    }
    let begin = ((sectors + 1) * 512).checked_add(word(0x248)?)?;
    image.get(begin..begin.checked_add(word(0x24c)?)?)
}

fn from_file(cache: &Cache, board: &Board, file: &Path) -> Result<Kernel, GuestError> {
    bootable::check(file, board.architecture)?;
    let tree = board.kernel.device_tree.as_deref();
    Ok(Kernel {
        image: file.to_owned(),
        device_tree: tree.map(|tree| changed(cache, board, tree)).transpose()?,
        plain_tree: tree.map(Path::to_owned),
        modules: modules::of_files(&board.kernel.modules)?,
        from: file.display().to_string(),
    })
}

fn from_package(
    cache: &Cache,
    board: &Board,
    name: &str,
    again: bool,
    tell: &dyn Fn(&str),
) -> Result<Kernel, GuestError> {
    let names = [name.to_owned()];
    let request = Request {
        release: &board.kernel.release,
        architecture: board.architecture,
        names: &names,
    };
    // A package without a version in its name only depends on the one that has the kernel.
    let versioned = |name: &str| {
        name.strip_prefix("linux-image-")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let wanted = |package: &Package| versioned(&package.name);
    let found = packages::get(cache, &request, &wanted, again, tell)?;
    let package = found.first().ok_or_else(|| {
        GuestError::unmet(
            format!("Debian's package `{name}` brings no kernel"),
            "name one such as linux-image-rt-arm64",
        )
    })?;
    // A path with a slash in front is a file of this machine.
    let tree = board.kernel.device_tree.as_deref();
    let mut parts = vec!["./boot/vmlinuz-*".to_owned()];
    parts.extend(
        tree.filter(|tree| tree.is_relative())
            .map(|tree| format!("./usr/lib/linux-image-*/{}", tree.display())),
    );
    let dir = packages::unpacked(cache, package, &parts)?;
    let image = first_in(&dir.join("boot")).ok_or_else(|| GuestError::Program {
        program: "dpkg-deb",
        said: format!("{} has no kernel below boot", package.name),
    })?;
    let plain_tree = tree.map(|tree| tree_of(&dir, tree, package)).transpose()?;
    let device_tree = plain_tree
        .as_deref()
        .map(|tree| changed(cache, board, tree));
    Ok(Kernel {
        image,
        device_tree: device_tree.transpose()?,
        plain_tree,
        modules: modules::of_package(cache, package, &board.kernel.modules)?,
        from: format!("{} {}", package.name, package.version),
    })
}

fn tree_of(dir: &Path, tree: &Path, package: &Package) -> Result<PathBuf, GuestError> {
    let below = first_in(&dir.join("usr/lib")).map(|all| all.join(tree));
    let path = if tree.is_relative() {
        below
    } else {
        Some(tree.to_owned())
    };
    path.filter(|path| path.is_file()).ok_or_else(|| {
        let what = format!("{} has no device tree {}", package.name, tree.display());
        GuestError::unmet(what, "name another in the board's file")
    })
}

/// A device tree with the changes of the board's file.
fn changed(cache: &Cache, board: &Board, path: &Path) -> Result<File, GuestError> {
    let bytes = given::read(path, given::MOST_TREE)?;
    changed_bytes(cache, board, path, &bytes)
}

/// A device tree in memory with the changes of the board's file; `path` is its name in messages.
pub(crate) fn changed_bytes(
    cache: &Cache,
    board: &Board,
    path: &Path,
    bytes: &[u8],
) -> Result<File, GuestError> {
    let bad = |what: String| InputError::new(path.display().to_string(), what, "");
    let mut tree = fdt::Tree::parse(bytes).map_err(|what| bad(what.to_owned()))?;
    if !board.kernel.fixed_clocks.is_empty() {
        tree.fix_clocks(&board.kernel.fixed_clocks).map_err(bad)?;
    }
    let mut file = cache.nameless()?;
    file.write_all(&tree.write())
        .map_err(GuestError::file(path, "write its copy"))?;
    Ok(file)
}

/// The only entry of a directory.
fn first_in(dir: &Path) -> Option<PathBuf> {
    fs::read_dir(dir)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bzImage with this in it.
    fn image(payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 1024];
        bytes[0x1f1] = 1;
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x206..0x208].copy_from_slice(&0x20f_u16.to_le_bytes());
        bytes[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn a_packed_kernel_is_unpacked_once() {
        let dir = tempfile::tempdir().unwrap();
        let (plain, path) = (dir.path().join("plain"), dir.path().join("vmlinuz"));
        let cache = Cache::at(&dir.path().join("cache"));
        fs::write(&plain, b"\x7fELF and more").unwrap();
        assert_eq!(unpacked(&cache, &plain).unwrap(), plain);
        let packed = Command::new("gzip").arg("-c").arg(&plain).output().unwrap();
        fs::write(&path, image(&packed.stdout)).unwrap();
        let found = unpacked(&cache, &path).unwrap();
        assert_eq!(fs::read(&found).unwrap(), b"\x7fELF and more");
        fs::write(&found, "kept").unwrap();
        assert_eq!(fs::read(unpacked(&cache, &path).unwrap()).unwrap(), b"kept");
        for (bytes, why) in [
            (b"no kernel".to_vec(), "no bzImage"),
            (image(b"lz4?"), "packed by neither"),
            (image(&packed.stdout[..12]), "gzip: "),
        ] {
            fs::write(&path, bytes).unwrap();
            let error = unpacked(&cache, &path).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_file_is_taken_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("vmlinuz");
        let text = |file: &Path| {
            format!(
                "schema = 1\ntitle = \"b\"\narchitecture = \"x86_64\"\nconsole = \"ttyS0\"\nchannel = \"ttyS1\"\n[kernel]\nfile = {file:?}\n\
                 [qemu]\nmachine = \"q35\"\n"
            )
        };
        let board = Board::parse("b", &text(&image)).unwrap();
        let cache = Cache::at(dir.path());
        let error = get(&cache, &board, false, &|_| ()).unwrap_err().to_string();
        assert!(error.contains("vmlinuz: cannot read it"), "{error}");
        fs::write(&image, "no kernel").unwrap();
        let error = get(&cache, &board, false, &|_| ()).unwrap_err().to_string();
        assert!(error.contains("it is no kernel for x86_64"), "{error}");
        fs::write(&image, self::image(b"")).unwrap();
        assert_eq!(get(&cache, &board, false, &|_| ()).unwrap().image, image);
    }
}
