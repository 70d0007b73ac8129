//! How soon a crashed or wedged cell runs again while another cell attacks. `-- missions_reaction --nocapture`
//! prints the figures; asserted is only that a neighbour costs no more than a few seconds, where it could cost minutes.

mod fault;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::control::cell;
use crate::held_file::HeldFile;
use crate::missions::{Up, busybox, mission, name, nothing_is_left, pid_of, shell};
use crate::support::{Need, eventually, timecell};
use fault::Fault::{Crashes, Wedges};
pub use fault::{Fault, Reaction, Watched, shared};

pub const NEEDS: &[Need] = &[Need::Root, Need::Program("busybox")];
pub const WITH_CRUN: &[Need] = &[Need::Root, Need::Program("busybox"), Need::Program("crun")];
const PLAIN: &str = "class = \"other\"";
/// The engine's own limit is 120 s.
const BOUND: Duration = Duration::from_secs(10);
/// How long a program hangs if it is not released, s.
const HANGS: u32 = 20;

const RESTART: &str = "class = \"other\"\nrestart = { limit = 1000000, backoff_min = \"0ms\", backoff_max = \"0ms\" }";

#[case(a_crash_beside_a_cell_that_does_nothing(does_nothing, Crashes); ..NEEDS)]
#[case(a_crash_beside_a_cell_that_floods_its_output(floods_its_output, Crashes); ..NEEDS)]
#[case(a_crash_beside_a_cell_that_hangs_in_its_start(hangs_in_its_start, Crashes); ..WITH_CRUN)]
#[case(a_crash_beside_a_cell_that_does_not_die(does_not_die, Crashes); ..NEEDS)]
#[case(a_crash_beside_a_cell_that_fills_the_disk(fills_the_disk, Crashes); ..NEEDS)]
#[case(a_wedge_beside_a_cell_that_does_nothing(does_nothing, Wedges); ..NEEDS)]
#[case(a_wedge_beside_a_cell_that_floods_its_output(floods_its_output, Wedges); ..NEEDS)]
#[case(a_wedge_beside_a_cell_that_hangs_in_its_start(hangs_in_its_start, Wedges); ..WITH_CRUN)]
#[case(a_wedge_beside_a_cell_that_does_not_die(does_not_die, Wedges); ..NEEDS)]
#[case(a_wedge_beside_a_cell_that_fills_the_disk(fills_the_disk, Wedges); ..NEEDS)]
fn show(beside: fn(Watched) -> Reaction, fault: Fault) {
    println!("{}", beside(fault.alone()));
}

fn beside(neighbour: &'static str, bad: &str, watched: Watched) -> Reaction {
    let dir = tempfile::tempdir().unwrap();
    watched.mission(dir.path(), bad);
    let mut up = Up::start(dir.path());
    up.until("good: runs");
    up.told("bad: runs");
    let reaction = watched.strikes(neighbour, dir.path(), &mut up);
    up.end();
    nothing_is_left(dir.path());
    reaction
}

fn does_nothing(watched: Watched) -> Reaction {
    let bad = shell("bad", "/busybox sleep 1000", PLAIN);
    beside("nothing", &bad, watched)
}

fn floods_its_output(watched: Watched) -> Reaction {
    let script = "for i in 1 2 3 4; do /busybox dd if=/dev/zero bs=64k & done; wait";
    beside("floods its output", &shell("bad", script, PLAIN), watched)
}

pub fn hangs_in_its_start(watched: Watched) -> Reaction {
    let dir = tempfile::tempdir().unwrap();
    let hangs = format!("engine = \"crun\"\n{PLAIN}");
    let bad = shell("bad", "/busybox sleep 1000", &hangs);
    watched.mission(dir.path(), &bad);
    let began = Instant::now();
    let mut up = Up::of(
        timecell()
            .current_dir(dir.path())
            .args(["up", "mission.toml", "--dir", "state"])
            .env("PATH", hanging_crun(dir.path())),
    );
    up.until("good: runs");
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    let reaction = watched.strikes("hangs in its start", dir.path(), &mut up);
    assert!(!up.has_said("bad: runs"), "it hangs no more");
    fs::write(dir.path().join(LET_GO), "").unwrap();
    up.end();
    nothing_is_left(dir.path());
    reaction
}

/// It ignores SIGTERM, and has two minutes.
pub fn does_not_die(watched: Watched) -> Reaction {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; while :; do /busybox sleep 1; done";
    let bad = shell("bad", script, PLAIN).replace("\"100ms\"", "\"120s\"");
    watched.mission(dir.path(), &bad);
    let mut up = Up::start(dir.path());
    up.until("good: runs");
    up.told("bad: runs");
    let mut stop = timecell()
        .current_dir(dir.path())
        .args(["stop", "--dir", "state", "bad"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let reaction = watched.strikes("does not die", dir.path(), &mut up);
    assert!(matches!(stop.try_wait(), Ok(None)), "it has died");
    // Twice, so that nothing waits for two minutes.
    up.signal(libc::SIGINT);
    std::thread::sleep(Duration::from_millis(500));
    up.end();
    let _ = stop.wait();
    nothing_is_left(dir.path());
    reaction
}

/// Blocks that an unprivileged user may still write to on the disk of this directory.
fn blocks_left(dir: &Path) -> u64 {
    let path = std::ffi::CString::new(dir.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: plain numbers, for which all zeros are values.
    let mut room: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a string that ends with zero, and a place for the answer.
    assert_eq!(unsafe { libc::statvfs(path.as_ptr(), &raw mut room) }, 0);
    room.f_bavail
}

/// The mission's directory has 24 MB, which the cell may fill when it is told to.
pub fn fills_the_disk(watched: Watched) -> Reaction {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    fs::create_dir(&state).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=24m,mode=0755", "timecell-test"])
        .arg(&state)
        .status();
    assert!(mounted.unwrap().success());
    let fill = state.join("fill");
    shared(&fill);
    let script = "until [ -e /fill/now ]; do /busybox sleep 0.05; done; \
                  /busybox cat /dev/zero >/fill/filler; /busybox sleep 1000";
    let rights = format!(
        "{PLAIN}\nrights = {{ mounts = [{{ source = \"{}\", target = \"/fill\", writable = true }}] }}",
        fill.display()
    );
    let bad = shell("bad", script, &rights);
    watched.mission(dir.path(), &bad);
    let mut up = Up::start(dir.path());
    up.until("good: runs");
    up.told("bad: runs");
    fs::write(fill.join("now"), "").unwrap();
    let room = || blocks_left(&state);
    eventually("the disk is full", || room() == 0);
    let reaction = watched.strikes("has filled the disk", dir.path(), &mut up);
    let stop = crate::support::say(dir.path(), &["stop", "--dir", "state", "bad"]);
    stop.ends_with(0);
    fs::remove_file(fill.join("filler")).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    up.end();
    // Another case may look at all missions just now.
    let unmounted = || Command::new("umount").arg(&state).status();
    eventually("nobody looks there", || unmounted().unwrap().success());
    nothing_is_left(dir.path());
    reaction
}

/// `up` writes to a pipe that nobody reads, and restarts cells as before.
#[case(..NEEDS)]
fn a_reader_that_has_stopped_holds_up_nobody(dir: &Path) {
    let crashes = shell("bad", "exit 1", RESTART);
    mission(dir, &crashes);
    let (reader, writer) = std::io::pipe().unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&writer);
    // SAFETY: no memory is involved; the pipe is ours.
    let room = unsafe { libc::fcntl(fd, libc::F_SETPIPE_SZ, 4096) };
    assert!(room >= 4096);
    // The room that remains is for the output of admission and a few lines.
    let filler = vec![b'\n'; room as usize - 2304];
    (&writer).write_all(&filler).unwrap();
    let mut up = timecell()
        .current_dir(dir)
        .args(["up", "mission.toml", "--dir", "state"])
        .stdout(writer)
        .spawn()
        .unwrap();
    let starts = || {
        let said = crate::support::say(dir, &["ps", "--dir", "state", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&said.out).unwrap_or_default();
        json["cells"][0]["starts"].as_u64().unwrap_or(0)
    };
    let end = Instant::now() + Duration::from_secs(60);
    while starts() < 30 {
        assert!(Instant::now() < end, "{} starts", starts());
        std::thread::sleep(Duration::from_millis(200));
    }
    let mut held: libc::c_int = 0;
    // SAFETY: one number is written, to this place.
    let asked = unsafe {
        libc::ioctl(
            std::os::fd::AsRawFd::as_raw_fd(&reader),
            libc::FIONREAD,
            &raw mut held,
        )
    };
    assert_eq!(asked, 0);
    assert!(room - held < 256, "no line fits: {held} of {room} bytes");
    // SAFETY: no memory is involved; our own child, not reaped yet.
    unsafe { libc::kill(up.id().cast_signed(), libc::SIGINT) };
    assert_eq!(up.wait().unwrap().code(), Some(0));
    drop(reader);
    nothing_is_left(dir);
}

/// It is to be frozen while the kernel cannot stop it, for as long as this test wants.
#[case(Root, Program("busybox"), File("/dev/fuse"))]
fn a_cell_that_does_not_stand_still_holds_up_nobody(dir: &Path) {
    let (held, go) = (dir.join("held"), dir.join("go"));
    shared(&go);
    let file = HeldFile::at(&held);
    let mount = |source: &Path, target: &str| {
        let source = source.display();
        format!("rights = {{ mounts = [{{ source = \"{source}\", target = \"{target}\" }}] }}")
    };
    let stuck = shell(
        "stuck",
        "/busybox cat /held; /busybox sleep 1000",
        &format!("{PLAIN}\n{}", mount(&held, "/held")),
    );
    let script = "until [ -e /go/now ]; do /busybox sleep 0.05; done; exit 1";
    let more = format!(
        "{PLAIN}\ncriticality = \"hi\"\nrestart = {{ policy = \"never\" }}\n{}\n\
         [[cell.health]]\nwhen = \"exit\"\ndo = \"shed\"",
        mount(&go, "/go")
    );
    let sheds = shell("sheds", script, &more);
    let good = Fault::Crashes.cell(dir);
    mission(dir, &format!("shed = [\"stuck\"]\n{stuck}{sheds}{good}"));
    let mut up = Up::start(dir);
    // Dropped before the mission if this fails, which otherwise could not end.
    let file = file;
    for cell in ["stuck", "sheds", "good"] {
        up.told(&format!("{cell}: runs"));
    }
    eventually("it reads", || file.readers() > 0);
    fs::write(go.join("now"), "").unwrap();
    up.until("sheds: exited with status 1");
    std::thread::sleep(Duration::from_millis(200));
    let pid = pid_of(&up.told("good: runs"));
    let began = Instant::now();
    // SAFETY: a cell of this test.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    up.until("good: runs");
    // The request to the kernel is given up after 5 s.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert!(!up.has_said("stuck: is shed"), "{:?}", up.said);
    file.let_go();
    up.told("stuck: is shed: it is frozen");
    up.end();
    drop(file);
    nothing_is_left(dir);
}

#[case(..WITH_CRUN)]
fn who_asks_twice_does_not_wait_for_a_start_that_hangs(dir: &Path) {
    let hangs = format!("engine = \"crun\"\n{PLAIN}");
    let bad = shell("bad", "/busybox sleep 1000", &hangs);
    mission(dir, &(bad + &shell("good", "/busybox sleep 1000", PLAIN)));
    let mut up = timecell();
    up.current_dir(dir)
        .args(["up", "mission.toml", "--dir", "state"])
        .env("PATH", hanging_crun(dir));
    let mut up = Up::of(&mut up);
    up.until("good: runs");
    let began = Instant::now();
    up.signal(libc::SIGINT);
    std::thread::sleep(Duration::from_millis(500));
    up.signal(libc::SIGINT);
    up.until("bad: left behind: it is still being started");
    assert_eq!(up.child.wait().unwrap().code(), Some(1));
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    // The next one clears it.
    mission(dir, &shell("good", "/busybox sleep 1000", PLAIN));
    let mut up = Up::start(dir);
    up.until("good: runs");
    up.end();
    nothing_is_left(dir);
}

/// The supervisor answers while the start waits.
#[case(..NEEDS)]
fn a_locked_record_of_user_ids_holds_up_its_start_only(dir: &Path) {
    mission(dir, &shell("a", "/busybox sleep 1000", "class = \"other\""));
    let mut up = Up::start(dir);
    up.until("a: runs");
    let lock = fs::File::options()
        .write(true)
        .open("/run/timecell/uids.lock");
    let lock = lock.unwrap();
    lock.lock().unwrap();
    let mut restart = timecell()
        .current_dir(dir)
        .args(["restart", "--dir", "state", "a"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the start is seen", || {
        cell(dir, "a")["state"] == "starting"
    });
    lock.unlock().unwrap();
    assert!(restart.wait().unwrap().success());
    up.end();
    nothing_is_left(dir);
}

/// A podman image with nothing but busybox, removed on drop.
pub struct Image(pub String);

impl Image {
    pub fn of_busybox(dir: &Path) -> Image {
        let root = dir.join("root");
        fs::create_dir(&root).unwrap();
        fs::copy(busybox(), root.join("busybox")).unwrap();
        let name = format!("localhost/timecell-{}:1", name(dir).to_lowercase());
        let archive = dir.join("root.tar");
        let mut pack = Command::new("tar");
        pack.arg("-cf").arg(&archive).arg("-C").arg(&root).arg(".");
        let mut import = Command::new("podman");
        import.arg("import").arg(&archive).arg(&name);
        for mut command in [pack, import] {
            assert!(command.stderr(Stdio::null()).status().unwrap().success());
        }
        Image(name)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = Command::new("podman")
            .args(["rmi", "--force", &self.0])
            .output();
    }
}

/// podman is asked whose the container is before removing it, and killed if it does not answer.
#[case(Root, Program("busybox"), Program("crun"), Program("podman"))]
fn a_podman_that_does_not_answer_is_not_waited_for(dir: &Path) {
    let image = Image::of_busybox(dir);
    let cell = format!(
        "[[cell]]\nname = \"a\"\nengine = \"podman\"\n{PLAIN}\nstop_timeout = \"0ms\"\n\
         image = {{ reference = \"{}\" }}\ncommand = [\"/busybox\", \"sleep\", \"1000\"]\n",
        image.0
    );
    mission(dir, &cell);
    let mut up = Up::of(
        timecell()
            .current_dir(dir)
            .args(["up", "mission.toml", "--dir", "state"])
            .env("PATH", hanging(dir, "podman", "ps", 300)),
    );
    up.until("a: runs");
    let began = Instant::now();
    up.signal(libc::SIGINT);
    up.until("a: left behind: ");
    up.told("podman does not list its containers: no answer within 20 s");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(40), "{took:?}");
    up.child.wait().unwrap();
    // The next one clears it.
    let mut up = Up::start(dir);
    up.until("a: runs");
    up.end();
    nothing_is_left(dir);
    let id = format!("timecell-cell-{}.a", name(dir));
    let exists = Command::new("podman")
        .args(["container", "exists", &id])
        .status();
    assert_eq!(exists.unwrap().code(), Some(1));
}

/// A PATH with a crun first that hangs when it starts a container.
fn hanging_crun(dir: &Path) -> String {
    hanging(dir, "crun", "start", HANGS)
}

/// Created beside the mission to release a hanging program.
const LET_GO: &str = "let-go";

/// A PATH with a stand-in for this program first, which hangs when called with the word, until it is released or for this many seconds.
fn hanging(dir: &Path, program: &str, word: &str, seconds: u32) -> String {
    let path = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
        .unwrap();
    let bin = dir.join("bin");
    fs::create_dir(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\nhang() {{ for i in $(seq {}); do [ -e {} ] && exit; sleep 0.1; done; exit; }}\n\
         for word in \"$@\"; do [ \"$word\" = {word} ] && hang; done\nexec {} \"$@\"\n",
        10 * seconds,
        dir.join(LET_GO).display(),
        real.display()
    );
    let stands_in = bin.join(program);
    fs::write(&stands_in, script).unwrap();
    fs::set_permissions(&stands_in, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{path}", bin.display())
}
