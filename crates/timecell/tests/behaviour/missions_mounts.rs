//! A cell that may write to a directory of the host replaces a directory in it, which another cell is to mount, by a link.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::missions::{Up, mission, nothing_is_left, pid_of, shell};
use crate::support::{eventually, say};

const AGAIN: &str = "restart = { limit = 1000000, backoff_min = \"20ms\", backoff_max = \"20ms\" }";

struct Scene {
    dir: tempfile::TempDir,
    shared: PathBuf,
    sub: PathBuf,
    secret: PathBuf,
}

impl Scene {
    fn new() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(dir.path()).unwrap();
        let scene = Scene {
            shared: top.join("shared"),
            sub: top.join("shared/sub"),
            secret: top.join("secret"),
            dir,
        };
        for (made, file) in [(&scene.sub, "meant"), (&scene.secret, "secret")] {
            fs::create_dir_all(made).unwrap();
            fs::write(made.join(file), "").unwrap();
        }
        fs::set_permissions(&scene.shared, fs::Permissions::from_mode(0o777)).unwrap();
        scene
    }

    /// A cell that puts the link there once it is told to.
    fn swapping(&self) -> String {
        let script = format!(
            "until test -e /shared/now; do /busybox sleep 0.02; done; \
             /busybox mv /shared/sub /shared/aside; /busybox ln -s {} /shared/sub; /busybox sleep 1000",
            self.secret.display()
        );
        shell("swapping", &script, &mounts(&self.shared, "/shared", true))
    }

    /// A cell that prints its view.
    fn shown(&self, engine: &str) -> String {
        let more = format!(
            "engine = \"{engine}\"\n{AGAIN}\n{}",
            mounts(&self.sub, "/data", false)
        );
        shell("shown", "/busybox ls /data; /busybox sleep 1000", &more)
    }
}

fn mounts(source: &Path, target: &str, writable: bool) -> String {
    format!(
        "class = \"other\"\nrights = {{ mounts = [{{ source = \"{}\", target = \"{target}\", writable = {writable} }}] }}",
        source.display()
    )
}

#[case(a_link_in_the_place_of_a_mount_is_not_followed_embedded("embedded"); Root)]
#[case(a_link_in_the_place_of_a_mount_is_not_followed_crun("crun"); Root, Program("crun"))]
pub fn a_link_is_not_followed(engine: &str) {
    let scene = Scene::new();
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    mission(one.path(), &scene.swapping());
    mission(other.path(), &scene.shown(engine));
    let mut swaps = Up::start(one.path());
    swaps.until("swapping: runs");
    let mut up = Up::start(other.path());
    let pid = pid_of(&up.until("shown: runs"));
    let said = || say(other.path(), &["logs", "shown", "--dir", "state"]).out;
    eventually("it says what it sees", || said().contains("meant"));
    fs::write(scene.shared.join("now"), "").unwrap();
    eventually("there is a link", || scene.sub.is_symlink());
    // SAFETY: no memory is involved; a cell of this test.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let sentence = format!(
        "the mount's source {0} cannot be used: {0} is a link that another user could have put there",
        scene.sub.display()
    );
    up.until(&sentence);
    // The next supervisor knows too.
    up.kill();
    let mut up = Up::start(other.path());
    up.until(&sentence);
    fs::remove_file(&scene.sub).unwrap();
    fs::create_dir(&scene.sub).unwrap();
    fs::write(scene.sub.join("made anew"), "").unwrap();
    up.until("shown: runs");
    eventually("it says what it sees", || said().contains("made anew"));
    up.end();
    assert!(!said().contains("secret"), "{}", said());
    swaps.end();
    // Nobody knows whose idea a link is where everybody can put one.
    fs::remove_dir_all(&scene.sub).unwrap();
    symlink(scene.shared.join("aside"), &scene.sub).unwrap();
    let mut up = Up::start(other.path());
    up.until(&sentence);
    up.end();
    nothing_is_left(one.path());
    nothing_is_left(other.path());
}

#[case(Root)]
fn no_mount_lies_below_what_a_cell_of_the_mission_may_write_to() {
    let scene = Scene::new();
    let dir = scene.dir.path();
    mission(
        dir,
        &format!("{}{}", scene.swapping(), scene.shown("embedded")),
    );
    let sentence = format!(
        "`{}` leads through `{}`, where cell `swapping` may write and so could redirect it to any directory of the host",
        scene.sub.display(),
        scene.shared.display()
    );
    for words in [
        &["admit", "mission.toml"][..],
        &["up", "mission.toml", "--dir", "state"],
    ] {
        let said = say(dir, words).ends_with(2);
        assert!(said.err.contains(&sentence), "{}", said.err);
    }
    nothing_is_left(dir);
}
