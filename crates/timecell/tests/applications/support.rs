//! Helpers: directories for cells, running a cell to its end, and looking for its remains.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use engine::Cell;
use engine::app::{AppCell, AppSpec, Ended, Image, Launcher, Streams, create};
use model::EngineKind;

/// How long anything may take that an idle machine does at once.
pub const PATIENCE: Duration = Duration::from_secs(20);

const BUSYBOX: &str = "/usr/bin/busybox";

/// Why there is no root filesystem for the tests.
pub fn no_busybox() -> Option<String> {
    let missing = !Path::new(BUSYBOX).exists();
    missing.then(|| format!("{BUSYBOX} is missing (apt install busybox-static)"))
}

/// A root filesystem with busybox and nothing else, not even mount points.
pub fn rootfs() -> PathBuf {
    static ROOTFS: OnceLock<tempfile::TempDir> = OnceLock::new();
    let dir = ROOTFS.get_or_init(|| {
        let dir = tempfile::Builder::new()
            .prefix("timecell-test-rootfs-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in("/var/tmp")
            .unwrap();
        let bin = dir.path().join("bin");
        fs::create_dir(&bin).unwrap();
        fs::copy(BUSYBOX, bin.join("busybox")).unwrap();
        let names = [
            "sh", "cat", "echo", "ls", "sleep", "id", "touch", "mount", "hostname", "yes", "head",
            "stat", "test", "kill", "true", "dd", "pwd", "env", "rm", "mkdir", "grep", "find",
            "mknod", "chroot",
        ];
        for name in names {
            symlink("busybox", bin.join(name)).unwrap();
        }
        dir
    });
    dir.path().to_owned()
}

/// Directories of one test, removed with it.
pub struct Place {
    dir: tempfile::TempDir,
    id: String,
}

impl Place {
    pub fn new(kind: EngineKind) -> Place {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Place {
            dir: tempfile::Builder::new()
                .prefix("timecell-test-app-")
                .tempdir_in("/var/tmp")
                .unwrap(),
            id: format!("timecell-test-app-{}-{count}-{kind}", std::process::id()),
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn spec(&self, kind: EngineKind, image: Image) -> AppSpec {
        AppSpec::new(&self.id, kind, image, &self.dir.path().join("work"))
    }

    /// A directory that every user may write to.
    pub fn writable(&self, name: &str) -> PathBuf {
        let dir = self.dir.path().join(name);
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
        dir
    }

    /// A cell that runs this test binary with these arguments.
    pub fn itself(&self, kind: EngineKind, words: &[&str]) -> AppSpec {
        let own = std::env::current_exe().unwrap();
        let mut spec = self.spec(kind, Image::Binary(own));
        let words = [crate::program::WORD]
            .into_iter()
            .chain(words.iter().copied());
        spec.args = words.map(str::to_owned).collect();
        spec
    }

    /// A cell that runs a script of busybox.
    pub fn script(&self, kind: EngineKind, script: &str) -> AppSpec {
        let mut spec = self.spec(kind, Image::Rootfs(rootfs()));
        spec.command = ["sh", "-c", script].map(str::to_owned).to_vec();
        spec
    }
}

pub fn launcher() -> Launcher {
    // One copy for all cells.
    static LAUNCHER: OnceLock<Launcher> = OnceLock::new();
    let own = || Launcher::at(Path::new(env!("CARGO_BIN_EXE_timecell"))).unwrap();
    LAUNCHER.get_or_init(own).clone()
}

pub fn create_logged(spec: &AppSpec) -> AppCell {
    create(spec, Streams::Log, &launcher()).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a cell to its end and removes it; returns how it ended, and its output.
pub fn run(spec: &AppSpec) -> (Ended, String) {
    let mut cell = create_logged(spec);
    let pid = cell.pid();
    cell.start()
        .unwrap_or_else(|error| panic!("{error}: {}", cell.log_tail()));
    let ended = finish(&mut cell);
    let output = output(&mut cell);
    cell.remove().unwrap();
    assert_nothing_left(spec, pid);
    // The next cell in the same place would append to it.
    fs::remove_file(spec.work_dir.join("output")).unwrap();
    (ended, output)
}

pub fn finish(cell: &mut AppCell) -> Ended {
    let ended = cell.wait(PATIENCE).unwrap();
    ended.unwrap_or_else(|| panic!("it does not end; it says: {}", cell.log_tail()))
}

pub fn output(cell: &mut AppCell) -> String {
    let log = cell.log().expect("it has a log");
    log.drain().unwrap();
    String::from_utf8(log.tail(usize::MAX).unwrap()).unwrap()
}

/// Why such a cell is not created.
pub fn refusal(spec: &AppSpec) -> String {
    let error = create(spec, Streams::Log, &launcher()).expect_err("it cannot be had");
    error.to_string()
}

/// Gives the cell's cgroup 100 ms of real-time class in each second, if cgroups need a budget for it.
pub fn allow_real_time(cell: &AppCell) {
    for group in cell.groups() {
        allow_below(&group, 100_000);
    }
}

/// The budgets of a group's groups together are at most its own.
fn allow_below(group: &Path, runtime_us: u32) {
    let budget = group.join("cpu.rt_runtime_us");
    if !budget.exists() {
        return;
    }
    fs::write(budget, runtime_us.to_string()).unwrap();
    for entry in fs::read_dir(group).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            allow_below(&entry.path(), runtime_us / 4);
        }
    }
}

/// Major and minor number of the kernel.
pub fn kernel() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next().unwrap().parse().unwrap();
    (next(), next())
}

pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Processes of a cell and of its engine.
fn marked(id: &str) -> Vec<PathBuf> {
    let mark = format!("TIMECELL_CELL={id}");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let is_marked = |path: &PathBuf| {
        let words = fs::read(path.join("environ")).unwrap_or_default();
        words
            .split(|byte| *byte == 0)
            .any(|word| word == mark.as_bytes())
    };
    processes
        .map(|entry| entry.path())
        .filter(is_marked)
        .collect()
}

/// Asserts that nothing of the cell is left but its log and output: no process, cgroup, mount or file.
pub fn assert_nothing_left(spec: &AppSpec, pid: i32) {
    eventually("the program is reaped", || {
        !Path::new(&format!("/proc/{pid}")).exists()
    });
    // A runtime that was working on the cell notices that it is gone, and ends.
    eventually(&format!("no process of {} is left", spec.id), || {
        marked(&spec.id).is_empty()
    });
    for hierarchy in fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
        let group = hierarchy.path().join(&spec.id);
        assert!(!group.exists(), "{} is left", group.display());
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let work_dir = spec.work_dir.display().to_string();
    for line in mounts.lines() {
        assert!(
            !line.contains(&spec.id) && !line.contains(&work_dir),
            "{line}"
        );
    }
    let left: Vec<String> = fs::read_dir(&spec.work_dir)
        .map(|entries| entries.flatten().map(|entry| entry.file_name()))
        .map(|names| names.map(|name| name.into_string().unwrap()).collect())
        .unwrap_or_default();
    for name in left {
        assert!(
            name == "log" || name.starts_with("output"),
            "{name} is left"
        );
    }
    let names: Vec<_> = fs::read_dir(rootfs())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names, ["bin"], "the root filesystem was changed");
}
