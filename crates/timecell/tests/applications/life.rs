//! The life of a cell: creation, waiting, start, freezing, end, adoption.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use engine::Cell;
use engine::app::{Adoption, AppSpec, Bind, Ended, Streams, adopt, create};
use host::sched::Class;
use model::EngineKind;

use crate::support::{
    Place, allow_real_time, assert_nothing_left, create_logged, eventually, finish, kernel,
    launcher, output, refusal, run,
};

/// Between creation and start the caller can do anything with the process.
pub fn class_and_cpus_are_given_before_the_first_instruction(kind: EngineKind) {
    let place = Place::new(kind);
    let spec = place.itself(kind, &["scheduling"]);
    let mut cell = create_logged(&spec);
    assert!(!cell.is_started());
    assert_eq!(cell.try_wait().unwrap(), None);
    allow_real_time(&cell);
    let class = Class::Fifo { priority: 7 };
    host::sched::set_class(cell.pid(), &class).unwrap();
    host::sched::set_affinity(cell.pid(), &[0]).unwrap();
    assert_eq!(output(&mut cell), "");
    cell.start().unwrap();
    assert!(cell.is_started());
    assert!(
        cell.start()
            .unwrap_err()
            .to_string()
            .contains("already been started")
    );
    assert_eq!(finish(&mut cell), Ended::Exited(0));
    let said = output(&mut cell);
    let pid = cell.pid();
    cell.remove().unwrap();
    cell.remove().unwrap();
    let class: Result<Class, String> = Ok(class);
    let cpus: Result<Vec<u32>, String> = Ok(vec![0]);
    assert_eq!(said, format!("{class:?} {cpus:?}\n"));
    assert_nothing_left(&spec, pid);
}

/// The properties of a supervisor do not rub off on its cells.
pub fn the_callers_class_is_not_inherited(kind: EngineKind) {
    let place = Place::new(kind);
    let mut spec = place.itself(kind, &["scheduling"]);
    spec.log_bytes = 1000;
    let class = Class::Batch;
    host::sched::set_class(0, &class).unwrap();
    let said = run(&spec).1;
    host::sched::set_class(0, &Class::Other).unwrap();
    assert!(said.contains("Other"), "{said}");
}

/// A cell that was never started goes like any other.
pub fn a_waiting_cell_is_removed(kind: EngineKind) {
    let place = Place::new(kind);
    let spec = place.script(kind, "echo never");
    let mut cell = create_logged(&spec);
    let pid = cell.pid();
    let again = create(&spec, Streams::Log, &launcher()).unwrap_err();
    assert!(again.to_string().contains("already"), "{again}");
    cell.remove().unwrap();
    assert_nothing_left(&spec, pid);
    assert_eq!(fs::read(spec.work_dir.join("output")).unwrap(), b"");
}

/// A program that cannot be executed is one sentence, and nothing stays.
pub fn a_program_that_is_not_there_is_named(kind: EngineKind) {
    let place = Place::new(kind);
    let mut spec = place.script(kind, "");
    spec.command = vec!["/bin/no-such-program".to_owned()];
    let error = match create(&spec, Streams::Log, &launcher()) {
        Err(error) => error.to_string(),
        Ok(mut cell) => {
            let error = cell.start().unwrap_err().to_string();
            cell.remove().unwrap();
            error
        }
    };
    assert!(error.contains("no-such-program"), "{error}");
    assert_nothing_left(&spec, i32::MAX);
}

/// The loader of a program is part of its root; without it the kernel only says that a file is missing.
pub fn a_program_without_its_interpreter_is_explained(kind: EngineKind) {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new(kind);
    let script = place.path().join("script");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let mut spec = place.script(kind, "");
    spec.binds = vec![Bind::new(script, "/script", false)];
    spec.command = vec!["/script".to_owned()];
    let mut cell = create_logged(&spec);
    let error = cell.start().unwrap_err().to_string();
    assert!(
        error.contains("its interpreter or dynamic loader is not in the cell"),
        "{error}"
    );
    cell.remove().unwrap();
}

pub fn signals_reach_a_program_that_handles_them(kind: EngineKind) {
    let place = Place::new(kind);
    let spec = place.script(
        kind,
        "trap 'echo bye; exit 5' TERM; echo ready; while true; do sleep 0.01; done",
    );
    let mut cell = create_logged(&spec);
    cell.start().unwrap();
    eventually("it is ready", || output(&mut cell) == "ready\n");
    cell.kill(libc::SIGTERM).unwrap();
    assert_eq!(finish(&mut cell), Ended::Exited(5));
    assert_eq!(output(&mut cell), "ready\nbye\n");
    let error = cell.kill(libc::SIGTERM).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    cell.remove().unwrap();
}

/// A frozen cell does not move, and is no harder to remove than any other.
pub fn a_frozen_cell_stands_still(kind: EngineKind) {
    let place = Place::new(kind);
    let data = place.writable("data");
    let mut spec = place.itself(kind, &["count", "/data/count"]);
    spec.binds = vec![Bind::new(&data, "/data", true)];
    let mut cell = create_logged(&spec);
    cell.start().unwrap();
    let length = || fs::metadata(data.join("count")).map_or(0, |file| file.len());
    eventually("it counts", || length() > 10);
    cell.freeze().unwrap();
    let before = length();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(length(), before, "it went on");
    cell.thaw().unwrap();
    eventually("it goes on", || length() > before + 10);
    cell.freeze().unwrap();
    let pid = cell.pid();
    cell.remove().unwrap();
    assert_nothing_left(&spec, pid);
}

/// A holder of the group around a cell is not in the way of the freezer of the cell itself, nor the other way round.
pub fn an_enclosed_cell_is_held_from_outside(kind: EngineKind) {
    let Some(v2) = host::cgroup::detect().unwrap().v2 else {
        eprintln!("not tried: there is no cgroup v2");
        return;
    };
    let place = Place::new(kind);
    let data = place.writable("data");
    let inside = match kind {
        EngineKind::Bare => data.display().to_string(),
        _ => "/data".to_owned(),
    };
    let mut spec = place.itself(kind, &["count", &format!("{inside}/count")]);
    if kind != EngineKind::Bare {
        spec.binds = vec![Bind::new(&data, "/data", true)];
    }
    spec.is_enclosed = true;
    spec.limits.memory_bytes = Some(64 << 20);
    let mut cell = create_logged(&spec);
    cell.start().unwrap();
    let length = || fs::metadata(data.join("count")).map_or(0, |file| file.len());
    let stands = || {
        let before = length();
        std::thread::sleep(Duration::from_millis(50));
        length() == before
    };
    let goes_on = |what| {
        let before = length();
        eventually(what, || length() > before + 10);
    };
    goes_on("it counts");
    let outer = v2.point.join(&spec.id);
    let hold = |word: &str| fs::write(outer.join("cgroup.freeze"), word).unwrap();
    let is_held = || {
        fs::read_to_string(outer.join("cgroup.events"))
            .unwrap()
            .contains("frozen 1")
    };
    let own = fs::read_to_string(format!("/proc/{}/cgroup", cell.pid())).unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::"));
    assert!(
        own.unwrap().starts_with(&format!("/{}/", spec.id)),
        "{own:?}"
    );

    hold("1");
    eventually("it is held", is_held);
    assert!(stands(), "it is not held");
    cell.thaw().unwrap();
    assert!(stands(), "its own thaw lets it go");
    hold("0");
    goes_on("it is let go");
    cell.freeze().unwrap();
    hold("1");
    hold("0");
    assert!(stands(), "letting it go thaws it");
    cell.thaw().unwrap();
    goes_on("it is thawed");
    hold("1");
    let pid = cell.pid();
    cell.remove().unwrap();
    assert_nothing_left(&spec, pid);
}

/// The caller's own streams, one for each; a directory, from which one could go anywhere, is no input.
pub fn streams_are_those_that_the_caller_gives(kind: EngineKind) {
    let place = Place::new(kind);
    let spec = place.script(kind, "cat; echo err >&2");
    let (input, mut typed) = std::io::pipe().unwrap();
    typed.write_all(b"out\n").unwrap();
    drop(typed);
    let (mut out, stdout) = std::io::pipe().unwrap();
    let (mut err, stderr) = std::io::pipe().unwrap();
    let streams = Streams::Given {
        stdin: Some(input.into()),
        stdout: stdout.into(),
        stderr: stderr.into(),
    };
    let mut cell = create(&spec, streams, &launcher()).unwrap();
    assert!(cell.log().is_none());
    cell.start().unwrap();
    assert_eq!(finish(&mut cell), Ended::Exited(0));
    cell.remove().unwrap();
    let (mut said, mut failed) = (String::new(), String::new());
    out.read_to_string(&mut said).unwrap();
    err.read_to_string(&mut failed).unwrap();
    assert_eq!((said.as_str(), failed.as_str()), ("out\n", "err\n"));
    let (_out, stdout) = std::io::pipe().unwrap();
    let streams = Streams::Given {
        stdin: Some(fs::File::open("/").unwrap().into()),
        stderr: stdout.try_clone().unwrap().into(),
        stdout: stdout.into(),
    };
    let error = create(&spec, streams, &launcher()).unwrap_err().to_string();
    assert!(error.contains("standard input is a directory"), "{error}");
}

/// More output than is kept: the newest stays, the rest is counted.
pub fn a_log_stays_within_its_bounds(kind: EngineKind) {
    let place = Place::new(kind);
    let mut spec = place.script(kind, "yes 0123456789 | head -n 100000; echo end");
    spec.log_bytes = 100_000;
    let mut cell = create_logged(&spec);
    cell.start().unwrap();
    assert_eq!(finish(&mut cell), Ended::Exited(0));
    let log = cell.log().unwrap();
    log.drain().unwrap();
    let kept = log.tail(usize::MAX).unwrap();
    assert!((50_000..=100_000).contains(&kept.len()), "{}", kept.len());
    assert!(kept.ends_with(b"0123456789\nend\n"));
    assert_eq!(log.dropped_bytes() + kept.len() as u64, 1_100_004);
    cell.remove().unwrap();
}

/// The word with which this test plays a supervisor that is killed.
pub const SUPERVISE: &str = "supervise";
/// The word with which it plays the next one, which is no relative of the cell's.
pub const TAKE_OVER: &str = "take-over";

/// Creates the cell whose specification is in a file, and stays.
pub fn supervise(file: &Path, start: bool) -> ! {
    let spec: AppSpec = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    println!("begun");
    let mut cell = create_logged(&spec);
    if start {
        cell.start().unwrap();
    }
    println!("{}", cell.pid());
    loop {
        std::thread::sleep(Duration::from_secs(100));
    }
}

/// Takes a cell over, waits for its end, and prints that end and the cell's output.
pub fn take_over(work_dir: &Path) -> ! {
    let Adoption::Taken(mut cell) = adopt(work_dir).unwrap() else {
        println!("nothing to take over");
        std::process::exit(1);
    };
    println!("taken {} {}", cell.pid(), cell.is_started());
    if !cell.is_started() {
        cell.start().unwrap();
    }
    let ended = finish(&mut cell);
    println!("{ended:?} {:?}", output(&mut cell));
    cell.remove().unwrap();
    std::process::exit(0);
}

/// Starts this program once more as a supervisor, outside the families of processes of the test.
fn supervisor(place: &Place, spec: &AppSpec, start: bool) -> std::process::Child {
    let file = place.path().join("spec.json");
    fs::write(&file, serde_json::to_vec(spec).unwrap()).unwrap();
    Command::new(std::env::current_exe().unwrap())
        .arg(SUPERVISE)
        .arg(file)
        .arg(start.to_string())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap()
}

/// Kills a supervisor once its cell is there; returns the pid of the cell.
fn kill_supervisor(place: &Place, spec: &AppSpec, start: bool) -> i32 {
    let mut child = supervisor(place, spec, start);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "begun");
    let pid = lines.next().unwrap().unwrap().parse().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    pid
}

pub fn a_cell_outlives_its_supervisor_and_is_taken_over(kind: EngineKind) {
    for start in [true, false] {
        let place = Place::new(kind);
        let door = place.writable("door");
        let mut spec = place.script(
            kind,
            "echo one; while [ ! -e /door/open ]; do sleep 0.01; done; echo two; exit 9",
        );
        spec.binds = vec![Bind::new(&door, "/door", false)];
        let pid = kill_supervisor(&place, &spec, start);
        let mut stranger = Command::new(std::env::current_exe().unwrap())
            .arg(TAKE_OVER)
            .arg(&spec.work_dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(stranger.stdout.take().unwrap()).lines();
        assert_eq!(
            lines.next().unwrap().unwrap(),
            format!("taken {pid} {start}")
        );
        fs::write(door.join("open"), "").unwrap();
        // The orphan has become a child of this process, which has to be told of its end as init would.
        let mut status = 0;
        // SAFETY: `status` is valid.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        let said = lines.next().unwrap().unwrap();
        let known = format!("{:?} {:?}", Ended::Exited(9), "one\ntwo\n");
        let unknown = format!("{:?} {:?}", Ended::Unknown, "one\ntwo\n");
        let tells = kernel() >= (6, 15);
        // podman's monitor reaps the program and knows.
        let expected = if tells || kind == EngineKind::Podman {
            known
        } else {
            unknown
        };
        assert_eq!(said, expected);
        assert!(stranger.wait().unwrap().success());
        assert_nothing_left(&spec, pid);
    }
}

/// A pid that somebody else has got since is nobody's cell.
pub fn a_recycled_pid_is_not_taken(kind: EngineKind) {
    let place = Place::new(kind);
    let spec = place.script(kind, "while true; do sleep 0.01; done");
    let mut cell = create_logged(&spec);
    cell.start().unwrap();
    let file = spec.work_dir.join("state/process.json");
    let text = fs::read_to_string(&file).unwrap();
    let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let ticks = record["start_ticks"].as_u64().unwrap();
    record["start_ticks"] = (ticks + 1).into();
    fs::write(&file, record.to_string()).unwrap();
    assert!(matches!(adopt(&spec.work_dir).unwrap(), Adoption::Ended));
    fs::write(&file, text).unwrap();
    let Adoption::Taken(mut taken) = adopt(&spec.work_dir).unwrap() else {
        panic!("it is there");
    };
    assert_eq!(taken.pid(), cell.pid());
    assert_eq!(taken.spec().id, spec.id);
    taken.remove().unwrap();
    assert_nothing_left(&spec, cell.pid());
    assert!(matches!(adopt(&spec.work_dir).unwrap(), Adoption::Nothing));
}

/// Whenever the supervisor is killed, its remains are taken over or swept away.
pub fn killed_at_any_moment(kind: EngineKind) {
    for step in 0..12 {
        let place = Place::new(kind);
        let spec = place.script(kind, "while true; do sleep 0.01; done");
        let mut child = supervisor(&place, &spec, true);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "begun");
        std::thread::sleep(Duration::from_millis(4) * step);
        child.kill().unwrap();
        child.wait().unwrap();
        match adopt(&spec.work_dir).unwrap() {
            Adoption::Taken(mut cell) => cell.remove().unwrap(),
            Adoption::Ended | Adoption::Nothing => engine::sweep(&spec.work_dir).unwrap(),
        }
        assert_nothing_left(&spec, i32::MAX);
    }
}

/// A supervisor that comes back finds a frozen cell as it was, and can sweep it away.
pub fn a_frozen_cell_is_swept(kind: EngineKind) {
    let place = Place::new(kind);
    let spec = place.script(kind, "while true; do sleep 0.01; done");
    let mut cell = create_logged(&spec);
    cell.start().unwrap();
    cell.freeze().unwrap();
    let pid = cell.pid();
    drop(cell);
    engine::sweep(&spec.work_dir).unwrap();
    assert_nothing_left(&spec, pid);
}

/// A runtime's own first process ends its other threads when it executes the program; where the freezer of version 1
/// has stopped one of those, the process waits for it and never stands still.
pub fn a_cell_is_frozen_while_its_program_is_executed(kind: EngineKind) {
    for _ in 0..20 {
        let place = Place::new(kind);
        let spec = place.script(kind, "sleep 60");
        let mut cell = create_logged(&spec);
        cell.start().unwrap();
        cell.freeze().unwrap();
        cell.remove().unwrap();
    }
}

/// Asking for a thing that does not exist leaves no trace.
pub fn a_bad_specification_makes_nothing(kind: EngineKind) {
    let place = Place::new(kind);
    let mut spec = place.script(kind, "true");
    spec.binds = vec![Bind::new("/no/such/place", "/x", false)];
    let error = refusal(&spec);
    assert!(
        error.contains("/no/such/place cannot be used") && error.contains(kind.name()),
        "{error}"
    );
    assert!(!spec.work_dir.exists());
}
