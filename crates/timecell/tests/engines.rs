//! Every engine available here makes real cells: their view, their end, and that nothing is left behind.

#[path = "../../host/tests/needs/mod.rs"]
mod needs;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use engine::{Cell, CellSpec, Engine, Options, Rights, User};
use model::{EngineKind, Pacing, Work};
use probe::control::State;
use probe::{Barrier, BarrierKind, ClassBy, ProbeArgs};

type Behaviour = fn(&dyn Engine, &Place);

/// The behaviours, each tried with each engine.
const BEHAVIOURS: [(&str, Behaviour); 7] = [
    ("an_empty_program_runs_and_leaves_nothing", empty_program),
    (
        "a_probe_goes_through_the_barrier_inside_its_cage",
        probe_in_cage,
    ),
    ("what_a_killed_coordinator_left_is_swept", forgotten_cell),
    (
        "a_granted_device_is_there_wherever_the_directories_are",
        granted_device,
    ),
    ("a_half_made_cell_is_swept", half_made_cell),
    ("a_root_without_the_binary_is_one_clear_sentence", no_binary),
    (
        "a_shared_directory_that_is_not_there_fails_and_leaves_nothing",
        no_shared,
    ),
];

/// A behaviour whose engine is not there is counted as ignored, with the reason in its name.
fn main() {
    let trials = (EngineKind::OF_BENCH.iter().copied())
        .flat_map(|kind| {
            let engine = engine::by_kind(kind, &Options::default());
            let unmet = engine.requirements().into_iter().find(|need| !need.met);
            // A machine runs nothing but probes, is no namespaces and has devices of its own.
            let fit = move |(_, run): &(&str, Behaviour)| {
                let of_containers: [Behaviour; 3] = [empty_program, probe_in_cage, granted_device];
                !(kind.is_machine()
                    && of_containers
                        .iter()
                        .any(|of| std::ptr::fn_addr_eq(*of, *run)))
            };
            let unmet = unmet.map(|unmet| unmet.reason);
            let fit = BEHAVIOURS.into_iter().filter(fit);
            fit.map(move |(behaviour, run)| {
                needs::trial(
                    &format!("{kind}::{behaviour}"),
                    unmet.as_deref(),
                    move || with(kind, run),
                )
            })
        })
        .collect();
    needs::run(trials, needs::Threads::Cpus);
}

/// Directories of one test, removed with it.
struct Place {
    dir: tempfile::TempDir,
    id: String,
    user: Option<User>,
}

impl Place {
    fn new(kind: EngineKind) -> Place {
        Place::below(kind, Path::new("/dev/shm"))
    }

    fn below(kind: EngineKind, base: &Path) -> Place {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let dir = tempfile::Builder::new()
            .prefix("timecell-test-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir_in(base)
            .unwrap();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        fs::create_dir(dir.path().join("shared")).unwrap();
        Place {
            dir,
            id: format!("timecell-test-{}-{count}-{kind}", std::process::id()),
            user: (kind == EngineKind::PodmanRootless)
                .then(|| engine::users::choose(None).unwrap()),
        }
    }

    fn shared(&self) -> PathBuf {
        self.dir.path().join("shared")
    }

    fn spec(&self, kind: EngineKind, words: Vec<String>) -> CellSpec {
        CellSpec {
            id: self.id.clone(),
            engine: kind,
            rootfs: rootfs(),
            words,
            shared: self.shared(),
            work_dir: self.dir.path().join("work"),
            user: self.user.clone(),
            rights: Rights {
                rtprio: 50,
                memlock_bytes: 1 << 20,
                devices: Vec::new(),
                limits: model::Size::default(),
            },
            machine: kind.is_machine().then(|| {
                let asked = model::Machine {
                    accel: Some(model::Accel::Tcg),
                    ..model::Machine::default()
                };
                engine::Machine::of(&asked, &|what| eprintln!("{what}")).unwrap()
            }),
        }
    }

    /// A probe that stays until it is let go.
    fn probe(&self) -> (Barrier, Vec<String>) {
        let barrier = Barrier::create(&self.shared().join("control"), 1).unwrap();
        let args = ProbeArgs {
            control: "/cell/control".into(),
            slot: 0,
            samples: None,
            ring: false,
            work: Work::Timer,
            pacing: Pacing::Periodic,
            period_ns: 1_000_000,
            jobs: 1,
            fifo: None,
            deadline: None,
            cpu: 0,
            class_by: ClassBy::Coordinator,
            barrier: BarrierKind::Futex,
            ..ProbeArgs::default()
        };
        let words = ["probe".to_owned(), "run".to_owned()]
            .into_iter()
            .chain(args.to_words());
        (barrier, words.collect())
    }
}

/// One root filesystem for all tests.
fn rootfs() -> PathBuf {
    static ROOTFS: OnceLock<PathBuf> = OnceLock::new();
    ROOTFS
        .get_or_init(|| {
            let program = Path::new(env!("CARGO_BIN_EXE_timecell"));
            let dir = engine::rootfs::place().unwrap().join("engines-test");
            engine::rootfs::prepare_with(&dir, program).unwrap()
        })
        .clone()
}

fn with(kind: EngineKind, behaviour: Behaviour) {
    let engine = engine::by_kind(kind, &Options::default());
    assert!(
        engine.version().is_some(),
        "an engine that is there has a version"
    );
    behaviour(&*engine, &Place::new(kind));
}

fn soon() -> i64 {
    probe::clock::now() + 30_000_000_000
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn empty_program(engine: &dyn Engine, place: &Place) {
    let words = vec!["probe".to_owned(), "nop".to_owned()];
    let spec = place.spec(engine.kind(), words);
    let mut cell = engine.create(&spec).unwrap();
    let pid = cell.pid();
    assert!(pid > 1);
    eventually("the empty program ends", || ended(pid));
    cell.remove().unwrap();
    cell.remove().unwrap();
    assert_nothing_left(&spec, pid);
}

fn probe_in_cage(engine: &dyn Engine, place: &Place) {
    let (barrier, words) = place.probe();
    let spec = place.spec(engine.kind(), words);
    let mut cell = engine.create(&spec).unwrap();
    let pid = cell.pid();
    present(&barrier, &*cell);

    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
    assert_eq!(
        words[1..3],
        [&b"probe"[..], b"run"],
        "the pid is the payload's"
    );
    if engine.kind() != EngineKind::Bare {
        for namespace in ["pid", "mnt", "net", "ipc", "uts"] {
            let of = |who: &str| fs::read_link(format!("/proc/{who}/ns/{namespace}")).unwrap();
            assert_ne!(of(&pid.to_string()), of("self"), "{namespace}");
        }
        assert_caged(Path::new(&format!("/proc/{pid}/root")));
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.contains("NoNewPrivs:\t1"));
        let capabilities = status
            .lines()
            .find(|line| line.starts_with("CapEff:"))
            .unwrap();
        let bits =
            u64::from_str_radix(capabilities.split_whitespace().last().unwrap(), 16).unwrap();
        // CAP_IPC_LOCK is bit 14, CAP_SYS_NICE bit 23.
        assert_eq!(bits & !(1 << 14 | 1 << 23), 0, "{capabilities}");
    }

    barrier.permit(0);
    barrier
        .wait_all(State::Armed, "armed", soon(), || false)
        .unwrap();
    barrier.open(Barrier::lead_ns(1));
    barrier
        .wait_all(State::Done, "done", soon(), || false)
        .unwrap();
    assert_eq!(barrier.failure(0), None);
    barrier.leave();
    eventually("the payload ends", || ended(pid));
    cell.remove().unwrap();
    assert_nothing_left(&spec, pid);
}

fn present(barrier: &Barrier, cell: &dyn Cell) {
    barrier
        .wait_all(State::Present, "present", soon(), || ended(cell.pid()))
        .unwrap_or_else(|error| panic!("{error}; the log says: {}", cell.log_tail()));
    assert_eq!(barrier.failure(0), None);
}

/// The binary and mount points are all there is, and nothing can be written.
fn assert_caged(root: &Path) {
    let mut files = Vec::new();
    for entry in fs::read_dir(root).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        match name.as_str() {
            "cell" | "dev" | "proc" | "sys" => {}
            _ if entry.file_type().unwrap().is_dir() => {
                files.extend(files_below(&entry.path(), &name))
            }
            _ => files.push(name),
        }
    }
    // Mounted by podman and docker over empty files, with any options.
    files.retain(|file| {
        ![
            "etc/hostname",
            "etc/hosts",
            "etc/mtab",
            "etc/resolv.conf",
            "run/.containerenv",
        ]
        .contains(&file.as_str())
    });
    assert_eq!(files, ["timecell"]);
    assert!(root.join("cell/control").exists());
    let devices = ["null", "zero", "full", "tty", "random", "urandom"];
    for entry in fs::read_dir(root.join("dev")).unwrap().flatten() {
        use std::os::unix::fs::FileTypeExt;
        let kind = entry.file_type().unwrap();
        let name = entry.file_name().into_string().unwrap();
        if kind.is_char_device() || kind.is_block_device() {
            assert!(devices.contains(&name.as_str()), "/dev/{name}");
        }
    }
}

fn files_below(dir: &Path, name: &str) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            files.extend(files_below(&entry.path(), &name));
        } else {
            files.push(name);
        }
    }
    files
}

fn forgotten_cell(engine: &dyn Engine, place: &Place) {
    let (barrier, words) = place.probe();
    let spec = place.spec(engine.kind(), words);
    let cell = engine.create(&spec).unwrap();
    present(&barrier, &*cell);
    let pid = cell.pid();
    std::mem::forget(cell);
    engine::sweep(&spec.work_dir).unwrap();
    assert_nothing_left(&spec, pid);
    engine::sweep(&spec.work_dir).unwrap();
}

fn granted_device(engine: &dyn Engine, _: &Place) {
    let device = PathBuf::from("/dev/kmsg");
    let place = Place::below(engine.kind(), Path::new("/var/tmp"));
    let (barrier, words) = place.probe();
    let mut spec = place.spec(engine.kind(), words);
    spec.rights.devices.push(device.clone());
    let mut cell = engine.create(&spec).unwrap();
    present(&barrier, &*cell);
    let pid = cell.pid();
    let inside = fs::metadata(format!("/proc/{pid}/root{}", device.display())).unwrap();
    let outside = device.metadata().unwrap();
    assert_eq!(
        std::os::unix::fs::MetadataExt::rdev(&inside),
        std::os::unix::fs::MetadataExt::rdev(&outside)
    );
    cell.remove().unwrap();
    assert_nothing_left(&spec, pid);
}

fn half_made_cell(engine: &dyn Engine, place: &Place) {
    let (_barrier, words) = place.probe();
    let spec = place.spec(engine.kind(), words);
    fs::create_dir_all(spec.work_dir.join("state")).unwrap();
    fs::write(
        spec.work_dir.join("cell.json"),
        serde_json::to_vec(&spec).unwrap(),
    )
    .unwrap();
    engine::sweep(&spec.work_dir).unwrap();
    assert_nothing_left(&spec, i32::MAX);
}

fn no_binary(engine: &dyn Engine, place: &Place) {
    let rootfs = place.dir.path().join("empty");
    fs::create_dir(&rootfs).unwrap();
    let words = vec!["probe".to_owned(), "nop".to_owned()];
    let spec = CellSpec {
        rootfs: rootfs.clone(),
        ..place.spec(engine.kind(), words)
    };
    let error = engine
        .create(&spec)
        .err()
        .expect("there is nothing to run")
        .to_string();
    assert_eq!(
        error,
        format!(
            "{}: cannot create the cell: {}/timecell is missing; the root filesystem of a cell holds the timecell binary",
            engine.kind(),
            rootfs.display()
        )
    );
    assert_nothing_left(&spec, i32::MAX);
}

fn no_shared(engine: &dyn Engine, place: &Place) {
    let words = vec!["probe".to_owned(), "nop".to_owned()];
    let shared = place.dir.path().join("nowhere");
    let spec = CellSpec {
        shared,
        ..place.spec(engine.kind(), words)
    };
    let error = engine
        .create(&spec)
        .err()
        .expect("there is nothing to mount")
        .to_string();
    assert!(error.contains("nowhere"), "{error}");
    assert_nothing_left(&spec, i32::MAX);
}

/// Whether a process is gone or dead.
fn ended(pid: i32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat
            .rsplit_once(") ")
            .is_none_or(|(_, rest)| rest.starts_with('Z')),
        Err(_) => true,
    }
}

fn assert_nothing_left(spec: &CellSpec, pid: i32) {
    // An orphan is reaped by the machine's init, which may take its time.
    eventually("the payload is reaped", || {
        !Path::new(&format!("/proc/{pid}")).exists()
    });
    let mark = format!("TIMECELL_CELL={}", spec.id);
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let words = fs::read(entry.path().join("environ")).unwrap_or_default();
        assert!(
            !words
                .split(|byte| *byte == 0)
                .any(|word| word == mark.as_bytes()),
            "process {} is still there: {}",
            entry.path().display(),
            String::from_utf8_lossy(&fs::read(entry.path().join("cmdline")).unwrap_or_default())
        );
    }
    assert_no_cgroup(Path::new("/sys/fs/cgroup"), &spec.id);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let work_dir = spec.work_dir.display().to_string();
    for line in mounts.lines() {
        assert!(
            !line.contains(&spec.id) && !line.contains(&work_dir),
            "{line}"
        );
    }
    let left: Vec<_> = fs::read_dir(&spec.work_dir)
        .map(|entries| entries.flatten().map(|entry| entry.file_name()).collect())
        .unwrap_or_default();
    assert!(left.iter().all(|name| name == "log"), "{left:?}");
    for name in files_below(&spec.rootfs, "") {
        assert!(
            [
                "/timecell",
                "/etc/hostname",
                "/etc/hosts",
                "/etc/mtab",
                "/etc/resolv.conf",
                "/run/.containerenv"
            ]
            .contains(&name.as_str()),
            "{name} was put into the root filesystem"
        );
    }
}

fn assert_no_cgroup(dir: &Path, id: &str) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            assert!(
                !entry.file_name().to_string_lossy().contains(id),
                "{}",
                entry.path().display()
            );
            assert_no_cgroup(&entry.path(), id);
        }
    }
}
