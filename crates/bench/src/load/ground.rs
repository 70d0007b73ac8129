//! The surroundings of a run's loads: a directory on a disk, and a network with another end that never leaves this machine. Created once,
//! before the first trial; noted in the run's place first, so that it is removed after a `kill -9`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use host::install::install;

use super::guard;
use super::kind::Setting;
use super::kinds::by_kind;
use super::planned::{PlannedLoad, find};
use crate::place::LOAD_FILES;
use crate::{BenchError, Place};

/// Addresses of the pair, from the range that RFC 2544 keeps for benchmarks.
const OWN: &str = "198.18.77.1";
const PEER: &str = "198.18.77.2";
const LOOPBACK: &str = "127.0.0.1";

/// The loads' surroundings; removed on drop.
#[derive(Debug, Default)]
pub(crate) struct Ground {
    dir: Option<PathBuf>,
    /// The same, held open where somebody else could exchange it for a link.
    held: Option<File>,
    pair: Option<Pair>,
}

impl Ground {
    /// Makes it for these loads; `beside` is a directory on the disk that the run is written to. Returns it with remarks for the user.
    #[expect(
        clippy::disallowed_methods,
        reason = "the directory must be root's own"
    )]
    pub(crate) fn make(
        planned: &[&PlannedLoad],
        beside: &Path,
        place: &mut Place,
    ) -> Result<(Ground, Vec<String>), BenchError> {
        let loads = || planned.iter().copied();
        let mut ground = Ground::default();
        let mut remarks = Vec::new();
        if loads().any(PlannedLoad::uses_disk) {
            let dir = std::path::absolute(beside)
                .unwrap_or_else(|_| beside.to_owned())
                .join(LOAD_FILES);
            place.note_load_files(&dir)?;
            std::fs::create_dir(&dir)
                .map_err(crate::error::failed(&dir, "create the directory"))?;
            if host::writer::of(&dir).is_some() {
                ground.held =
                    Some(held(&dir).map_err(crate::error::failed(&dir, "open the directory"))?);
            }
            ground.dir = Some(dir);
        }
        if loads().any(|load| by_kind(load.plan.kind).needs_network()) {
            match Pair::make(place)? {
                Ok(pair) => ground.pair = Some(pair),
                Err(why) => remarks.push(format!("network loads use loopback: {why}")),
            }
        }
        for load in loads().filter(|load| !load.built_in) {
            if let Some(dir) = ground.way()
                && let Some(words) = by_kind(load.plan.kind).prepare(&dir)
                && let Err(why) = run(&words, Some(&dir))
            {
                return Err(BenchError::Failed(format!(
                    "cannot prepare the load {}: {why}",
                    load.plan.name
                )));
            }
        }
        Ok((ground, remarks))
    }

    /// The way to the directory, for as long as this process lives.
    fn way(&self) -> Option<PathBuf> {
        match &self.held {
            Some(held) => {
                let (pid, fd) = (std::process::id(), held.as_raw_fd());
                Some(format!("/proc/{pid}/fd/{fd}").into())
            }
            None => self.dir.clone(),
        }
    }

    /// The settings of a load.
    pub(crate) fn setting(&self, planned: &PlannedLoad) -> Setting {
        let network = by_kind(planned.plan.kind).needs_network();
        let pair = self.pair.as_ref().filter(|_| network);
        Setting {
            cpus: planned.cpus.clone(),
            dir: (self.way())
                .filter(|_| planned.uses_disk())
                .map(|dir| dir.display().to_string()),
            peer: network.then(|| pair.map_or(LOOPBACK, |_| PEER).to_owned()),
            own: network.then(|| pair.map_or(LOOPBACK, |_| OWN).to_owned()),
            network: pair.map(|pair| format!("/run/netns/{}", pair.name)),
        }
    }
}

/// Opens a directory that was just made, which must still be ours.
#[expect(
    clippy::disallowed_methods,
    reason = "opened as what it is, without access"
)]
fn held(dir: &Path) -> io::Result<File> {
    let held = File::options()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(dir)?;
    if held.metadata()?.uid() == crate::place::uid() {
        Ok(held)
    } else {
        Err(io::Error::other("it has been replaced by another one"))
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Some(dir) = &self.dir {
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

/// A veth pair with its far end in a network namespace.
#[derive(Debug)]
struct Pair {
    name: String,
}

impl Pair {
    /// `Ok(Err(why))` where there can be none.
    fn make(place: &mut Place) -> Result<Result<Pair, String>, BenchError> {
        if crate::place::uid() != 0 {
            return Ok(Err("a veth pair needs root".to_owned()));
        }
        if find("ip").is_none() {
            return Ok(Err(format!(
                "`ip` is not installed ({})",
                install("iproute2")
            )));
        }
        let name = format!("timecell-{}", std::process::id());
        place.note_network(&name)?;
        let pair = Pair { name };
        Ok(pair.connect().map(|()| pair))
    }

    fn connect(&self) -> Result<(), String> {
        let name = &self.name;
        let near = near_end(name);
        for line in [
            format!("netns add {name}"),
            format!("link add {near} type veth peer name peer netns {name}"),
            format!("address add {OWN}/30 dev {near}"),
            format!("link set {near} up"),
            format!("-n {name} address add {PEER}/30 dev peer"),
            format!("-n {name} link set peer up"),
            format!("-n {name} link set lo up"),
        ] {
            ip(&line)?;
        }
        // Packet by packet, as a network card has it: a veth pair would hand over 64 kB at once. An old `ip` does not
        // know how, and its network is only a lighter load.
        let _ = ip(&format!("link set dev {near} gso_max_segs 1"));
        let _ = ip(&format!("-n {name} link set dev peer gso_max_segs 1"));
        Ok(())
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = remove_network(&self.name);
    }
}

/// A device name has 15 characters at most.
fn near_end(name: &str) -> String {
    format!("tc{}", name.trim_start_matches("timecell-"))
}

/// Removes the network namespace of a run and with it both ends of the pair; fine if there is none.
pub(crate) fn remove_network(name: &str) -> Result<(), String> {
    if !name.starts_with("timecell-") || name.contains('/') {
        return Err(format!("`{name}` is not a network of timecell"));
    }
    let near = near_end(name);
    if Path::new("/sys/class/net").join(&near).exists() {
        ip(&format!("link delete {near}"))?;
    }
    if Path::new("/run/netns").join(name).exists() {
        ip(&format!("netns delete {name}"))?;
    }
    Ok(())
}

fn ip(line: &str) -> Result<(), String> {
    let words: Vec<String> = ["ip"]
        .into_iter()
        .chain(line.split(' '))
        .map(str::to_owned)
        .collect();
    run(&words, None).map_err(|why| format!("ip {line}: {why}"))
}

/// Runs a program to its end; the error is its output.
fn run(words: &[String], dir: Option<&Path>) -> Result<(), String> {
    let path = find(&words[0]).ok_or_else(|| format!("`{}` is not installed", words[0]))?;
    let mut command = Command::new(path);
    command
        .args(&words[1..])
        .env("PATH", guard::PATH)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    if let Some(dir) = dir {
        command.current_dir(dir);
    }
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(if said.is_empty() {
        output.status.to_string()
    } else {
        said
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_networks_are_removed() {
        assert!(remove_network("mynet").is_err());
        assert!(remove_network("timecell-../x").is_err());
        assert_eq!(remove_network("timecell-0"), Ok(()));
        assert!(near_end("timecell-4194304").len() <= 15);
    }
}
