//! `--on`: hosts with a real sshd, each in a network namespace of the test's own, reached by the real ssh; and a shell on a terminal in
//! place of a board's console.

use std::fs;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::missions::name;
use crate::support::{Said, begun, binary, end_of, eventually, only_run, say};

const SSHD: &str = "/usr/sbin/sshd";

/// A host of this machine's: its own network, name and sshd, which end with it.
struct Host {
    sshd: Child,
    /// ssh with a configuration that knows it.
    ssh: String,
    target: String,
    there: PathBuf,
}

fn done(program: &str, words: &[&str]) {
    let said: Said = Command::new(program).args(words).output().unwrap().into();
    said.ends_with(0);
}

impl Host {
    /// Starts one that nobody else has, by its number.
    fn start(dir: &Path, number: u8) -> Host {
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
        let pid = host.sshd.id().to_string();
        let link = format!("tct{}h{number}", std::process::id() % 100_000);
        let ip = |words: &str| done("ip", &words.split(' ').collect::<Vec<_>>());
        ip(&format!(
            "link add {link} type veth peer name eth0 netns {pid}"
        ));
        ip(&format!("addr add {here}/24 dev {link}"));
        ip(&format!("link set {link} up"));
        let inside = format!("-t {pid} -n ip addr add {there}/24 dev eth0");
        done("nsenter", &inside.split(' ').collect::<Vec<_>>());
        done(
            "nsenter",
            &["-t", &pid, "-n", "ip", "link", "set", "eth0", "up"],
        );
        host
    }

    /// The words by which this host does something.
    fn on<'w>(&'w self, words: &[&'w str]) -> Vec<&'w str> {
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

    fn say(&self, dir: &Path, words: &[&str]) -> Said {
        say(dir, &self.on(words))
    }

    /// The orders that are kept there.
    fn orders(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.there.join("orders"))
            .into_iter()
            .flatten();
        all.map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Its sessions end with their connections, and the network with all of them.
        self.sshd.kill().unwrap();
        self.sshd.wait().unwrap();
    }
}

/// The ssh that this timecell has started, if it has.
fn ssh_of(pid: u32) -> Option<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut children = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    children.find_map(|text| text.split_whitespace().next()?.parse().ok())
}

/// Cuts the link of this timecell, whenever it has one.
fn cut(pid: u32) -> bool {
    // SAFETY: kills a child of a child of ours, which is not reaped before it has noticed.
    ssh_of(pid).is_some_and(|ssh| unsafe { libc::kill(ssh, libc::SIGKILL) } == 0)
}

/// Jobs of each trial.
const JOBS: usize = 500;

fn small(dir: &Path, rounds: u32) {
    let text = format!(
        "schema = 1\nname = \"small\"\nrounds = {rounds}\n[workload]\nkind = \"mac\"\nsteps = 1000\njobs = {JOBS}\nperiod = \"1ms\"\n\
         [[trial]]\ncells = [\"bare\"]\n"
    );
    fs::write(dir.join("small.toml"), text).unwrap();
}

/// Jobs on record in a run, and those that its machine was too late for.
fn jobs(dir: &Path, run: &Path) -> usize {
    let run = run.to_str().unwrap();
    let rows = say(dir, &["export", run, "--csv", "-o", "-"]).ends_with(0);
    let summary = say(dir, &["report", run, "--json"]).ends_with(0).out;
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let cell = &summary["cells"][0];
    assert_eq!(cell["lost"], 0);
    rows.out.lines().count() - 1 + cell["skipped"].as_u64().unwrap() as usize
}

/// Sets the number of cuts, as campaigns do.
const CUTS: &str = "TIMECELL_REMOTE_CUTS";

// It adds networks, and measures.
#[case(Alone, Root, RealTime, File(SSHD), Program("ip"), Program("unshare"))]
fn a_run_by_ssh_goes_on_after_each_cut_of_its_link(dir: &Path) {
    let asked = std::env::var(CUTS).ok();
    let asked: u32 = asked.map_or(3, |text| text.parse().expect(CUTS));
    let rounds = 8 + 5 * asked;
    let host = Host::start(dir, 1);
    small(dir, rounds);
    let measures = begun(dir, &host.on(&["bench", "small.toml", "--out", "here"]));
    let notes = || fs::read_to_string(dir.join("begun.err")).unwrap();
    eventually("it measures", || notes().contains("trial 1 of"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut random = now.subsec_nanos();
    let mut cuts = 0;
    while cuts < asked && !notes().contains("run     here") {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        std::thread::sleep(Duration::from_millis(u64::from(random >> 16) % 2_500));
        cuts += u32::from(cut(measures.id()));
    }
    let status = end_of(measures).expect("it ends");
    let notes = notes();
    assert_eq!(status.code(), Some(0), "{notes}");
    let lost = notes.matches("the link was lost").count();
    println!("{cuts} cuts, {lost} times told");
    // A cut after the last word is told to nobody.
    assert!(cuts == asked && lost + 1 >= asked as usize, "{notes}");
    // Nothing is lost or doubled: neither lines, nor jobs.
    for trial in 1..=rounds {
        let line = format!("trial {trial} of {rounds}:");
        assert_eq!(notes.matches(&line).count(), 1, "{notes}");
    }
    assert_eq!(notes.matches("brings timecell there").count(), 1, "{notes}");
    let runs: Vec<_> = fs::read_dir(dir.join("here")).unwrap().collect();
    assert_eq!(runs.len(), 1);
    let run = runs[0].as_ref().unwrap().path();
    assert_eq!(jobs(dir, &run), JOBS * rounds as usize);
    assert_eq!(host.orders(), [] as [PathBuf; 0]);
}

#[case(Alone, Root, RealTime, File(SSHD), Program("ip"), Program("unshare"))]
fn three_hosts_measure_and_are_shown_on_one_page(dir: &Path) {
    let hosts: Vec<Host> = (1..=3).map(|number| Host::start(dir, number)).collect();
    small(dir, 2);
    // One configuration that knows all.
    let all: String = hosts
        .iter()
        .map(|host| {
            let place = host.there.parent().unwrap();
            let own = fs::read_to_string(place.join("ssh.conf")).unwrap();
            let name = host
                .target
                .trim_start_matches("ssh://root@")
                .trim_end_matches(":2222");
            format!("Host {name}\n{own}\n")
        })
        .collect();
    fs::write(dir.join("ssh.conf"), all).unwrap();
    let ssh = format!("ssh -F {}", dir.join("ssh.conf").display());
    let there = dir.join("there").display().to_string();
    let mut words = vec!["bench", "small.toml", "--ssh", &ssh, "--remote-dir", &there];
    hosts
        .iter()
        .for_each(|host| words.extend(["--on", &host.target]));
    let said = say(dir, &words).ends_with(0);
    let page = fs::read_to_string(dir.join("devices.html")).unwrap();
    for (number, host) in (1..).zip(&hosts) {
        assert!(page.contains(&format!("board{number}")));
        let label = host.target.trim_start_matches("ssh://root@");
        assert!(said.err.contains(&format!("{label}: ")), "{}", said.err);
    }
    assert_eq!(fs::read_dir(dir.join("runs")).unwrap().count(), 3);
    assert!(said.out.contains("devices.html"), "{}", said.out);
}

#[case(
    Alone,
    Root,
    RealTime,
    AnyEnforcer(100),
    File(SSHD),
    Program("ip"),
    Program("unshare")
)]
fn a_mission_there_outlives_its_link(dir: &Path) {
    let host = Host::start(dir, 1);
    let said = host.say(dir, &["demo"]).ends_with(0);
    let name = name(dir);
    let text = said
        .out
        .replace("name = \"demo\"", &format!("name = \"{name}\""));
    fs::write(dir.join("demo.toml"), text).unwrap();
    host.say(dir, &["admit", "demo.toml"]).ends_with(0);
    let place = dir.join("mission");
    let place = place.to_str().unwrap();
    let mut up = begun(dir, &host.on(&["up", "demo.toml", "--dir", place]));
    eventually("its cell runs", || {
        host.say(dir, &["ps", "--dir", place])
            .out
            .contains("control     running")
    });
    // As if this machine had lost its power.
    up.kill().unwrap();
    up.wait().unwrap();
    let said = host
        .say(dir, &["logs", "-n", "1", "control", "--dir", place])
        .ends_with(0);
    assert_eq!(said.out.lines().count(), 1, "{}", said.out);
    host.say(dir, &["down", "--dir", place]).ends_with(0);
    let [order] = &host.orders()[..] else {
        panic!("{:?}", host.orders());
    };
    let order = order.file_name().unwrap().to_str().unwrap().to_owned();
    let said = host
        .say(dir, &["up", "--attach", &order, "--dir", place])
        .ends_with(0);
    assert!(
        said.out.starts_with(&format!("mission {name}: admitted")),
        "{}",
        said.out
    );
    assert_eq!(host.orders(), [] as [PathBuf; 0]);
    // Ctrl-C ends the mission there.
    let up = begun(dir, &host.on(&["up", "demo.toml", "--dir", place]));
    eventually("its cell runs", || {
        host.say(dir, &["ps", "--dir", place])
            .out
            .contains("control     running")
    });
    // SAFETY: a child of ours that was not reaped.
    unsafe { libc::kill(up.id().cast_signed(), libc::SIGINT) };
    assert_eq!(end_of(up).and_then(|status| status.code()), Some(0));
    host.say(dir, &["ps", "--dir", place]).ends_with(4);
}

#[case(Alone, Root, File(SSHD), Program("ip"), Program("unshare"))]
fn what_keeps_ssh_from_a_host_is_told_in_a_sentence(dir: &Path) {
    let host = Host::start(dir, 1);
    let place = host.there.parent().unwrap();
    let other = place.join("other");
    done(
        "ssh-keygen",
        &[
            "-q",
            "-t",
            "ed25519",
            "-N",
            "",
            "-f",
            other.to_str().unwrap(),
        ],
    );
    let other = fs::read_to_string(other.with_extension("pub")).unwrap();
    fs::write(place.join("changed"), format!("[198.18.1.2]:2222 {other}")).unwrap();
    let with = |option: &str| format!("{} -o {option}", host.ssh);
    let changed = with(&format!(
        "UserKnownHostsFile={}",
        place.join("changed").display()
    ));
    let unknown = with("UserKnownHostsFile=/dev/null");
    let no_key = with("IdentityFile=/dev/null -o IdentitiesOnly=yes -o IdentityAgent=none")
        .replace("ssh.conf", "no.conf");
    let plain = fs::read_to_string(place.join("ssh.conf")).unwrap();
    let plain: Vec<&str> = plain
        .lines()
        .filter(|line| !line.starts_with("Identity"))
        .collect();
    fs::write(place.join("no.conf"), plain.join("\n") + "\n").unwrap();
    let nobody = "ssh://root@198.18.1.9:2222";
    let closed = "ssh://root@198.18.1.2:2223";
    let other = match cfg!(target_arch = "x86_64") {
        true => 183_u16,
        false => 62,
    };
    let mut program = vec![0; 200];
    program[..6].copy_from_slice(b"\x7fELF\x02\x01");
    program[18..20].copy_from_slice(&other.to_le_bytes());
    // Headers of parts, of which there is none.
    (program[32], program[54]) = (64, 56);
    fs::write(dir.join("other"), program).unwrap();
    let other = dir.join("other").display().to_string();
    let there = dir.join("there").display().to_string();
    for (target, ssh, more, code, said) in [
        (
            host.target.as_str(),
            changed.as_str(),
            &[][..],
            4,
            "its host key is another than the known one (find out why; if it is right, `ssh-keygen -R '[198.18.1.2]:2222'`)",
        ),
        (
            &host.target,
            &unknown,
            &[],
            4,
            "its host key is not known here (accept it once by `ssh ",
        ),
        (&host.target, &no_key, &[], 4, "it lets nobody in: "),
        (
            &host.target,
            "/no/ssh",
            &[],
            4,
            "(apt install openssh-client, or name another by --ssh)",
        ),
        (
            nobody,
            &with("ConnectTimeout=3"),
            &[],
            4,
            "(see whether `ssh ssh://root@198.18.1.9:2222` works)",
        ),
        (closed, &host.ssh, &[], 4, "Connection refused (see whether"),
        (
            &host.target,
            &host.ssh,
            &["--remote-dir", "/proc/none"],
            4,
            "or name another directory by --remote-dir)",
        ),
        (
            &host.target,
            &host.ssh,
            &["--remote-dir", &there, "--remote-binary", &other],
            2,
            "it is a program for",
        ),
        (
            &host.target,
            &host.ssh,
            &["--remote-dir", &there, "--attach", "0123456789abcdef"],
            1,
            "there is no such order",
        ),
        (
            "telnet:board",
            "ssh",
            &[],
            2,
            "`telnet:` is no way to another machine; write ssh://",
        ),
        (
            "serial:/dev/none",
            "ssh",
            &[],
            4,
            "/dev/none: the serial line cannot be opened",
        ),
    ] {
        let words = [&["doctor", "--on", target, "--ssh", ssh], more].concat();
        let ended = say(dir, &words).ends_with(code);
        let error = ended.error();
        assert!(error.contains(said), "{words:?}: {error}");
        // ssh's own words come first.
        let own = "REMOTE HOST IDENTIFICATION HAS CHANGED";
        assert_eq!(ended.err.contains(own), ssh == changed, "{}", ended.err);
    }
}

#[case(
    Alone,
    Root,
    File(SSHD),
    Program("ip"),
    Program("unshare"),
    Program("mount")
)]
fn a_full_disk_there_is_told_and_left_as_it_was(dir: &Path) {
    let host = Host::start(dir, 1);
    fs::create_dir(&host.there).unwrap();
    let pid = host.sshd.id().to_string();
    let there = host.there.to_str().unwrap();
    done(
        "nsenter",
        &[
            "-t", &pid, "-m", "mount", "-t", "tmpfs", "-o", "size=1m", "full", there,
        ],
    );
    let error = host.say(dir, &["doctor"]).ends_with(4).error();
    assert!(
        error.contains("timecell cannot be kept there: ") && error.contains("make room"),
        "{error}"
    );
    let size = guest::program(&binary()).unwrap().loaded.len() + (3 << 20);
    let size = format!("remount,size={size}");
    done("nsenter", &["-t", &pid, "-m", "mount", "-o", &size, there]);
    fs::write(dir.join("big"), vec![7; 4 << 20]).unwrap();
    let error = host
        .say(dir, &["doctor", "--with", "big"])
        .ends_with(1)
        .error();
    assert!(
        error.contains("No space left") && error.contains("make room"),
        "{error}"
    );
    let left = Command::new("nsenter")
        .args(["-t", &pid, "-m", "ls", &format!("{there}/orders")])
        .output()
        .unwrap();
    assert_eq!(Said::from(left).ends_with(0).out, "");
    host.say(dir, &["doctor"]).ends_with(0);
    done(
        "nsenter",
        &["-t", &pid, "-m", "mount", "-o", "remount,noexec", there],
    );
    let error = host.say(dir, &["doctor"]).ends_with(4).error();
    assert!(error.contains("programs may not run from "), "{error}");
}

/// A shell on a terminal, whose bytes go to and from a serial line; some are lost.
struct Console {
    shell: Child,
    /// The end of the line that timecell opens by its path.
    _line: OwnedFd,
    path: String,
}

impl Console {
    /// Starts it. Of the bytes that it says, the last of so many is lost.
    fn start(lost: u64) -> Console {
        let (mut ours, mut line) = (0, 0);
        let mut path = [0; 64];
        let (size, settings) = (std::ptr::null(), std::ptr::null());
        // SAFETY: all pointers are valid; the name has room for a path below /dev/pts.
        let opened = unsafe {
            libc::openpty(
                &raw mut ours,
                &raw mut line,
                path.as_mut_ptr(),
                settings,
                size,
            )
        };
        assert_eq!(opened, 0);
        // SAFETY: it ends with a NUL; both descriptors were just opened, and are nobody else's.
        let (path, ours, line) = unsafe {
            for end in [ours, line] {
                libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC);
            }
            let path = std::ffi::CStr::from_ptr(path.as_ptr());
            (
                path,
                fs::File::from_raw_fd(ours),
                OwnedFd::from_raw_fd(line),
            )
        };
        let path = path.to_str().unwrap().to_owned();
        // Nothing comes back before timecell says how the line is.
        done("stty", &["-F", &path, "raw", "-echo"]);
        let mut shell = Command::new("script")
            .args(["--quiet", "--flush", "--command", "sh -i", "/dev/null"])
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut keys, mut said) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let (mut typed, mut shown) = (ours.try_clone().unwrap(), ours);
        std::thread::spawn(move || std::io::copy(&mut typed, &mut keys));
        std::thread::spawn(move || {
            let mut at = 0_u64;
            let mut buffer = [0; 1024];
            while let Ok(read @ 1..) = std::io::Read::read(&mut said, &mut buffer) {
                let kept = buffer[..read].iter().filter(|_| {
                    at += 1;
                    !at.is_multiple_of(lost)
                });
                let kept: Vec<u8> = kept.copied().collect();
                if std::io::Write::write_all(&mut shown, &kept).is_err() {
                    return;
                }
            }
        });
        Console {
            shell,
            _line: line,
            path,
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.shell.kill().unwrap();
        self.shell.wait().unwrap();
    }
}

#[case(
    Alone,
    Root,
    RealTime,
    Program("script"),
    Program("stty"),
    Program("sha256sum")
)]
fn a_run_over_a_console_that_loses_bytes_arrives_whole(dir: &Path) {
    // The program was brought before: over a console, one that is not optimised takes minutes.
    let loaded = guest::program(&binary()).unwrap().loaded;
    let there = dir.join("there");
    fs::create_dir(&there).unwrap();
    fs::write(there.join("new"), loaded).unwrap();
    done("chmod", &["755", there.join("new").to_str().unwrap()]);
    let sum = Command::new("sha256sum")
        .arg(there.join("new"))
        .output()
        .unwrap();
    let digest = String::from_utf8(sum.stdout).unwrap();
    let place = there.join("bin").join(digest.split(' ').next().unwrap());
    fs::create_dir_all(&place).unwrap();
    fs::rename(there.join("new"), place.join("timecell")).unwrap();
    small(dir, 2);
    let console = Console::start(70_001);
    let target = format!("serial:{},115200", console.path);
    let there = there.to_str().unwrap();
    let on = ["--on", &target, "--remote-dir", there];
    let words = [&["bench", "small.toml"], &on[..]].concat();
    let said = say(dir, &words).ends_with(0);
    assert_eq!(said.err.matches("trial 2 of 2:").count(), 1, "{}", said.err);
    assert_eq!(jobs(dir, &only_run(dir)), 2 * JOBS);
    // The shell is there again, and the next command finds it.
    let said = say(dir, &[&["doctor", "--json"], &on[..]].concat()).ends_with(0);
    let doctor: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert!(doctor["checks"].is_array());
    // Another program that has the line is told apart from a board that is away.
    assert_eq!(
        fs::read_dir(Path::new(there).join("orders"))
            .unwrap()
            .count(),
        0
    );
}
