//! `--on`: hosts with a real sshd, each in a network namespace of the test's own, reached by the real ssh; and a shell on a terminal in
//! place of a board's console.

mod console;
mod host;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::missions::name;
use crate::support::{Said, begun, binary, end_of, eventually, say};

use host::{Host, done, knowing};

const SSHD: &str = "/usr/sbin/sshd";

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
    let ssh = knowing(dir, &hosts, false);
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

#[case(Alone, Root, RealTime, File(SSHD), Program("ip"), Program("unshare"))]
fn a_host_behind_a_gateway_is_reached_through_it(dir: &Path) {
    let gateway = Host::start(dir, 1);
    let far = Host::behind(Some(&gateway), dir, 2);
    let mut hosts = [gateway, far];
    let ssh = knowing(dir, &hosts, true);
    let by = |option: &str| format!("{ssh} -o {option}");
    // No other way leads there.
    hosts[1].ssh = by("ProxyJump=none -o ConnectTimeout=3");
    let error = hosts[1].say(dir, &["doctor"]).ends_with(4).error();
    assert!(error.contains("see whether `ssh ssh://root@"), "{error}");
    assert!(!hosts[1].log().contains("Accepted"), "{}", hosts[1].log());
    hosts[1].ssh = by("ProxyJump=root@198.18.1.2:2223");
    let error = hosts[1].say(dir, &["doctor"]).ends_with(4).error();
    let why = "connect to host 198.18.1.2 port 2223: Connection refused";
    assert!(error.contains(why), "{error}");
    hosts[1].ssh = ssh.clone();
    hosts[1].say(dir, &["doctor"]).ends_with(0);
    small(dir, 8);
    let measures = begun(dir, &hosts[1].on(&["bench", "small.toml", "--out", "here"]));
    let notes = || fs::read_to_string(dir.join("begun.err")).unwrap();
    eventually("it measures", || notes().contains("trial 1 of"));
    assert!(cut(measures.id()));
    assert_eq!(
        end_of(measures).and_then(|end| end.code()),
        Some(0),
        "{}",
        notes()
    );
    assert_eq!(
        notes().matches("the link was lost").count(),
        1,
        "{}",
        notes()
    );
    let runs: Vec<_> = fs::read_dir(dir.join("here")).unwrap().collect();
    assert_eq!(runs.len(), 1);
    assert_eq!(jobs(dir, &runs[0].as_ref().unwrap().path()), 8 * JOBS);
    // Three links, each through the gateway, which alone knows this machine.
    for (host, from) in hosts.iter().zip(["198.18.1.1", "198.18.2.1"]) {
        let accepted = format!("Accepted publickey for root from {from} ");
        assert_eq!(host.log().matches(&accepted).count(), 3, "{}", host.log());
    }
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
            "the host key of [198.18.1.2]:2222 is another than the known one (find out why; if it is right, `ssh-keygen -R '[198.18.1.2]:2222'`)",
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
    let pid = host.pid().to_string();
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
