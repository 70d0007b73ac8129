//! Hosts with a real sshd, each in a network namespace of the test's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::SSHD;
use crate::support::{Said, eventually, say};

/// A host of this machine's: its own network, name and sshd, which end with it.
pub struct Host {
    sshd: Child,
    /// ssh with a configuration that knows it.
    pub ssh: String,
    pub target: String,
    pub there: PathBuf,
}

pub fn done(program: &str, words: &[&str]) {
    let said: Said = Command::new(program).args(words).output().unwrap().into();
    said.ends_with(0);
}

impl Host {
    /// Starts one that nobody else has, by its number.
    pub fn start(dir: &Path, number: u8) -> Host {
        Host::behind(None, dir, number)
    }

    /// Starts one that only this gateway is connected with, if there is one.
    pub fn behind(gateway: Option<&Host>, dir: &Path, number: u8) -> Host {
        let place = dir.join(format!("host{number}"));
        fs::create_dir(&place).unwrap();
        let path = |name: &str| place.join(name).display().to_string();
        for key in ["host", "user"] {
            done(
                "ssh-keygen",
                &["-q", "-t", "ed25519", "-N", "", "-f", &path(key)],
            );
        }
        // 198.18.0.0/15 is for tests of networks.
        let (here, there) = (format!("198.18.{number}.1"), format!("198.18.{number}.2"));
        let key = fs::read_to_string(path("host.pub")).unwrap();
        fs::write(path("known"), format!("[{there}]:2222 {key}")).unwrap();
        let daemon = [
            "Port 2222",
            &format!("HostKey {}", path("host")),
            &format!("AuthorizedKeysFile {}", path("user.pub")),
            "PidFile none\nStrictModes no\nPermitRootLogin yes\nUsePAM yes",
        ];
        fs::write(path("sshd.conf"), daemon.join("\n") + "\n").unwrap();
        let client = [
            &format!("IdentityFile {}", path("user")),
            &format!("UserKnownHostsFile {}", path("known")),
            "GlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes",
        ];
        fs::write(path("ssh.conf"), client.join("\n") + "\n").unwrap();
        let script = format!(
            "hostname board{number} && ip link set lo up && mkdir -p /run/sshd && \
             mount -t tmpfs shm /dev/shm && exec {SSHD} -D -e -f {}",
            path("sshd.conf")
        );
        let log = fs::File::create(path("log")).unwrap();
        let sshd = Command::new("unshare")
            .args(["--net", "--uts", "--mount", "sh", "-c", &script])
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let host = Host {
            ssh: format!("ssh -F {}", path("ssh.conf")),
            target: format!("ssh://root@{there}:2222"),
            there: place.join("there"),
            sshd,
        };
        eventually("it listens", || {
            fs::read_to_string(path("log")).is_ok_and(|log| log.contains("Server listening"))
        });
        let link = format!("tct{}h{number}", std::process::id() % 100_000);
        let (near, far) = (gateway.map_or(std::process::id(), Host::pid), host.pid());
        let ip = |pid: u32, words: &str| {
            let words = format!("-t {pid} -n ip {words}");
            done("nsenter", &words.split(' ').collect::<Vec<_>>());
        };
        ip(
            near,
            &format!("link add {link} type veth peer name eth0 netns {far}"),
        );
        for (pid, link, address) in [(near, &*link, here), (far, "eth0", there)] {
            ip(pid, &format!("addr add {address}/24 dev {link}"));
            ip(pid, &format!("link set {link} up"));
        }
        host
    }

    pub fn pid(&self) -> u32 {
        self.sshd.id()
    }

    pub fn address(&self) -> &str {
        let address = self.target.strip_prefix("ssh://root@").unwrap();
        address.strip_suffix(":2222").unwrap()
    }

    /// All that its sshd has said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.there.with_file_name("log")).unwrap()
    }

    /// The words by which this host does something.
    pub fn on<'w>(&'w self, words: &[&'w str]) -> Vec<&'w str> {
        let there = self.there.to_str().unwrap();
        let own = [
            "--on",
            &self.target,
            "--ssh",
            &self.ssh,
            "--remote-dir",
            there,
        ];
        let end = words
            .iter()
            .position(|word| *word == "--")
            .unwrap_or(words.len());
        [&words[..end], &own, &words[end..]].concat()
    }

    pub fn say(&self, dir: &Path, words: &[&str]) -> Said {
        say(dir, &self.on(words))
    }

    /// The orders that are kept there.
    pub fn orders(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.there.join("orders"))
            .into_iter()
            .flatten();
        all.map(|entry| entry.unwrap().path()).collect()
    }
}

/// ssh with one configuration that knows all of these hosts, the last one by way of the first if so asked.
pub fn knowing(dir: &Path, hosts: &[Host], by_the_first: bool) -> String {
    let all = hosts.iter().map(|host| {
        let place = host.there.parent().unwrap();
        let own = fs::read_to_string(place.join("ssh.conf")).unwrap();
        format!("Host {}\n{own}\n", host.address())
    });
    let mut all: String = all.collect();
    if by_the_first {
        let (first, last) = (&hosts[0].address(), hosts.last().unwrap().address());
        all += &format!("Host {last}\nProxyJump root@{first}:2222\n");
    }
    fs::write(dir.join("ssh.conf"), all).unwrap();
    format!("ssh -F {}", dir.join("ssh.conf").display())
}

impl Drop for Host {
    fn drop(&mut self) {
        // Its sessions end with their connections, and the network with all of them.
        self.sshd.kill().unwrap();
        self.sshd.wait().unwrap();
    }
}
