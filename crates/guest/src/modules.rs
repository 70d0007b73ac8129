//! Drivers that a kernel loads: found in its Debian package, with those that they need, in the order in which they are loaded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use host::file;

use crate::GuestError;
use crate::apt::{self, Package};
use crate::cache::{self, Cache};
use crate::elf;
use crate::packages;

/// A driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its name, with underscores.
    pub name: String,
    /// Its ELF file, not compressed.
    pub bytes: Vec<u8>,
}

/// A name as the kernel writes it: file names have hyphens where their authors liked them.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

/// The module's name in the path of its file, such as `./lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz`.
fn named(path: &str) -> Option<String> {
    let (_, file) = path.rsplit_once('/')?;
    let (name, _) = file.split_once(".ko")?;
    Some(plain(name))
}

/// The modules in these files, in this order.
///
/// # Errors
/// If one of them cannot be read, or is no module.
pub fn of_files(paths: &[String]) -> Result<Vec<Module>, GuestError> {
    let module = |path: &String| {
        let name = named(path).ok_or_else(|| {
            let what = format!("{path}: the name of a module's file ends in .ko");
            GuestError::unmet(what, "name such a file in `modules`")
        })?;
        let bytes = read(Path::new(path))?;
        Ok(Module { name, bytes })
    };
    paths.iter().map(module).collect()
}

/// Files of these modules in the cache, named in their order, for a machine that is made elsewhere from a kernel that is a file.
///
/// # Errors
/// Those of the disk.
pub fn as_files(cache: &Cache, modules: &[Module]) -> Result<Vec<PathBuf>, GuestError> {
    const KIND: &str = "modules";
    let file = |module: &Module| {
        let digest =
            cache::digest(&module.bytes[..]).map_err(GuestError::file(cache.dir(), "read it"))?;
        let name = format!("{digest}-{}.ko", module.name);
        if let Some(path) = cache.found(KIND, &name) {
            return Ok(path);
        }
        let filling = cache.fill()?;
        let unfinished = filling.unfinished()?;
        let path = unfinished.path().join(&name);
        fs::write(&path, &module.bytes).map_err(GuestError::file(&path, "write it"))?;
        filling.keep(&path, KIND, &name)
    };
    modules.iter().map(file).collect()
}

/// The modules of these names in a package of a kernel, each behind those that it needs. Those built into the kernel are left out.
///
/// # Errors
/// If the kernel has one of them neither as a module nor built in, or it cannot be unpacked.
pub fn of_package(
    cache: &Cache,
    package: &Package,
    names: &[String],
) -> Result<Vec<Module>, GuestError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let lacks = |name: &str| {
        let what = format!(
            "{} has no driver `{name}`, neither as a module nor built in",
            package.name
        );
        GuestError::unmet(what, "name another driver or kernel in the board's file")
    };
    // Names become parts of patterns.
    let is_name = |name: &&String| {
        name.chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    if let Some(name) = names.iter().find(|name| !is_name(name)) {
        return Err(lacks(name));
    }
    let mut wanted: Vec<String> = names.iter().map(|name| plain(name)).collect();
    // The package has no list of dependencies: those of a module are known once it is unpacked.
    loop {
        let dir = packages::unpacked(cache, package, &patterns(&wanted))?;
        let mut found = BTreeMap::new();
        let mut built_in = Vec::new();
        search(&dir, &mut found, &mut built_in).map_err(GuestError::file(&dir, "read it"))?;
        let mut ordered = Vec::new();
        let mut missing = None;
        let mut known = |name: &str| match found.get(name) {
            Some(path) => read(path).map(Some),
            None => {
                if !built_in.iter().any(|built| built == name) {
                    missing.get_or_insert_with(|| name.to_owned());
                }
                Ok(None)
            }
        };
        for name in &wanted {
            order(name, &mut known, &mut ordered)?;
        }
        match missing {
            None => return Ok(ordered.into_iter().flat_map(|(_, module)| module).collect()),
            Some(name) if wanted.contains(&name) => return Err(lacks(&name)),
            Some(_) => {
                let new = ordered.into_iter().map(|(name, _)| name);
                let new: Vec<String> = new.filter(|name| !wanted.contains(name)).collect();
                wanted.extend(new);
            }
        }
    }
}

/// Patterns of tar for the files of these modules, and for the list of those built in.
fn patterns(names: &[String]) -> Vec<String> {
    let file = |name: &String| format!("*/lib/modules/*/{}.ko*", name.replace('_', "[-_]"));
    let mut all: Vec<String> = names.iter().map(file).collect();
    all.push("*/lib/modules/*/modules.builtin".to_owned());
    all
}

/// The paths of modules below a directory by their names, and the names of those that are built in.
fn search(
    dir: &Path,
    found: &mut BTreeMap<String, PathBuf>,
    built_in: &mut Vec<String>,
) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            search(&path, found, built_in)?;
        } else if path.ends_with("modules.builtin") {
            built_in.extend(file::text(&path)?.lines().filter_map(named));
        } else if let Some(name) = named(&path.to_string_lossy()) {
            found.insert(name, path);
        }
    }
    Ok(())
}

/// Names in their order, with the modules of those that are there.
type Ordered = Vec<(String, Option<Module>)>;

/// Adds a module behind those that it needs.
fn order(
    name: &str,
    known: &mut impl FnMut(&str) -> Result<Option<Vec<u8>>, GuestError>,
    ordered: &mut Ordered,
) -> Result<(), GuestError> {
    if ordered.iter().any(|(other, _)| other == name) {
        return Ok(());
    }
    let bytes = known(name)?;
    for needed in bytes.iter().flat_map(|bytes| elf::module_needs(bytes)) {
        order(&plain(&needed), known, ordered)?;
    }
    let module = bytes.map(|bytes| Module {
        name: name.to_owned(),
        bytes,
    });
    ordered.push((name.to_owned(), module));
    Ok(())
}

/// The ELF file of a module, which newer releases compress.
fn read(path: &Path) -> Result<Vec<u8>, GuestError> {
    let program = match path.extension().and_then(|end| end.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return file::read(path).map_err(GuestError::file(path, "read the module")),
    };
    let mut command = Command::new(program);
    command
        .args(["--decompress", "--stdout"])
        .arg(path)
        .stdin(Stdio::null());
    let done = command
        .output()
        .map_err(|error| apt::missing(program, error))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        return Err(GuestError::Program { program, said });
    }
    Ok(done.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module that needs others, as an ELF file with two sections: names, and `.modinfo`.
    fn module(needs: &str) -> Vec<u8> {
        let info = format!("license=GPL\0depends={needs}\0");
        let mut bytes = vec![0; 64 + 2 * 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[40] = 64;
        bytes[60] = 2;
        let mut section = |place: usize, name: u8, content: &[u8]| {
            let at = 64 + 64 * place;
            bytes[at] = name;
            let begin = bytes.len() as u64;
            bytes[at + 24..at + 32].copy_from_slice(&begin.to_le_bytes());
            bytes[at + 32..at + 40].copy_from_slice(&(content.len() as u64).to_le_bytes());
            bytes.extend_from_slice(content);
        };
        section(0, 0, b"\0.modinfo\0");
        section(1, 1, info.as_bytes());
        bytes
    }

    /// A package of a kernel in the cache, made by dpkg-deb.
    fn packaged(dir: &Path, cache: &Cache) -> Package {
        let tree = dir.join("tree");
        let below = tree.join("lib/modules/6.1.0/kernel/fs");
        fs::create_dir_all(&below).unwrap();
        fs::create_dir_all(tree.join("DEBIAN")).unwrap();
        let control = "Package: linux-image-6.1.0\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: a\n";
        fs::write(tree.join("DEBIAN/control"), control).unwrap();
        fs::write(below.join("ext4.ko"), module("jbd2,crc-16")).unwrap();
        fs::write(below.join("jbd2.ko"), module("crc-16,core")).unwrap();
        fs::write(below.join("crc-16.ko"), module("")).unwrap();
        let xz = Command::new("xz").arg(below.join("crc-16.ko")).status();
        assert!(xz.unwrap().success());
        fs::write(below.join("odd.ko"), module("gone")).unwrap();
        let built = below.join("../../modules.builtin");
        fs::write(built, "kernel/drivers/core.ko\n").unwrap();
        let file = dir.join("file");
        let made = Command::new("dpkg-deb")
            .arg("-b")
            .arg(&tree)
            .arg(&file)
            .output();
        assert!(made.unwrap().status.success());
        let filling = cache.fill().unwrap();
        filling.keep(&file, "files", "5a").unwrap();
        Package {
            name: "linux-image-6.1.0".to_owned(),
            version: "1".to_owned(),
            sha256: "5a".to_owned(),
        }
    }

    #[test]
    fn modules_are_files_again_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(&dir.path().join("cache"));
        let module = |name: &str| Module {
            name: name.to_owned(),
            bytes: name.as_bytes().to_vec(),
        };
        let modules = [module("virtio_ring"), module("ext4")];
        let files = as_files(&cache, &modules).unwrap();
        assert_eq!(as_files(&cache, &modules).unwrap(), files);
        let paths: Vec<String> = files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        let read: Vec<Vec<u8>> = (of_files(&paths).unwrap().into_iter())
            .map(|module| module.bytes)
            .collect();
        assert_eq!(read, [b"virtio_ring".to_vec(), b"ext4".to_vec()]);
        let said = of_files(&["./ext4".to_owned()]).unwrap_err().to_string();
        assert!(
            said.contains("./ext4: the name of a module's file ends in .ko"),
            "{said}"
        );
        let said = of_files(&["./none.ko".to_owned()]).unwrap_err().to_string();
        assert!(said.contains("none.ko: cannot read the module"), "{said}");
    }

    #[test]
    fn modules_come_behind_those_that_they_need() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(&dir.path().join("cache"));
        let package = packaged(dir.path(), &cache);
        let get = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            of_package(&cache, &package, &names)
        };
        let found = get(&["core", "ext4", "jbd2"]).unwrap();
        let names: Vec<&str> = found.iter().map(|module| &*module.name).collect();
        assert_eq!(names, ["crc_16", "jbd2", "ext4"]);
        // The compressed one is not compressed any more.
        assert_eq!(found[0].bytes, module(""));
        for (name, missing) in [("odd", "gone"), ("sdhci", "sdhci"), ("*", "*")] {
            let error = get(&["ext4", name]).unwrap_err().to_string();
            let said = format!(
                "linux-image-6.1.0 has no driver `{missing}`, neither as a module nor built in ("
            );
            assert!(error.starts_with(&said), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_no_module_needs_none() {
        let whole = module("a,b");
        assert_eq!(elf::module_needs(&whole), ["a", "b"]);
        for length in 0..whole.len() {
            elf::module_needs(&whole[..length]);
        }
        assert!(elf::module_needs(&[0xff; 300]).is_empty());
    }
}
