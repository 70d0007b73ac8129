//! Assumptions of the bounds of tasks are broken from outside while a mission runs: each deviation withdraws the bound, with its reason, and it is
//! given back once that is undone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use host::sched::{Class, set_affinity, set_class};

use crate::control::cell;
use crate::missions::{Up, mission, nothing_is_left, pid_of};
use crate::missions_threads::{PROGRAM, compiled, threads};
use crate::support::{eventually, say};

/// A running mission of one cell, in which things are planted.
struct Field {
    up: Up,
    dir: PathBuf,
    pid: i32,
}

impl Field {
    fn thread(&self, name: &str) -> i32 {
        let threads = host::process::threads(self.pid).into_iter();
        let mut of_name = threads.filter(|tid| host::process::name(*tid).as_deref() == Some(name));
        of_name.next().unwrap()
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the cell's process, which runs.
        unsafe { libc::kill(self.pid, signal) };
    }

    /// The control group of a thread in a hierarchy of version 1.
    fn group(tid: i32, controller: &str) -> PathBuf {
        let text = fs::read_to_string(format!("/proc/{tid}/cgroup")).unwrap();
        let path = text.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers
                .split(',')
                .any(|name| name == controller)
                .then_some(path)
        });
        Path::new("/sys/fs/cgroup")
            .join(controller)
            .join(path.unwrap().trim_start_matches('/'))
    }

    /// Waits until this is said after it was done.
    #[track_caller]
    fn says(&mut self, what: &str, part: &str, since: Instant) {
        self.up.until(part);
        println!(
            "{what}: after {:.2} s: {part}",
            since.elapsed().as_secs_f64()
        );
    }

    /// One deviation of all tasks: planted, found, undone, and given back.
    #[track_caller]
    fn deviates<T>(
        &mut self,
        what: &str,
        plant: impl FnOnce(&Field) -> T,
        found: &str,
        undo: impl FnOnce(&Field, T),
    ) {
        let since = Instant::now();
        let planted = plant(self);
        self.says(what, found, since);
        let bounds = cell(&self.dir, "c")["bounds"].clone();
        assert_eq!(bounds[2]["state"], "withdrawn", "{bounds}");
        let since = Instant::now();
        undo(self, planted);
        while !self.up.until(", in force again").contains("bound of log,") {}
        let took = since.elapsed().as_secs_f64();
        println!("{what}: given back after {took:.2} s");
    }
}

/// Kills the process it has started, at any end of the test.
pub struct Ends(pub Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn cpu_of(dir: &Path) -> u32 {
    let cpu = cell(dir, "c")["cpus"][0].as_u64().unwrap();
    u32::try_from(cpu).unwrap()
}

fn in_force(dir: &Path) {
    eventually("the bounds are in force", || {
        let bounds = cell(dir, "c")["bounds"].clone();
        let all = bounds.as_array().unwrap();
        all.len() == 3 && all.iter().all(|bound| bound["state"] == "in_force")
    });
}

#[case(
    Alone,
    Root,
    RealTime,
    Program("cc"),
    Program("chrt"),
    GroupBudget(700)
)]
fn each_deviation_withdraws_the_bound_until_it_is_undone() {
    let dir = tempfile::tempdir().unwrap();
    let program = compiled(dir.path(), PROGRAM);
    let args = ["control:80:s", "filter:70:s", "log:60:sb"];
    let cells = threads(&program, &args, "", [""; 3]);
    mission(dir.path(), &format!("enforcer = \"rt-cgroup\"\n{cells}"));
    let mut up = Up::start(dir.path());
    let pid = pid_of(&up.told("c: runs"));
    let mut field = Field {
        up,
        dir: dir.path().to_owned(),
        pid,
    };
    in_force(dir.path());
    let cpu = cpu_of(dir.path());
    // Each of another task, at once.
    let since = Instant::now();
    let [control, filter, log] = ["control", "filter", "log"].map(|name| field.thread(name));
    set_class(control, &Class::Fifo { priority: 1 }).unwrap();
    let cpus = Field::group(filter, "cpuset").join("cpuset.cpus");
    let own = fs::read_to_string(&cpus).unwrap();
    fs::write(&cpus, "0-1").unwrap();
    set_affinity(filter, &[0, 1]).unwrap();
    let memory = Field::group(log, "memory");
    fs::write("/sys/fs/cgroup/memory/tasks", log.to_string()).unwrap();
    let found = [
        (
            "chrt",
            "withdrawn: thread `control` runs at FIFO 1, admitted at FIFO".to_owned(),
        ),
        (
            "cpuset and taskset",
            format!("withdrawn: its thread may run on cpu 0-1, admitted on {cpu}"),
        ),
        (
            "another control group",
            "withdrawn: others have moved its thread from".to_owned(),
        ),
    ];
    for (what, found) in &found {
        field.up.told(found);
        println!(
            "{what}: after {:.2} s: {found}",
            since.elapsed().as_secs_f64()
        );
    }
    let verdict = say(dir.path(), &["ps", "--dir", "state", "--verbose"]);
    assert_eq!(verdict.code, Some(3), "{}", verdict.out);
    for part in [
        "DEVIATES, thread `control` runs at FIFO 1",
        "NOT CHECKED, locks are not looked at",
        "its cell gets",
    ] {
        assert!(verdict.out.contains(part), "{part}: {}", verdict.out);
    }
    // The supervisor puts the class back; the rest is for others to undo.
    let since = Instant::now();
    set_affinity(filter, &[cpu]).unwrap();
    fs::write(&cpus, own.trim()).unwrap();
    fs::write(memory.join("tasks"), log.to_string()).unwrap();
    for task in ["control", "filter", "log"] {
        let part = format!("bound of {task},");
        let is_back = |line: &String| line.contains(&part) && line.contains(", in force again");
        while !field.up.said.iter().any(is_back) {
            field.up.until(", in force again");
        }
    }
    println!(
        "all three: given back after {:.2} s",
        since.elapsed().as_secs_f64()
    );
    let budget = Field::group(control, "cpu").join("cpu.rt_runtime_us");
    let granted = fs::read_to_string(&budget).unwrap();
    let less = (granted.trim().parse::<u64>().unwrap() - 1).to_string();
    field.deviates(
        "cpu.rt_runtime_us",
        |_| fs::write(&budget, &less).unwrap(),
        "withdrawn: others have made the budget of",
        |_, ()| fs::write(&budget, granted.trim()).unwrap(),
    );
    field.deviates(
        "a thread of FIFO 95",
        |_| {
            let mut strange = Command::new("chrt");
            strange.args([
                "-f",
                "95",
                "taskset",
                "-c",
                &cpu.to_string(),
                "sleep",
                "1000",
            ]);
            Ends(strange.stdout(Stdio::null()).spawn().unwrap())
        },
        "withdrawn: FIFO 95 thread of process",
        |_, strange| drop(strange),
    );
    field.deviates(
        "munlockall",
        |field| field.signal(libc::SIGUSR2),
        "withdrawn: its process has unlocked its memory",
        |field, ()| field.signal(libc::SIGUSR2),
    );
    field.deviates(
        "60 ms of cpu time at once",
        |field| field.signal(libc::SIGHUP),
        "withdrawn: its thread has used more cpu time than its jobs may",
        |_, ()| (),
    );
    field.deviates(
        "SIGSTOP of the program",
        |field| field.signal(libc::SIGSTOP),
        "withdrawn: a signal has stopped its process",
        |field, ()| field.signal(libc::SIGCONT),
    );
    field.deviates(
        "the supervisor is stopped for 3 s",
        |field| {
            field.up.signal(libc::SIGSTOP);
            std::thread::sleep(Duration::from_secs(3));
            field.up.signal(libc::SIGCONT);
        },
        "withdrawn: the supervisor did not run for",
        |_, ()| (),
    );
    let events = say(dir.path(), &["events", "--dir", "state"])
        .ends_with(0)
        .out;
    for part in [
        "withdrawn: thread `control` runs at FIFO 1",
        ", in force again",
    ] {
        assert!(events.contains(part), "{part}: {events}");
    }
    let metrics = say(dir.path(), &["ps", "--dir", "state", "--prometheus"]).out;
    let is_in_force = |line: &str| {
        line.starts_with("timecell_task_bound_in_force{") && line.ends_with("task=\"log\"} 1")
    };
    assert!(metrics.lines().any(is_in_force), "{metrics}");
    // Nobody can start to answer again the cell's earlier requests.
    for agent in crate::missions_threads::agents(dir.path()) {
        // SAFETY: a process that the test's own mission has made.
        unsafe { libc::kill(agent, libc::SIGKILL) };
    }
    field.up.until("withdrawn: the cell's agent is gone");
    field.up.end();
    nothing_is_left(dir.path());
}

// A thread that runs no task draws on the same budget: with it, the tasks could have to wait for the next period.
#[case(Alone, Root, RealTime, Program("cc"), GroupBudget(700))]
fn another_thread_that_uses_the_budget_withdraws_the_bounds(dir: &Path) {
    let program = compiled(dir, PROGRAM);
    let args = ["control:80:s", "filter:70:s", "log:60:s", "extra:10:sb"];
    let cells = threads(&program, &args, "", [""; 3]);
    mission(
        dir,
        &format!("enforcer = \"rt-cgroup\"\n{cells}")
            .replace("stop_timeout", "only_tasks = true\nreservation = { budget = \"120ms\", period = \"1s\" }\nstop_timeout"),
    );
    let mut up = Up::start(dir);
    let pid = pid_of(&up.told("c: runs"));
    in_force(dir);
    // SAFETY: the cell's process, which runs.
    unsafe { libc::kill(pid, libc::SIGHUP) };
    let said = up.until("withdrawn: threads of its cell that run no task have used");
    assert!(said.contains("declare them as tasks"), "{said}");
    up.until(", in force again");
    up.end();
    nothing_is_left(dir);
}

/// A task that reports its jobs, of which one never ends.
const ENDLESS: &str = r#"
#include "timecell.h"
#include <unistd.h>
int main(void) {
    struct timecell_client client;
    struct timecell_task task;
    if (timecell_open_from_env(&client) || timecell_open_task(&client, "control", &task)) return 1;
    for (int job = 0;; job++) {
        usleep(20000);
        timecell_begin(&task);
        if (job == 150) for (;;) pause();
        timecell_end(&task);
    }
}
"#;

#[case(Alone, Root, RealTime, Program("cc"), GroupBudget(700))]
fn a_job_that_does_not_end_withdraws_the_bound(dir: &Path) {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../client/include");
    let header = include.join("timecell.h").canonicalize().unwrap();
    let header = header.to_string_lossy();
    let program = compiled(dir, &ENDLESS.replace("timecell.h", &header));
    let task = "[[cell.task]]\nname = \"control\"\nwcet = \"1ms\"\nperiod = \"20ms\"\n";
    let image = format!("image = {{ binary = \"{}\" }}", program.display());
    mission(
        dir,
        &format!(
            "enforcer = \"rt-cgroup\"\n[[cell]]\nname = \"c\"\n{image}\nstop_timeout = \"0ms\"\n{task}"
        ),
    );
    let mut up = Up::start(dir);
    up.told("c: runs");
    up.until("withdrawn: a job took");
    up.end();
    nothing_is_left(dir);
}

#[case(Alone, Root, RealTime, Program("cc"), GroupBudget(700))]
fn a_rule_acts_on_a_bound_that_nothing_proves_any_more(dir: &Path) {
    let program = compiled(dir, PROGRAM);
    let args = ["control:80:sr", "filter:70:s", "log:60:s"];
    let cells = threads(&program, &args, "", [""; 3]);
    let rule = "[[cell.health]]\nwhen = \"unproved\"\ntask = \"control\"\ndo = \"restart\"\n";
    mission(dir, &format!("enforcer = \"rt-cgroup\"\n{cells}{rule}"));
    let mut up = Up::start(dir);
    let pid = pid_of(&up.told("c: runs"));
    in_force(dir);
    // SAFETY: the cell's process, which runs.
    unsafe { libc::kill(pid, libc::SIGUSR1) };
    up.until("withdrawn: no thread has the name `control`");
    up.until("unproved of task control: its bound was withdrawn: restart");
    up.until("c: runs (pid");
    in_force(dir);
    up.end();
    nothing_is_left(dir);
}
