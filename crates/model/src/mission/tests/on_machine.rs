//! Missions checked against made-up machines.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::LEAST;
use crate::mission::{Cell, KernelBounds, Machine, MissionFile, PathKind, Place, Rights, Way};
use crate::{EngineKind, Requirement};

/// A machine with the contents of a table.
struct Board {
    cpus: Vec<u32>,
    paths: HashMap<PathBuf, PathKind>,
    images: Option<Vec<&'static str>>,
    bounds: KernelBounds,
    /// Directories that are links, and where they lead.
    links: Vec<(&'static str, &'static str)>,
    /// Engines that are not installed.
    absent: Vec<EngineKind>,
    /// Engines that were asked for their lacks.
    asked: RefCell<Vec<EngineKind>>,
}

impl Board {
    fn new(paths: &[(&str, PathKind)]) -> Board {
        Board {
            cpus: vec![0, 1],
            paths: (paths.iter())
                .map(|(path, kind)| (PathBuf::from(path), *kind))
                .collect(),
            images: Some(vec!["localhost/known"]),
            bounds: KernelBounds::default(),
            links: Vec::new(),
            absent: Vec::new(),
            asked: RefCell::default(),
        }
    }
}

impl Machine for Board {
    fn cpus(&self) -> Vec<u32> {
        self.cpus.clone()
    }

    fn path(&self, path: &Path) -> PathKind {
        self.paths.get(path).copied().unwrap_or(PathKind::Absent)
    }

    fn way(&self, path: &Path) -> Option<Way> {
        let (mut through, mut end) = (Vec::new(), path.to_owned());
        for (link, to) in &self.links {
            if let Ok(rest) = path.strip_prefix(link) {
                through.extend(Path::new(link).parent().map(Path::to_owned));
                end = match rest.as_os_str().is_empty() {
                    true => PathBuf::from(to),
                    false => Path::new(to).join(rest),
                };
            }
        }
        through.extend(end.parent().map(Path::to_owned));
        Some(Way { through, end })
    }

    fn lacks(&self, engine: EngineKind) -> Option<Requirement> {
        self.asked.borrow_mut().push(engine);
        (self.absent.contains(&engine))
            .then(|| Requirement::unmet("it", format!("`{engine}` is not installed"), "get it"))
    }

    fn knows_image(&self, _: EngineKind, reference: &str) -> Option<bool> {
        (self.images.as_ref()).map(|known| known.contains(&reference))
    }

    fn least_memory(&self, cell: &Cell, program: &Path) -> Option<u64> {
        assert_eq!(
            (cell.engine, program),
            (EngineKind::Qemu, Path::new("/etc/app"))
        );
        Some((576 << 20) + 1)
    }

    fn bounds(&self) -> KernelBounds {
        self.bounds
    }
}

fn faults(text: &str, board: &Board) -> Vec<String> {
    match MissionFile::parse_on("/etc/m.toml", text, board) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn the_board_and_the_kernel_of_a_machine_count_from_the_file() {
    let text = "schema = 1\nname = \"m\"\n[[cell]]\nname = \"a\"\nclass = \"other\"\nengine = \"qemu\"\n\
        image = { binary = \"/usr/bin/app\" }\nmachine = { board = \"b.toml\", kernel = \"../vmlinux\" }\n";
    let file = MissionFile::parse("/etc/m/m.toml", text).unwrap();
    let machine = &file.mission().cells[0].machine;
    assert_eq!(machine.board(), "/etc/m/b.toml");
    assert_eq!(machine.kernel.as_deref(), Some("/etc/m/../vmlinux"));
}

#[test]
fn relative_paths_count_from_the_file() {
    let board = Board::new(&[("/etc/root", PathKind::Directory)]);
    assert_eq!(faults(LEAST, &board), Vec::<String>::new());
    assert_eq!(
        faults(LEAST, &Board::new(&[])),
        ["/etc/m.toml:5: there is no root filesystem `/etc/root`; create it, or correct the path"]
    );
    assert_eq!(
        faults(LEAST, &Board::new(&[("/etc/root", PathKind::Program)])),
        ["/etc/m.toml:5: the root filesystem `/etc/root` is a program; it must be a directory"]
    );
}

#[test]
fn everything_that_is_absent_is_told_at_once_with_its_line() {
    let text = r#"schema = 1
name = "absent"
cpus = [1, 7]
latency_run = "runs/latency"
supply_run = "runs/supply"
notify = ["/usr/bin/tell"]

[[cell]]
name = "a"
image = { bundle = "a" }
cpus = [
    1,
    7,
]
reservation = { budget = "3ms", period = "10ms" }
needs = ["b"]
[cell.rights]
devices = [
    { path = "/dev/ttyS1" },
    { path = "/dev/null" },
]
mounts = [{ source = "data", target = "/data" }]

[[cell]]
name = "b"
image = { reference = "localhost/unknown" }
engine = "podman"
class = "deadline"
reservation = { budget = "4ms", period = "5s" }
after = ["a"]

[[cell]]
name = "c"
image = { binary = "c" }
class = "deadline"
cpuss = [2]
[[cell.task]]
name = "fast"
wcet = "10us"
period = "50us"

[[cell]]
name = "d"
image = { bundle = "d" }
cpus = [1]
class = "fifo"
reservation = { budget = "99ms", period = "100ms" }
"#;
    let board = Board::new(&[
        ("/dev/null", PathKind::Device),
        ("/usr/bin/tell", PathKind::File),
        ("/etc/c", PathKind::Directory),
        ("/etc/d", PathKind::Directory),
    ]);
    assert_eq!(
        faults(text, &board),
        [
            "/etc/m.toml:3: cpu 7 is not available for cells on this machine; it has 0 and 1",
            "/etc/m.toml:4: there is no run `/etc/runs/latency`; create it, or correct the path",
            "/etc/m.toml:5: there is no run `/etc/runs/supply`; create it, or correct the path",
            "/etc/m.toml:6: the program `/usr/bin/tell` is a file that is not executable; it must be a program",
            "/etc/m.toml:10: there is no bundle `/etc/a`; create it, or correct the path",
            "/etc/m.toml:13: cpu 7 is not available for cells on this machine; it has 0 and 1",
            "/etc/m.toml:16: the cells a -> b -> a wait for each other; remove one of them from `after` or `needs` of the one before it",
            "/etc/m.toml:19: there is no device `/dev/ttyS1`; create it, or correct the path",
            "/etc/m.toml:22: there is no source of a mount `/etc/data`; create it, or correct the path",
            "/etc/m.toml:26: podman has no image `localhost/unknown`; pull, build or load it first; `podman images` lists those that it has",
            "/etc/m.toml:29: the period of 5s is outside the range of SCHED_DEADLINE on this kernel; it must be 100us to 4194304us (kernel.sched_deadline_period_min_us and _max_us)",
            "/etc/m.toml:34: the binary `/etc/c` is a directory; it must be a program",
            "/etc/m.toml:36: unknown key `cpuss` in [[cell]]; did you mean `cpus`?",
            "/etc/m.toml:40: the period of 50us is outside the range of SCHED_DEADLINE on this kernel; it must be 100us to 4194304us (kernel.sched_deadline_period_min_us and _max_us)",
            "/etc/m.toml:44: there is no configuration `/etc/d/config.json`; create it, or correct the path",
            "/etc/m.toml:47: the budget of 99ms every 100ms on a cpu exceeds the 950ms every 1s that this kernel leaves to real-time tasks; lower it, or raise kernel.sched_rt_runtime_us",
        ]
    );
}

/// Cell `control` mounts one thing writable, cell `b` has an image and a mount of its own.
fn swaps(writable: &str, image: &str, source: &str) -> Vec<String> {
    let mut paths: Vec<(&str, PathKind)> = vec![("/etc/root", PathKind::Directory)];
    paths.extend([writable, source, image].map(|path| (path, PathKind::Directory)));
    let mut board = Board::new(&paths);
    board.links = vec![("/data/link", "/srv/real"), ("/alias", "/data")];
    let text = format!(
        "{LEAST}rights = {{ mounts = [{{ source = \"{writable}\", target = \"/w\", writable = true }}] }}\n\
         [[cell]]\nname = \"b\"\nimage = {{ rootfs = \"{image}\" }}\nclass = \"other\"\ncommand = [\"/b\"]\n\
         rights = {{ mounts = [{{ source = \"{source}\", target = \"/s\" }}] }}\n"
    );
    faults(&text, &board)
}

#[test]
fn no_cell_writes_to_the_program_that_is_told() {
    let told = |writable: &str, program: &str| {
        let board = Board::new(&[
            ("/etc/root", PathKind::Directory),
            (writable, PathKind::Directory),
            (program, PathKind::Program),
        ]);
        let text = LEAST.replacen(
            "[[cell]]",
            &format!("notify = [\"{program}\"]\n[[cell]]"),
            1,
        );
        let rights = format!(
            "rights = {{ mounts = [{{ source = \"{writable}\", target = \"/w\", writable = true }}] }}\n"
        );
        faults(&format!("{text}{rights}"), &board)
    };
    assert!(told("/data", "/usr/bin/tell").is_empty());
    for (writable, program) in [("/data", "/data/bin/tell"), ("/srv/tell", "/srv/tell")] {
        let found = told(writable, program);
        assert!(
            found.len() == 1 && found[0].contains("which would run on the host"),
            "{found:?}"
        );
    }
}

#[test]
fn nothing_leads_through_what_a_cell_may_write_to() {
    let none = Vec::<String>::new();
    for (writable, source) in [
        // Shared.
        ("/data", "/data"),
        ("/data", "/alias"),
        ("/alias", "/data"),
        // Beside, around, and only alike.
        ("/data/a", "/data/b"),
        ("/data/a", "/data"),
        ("/data", "/database/x"),
        // A link beside the written directory.
        ("/srv", "/alias/b"),
    ] {
        assert_eq!(
            swaps(writable, "/images/b", source),
            none,
            "{writable} {source}"
        );
    }
    for (writable, source) in [
        ("/data", "/data/b"),
        ("/data", "/data/b/c"),
        ("/alias", "/data/b"),
        ("/data", "/alias/b"),
        // It ends elsewhere as long as nobody turns the link.
        ("/data", "/data/link"),
        // And where it leads somebody else may write.
        ("/srv", "/data/link"),
    ] {
        let found = swaps(writable, "/images/b", source);
        assert_eq!(found.len(), 1, "{writable} {source}: {found:?}");
    }
    assert_eq!(
        swaps("/data", "/images/b", "/data/b"),
        [
            "/etc/m.toml:14: `/data/b` leads through `/data`, where cell `control` may write and so \
          could redirect it to any directory of the host; mount `/data` itself, make that mount \
          read-only, or move this elsewhere"
        ]
    );
    assert_eq!(swaps("/images/b", "/images/b", "/etc/b"), none);
    assert_eq!(
        swaps("/images", "/images/b", "/etc/b"),
        [
            "/etc/m.toml:11: `/images/b` leads through `/images`, where cell `control` may write and \
          so could redirect it to any directory of the host; make the mount of `/images` \
          read-only, or move the image elsewhere"
        ]
    );
}

#[test]
fn an_engine_that_cannot_be_asked_is_no_fault_of_the_file() {
    let text = LEAST.replace(
        "{ rootfs = \"root\" }",
        "{ reference = \"x\" }\nengine = \"podman\"",
    );
    let mut board = Board::new(&[]);
    assert_eq!(faults(&text, &board).len(), 1);
    board.images = None;
    assert_eq!(faults(&text, &board), Vec::<String>::new());
}

#[test]
fn each_engine_is_asked_once_what_it_lacks() {
    let cell = |name: &str, engine: &str| {
        format!(
            "[[cell]]\nname = \"{name}\"\nimage = {{ rootfs = \"root\" }}\nclass = \"other\"\ncommand = [\"/b\"]\n{engine}"
        )
    };
    let engine = |name: &str| format!("engine = \"{name}\"\n");
    let text = format!(
        "schema = 1\nname = \"m\"\n{}{}{}{}{}",
        cell("a", &engine("runc")),
        cell("b", ""),
        cell("c", &engine("crun")),
        cell("d", &engine("crun")),
        cell("e", &engine("runc")),
    );
    let mut board = Board::new(&[("/etc/root", PathKind::Directory)]);
    assert_eq!(faults(&text, &board), Vec::<String>::new());
    use EngineKind::{Crun, Embedded, Runc};
    assert_eq!(*board.asked.borrow(), [Runc, Embedded, Crun]);
    board.absent = vec![Crun];
    assert_eq!(
        faults(&text, &board),
        ["/etc/m.toml:19: crun makes no cells here: `crun` is not installed; get it"]
    );
    // An engine that makes no cells of missions anywhere is not asked.
    board.asked.borrow_mut().clear();
    let docker = format!("schema = 1\nname = \"m\"\n{}", cell("a", &engine("docker")));
    assert_eq!(faults(&docker, &board).len(), 1);
    assert!(board.asked.borrow().is_empty());
}

#[test]
fn a_machine_with_other_settings_takes_what_its_kernel_takes() {
    let slow = LEAST
        .replace("\"10ms\"", "\"9s\"")
        .replace("reservation", "class = \"deadline\"\nreservation");
    let mut board = Board::new(&[("/etc/root", PathKind::Directory)]);
    assert_eq!(faults(&slow, &board).len(), 1);
    board.bounds.deadline_period_max_ns = 10_000_000_000;
    assert_eq!(faults(&slow, &board), Vec::<String>::new());
    // Without a class any enforcer will do, and real-time groups take any period.
    let free = LEAST.replace("\"10ms\"", "\"9s\"");
    assert_eq!(
        faults(&free, &Board::new(&[("/etc/root", PathKind::Directory)])),
        Vec::<String>::new()
    );
}

#[test]
fn a_file_that_was_read_can_be_checked_later_and_elsewhere() {
    let file = MissionFile::parse("m.toml", LEAST).unwrap();
    let errors = file.check(&Board::new(&[])).unwrap_err();
    assert_eq!(errors.iter().count(), 1);
    assert!(
        file.check(&Board::new(&[("root", PathKind::Directory)]))
            .is_ok()
    );
    let budget = Place::cell(0).key("reservation").key("budget");
    let fault = file.fault(&budget, "too little", "give 4ms");
    assert_eq!(fault.to_string(), "m.toml:7: too little; give 4ms");
    assert_eq!(file.line(&Place::cell(0).key("absent")), 3);
    assert_eq!(file.resolve(Path::new("/abs")), Path::new("/abs"));
}

#[test]
fn a_virtual_machine_gets_its_memory_and_its_helpers_cpus_that_are_there() {
    let text = "schema = 1\nname = \"m\"\n[[cell]]\nname = \"vm\"\nengine = \"qemu\"\nimage = { binary = \"app\" }\n\
        machine = { helpers = { cpus = [0, 7] } }\nclass = \"other\"\n[cell.rights]\nmemory = \"576MiB\"\n";
    let board = Board::new(&[("/etc/app", PathKind::Program)]);
    assert_eq!(
        faults(text, &board),
        [
            "/etc/m.toml:7: cpu 7 is not available for cells on this machine; it has 0 and 1",
            "/etc/m.toml:10: the limit of 576MiB is too little: the virtual machine takes 577 MiB; raise it to that, remove it, or give \
             the machine less `memory`"
        ]
    );
    let text = text.replace(", 7", "").replace("576MiB", "577MiB");
    assert_eq!(faults(&text, &board), Vec::<String>::new());
}

#[test]
fn a_cell_out_of_band_needs_the_devices_of_evl() {
    let text = format!("{LEAST}rights = {{ evl = true }}\n");
    let board = |devices: &[&'static str]| {
        let devices = devices.iter().map(|path| (*path, PathKind::Device));
        let root = [("/etc/root", PathKind::Directory)];
        Board::new(&devices.chain(root).collect::<Vec<_>>())
    };
    let all = Rights::OF_EVL;
    assert_eq!(faults(&text, &board(&all)), Vec::<String>::new());
    for (devices, lacking) in [(&all[..0], all[0]), (&all[..2], all[2])] {
        assert_eq!(
            faults(&text, &board(devices)),
            [format!(
                "/etc/m.toml:8: cell `control` asks for EVL, and there is no device `{lacking}`; boot a kernel with EVL (Xenomai 4), or \
                 remove `evl`"
            )]
        );
    }
}
