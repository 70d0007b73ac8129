//! A mission whose directory is on a full disk: its starts, its output, its journal, and its end.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::control::{ask, cell};
use crate::missions::{Up, mission, nothing_is_left, pid_of, shell};
use crate::support::{Need, eventually, timecell};

pub const NEEDS: &[Need] = &[Need::Root, Need::RealTime, Need::Program("busybox")];

const PLAIN: &str = "class = \"other\"";

/// A disk of this size at `state`, too small for the room that the supervisor reserves.
struct Disk(PathBuf);

impl Disk {
    fn of_kib(dir: &Path, kib: u32) -> Disk {
        let at = dir.join("state");
        fs::create_dir_all(&at).unwrap();
        let size = format!("size={kib}k,mode=0755");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "timecell-test"])
            .arg(&at)
            .status();
        assert!(done.unwrap().success());
        Disk(at)
    }

    fn fill(&self) {
        let mut how = fs::OpenOptions::new();
        let mut file = how
            .append(true)
            .create(true)
            .open(self.0.join("filler"))
            .unwrap();
        while file.write_all(&[0; 1024]).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[case(..NEEDS)]
fn nothing_is_started_on_a_full_disk(dir: &Path) {
    mission(dir, &shell("plain", "exec /busybox sleep 1000", PLAIN));
    let disk = Disk::of_kib(dir, 240);
    disk.fill();
    let said = ask(dir, &["up", "mission.toml"]).ends_with(1);
    assert!(said.error().contains("No space left"), "{}", said.err);
    assert!(!said.out.contains("plain: runs"), "{}", said.out);
    // With room again, everything is as before.
    disk.free();
    let mut up = Up::start(dir);
    up.told("plain: runs");
    up.end();
    drop(disk);
    nothing_is_left(dir);
}

/// A small disk for a mission of two cells that do nothing, and its supervisor; the first cell runs.
fn two_on_a_disk(dir: &Path) -> (Disk, Up) {
    mission(
        dir,
        &(shell("plain", "exec /busybox sleep 1000", PLAIN)
            + &shell("steady", "exec /busybox sleep 1000", PLAIN)),
    );
    let disk = Disk::of_kib(dir, 240);
    let mut up = Up::start(dir);
    up.told("plain: runs");
    (disk, up)
}

/// How a supervisor ends on request while the disk stays full: room freed by the cells is none for the journal.
fn ended_on(disk: &Disk, up: &mut Up) -> Option<i32> {
    loop {
        if let Some(ended) = up.child.try_wait().unwrap() {
            return ended.code();
        }
        disk.fill();
    }
}

/// Stops and starts a cell until the journal takes no more. A start may fail for lack of room, too.
fn stick(disk: &Disk, dir: &Path, up: &mut Up) {
    for _ in 0..60 {
        // Takes the room that the supervisor has freed meanwhile.
        disk.fill();
        ask(dir, &["stop", "plain"]);
        ask(dir, &["start", "plain"]);
        if up.has_said(STUCK) {
            break;
        }
    }
    assert!(
        up.has_said(STUCK),
        "the journal takes all:\n{}",
        up.said.join("\n")
    );
    // More that it does not take.
    for _ in 0..3 {
        disk.fill();
        ask(dir, &["stop", "plain"]);
        disk.fill();
        ask(dir, &["start", "plain"]);
    }
    is_said_once(up);
}

/// With room again, the next supervisor continues from the journal, and ends normally. The last entry about
/// `plain` may be that it was stopped, as the journal may have taken no more just then.
fn goes_on(disk: &Disk, dir: &Path) {
    disk.free();
    let mut up = Up::start(dir);
    up.told("steady: runs");
    eventually("the other is told of", || {
        up.has_said("plain: runs") || up.has_said("plain: stays stopped: it was stopped by hand")
    });
    up.end();
}

/// The lines printed when the journal takes no more, and when it does again.
const STUCK: &str = "its events are kept in memory";
const WRITTEN: &str = "the journal is written again";

/// Once for each time that it got stuck: there may have been room for a moment.
fn is_said_once(up: &mut Up) {
    assert!(up.has_said(STUCK));
    let turns: Vec<bool> = (up.said.iter())
        .filter(|line| line.contains(STUCK) || line.contains(WRITTEN))
        .map(|line| line.contains(STUCK))
        .collect();
    let in_turns = (0..turns.len()).all(|at| turns[at] == (at % 2 == 0));
    assert!(in_turns, "{}", up.said.join("\n"));
}

#[case(..NEEDS)]
fn a_stuck_journal_stops_nobody_and_is_told_at_the_end(dir: &Path) {
    let (disk, mut up) = two_on_a_disk(dir);
    up.told("steady: runs");
    disk.fill();
    stick(&disk, dir, &mut up);
    assert_eq!(cell(dir, "steady")["state"], "running");
    // It ends while the disk is full: entries that could not be written are reported, by the exit code too.
    up.signal(libc::SIGINT);
    let ended = ended_on(&disk, &mut up);
    // Whether an entry got in between is chance; the exit code tells.
    let said = ask(dir, &["ps"]);
    let is_down = said.out.contains("no mission is up");
    assert_eq!(ended, Some(i32::from(!is_down)), "{}", said.out);
    goes_on(&disk, dir);
    drop(disk);
    nothing_is_left(dir);
}

#[case(..NEEDS)]
fn the_next_supervisor_on_a_disk_that_is_still_full_goes_on() {
    next_on_a_full_disk();
}

/// How the next supervisor ends while the disk is full.
pub fn next_on_a_full_disk() -> String {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (disk, mut up) = two_on_a_disk(dir);
    let steady = pid_of(&up.told("steady: runs"));
    disk.fill();
    stick(&disk, dir, &mut up);
    up.kill();
    disk.fill();
    let errors = dir.join("errors");
    let mut next = timecell();
    next.current_dir(dir)
        .args(["up", "mission.toml", "--dir", "state"])
        .stderr(fs::File::create(&errors).unwrap());
    let mut next = Up::of(&mut next);
    // Running cells are adopted, and its actions on them are recorded.
    next.until("steady: runs on, adopted");
    stick(&disk, dir, &mut next);
    let taken = cell(dir, "steady");
    assert_eq!(taken["state"], "running");
    assert_eq!(taken["pid"], steady);
    // It ends as the first one would.
    next.signal(libc::SIGINT);
    let ended = ended_on(&disk, &mut next);
    let is_down = ask(dir, &["ps"]).out.contains("no mission is up");
    let said = fs::read_to_string(&errors).unwrap();
    assert_eq!(ended, Some(i32::from(!is_down)), "{said}");
    assert_eq!(said.contains("could not be written"), !is_down, "{said}");
    goes_on(&disk, dir);
    drop(disk);
    nothing_is_left(dir);
    match is_down {
        true => "exit 0, as all was written in the end".to_owned(),
        false => "exit 1, as the journal could not be written".to_owned(),
    }
}

#[case(..NEEDS)]
fn whoever_follows_events_gets_them_when_there_is_room(dir: &Path) {
    let (disk, mut up) = two_on_a_disk(dir);
    let mut follower = timecell()
        .current_dir(dir)
        .args(["events", "-f", "--dir", "state"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (tell, lines) = channel();
    let out = follower.stdout.take().unwrap();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
    });
    let mut told: Vec<String> = Vec::new();
    disk.fill();
    stick(&disk, dir, &mut up);
    let starts = cell(dir, "plain")["starts"].as_u64().unwrap();
    disk.free();
    up.told(WRITTEN);
    let last = format!("(attempt {starts})");
    let end = Instant::now() + Duration::from_secs(60);
    while !told.iter().any(|line| line.contains(&last)) {
        assert!(Instant::now() < end, "no `{last}` in {told:#?}");
        told.extend(lines.recv_timeout(Duration::from_millis(10)));
    }
    // Once.
    let times = told.iter().filter(|line| line.contains(&last)).count();
    assert_eq!(times, 1, "{told:#?}");
    up.end();
    assert!(follower.wait().is_ok());
    drop(disk);
    nothing_is_left(dir);
}
