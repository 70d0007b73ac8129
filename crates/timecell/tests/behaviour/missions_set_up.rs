//! Programs of the field that set themselves up for real time, unchanged: in `timecell run` and in a mission of eight lines, under every
//! enforcer. Class RR, and mutexes with a protocol.

mod programs;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use host::sched::Class;
use model::Enforcer;

use crate::missions::{Up, busybox, mission, name, nothing_is_left, pid_of};
use crate::missions_threads::{PROGRAM, class_of, compiled, threads};
use crate::support::{Said, eventually, say, timecell};

use self::programs::{GRAPH_AND_LOOP, INVERSION, RT_APP, TURNS};

const ENFORCERS: [Enforcer; 3] = [Enforcer::RtCgroup, Enforcer::Freezer, Enforcer::Deadline];

const RESERVE: [&str; 2] = ["--reserve", "5ms/20ms"];

/// A root directory with these programs, their libraries, and a shell.
fn root_of(dir: &Path, programs: &[&str]) -> PathBuf {
    let root = dir.join("root");
    let copy = |from: &str| {
        let to = root.join(from.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    };
    let loaded = |of: &str| {
        let said = Command::new("ldd").arg(of).output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let words = said.split_whitespace().filter(|word| word.starts_with('/'));
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    for program in programs {
        let path = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|dir| dir.join(program))
            .find(|path| path.is_file());
        let path = path.unwrap().canonicalize().unwrap();
        let path = path.to_str().unwrap();
        loaded(path).iter().for_each(|library| copy(library));
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::copy(path, root.join("bin").join(program)).unwrap();
    }
    // glibc loads it when a thread ends.
    let gcc = Command::new("cc")
        .arg("-print-file-name=libgcc_s.so.1")
        .output()
        .unwrap();
    let libc = loaded("/bin/sh")
        .into_iter()
        .find(|path| path.contains("libc.so"));
    let beside = PathBuf::from(libc.unwrap());
    let beside = root
        .join(beside.strip_prefix("/").unwrap())
        .with_file_name("libgcc_s.so.1");
    fs::create_dir_all(beside.parent().unwrap()).unwrap();
    fs::copy(String::from_utf8_lossy(&gcc.stdout).trim(), beside).unwrap();
    fs::copy(busybox(), root.join("bin/busybox")).unwrap();
    symlink("busybox", root.join("bin/sh")).unwrap();
    root
}

/// A program in Python that sets its class, its priority and its cpus.
const PYTHON: &str = "import os
for policy in [os.SCHED_FIFO, os.SCHED_RR]:
    os.sched_setscheduler(0, policy, os.sched_param(50))
os.sched_setparam(0, os.sched_param(40))
for cpus in [os.sched_getaffinity(0), {max(os.sched_getaffinity(0))}]:
    os.sched_setaffinity(0, cpus)
print('over')";

/// Runs a program under an enforcer, and the messages about it.
fn run(dir: &Path, enforcer: Enforcer, words: &[&str]) -> Said {
    let name = name(dir);
    let mut run = timecell();
    run.current_dir(dir).args(["run", "-v"]).args(RESERVE);
    run.args(["--name", &name, "--enforcer", enforcer.name()]);
    run.arg("--").args(words).output().unwrap().into()
}

/// The programs of this root directory run one after the other in a mission of eight lines, `graph` with this argument.
#[track_caller]
fn all_run_in_a_mission(dir: &Path, enforcer: Enforcer, root: &Path, inherits: &str) {
    let script = format!(
        "cyclictest -p 90 -t 2 -m -D 1 -q && rt-app /rt-app.json && chrt -f 50 sh -c 'chrt -p $$' && \
         taskset -c 0 sh -c : && /graph {inherits} && echo all && busybox sleep 1000"
    );
    let text = format!(
        "enforcer = \"{}\"\n[[cell]]\nname = \"c\"\nimage = {{ rootfs = {root:?} }}\ncommand = [\"sh\", \"-c\", {script:?}]\n\
         reservation = {{ budget = \"5ms\", period = \"20ms\" }}\n",
        enforcer.name()
    );
    let path = mission(dir, &text);
    assert_eq!(fs::read_to_string(path).unwrap().lines().count(), 8);
    let mut up = Up::start(dir);
    up.told("c: mutexes: ");
    let output = crate::hostile::output(dir, "c");
    let said = || fs::read_to_string(&output).unwrap_or_default();
    eventually("all have run", || said().ends_with("0 calls failed\nall\n"));
    up.end();
    nothing_is_left(dir);
}

#[case(
    Root,
    RealTime,
    Deadline,
    Freezer,
    TwoCpus,
    RtGroups,
    Program("busybox"),
    Program("cc"),
    Program("chrt"),
    Program("cyclictest"),
    Program("python3"),
    Program("rt-app"),
    Program("taskset"),
    GroupBudget(400)
)]
fn programs_of_the_field_run_unchanged() {
    let built = tempfile::tempdir().unwrap();
    let program = compiled(built.path(), GRAPH_AND_LOOP);
    let root = root_of(built.path(), &["chrt", "cyclictest", "rt-app", "taskset"]);
    fs::copy(&program, root.join("graph")).unwrap();
    let json = root.join("rt-app.json");
    fs::write(&json, RT_APP).unwrap();
    let json = json.to_str().unwrap();
    let program = program.to_str().unwrap();
    let cyclictest = ["cyclictest", "-p", "90", "-t", "2", "-m", "-D", "1", "-q"];
    let launched = ["sh", "-c", "chrt -p $$"];
    for enforcer in ENFORCERS {
        let dir = tempfile::tempdir().unwrap();
        let graph = [
            program,
            if enforcer == Enforcer::Freezer {
                "inherits"
            } else {
                ""
            },
        ];
        let rr = [&["chrt", "-r", "50"][..], &launched].concat();
        let fifo = [&["chrt", "-f", "50"][..], &launched].concat();
        let of = |class| match enforcer {
            Enforcer::Deadline => "SCHED_DEADLINE",
            _ => class,
        };
        let ways: [(&[&str], &str); 6] = [
            (&cyclictest, "T: 1"),
            (&["rt-app", json], ""),
            (&fifo, of("SCHED_FIFO")),
            (&rr, of("SCHED_RR")),
            (&["taskset", "-c", "1", "sh", "-c", "echo pinned"], "pinned"),
            (&graph, "0 calls failed"),
        ];
        for (words, said) in ways {
            let ended = run(dir.path(), enforcer, words).ends_with(0);
            assert!(
                ended.out.contains(said),
                "{words:?}: {} {}",
                ended.out,
                ended.err
            );
            assert!(ended.err.contains("mutexes: "), "{}", ended.err);
        }
        let ended = run(dir.path(), enforcer, &["python3", "-c", PYTHON]).ends_with(0);
        assert_eq!(ended.out, "over\n", "{}", ended.err);
        all_run_in_a_mission(dir.path(), enforcer, &root, graph[1]);
    }
}

#[case(Root, RealTime, Freezer, RtGroups, Program("cc"), GroupBudget(400))]
fn mutexes_work_where_that_is_told() {
    let built = tempfile::tempdir().unwrap();
    let program = compiled(built.path(), INVERSION);
    let refused = "PTHREAD_PRIO_INHERIT is refused under `rt-cgroup` (ENOTSUP); enforcer = \"freezer\" grants it";
    let works = "PTHREAD_PRIO_INHERIT works under";
    // Without a protocol the highest comes last, or the other orders would prove nothing.
    let ways = [
        (Enforcer::RtCgroup, "none", refused, "middle\nhigh\nover\n"),
        (
            Enforcer::RtCgroup,
            "inherit",
            refused,
            "Operation not supported\nover\n",
        ),
        (
            Enforcer::RtCgroup,
            "ceiling",
            refused,
            "high\nmiddle\nover\n",
        ),
        (Enforcer::Freezer, "inherit", works, "high\nmiddle\nover\n"),
        (
            Enforcer::CpusetOnly,
            "inherit",
            works,
            "high\nmiddle\nover\n",
        ),
    ];
    for (enforcer, protocol, told, order) in ways {
        let dir = tempfile::tempdir().unwrap();
        let text = format!(
            "enforcer = \"{}\"\n[[cell]]\nname = \"c\"\nimage = {{ binary = \"{}\" }}\nargs = [\"{protocol}\"]\n\
             priorities = {{ lowest = 60, highest = 63 }}\nreservation = {{ budget = \"5ms\", period = \"20ms\" }}\nstop_timeout = \"0ms\"\n",
            enforcer.name(),
            program.display()
        );
        mission(dir.path(), &text);
        let mut up = Up::start(dir.path());
        let line = up.told("c: mutexes: ");
        assert!(
            line.contains(told) && line.contains("ceilings from 60, and raises to 63"),
            "{line}"
        );
        if order.starts_with("Operation") {
            up.told("c: asked for a mutex with priority inheritance and was refused (ENOTSUP)");
        }
        let output = crate::hostile::output(dir.path(), "c");
        let said = || fs::read_to_string(&output).unwrap_or_default();
        eventually("it has said so", || said().ends_with("over\n"));
        assert_eq!(said(), order, "{} {protocol}", enforcer.name());
        up.end();
        nothing_is_left(dir.path());
    }
}

#[case(Root, RealTime, RtGroups, Program("cc"), GroupBudget(400))]
fn threads_of_class_rr_take_turns(dir: &Path) {
    let program = compiled(dir, TURNS);
    for (option, order) in [
        ("--fifo", "begins\nends\nbegins\nends\n"),
        ("--rr", "begins\nbegins\nends\nends\n"),
    ] {
        let mut run = timecell();
        run.current_dir(dir)
            .args(["run", "--reserve", "8ms/20ms", option, "50"]);
        run.args(["--name", &name(dir), "--enforcer", "rt-cgroup", "--"]);
        let said: Said = run
            .arg(&program)
            .stdin(Stdio::null())
            .output()
            .unwrap()
            .into();
        let said = said.ends_with(0);
        assert_eq!(said.out, order, "{option}");
    }
    let refused = ["run", "--reserve", "1ms/10ms", "--rr", "99", "--", "true"];
    let why = say(dir, &refused).ends_with(2).error();
    assert!(why.contains("--rr") && why.contains("too high"), "{why}");
}

#[case(Root, RealTime, RtGroups, Program("cc"), GroupBudget(700))]
fn class_rr_is_admitted_as_fifo(dir: &Path) {
    let program = compiled(dir, PROGRAM);
    let args = ["control:80:s", "filter:70:s", "log:60:s", "other:90:s"];
    let admitted = ["fifo", "rr"].map(|class| {
        let head = format!("class = \"{class}\"");
        mission(dir, &threads(&program, &args, &head, [""; 3]));
        let said = say(dir, &["admit", "mission.toml", "--json"]).ends_with(0);
        let mut json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let cell = json["admission"]["cells"][0].take();
        assert_eq!(cell["round_robin"], class == "rr");
        cell
    });
    let [fifo, rr] = &admitted;
    for key in ["band", "budget_ns", "period_ns", "tasks", "enforcer"] {
        assert_eq!(fifo[key], rr[key], "{key}");
    }
    let mut up = Up::start(dir);
    let pid = pid_of(&up.told("c: runs"));
    for task in rr["tasks"].as_array().unwrap() {
        let (name, priority) = (task["task"].as_str().unwrap(), task["priority"].as_u64());
        up.told(&format!("c: {name} is thread"));
        let priority = u8::try_from(priority.unwrap()).unwrap();
        let class = Some(Class::RoundRobin { priority });
        eventually(&format!("{name} has {class:?}"), || {
            class_of(pid, name) == class
        });
    }
    for (words, shown) in [
        (&["admit", "mission.toml"][..], ", RR "),
        (&["ps", "--machine"], ", RR "),
        (
            &["ps", "--dir", "state", "--json"],
            "\"mutexes\": \"PTHREAD_PRIO_INHERIT is refused",
        ),
    ] {
        let said = say(dir, words);
        assert!(said.out.contains(shown), "{words:?}: {}", said.out);
    }
    // The program asks for FIFO.
    up.told("asks for FIFO");
    up.end();
    nothing_is_left(dir);
}
