//! Root with a mission's directory that somebody else can change: nothing in it is acted upon, and nothing of root's is reached
//! through it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::control::{SLEEPS, ask};
use crate::missions::{Up, busybox, mission, nothing_is_left, pid_of, runs, shell};
use crate::support::{Need, copy_program, say, timecell};
use crate::users_places::{NOBODY, Places, users_link};

pub const NEEDS: &[Need] = &[Need::Root, Need::Program("busybox")];

/// Everything that opens a mission's directory, with the words before it.
const VERBS: [&[&str]; 12] = [
    &["up", "mission.toml"],
    &["up"],
    &["down"],
    &["ps"],
    &["events"],
    &["events", "--follow"],
    &["logs", "a"],
    &["top", "--once"],
    &["update", "mission.toml"],
    &["stop", "a"],
    &["start", "a"],
    &["restart", "a"],
];
/// No refusal takes this long, and nothing that waits ends this soon.
const AT_ONCE: Duration = Duration::from_secs(20);

fn plain() -> String {
    shell("a", SLEEPS, "class = \"other\"")
}

/// The user has put links and a mission's state in it.
#[case(..NEEDS)]
pub fn a_users_directory_is_refused_by_every_verb() {
    let places = Places::make();
    let (state, dir) = (places.home.join("state"), places.dir.path());
    let secret = places.dir.path().join("secret");
    fs::write(&secret, "root's").unwrap();
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    for made in ["", "cells", "cells/a", "pages"] {
        fs::create_dir(state.join(made)).unwrap();
        chown(state.join(made), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    users_link(&secret, &state.join("room"));
    users_link(&secret, &state.join("cells/a/output"));
    users_link(&places.roots, &state.join("pages/a"));
    users_link(Path::new("/dev/zero"), &state.join("journal"));
    mission(dir, &plain());
    // A user's directory, one of root's inside it, and one that does not exist yet.
    let below = places.home.join("state/cells/roots");
    fs::create_dir(&below).unwrap();
    for at in [&state, &below, &places.home.join("new")] {
        for words in VERBS {
            let at = at.to_string_lossy();
            let said = say(dir, &[words, &["--dir", &at]].concat()).ends_with(4);
            let home = places.home.display();
            let belongs =
                format!("{home} belongs to user {NOBODY}, so users other than root could change");
            let error = said.error();
            assert!(error.starts_with(&belongs), "{words:?}: {error}");
        }
    }
    // A directory in which everybody may create the names looked for.
    fs::create_dir(dir.join("open")).unwrap();
    fs::set_permissions(dir.join("open"), Permissions::from_mode(0o1777)).unwrap();
    let said = say(dir, &["up", "mission.toml", "--dir", "open"]).ends_with(4);
    assert!(
        said.error().starts_with("everybody may write to "),
        "{}",
        said.err
    );
    // Root's by now, but not everything in it.
    for made in ["cells", "cells/a"] {
        let (state, user) = (dir.join("given"), Some(NOBODY));
        fs::create_dir_all(state.join("cells/a")).unwrap();
        chown(state.join(made), user, user).unwrap();
        let said = say(dir, &["up", "mission.toml", "--dir", "given"]).ends_with(4);
        assert!(
            said.error()
                .contains(&format!("given/{made} belongs to user")),
            "{}",
            said.err
        );
        fs::remove_dir_all(&state).unwrap();
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "root's");
    places.nothing_of_roots_was_reached();
    assert!(!places.home.join("new").exists());
}

#[case(..NEEDS)]
fn only_what_root_has_written_is_believed(dir: &Path) {
    mission(dir, &plain());
    let mut up = Up::start(dir);
    let pid = pid_of(&up.told("a: runs"));
    up.kill();
    let (journal, kept) = (dir.join("state/journal"), dir.join("kept"));
    fs::rename(&journal, &kept).unwrap();
    let refused = |why: &str| {
        for words in [&["up"][..], &["down"], &["ps"], &["events"], &["logs", "a"]] {
            let began = Instant::now();
            let error = ask(dir, words).ends_with(1).error();
            assert!(error.contains(why), "{words:?}: {error}");
            assert!(began.elapsed() < AT_ONCE, "{words:?} waited");
        }
        fs::remove_file(&journal).unwrap();
    };
    symlink("/dev/zero", &journal).unwrap();
    refused("Too many levels of symbolic links");
    let made = Command::new("mkfifo").arg(&journal).status();
    assert!(made.unwrap().success());
    refused("it is not a regular file");
    fs::File::create(&journal)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    refused("it is longer than");
    fs::copy(&kept, &journal).unwrap();
    chown(&journal, Some(NOBODY), None).unwrap();
    refused(&format!(
        "it belongs to user {NOBODY}, and only files of user 0 are trusted"
    ));
    assert!(runs(pid));
    fs::rename(&kept, &journal).unwrap();
    // A link in place of the file that reserves room leads nowhere.
    let secret = dir.join("secret");
    fs::write(&secret, "root's").unwrap();
    fs::remove_file(dir.join("state/room")).unwrap();
    symlink(&secret, dir.join("state/room")).unwrap();
    let mut up = Up::start(dir);
    up.told(&format!("a: runs on, adopted (pid {pid})"));
    up.end();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "root's");
    nothing_is_left(dir);
}

/// A process of root's that is unrelated to any cell.
struct Stranger(Child);

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A journal and a cell's record that match another process: its pid, its start and the boot.
#[case(..NEEDS)]
pub fn a_record_that_names_a_stranger_ends_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    mission(dir, &plain());
    let mut up = Up::start(dir);
    let pid = pid_of(&up.told("a: runs"));
    up.kill();
    let stranger = Stranger(Command::new("sleep").arg("1000").spawn().unwrap());
    let strangers = stranger.0.id().cast_signed();
    let stat = fs::read_to_string(format!("/proc/{strangers}/stat")).unwrap();
    let start: u64 = stat.split(' ').nth(21).unwrap().parse().unwrap();
    let record = dir.join("state/cells/a/state/process.json");
    let mut json: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    json["pid"] = strangers.into();
    json["start_ticks"] = start.into();
    fs::write(&record, json.to_string()).unwrap();
    let said = ask(dir, &["down"]).ends_with(0);
    let left_alone =
        format!("its record names process {strangers}, which is not in the cell's groups");
    assert!(said.out.contains(&left_alone), "{}", said.out);
    assert!(runs(strangers), "the stranger was ended");
    assert!(!runs(pid), "the cell itself was not");
    nothing_is_left(dir);
}

#[case(..NEEDS)]
fn a_users_server_is_not_asked(dir: &Path) {
    let state = dir.join("state");
    fs::create_dir(&state).unwrap();
    fs::write(state.join("journal"), "").unwrap();
    // For a moment, the user may create it there.
    for at in [dir, &state] {
        fs::set_permissions(at, Permissions::from_mode(0o777)).unwrap();
    }
    let socket = state.join("control");
    let listens = std::thread::scope(|threads| {
        let listen = || {
            // SAFETY: plain numbers; the system call changes this thread only.
            let user = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
            assert_eq!(user, 0);
            UnixListener::bind(&socket).unwrap()
        };
        threads.spawn(listen).join().unwrap()
    });
    for at in [dir, &state] {
        fs::set_permissions(at, Permissions::from_mode(0o755)).unwrap();
    }
    for words in [
        &["ps"][..],
        &["down"],
        &["stop", "a"],
        &["events", "--follow"],
        &["logs", "a"],
    ] {
        // It never answers.
        let began = Instant::now();
        let error = ask(dir, words).ends_with(4).error();
        let listens = format!("user {NOBODY} listens there, who is neither root nor you");
        assert!(error.contains(&listens), "{words:?}: {error}");
        assert!(began.elapsed() < AT_ONCE, "{words:?} waited");
    }
    drop(listens);
}

/// An image with a link to a directory of root's in place of one on which runtimes mount.
#[case(..NEEDS)]
pub fn a_link_in_an_image_is_refused() {
    let places = Places::make();
    let dir = places.dir.path();
    // Root's own image, and one of a user's, who can change it at any time.
    for root in [dir.join("image"), places.home.join("image")] {
        for name in ["bin", "proc", "sys", "cell", "dev"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        copy_program(busybox(), &root.join("bin/busybox"));
        if root.starts_with(&places.home) {
            chown(&root, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let cell = |engine: &str, more: &str| {
            format!(
                "[[cell]]\nname = \"a\"\nclass = \"other\"\nengine = \"{engine}\"\nimage = {{ rootfs = \"{}\" }}\n\
                 command = [\"/bin/busybox\", \"sleep\", \"1000\"]\nstop_timeout = \"100ms\"\n\
                 restart = {{ policy = \"never\" }}\n{more}",
                root.display()
            )
        };
        let installed = |engine: &&str| {
            *engine == "embedded"
                || Need::Program(if *engine == "crun" { "crun" } else { "runc" })
                    .unmet()
                    .is_none()
        };
        for engine in ["embedded", "crun", "runc"]
            .iter()
            .filter(|engine| installed(engine))
        {
            // Unchanged, it runs.
            mission(dir, &cell(engine, ""));
            let mut up = Up::start(dir);
            up.told("a: runs");
            up.end();
            for name in ["dev", "proc", "sys", "cell"] {
                fs::rename(root.join(name), root.join("kept")).unwrap();
                users_link(&places.roots, &root.join(name));
                let said = say(dir, &["admit", "mission.toml"]).ends_with(2);
                let refused = format!("/{name} of the image {} is a link", root.display());
                assert!(said.error().contains(&refused), "{engine}: {}", said.err);
                fs::remove_file(root.join(name)).unwrap();
                fs::rename(root.join("kept"), root.join(name)).unwrap();
            }
            let mounts = "rights = { mounts = [{ source = \"/etc\", target = \"/data/sub\" }] }\n";
            mission(dir, &cell(engine, mounts));
            users_link(&places.roots, &root.join("data"));
            let said = say(dir, &["admit", "mission.toml"]).ends_with(2);
            assert!(
                said.error().contains("target /data/sub leads through it"),
                "{}",
                said.err
            );
            fs::remove_file(root.join("data")).unwrap();
            // Put there once the cell runs: its next start is refused.
            mission(
                dir,
                &cell(engine, "").replace("\"never\"", "\"always\", backoff_min = \"10ms\""),
            );
            let mut up = Up::start(dir);
            let pid = pid_of(&up.told("a: runs"));
            fs::rename(root.join("dev"), root.join("kept")).unwrap();
            users_link(&places.roots, &root.join("dev"));
            // SAFETY: no memory is involved; a cell of this test.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            up.until("a: could not be started");
            up.end();
            fs::remove_file(root.join("dev")).unwrap();
            fs::rename(root.join("kept"), root.join("dev")).unwrap();
        }
    }
    places.nothing_of_roots_was_reached();
    nothing_is_left(dir);
}

/// crun takes the part before a colon in the name of its log for the kind of log.
#[case(Root, Program("busybox"), Program("crun"))]
fn a_directory_whose_name_crun_reads_otherwise_is_one(dir: &Path) {
    mission(
        dir,
        &format!("engine = \"crun\"\n{}", plain()).replace(
            "engine = \"crun\"\n[[cell]]\n",
            "[[cell]]\nengine = \"crun\"\n",
        ),
    );
    for state in ["a:b", "a,b", "a\"b'\\", "a\nb"] {
        let mut up =
            Up::of(
                timecell()
                    .current_dir(dir)
                    .args(["up", "mission.toml", "--dir", state]),
            );
        up.told("a: runs");
        up.end();
    }
    nothing_is_left(dir);
}
