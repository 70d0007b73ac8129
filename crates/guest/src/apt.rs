//! Debian's packages by apt, with lists of our own below the cache: nothing on the machine is changed, and no root is needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use model::Architecture;

use crate::GuestError;

/// A package of a release, as apt's index describes it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The SHA-256 of its file.
    pub sha256: String,
}

/// A release for an architecture, with its lists.
#[derive(Debug)]
pub struct Apt {
    dir: PathBuf,
    release: String,
    architecture: Architecture,
}

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

impl Apt {
    /// The lists of a release in this directory, fetched now.
    ///
    /// # Errors
    /// If there is no apt, or the lists cannot be fetched or written.
    pub fn update(
        dir: &Path,
        release: &str,
        architecture: Architecture,
    ) -> Result<Apt, GuestError> {
        let apt = Apt {
            dir: dir.to_owned(),
            release: release.to_owned(),
            architecture,
        };
        for below in ["lists/partial", "archives/partial"] {
            let path = dir.join(below);
            fs::create_dir_all(&path).map_err(GuestError::file(&path, "make the directory"))?;
        }
        let list = dir.join("sources.list");
        fs::write(&list, sources(release)).map_err(GuestError::file(&list, "write it"))?;
        let updated = apt.run(
            "apt-get",
            dir,
            &["-o", "APT::Update::Error-Mode=any", "update"],
        );
        updated.map_err(|error| match error {
            GuestError::Program { said, .. } => GuestError::unmet(
                format!("Debian's list of packages cannot be fetched: {said}"),
                "once with a network, the rest is kept; or name a kernel file in the board's file",
            ),
            error => error,
        })?;
        Ok(apt)
    }

    /// The packages that these need, themselves among them, sorted by name.
    ///
    /// # Errors
    /// If the release does not have one of them.
    pub fn resolve(&self, names: &[String]) -> Result<Vec<Package>, GuestError> {
        let mut words = vec![
            "--print-uris",
            "-y",
            "--no-install-recommends",
            "install",
            "--",
        ];
        words.extend(names.iter().map(String::as_str));
        let printed = self
            .run("apt-get", &self.dir, &words)
            .map_err(|error| self.unknown(error))?;
        let chosen: Vec<String> = printed.lines().filter_map(chosen).collect();
        let mut words = vec!["show", "--"];
        words.extend(chosen.iter().map(String::as_str));
        let shown = self.run("apt-cache", &self.dir, &words)?;
        let mut packages: Vec<Package> = shown.split("\n\n").filter_map(described).collect();
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        packages.dedup();
        if packages.len() != chosen.len() {
            let said = "its answers about packages are not understood".to_owned();
            return Err(GuestError::Program {
                program: "apt-cache",
                said,
            });
        }
        Ok(packages)
    }

    /// Downloads packages to a directory, where each file has the package's name before the first `_`.
    ///
    /// # Errors
    /// If one of them cannot be downloaded.
    pub fn download(&self, packages: &[Package], into: &Path) -> Result<(), GuestError> {
        let named = packages
            .iter()
            .map(|package| format!("{}={}", package.name, package.version));
        let named: Vec<String> = named.collect();
        let mut words = vec!["download", "--"];
        words.extend(named.iter().map(String::as_str));
        self.run("apt-get", into, &words).map(drop)
    }

    /// Says which package there is not.
    fn unknown(&self, error: GuestError) -> GuestError {
        match error {
            GuestError::Program { said, .. } if said.contains("Unable to locate package") => {
                let name = said.rsplit(' ').next().unwrap_or_default();
                let (release, architecture) = (&self.release, self.architecture.debian());
                GuestError::unmet(
                    format!("Debian {release} has no package `{name}` for {architecture}"),
                    "name another package or release in the board's file",
                )
            }
            error => error,
        }
    }

    /// Runs a program of apt; returns what it printed.
    fn run(
        &self,
        program: &'static str,
        here: &Path,
        words: &[&str],
    ) -> Result<String, GuestError> {
        let (dir, architecture) = (self.dir.display(), self.architecture.debian());
        let options = [
            format!("APT::Architecture={architecture}"),
            format!("APT::Architectures={architecture}"),
            "APT::Sandbox::User=".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
            format!("APT::Default-Release={}", self.release),
            format!("Dir::Etc::SourceList={dir}/sources.list"),
            "Dir::Etc::SourceParts=/dev/null".to_owned(),
            "Dir::Etc::Preferences=/dev/null".to_owned(),
            "Dir::Etc::PreferencesParts=/dev/null".to_owned(),
            format!("Dir::State={dir}"),
            format!("Dir::State::Lists={dir}/lists"),
            "Dir::State::Status=/dev/null".to_owned(),
            format!("Dir::Cache={dir}"),
            format!("Dir::Cache::Archives={dir}/archives"),
            "Dir::Cache::pkgcache=".to_owned(),
            "Dir::Cache::srcpkgcache=".to_owned(),
            "Debug::NoLocking=1".to_owned(),
        ];
        let options = options.iter().flat_map(|option| ["-o", option]);
        let mut command = Command::new(program);
        command
            .arg("-qq")
            .args(options)
            .args(words)
            .current_dir(here);
        output(program, &mut command)
    }
}

/// The sources of a release; of backports also the release itself.
fn sources(release: &str) -> String {
    let signed = match Path::new(KEYRING).exists() {
        true => format!("[signed-by={KEYRING}] "),
        false => String::new(),
    };
    let line = |release: &str| format!("deb {signed}http://deb.debian.org/debian {release} main\n");
    match release.strip_suffix("-backports") {
        Some(base) => line(release) + &line(base),
        None => line(release),
    }
}

/// Name and version of a package in a line of `--print-uris`: `'URI' NAME_VERSION_ARCHITECTURE.deb SIZE SUM`.
fn chosen(line: &str) -> Option<String> {
    let file = line.strip_prefix('\'')?.split(' ').nth(1)?;
    let mut parts = file.strip_suffix(".deb")?.split('_');
    let (name, version) = (parts.next()?, parts.next()?);
    Some(format!("{name}={}", version.replace("%3a", ":")))
}

/// The package that a paragraph of `apt-cache show` describes.
fn described(paragraph: &str) -> Option<Package> {
    let field = |name: &str| {
        let value = paragraph
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.map(|value| value.trim().to_owned())
    };
    Some(Package {
        name: field("Package")?,
        version: field("Version")?,
        sha256: field("SHA256")?,
    })
}

/// Runs a program to its end; returns what it printed, or the last line of what it complained about.
pub(crate) fn output(program: &'static str, command: &mut Command) -> Result<String, GuestError> {
    let done = command.env("LC_ALL", "C").stdin(Stdio::null()).output();
    let done = done.map_err(|error| missing(program, error))?;
    if !done.status.success() {
        let said = last_complaint(&String::from_utf8_lossy(&done.stderr));
        return Err(GuestError::Program { program, said });
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The error of a program that cannot be started.
pub(crate) fn missing(program: &'static str, error: std::io::Error) -> GuestError {
    match error.kind() {
        std::io::ErrorKind::NotFound => GuestError::unmet(
            format!("`{program}` is not here, which Debian's packages need"),
            "on Debian and Ubuntu it is there; elsewhere name a kernel file in the board's file, and no packages",
        ),
        _ => GuestError::Program {
            program,
            said: error.to_string(),
        },
    }
}

/// The last line that is an error, else the last line.
fn last_complaint(said: &str) -> String {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut errors =
        lines().filter_map(|line| line.strip_prefix("E: ").or(line.strip_prefix("W: ")));
    let error = errors.rfind(|line| !line.starts_with("Some index files failed"));
    error
        .or(lines().next_back())
        .unwrap_or("it failed and said nothing")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_found_in_what_apt_prints() {
        let line = "'http://deb.debian.org/x%2b.deb' busybox-static_1%3a1.35.0-4+deb12u1+b1_arm64.deb 822236 MD5Sum:49";
        assert_eq!(
            chosen(line).unwrap(),
            "busybox-static=1:1.35.0-4+deb12u1+b1"
        );
        assert_eq!(chosen("Reading package lists..."), None);
        let paragraph = "Package: crun\nVersion: 1.8\nDescription: a\n Package: b\nSHA256: ab\n";
        let package = described(paragraph).unwrap();
        assert_eq!(
            (
                package.name.as_str(),
                package.version.as_str(),
                package.sha256.as_str()
            ),
            ("crun", "1.8", "ab")
        );
        assert_eq!(described("Package: crun\n"), None);
    }

    #[test]
    fn backports_come_with_their_release() {
        assert_eq!(sources("bookworm").lines().count(), 1);
        assert_eq!(sources("bookworm-backports").lines().count(), 2);
    }

    #[test]
    fn the_complaint_that_matters_is_told() {
        let said = "W: a\nE: Failed to fetch http://x  Temporary failure\nE: Some index files failed to download.\n";
        assert_eq!(
            last_complaint(said),
            "Failed to fetch http://x  Temporary failure"
        );
        assert_eq!(last_complaint("tar: full\n\n"), "tar: full");
    }
}
