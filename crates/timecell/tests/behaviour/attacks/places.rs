//! A user in whose directory root measures, and who keeps replacing a directory of the run by a link to one of root's: root
//! must not give away anything of its own.

use std::ffi::CString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Attack, Before, Now};
use crate::support::{Need, experiment, timecell};
use crate::users_places::{NOBODY, Places};

pub const PLACES: Attack = Attack {
    name: "users-links",
    tries: "`sudo timecell bench` in a user's directory, whose user exchanges the run's trials and links to root's directory all the time",
    before: Before {
        got: "root's 0600 file the user's in 18 of 20 tries",
        neighbour: "-",
    },
    needs: &[Need::Root],
    deed: |_| (),
    run,
};

/// The file of root's.
const SECRET: &str = "secret";
/// As many chances in each run.
const TRIALS: usize = 500;

fn run(seconds: u64) -> Now {
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut tries, mut got) = (0, 0);
    while tries < 3 || Instant::now() < end {
        tries += 1;
        got += usize::from(reaches_roots());
    }
    Now {
        got: format!("root's 0600 file the user's in {got} of {tries} tries"),
        held: got == 0,
        neighbour: None,
    }
}

/// Whether anything of root's became the user's in one run, or something was made beside it.
fn reaches_roots() -> bool {
    let places = Places::make();
    let secret = places.roots.join(SECRET);
    fs::write(&secret, "root's").unwrap();
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    let file = experiment(&places.home, &["bare"], 20);
    let (over, prepared) = (AtomicBool::new(false), Barrier::new(2));
    std::thread::scope(|threads| {
        let racer = threads.spawn(|| exchange(&places.home, &places.roots, &prepared, &over));
        let user = NOBODY.to_string();
        prepared.wait();
        // Whether it finishes the run is another matter.
        timecell()
            .current_dir(&places.home)
            .args(["bench", &file, "--rounds", "1", "--class", "other"])
            .envs([("SUDO_UID", &user), ("SUDO_GID", &user)])
            .output()
            .unwrap();
        over.store(true, Ordering::Relaxed);
        racer.join().unwrap();
    });
    let is_roots = |path: &Path| fs::metadata(path).unwrap().uid() == 0;
    let found = fs::read_dir(&places.roots).unwrap().count();
    !(is_roots(&secret) && is_roots(&places.roots) && found == 1)
}

/// As the user: once the trial is over, another directory in the place of `runs`. Its supposed trials are exchanged all the time: for a moment they
/// are directories with a file each, and then links to root's, whose file has the same name.
fn exchange(home: &Path, roots: &Path, prepared: &Barrier, over: &AtomicBool) {
    // SAFETY: plain numbers; the system call changes this thread only.
    let user = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
    assert_eq!(user, 0);
    let (runs, other) = (home.join("runs"), home.join("other"));
    for trial in (0..TRIALS).map(|number| number.to_string()) {
        let [real, link] = ["run/trials", "run/links"].map(|dir| other.join(dir).join(&trial));
        fs::create_dir_all(&real).unwrap();
        fs::write(real.join(SECRET), "").unwrap();
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(roots, link).unwrap();
    }
    prepared.wait();
    let begun = || Some(fs::read_dir(&runs).ok()?.next()?.ok()?.file_name());
    let run = loop {
        match begun() {
            Some(run) if runs.join(&run).join("trials/1").is_dir() => break run,
            _ if over.load(Ordering::Relaxed) => return,
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    fs::rename(other.join("run"), other.join(&run)).unwrap();
    swap(&runs, &other);
    let [trials, links] = ["trials", "links"].map(|dir| runs.join(&run).join(dir));
    while !over.load(Ordering::Relaxed) {
        swap(&trials, &links);
    }
}

fn swap(one: &Path, other: &Path) {
    let [one, other] =
        [one, other].map(|path| CString::new(path.as_os_str().as_encoded_bytes()).unwrap());
    let here = libc::AT_FDCWD;
    // SAFETY: both strings end with a nul.
    unsafe {
        libc::renameat2(
            here,
            one.as_ptr(),
            here,
            other.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    };
}
