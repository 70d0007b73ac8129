//! Debian packages in the cache: found by what was asked for, kept under their digests, unpacked once.

use std::fs::{self, File, Permissions};
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use host::file;
use model::Architecture;

use crate::GuestError;
use crate::apt::{self, Apt, Package};
use crate::cache::{self, Cache, Filling};

/// Packages of a release that are asked for together.
#[derive(Debug)]
pub struct Request<'r> {
    /// Debian's release, such as `bookworm`.
    pub release: &'r str,
    /// For which processor.
    pub architecture: Architecture,
    /// Their names.
    pub names: &'r [String],
}

impl Request<'_> {
    /// The name under which the answer is kept.
    fn key(&self) -> String {
        let mut names = self.names.to_vec();
        names.sort();
        let text = names.join("\n");
        let digest = cache::digest(text.as_bytes()).unwrap_or_default();
        let digest = &digest[..digest.len().min(12)];
        format!(
            "{}-{}-{digest}.json",
            self.release,
            self.architecture.debian()
        )
    }
}

/// The packages that are needed for a request and pass `wanted`, all in the cache afterwards: as found when it was asked for the
/// first time, without a network, or now if `again`. `tell` is told before something is downloaded.
///
/// # Errors
/// If something is not in the cache and cannot be downloaded.
pub fn get(
    cache: &Cache,
    request: &Request<'_>,
    wanted: &dyn Fn(&Package) -> bool,
    again: bool,
    tell: &dyn Fn(&str),
) -> Result<Vec<Package>, GuestError> {
    if request.names.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(known) = known(cache, request).filter(|_| !again) {
        let known: Vec<Package> = known.into_iter().filter(wanted).collect();
        if known
            .iter()
            .all(|package| cache.found("files", &package.sha256).is_some())
        {
            return Ok(known);
        }
    }
    let filling = cache.fill()?;
    cache.room(request.names.len())?;
    tell(&format!(
        "downloads Debian's {} for {}",
        request.names.join(", "),
        request.architecture.name()
    ));
    let place = format!("{}-{}", request.release, request.architecture.debian());
    let apt = Apt::update(
        &cache.path("apt", &place),
        request.release,
        request.architecture,
    )?;
    let all = apt.resolve(request.names)?;
    let packages: Vec<Package> = all
        .iter()
        .filter(|package| wanted(package))
        .cloned()
        .collect();
    download(cache, &filling, &apt, &packages)?;
    remember(&filling, request, &all)?;
    Ok(packages)
}

fn known(cache: &Cache, request: &Request<'_>) -> Option<Vec<Package>> {
    let text = file::read(cache.path("requests", &request.key())).ok()?;
    serde_json::from_slice(&text).ok()
}

fn remember(
    filling: &Filling<'_>,
    request: &Request<'_>,
    packages: &[Package],
) -> Result<(), GuestError> {
    let dir = filling.unfinished()?;
    let path = dir.path().join("request");
    let text = serde_json::to_vec_pretty(packages).unwrap_or_default();
    fs::write(&path, text).map_err(GuestError::file(&path, "write it"))?;
    filling.keep(&path, "requests", &request.key()).map(drop)
}

fn download(
    cache: &Cache,
    filling: &Filling<'_>,
    apt: &Apt,
    packages: &[Package],
) -> Result<(), GuestError> {
    let missing = packages
        .iter()
        .filter(|package| cache.found("files", &package.sha256).is_none());
    let missing: Vec<Package> = missing.cloned().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let dir = filling.unfinished()?;
    apt.download(&missing, dir.path())?;
    for package in &missing {
        let path = file_of(dir.path(), &package.name)?;
        let told = GuestError::file(&path, "read what was downloaded");
        let digest = File::open(&path).and_then(|file| cache::digest(BufReader::new(file)));
        if digest.map_err(told)? != package.sha256 {
            return Err(GuestError::Program {
                program: "apt-get",
                said: format!(
                    "what was downloaded as {} is something else than its index says",
                    package.name
                ),
            });
        }
        filling.keep(&path, "files", &package.sha256)?;
    }
    Ok(())
}

/// The file of a package in a directory of downloads.
fn file_of(dir: &Path, name: &str) -> Result<PathBuf, GuestError> {
    let begins = format!("{name}_");
    let mut files = fs::read_dir(dir).map_err(GuestError::file(dir, "read the directory"))?;
    let found = files.find_map(|file| {
        let file = file.ok()?;
        file.file_name()
            .to_string_lossy()
            .starts_with(&begins)
            .then(|| file.path())
    });
    found.ok_or_else(|| GuestError::Program {
        program: "apt-get",
        said: format!("it has not downloaded {name}"),
    })
}

/// The directory of a package of the cache, unpacked: all of it, or the files that match these patterns of tar.
///
/// # Errors
/// If there is no dpkg, or it cannot unpack.
pub fn unpacked(cache: &Cache, package: &Package, only: &[String]) -> Result<PathBuf, GuestError> {
    let kind = if only.is_empty() { "unpacked" } else { "parts" };
    let mut name = package.sha256.clone();
    if !only.is_empty() {
        let digest = cache::digest(only.join("\n").as_bytes()).unwrap_or_default();
        name.push_str(&format!("-{}", &digest[..digest.len().min(12)]));
    }
    if let Some(path) = cache.found(kind, &name) {
        return Ok(path);
    }
    let filling = cache.fill()?;
    let dir = filling.unfinished()?;
    let file = cache.path("files", &package.sha256);
    match only {
        [] => drop(apt::output(
            "dpkg-deb",
            Command::new("dpkg-deb")
                .arg("-x")
                .arg(&file)
                .arg(dir.path()),
        )?),
        only => unpack_some(&file, dir.path(), only)?,
    }
    // Some programs change their user, which nobody else may have them do here.
    fs::set_permissions(dir.path(), Permissions::from_mode(0o700))
        .map_err(GuestError::file(dir.path(), "close it to others"))?;
    filling.keep(dir.path(), kind, &name)
}

fn unpack_some(file: &Path, into: &Path, only: &[String]) -> Result<(), GuestError> {
    let mut deb = Command::new("dpkg-deb");
    deb.arg("--fsys-tarfile")
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut deb = deb
        .spawn()
        .map_err(|error| apt::missing("dpkg-deb", error))?;
    let mut tar = Command::new("tar");
    tar.args(["-x", "--no-same-owner", "--wildcards", "-C"])
        .arg(into)
        .args(only)
        .env("LC_ALL", "C");
    if let Some(archive) = deb.stdout.take() {
        tar.stdin(archive);
    }
    let done = tar
        .stdout(Stdio::null())
        .output()
        .map_err(|error| apt::missing("tar", error));
    let packed = deb
        .wait()
        .map_err(|error| apt::missing("dpkg-deb", error))?;
    let done = done?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    // What a package does not have is looked for by whoever wants it.
    let failed = |line: &&str| {
        !line.contains("Not found in archive") && !line.contains("Exiting with failure")
    };
    match said.lines().find(failed) {
        Some(said) => Err(GuestError::Program {
            program: "tar",
            said: said.to_owned(),
        }),
        // Of a missing file it says so, with status 2. Killed, it says nothing.
        None if !packed.success() || !matches!(done.status.code(), Some(0 | 2)) => {
            Err(GuestError::Program {
                program: "tar",
                said: format!("{} ended early ({}, {packed})", file.display(), done.status),
            })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'r>(names: &'r [String], release: &'r str) -> Request<'r> {
        Request {
            release,
            architecture: Architecture::Aarch64,
            names,
        }
    }

    #[test]
    fn what_is_asked_for_in_another_order_is_the_same() {
        let [ab, ba] = [["a", "b"], ["b", "a"]].map(|names| names.map(str::to_owned));
        assert_eq!(request(&ab, "x").key(), request(&ba, "x").key());
        assert_ne!(request(&ab, "x").key(), request(&ab, "y").key());
    }

    #[test]
    fn what_is_known_and_there_needs_no_network() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        let names = ["a".to_owned()];
        let request = request(&names, "x");
        let package = |name: &str| Package {
            name: name.to_owned(),
            version: "1".to_owned(),
            sha256: format!("{name}{name}"),
        };
        let filling = cache.fill().unwrap();
        remember(&filling, &request, &[package("a"), package("b")]).unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        filling
            .keep(&dir.path().join("file"), "files", "aa")
            .unwrap();
        drop(filling);
        let only_a = |package: &Package| package.name == "a";
        let tell = |text: &str| panic!("{text}");
        assert_eq!(
            get(&cache, &request, &only_a, false, &tell).unwrap(),
            [package("a")]
        );
    }
}
