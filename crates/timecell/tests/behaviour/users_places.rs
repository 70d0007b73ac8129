//! Root in a user's directory: its files there belong to the user, in every kind of run or output, and no link that
//! the user puts in its way leads to anything of root's.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::{Need, Said, eventually, experiment, only_run, say, timecell};

const SUPPLY_NEEDS: &[Need] = &[
    Need::Root,
    Need::RealTime,
    Need::GroupBudget(350),
    Need::DeadlineBudget,
];

const SUPPLY: [&str; 6] = [
    "bench",
    "supply",
    "--quick",
    "--reservation",
    "3ms/10ms",
    "--no-try",
];

/// The user.
pub const NOBODY: u32 = 65534;

/// A directory that everybody may traverse.
pub struct Places {
    pub dir: tempfile::TempDir,
    /// The user's directory.
    pub home: PathBuf,
    /// Root's directory, which is empty.
    pub roots: PathBuf,
}

impl Places {
    pub fn make() -> Places {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let (home, roots) = (dir.path().join("home"), dir.path().join("roots"));
        for made in [&home, &roots] {
            fs::create_dir(made).unwrap();
        }
        chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
        Places { dir, home, roots }
    }

    /// Runs the binary in the user's directory; the files in `runs` afterwards must be the user's. There is one run, whose
    /// directory is removed with the others.
    #[track_caller]
    pub fn measures(&self, words: &[&str]) {
        say(&self.home, words).ends_with(0);
        only_run(&self.home);
        all_the_users(&self.home.join("runs"));
        fs::remove_dir_all(self.home.join("runs")).unwrap();
    }

    #[track_caller]
    pub fn nothing_of_roots_was_reached(&self) {
        let reached: Vec<_> = fs::read_dir(&self.roots).unwrap().collect();
        assert!(reached.is_empty(), "{reached:?}");
    }
}

/// Creates a link that belongs to the user.
pub fn users_link(to: &Path, at: &Path) {
    symlink(to, at).unwrap();
    lchown(at, Some(NOBODY), Some(NOBODY)).unwrap();
}

#[track_caller]
fn all_the_users(root: &Path) {
    let mut left = vec![root.to_owned()];
    while let Some(path) = left.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        assert_eq!(found.uid(), NOBODY, "{}", path.display());
        if found.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
}

#[case(..SUPPLY_NEEDS)]
fn a_study_of_supply_is_the_users() {
    Places::make().measures(&SUPPLY);
}

#[case(Root, RealTime, Alone)]
fn a_study_of_isolation_is_the_users() {
    let places = Places::make();
    let quick = ["bench", "isolation", "contest", "--quick", "--duration"];
    places.measures(&[&quick[..], &["1s", "--utilisation", "0.3"]].concat());
    let received = ["bench", "isolation", "received", "--quick"];
    places.measures(&[&received[..], &["--reservation", "3ms/100ms"]].concat());
}

/// The user replaces the directory of the trials' files by a link, once it exists.
#[case(..SUPPLY_NEEDS)]
fn a_directory_that_becomes_a_link_while_a_study_runs_leads_nowhere() {
    let places = Places::make();
    let closed = Permissions::from_mode(0o700);
    fs::set_permissions(&places.roots, closed).unwrap();
    let mut child = timecell()
        .current_dir(&places.home)
        .args(SUPPLY)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let runs = places.home.join("runs");
    let trials = || {
        let run = fs::read_dir(&runs).ok()?.next()?.ok()?.path();
        Some(run.join("trials")).filter(|trials| trials.is_dir())
    };
    eventually("the directory is there", || trials().is_some());
    let trials = trials().unwrap();
    fs::rename(&trials, trials.with_file_name("aside")).unwrap();
    users_link(&places.roots, &trials);
    let code = child.wait().unwrap().code();
    places.nothing_of_roots_was_reached();
    assert_ne!(code, Some(0), "its files went nowhere");
}

#[case(Root)]
fn no_output_goes_through_a_users_link() {
    let places = Places::make();
    let at = |name: &str| places.dir.path().join(name);
    let run = |name: &str, more: &[&str]| {
        fs::create_dir(at(name)).unwrap();
        let file = experiment(&at(name), &["bare"], 20);
        let words = ["bench", &file, "--rounds", "1", "--class", "other"];
        say(&at(name), &[&words[..], more].concat()).ends_with(0);
        only_run(&at(name)).to_string_lossy().into_owned()
    };
    let (jobs, bins) = (run("jobs", &[]), run("bins", &["--histogram"]));
    let set = at("set.toml");
    let text = "schema = 1\n[[cell]]\nname = \"c\"\npolicy = \"edf\"\n\
        [[cell.task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n";
    fs::write(&set, text).unwrap();
    let set = set.to_string_lossy().into_owned();

    // Into a file: a link to nothing yet, and one to a file that only root may write.
    let (aim, secret, link) = (
        places.roots.join("aim"),
        at("secret"),
        places.home.join("out"),
    );
    fs::write(&secret, "root's").unwrap();
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    let files: [&[&str]; 6] = [
        &["export", "--csv", &jobs],
        &["export", "--parquet", &jobs],
        &["export", "--cyclictest-json", &jobs],
        &["export", "--cyclictest-hist", &jobs],
        &["export", "--rt-app", &set],
        &["report", &jobs],
    ];
    let into = |words: &[&str], to: &Path, more: &[&str]| -> Said {
        let _ = fs::remove_file(&link);
        users_link(to, &link);
        let out = ["-o", link.to_str().unwrap()];
        say(places.dir.path(), &[words, &out, more].concat())
    };
    for words in files {
        into(words, &aim, &[]).ends_with(2);
        places.nothing_of_roots_was_reached();
        into(words, &aim, &["--force"]).ends_with(0);
        places.nothing_of_roots_was_reached();
        assert_eq!(
            fs::symlink_metadata(&link).unwrap().uid(),
            NOBODY,
            "{words:?}"
        );
        let said = into(words, &secret, &["--force"]).ends_with(2);
        assert!(said.err.contains("Permission denied"), "{}", said.err);
        assert_eq!(fs::read_to_string(&secret).unwrap(), "root's", "{words:?}");
    }

    // Into a directory: a link to one of root's.
    let _ = fs::remove_file(&link);
    users_link(&places.roots, &link);
    let to = link.to_str().unwrap();
    let directories: [&[&str]; 4] = [
        &["export", "--hdr", &bins, "-o", to],
        &["report", &jobs, "--figures", to],
        &["report", &jobs, "--baseline", &jobs, "--figures", to],
        &["man", to],
    ];
    for words in directories {
        let said = say(places.dir.path(), words);
        assert_ne!(said.code, Some(0), "{words:?}");
        assert!(
            said.err.contains("Permission denied"),
            "{words:?} {}",
            said.err
        );
        places.nothing_of_roots_was_reached();
    }
}
