//! Which cases run in parallel.
//!
//! Most cases wait far more than they compute, so several run at once. Each has a mount namespace with its own
//! `/dev/shm`, where runs find each other and the remains of killed ones. Resources of the whole machine are used in
//! turns: the real-time budgets of cgroups, those of SCHED_DEADLINE, and the machine itself.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::{Condvar, LazyLock, Mutex};
use std::time::{Duration, Instant};

use host::process::Stat;
use host::sched::{Class, get_class};
use model::Enforcer;

use crate::hung::Watched;
use crate::part::Part;
use crate::support::{Case, Need, enforcer};

/// Number of parallel cases that do not hold the machine, all cgroups' budgets or those of SCHED_DEADLINE.
const SMALL: usize = 4;

/// Number of parallel cases that load all cpus: with more of them, others would wait for longer than they expect.
const LOADS: usize = 2;

/// The most that all cgroups together may have, in thousandths of a cpu: the kernel keeps 5 % for others, and the supervisor of each
/// admitted mission keeps as much for itself.
const ALL_GROUPS: u16 = 900;

/// Keeps off only those that want everything.
const LEAST: u16 = 1;

/// The resources that a case holds while it runs.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// Thousandths of a cpu.
    groups: u16,
    /// Whether it sees those only.
    of_its_own: bool,
    deadline: bool,
    load: bool,
    alone: bool,
}

impl Held {
    fn by(needs: &[Need]) -> Held {
        let groups = needs.iter().map(|need| match need {
            Need::GroupBudget(share) | Need::GroupsOfItsOwn(share) => *share,
            Need::Unhindered => LEAST,
            Need::AnyEnforcer(share) | Need::AnyBudget(share)
                if enforcer() == Ok(Enforcer::RtCgroup) =>
            {
                *share
            }
            _ => 0,
        });
        let deadline = |need: &Need| match need {
            Need::Deadline | Need::DeadlineBudget => true,
            Need::AnyEnforcer(_) | Need::AnyBudget(_) => enforcer() == Ok(Enforcer::Deadline),
            _ => false,
        };
        let of_its_own = |need: &Need| matches!(need, Need::GroupsOfItsOwn(_));
        Held {
            of_its_own: needs.iter().any(of_its_own),
            groups: groups.sum::<u16>().min(ALL_GROUPS),
            deadline: needs.iter().any(deadline),
            load: needs.contains(&Need::Load),
            alone: needs.contains(&Need::Alone) || !*APART,
        }
    }

    fn is_small(self) -> bool {
        self.groups < ALL_GROUPS && !self.deadline
    }
}

#[derive(Debug)]
struct Lanes {
    running: usize,
    small: usize,
    loads: usize,
    groups: u16,
    deadline: bool,
    alone: bool,
    /// Waiting cases that would run beside others: those that want to be alone come after them.
    waiting: usize,
    /// Those among them that want all cgroups' budgets: cases that want a part come after, or small ones would keep taking the free part.
    waiting_for_all: usize,
}

impl Lanes {
    fn has_room(&self, held: Held) -> bool {
        if held.alone {
            return self.running == 0 && self.waiting == 0;
        }
        let gives_way = (1..ALL_GROUPS).contains(&held.groups) && self.waiting_for_all > 0;
        let taken = self.alone
            || gives_way
            || self.groups + held.groups > ALL_GROUPS
            || (held.deadline && self.deadline)
            || (held.load && self.loads == LOADS)
            || (held.is_small() && self.small == SMALL);
        !taken
    }

    fn enter(&mut self, held: Held) {
        self.running += 1;
        self.small += usize::from(held.is_small());
        self.loads += usize::from(held.load);
        self.groups += held.groups;
        self.deadline |= held.deadline;
        self.alone |= held.alone;
    }

    fn leave(&mut self, held: Held) {
        self.running -= 1;
        self.small -= usize::from(held.is_small());
        self.loads -= usize::from(held.load);
        self.groups -= held.groups;
        self.deadline &= !held.deadline;
        self.alone &= !held.alone;
    }
}

static LANES: Mutex<Lanes> = Mutex::new(Lanes {
    running: 0,
    small: 0,
    loads: 0,
    groups: 0,
    deadline: false,
    alone: false,
    waiting: 0,
    waiting_for_all: 0,
});
static CHANGED: Condvar = Condvar::new();

/// Whether cases can be isolated: without permission to mount, they run one after the other.
static APART: LazyLock<bool> = LazyLock::new(|| {
    let tried = std::thread::spawn(apart).join().unwrap();
    if let Err(error) = &tried {
        eprintln!("one test after the other: none can have a /dev/shm of its own: {error}");
    }
    tried.is_ok()
});

/// The longest cases start first; otherwise the tests would end with one of them running alone.
const LONG: &[&str] = &[
    "loads::bench_self_shows",
    "supply::every_enforcer",
    "hostile::",
    "loads::",
    "turns::a_run_ends_once",
    "missions_reaction::a_podman_that",
    "scale::cells_that_die",
    "turns::",
    "program::one_that",
];

/// The position of a case among all.
pub fn place(case: &Case) -> usize {
    let name = case.name();
    let is_one = |long: &&str| name.starts_with(*long);
    LONG.iter().position(is_one).unwrap_or(LONG.len())
}

/// The resources that each case held, and for how long.
static SPENT: Mutex<Vec<(String, Held, Duration)>> = Mutex::new(Vec::new());

/// The number of longest cases to name.
const SLOWEST_SET: &str = "TIMECELL_TEST_SLOWEST";

/// Prints the time that the cases spent in each lane, and the longest of them: where to look if the tests become slow.
pub fn print_spent() {
    let mut spent = std::mem::take(&mut *SPENT.lock().unwrap());
    if spent.is_empty() {
        return;
    }
    let seconds = |of: fn(&Held) -> bool| {
        let held = spent.iter().filter(|(_, held, _)| of(held));
        held.map(|(_, _, took)| took.as_secs_f64())
            .fold(0.0, |sum, took| sum + took)
    };
    eprintln!(
        "seconds spent alone {:.0}, with all groups' budgets {:.0}, with those of SCHED_DEADLINE {:.0}, else {:.0}",
        seconds(|held| held.alone),
        seconds(|held| !held.alone && held.groups >= ALL_GROUPS),
        seconds(|held| !held.alone && held.groups < ALL_GROUPS && held.deadline),
        seconds(|held| !held.alone && held.is_small()),
    );
    spent.sort_by_key(|&(_, _, took)| std::cmp::Reverse(took));
    let asked = std::env::var(SLOWEST_SET).ok();
    let shown = asked.and_then(|text| text.parse().ok()).unwrap_or(20);
    for (name, held, took) in spent.iter().take(shown) {
        let lane = match held {
            Held { alone: true, .. } => "alone",
            Held { deadline: true, .. } => "deadline",
            Held { groups, .. } if *groups >= ALL_GROUPS => "all groups",
            _ => "",
        };
        eprintln!("{:6.1} s  {name}  {lane}", took.as_secs_f64());
    }
}

/// Cases that failed once and passed when nothing else ran, and the beginning of the message of each failure.
static AGAIN: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());
/// Cases that failed both times, and the beginnings of both messages.
static FAILED: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// How many cases of a run may do so. A shared machine stalls now and then; more are a fault.
const MOST_AGAIN: usize = 2;

/// Names the cases that failed once, and fails the tests if they are many: a case that fails only beside others, or now and then, must
/// be found and fixed.
pub fn judge_again() {
    for (name, messages) in FAILED.lock().unwrap().iter() {
        eprintln!("failed, and failed again by itself: {name}\n    {messages}");
    }
    let again = AGAIN.lock().unwrap();
    for (name, message) in again.iter() {
        eprintln!("failed at first, and held when run again by itself: {name}\n    {message}");
    }
    if again.len() > MOST_AGAIN {
        eprintln!(
            "{} cases failed at first; up to {MOST_AGAIN} may",
            again.len()
        );
        std::process::exit(101);
    }
}

/// Whether each case runs once, and for as long as it likes: `TIMECELL_TEST_ONCE` is set, as campaigns do.
pub fn once() -> bool {
    std::env::var_os("TIMECELL_TEST_ONCE").is_some()
}

/// Runs a case when its resources are free. A case that fails runs once more, with the machine to itself: other machines that share
/// its cpus delay cases for longer than any of them can allow for. With `TIMECELL_TEST_ONCE` set, none is repeated.
pub fn run(case: &'static Case) {
    let held = Held::by(case.needs);
    let Err(panic) = run_with(case, held) else {
        return;
    };
    if once() {
        resume_unwind(panic);
    }
    eprintln!("{} failed; once more, alone", case.name());
    let alone = Held {
        alone: true,
        ..held
    };
    let message = beginning(&panic);
    if let Err(panic) = run_with(case, alone) {
        let both = format!("{message}\n    then, by itself: {}", beginning(&panic));
        FAILED.lock().unwrap().push((case.name(), both));
        resume_unwind(panic);
    }
    AGAIN.lock().unwrap().push((case.name(), message));
}

/// The beginning of the message of a failure.
fn beginning(panic: &Box<dyn Any + Send>) -> String {
    match panic.downcast_ref::<String>() {
        Some(message) => message.chars().take(400).collect(),
        None => String::new(),
    }
}

/// Runs a case when this is free, and releases it even if the case fails.
fn run_with(case: &'static Case, held: Held) -> std::thread::Result<()> {
    let mut lanes = LANES.lock().unwrap();
    let shares = usize::from(!held.alone);
    let for_all = usize::from(!held.alone && held.groups >= ALL_GROUPS);
    lanes.waiting += shares;
    lanes.waiting_for_all += for_all;
    lanes = CHANGED
        .wait_while(lanes, |lanes| !lanes.has_room(held))
        .unwrap();
    lanes.waiting -= shares;
    lanes.waiting_for_all -= for_all;
    lanes.enter(held);
    drop(lanes);
    if held.alone {
        end_what_is_left();
    }
    if held.deadline {
        wait_for_deadline_threads();
    }
    let is_apart = !Held::by(case.needs).alone;
    let began = Instant::now();
    let watched = Watched::new(case.name());
    let part = match is_apart && held.of_its_own {
        true => Part::of(held.groups),
        false => Ok(None),
    };
    let left = part.as_ref().ok().cloned().flatten();
    // A separate thread: the namespace goes with it.
    let ended = std::thread::spawn(move || {
        if is_apart {
            apart().expect("a /dev/shm of its own, as when it was tried");
        }
        if let Some(part) = part.expect("a group with a budget") {
            part.enter().expect("a thread of that group");
        }
        (case.run)();
    })
    .join();
    if let Some(part) = left {
        part.remove();
    }
    drop(watched);
    LANES.lock().unwrap().leave(held);
    SPENT
        .lock()
        .unwrap()
        .push((case.name(), held, began.elapsed()));
    CHANGED.notify_all();
    ended
}

/// Waits for threads of SCHED_DEADLINE that an earlier case has left on the way to their end, and names them: a mission would count them.
fn wait_for_deadline_threads() {
    let since = host::process::start_ticks(std::process::id().cast_signed());
    let began = Instant::now();
    let mut told = false;
    while began.elapsed() < Duration::from_secs(20) {
        let of_tests = host::process::all()
            .into_iter()
            .filter(|pid| host::process::start_ticks(*pid) >= since);
        let is_one = |tid: &i32| matches!(get_class(*tid), Ok(Class::Deadline { .. }));
        let Some(tid) = of_tests.flat_map(host::process::threads).find(is_one) else {
            return;
        };
        if !told {
            let groups = std::fs::read_to_string(format!("/proc/{tid}/cgroup")).unwrap_or_default();
            eprintln!(
                "a case waits for a thread of SCHED_DEADLINE: {:?} in {groups}",
                Stat::of(tid)
            );
        }
        told = true;
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Ends the cells and the processes of timecell that a failed case has left: real-time threads that nothing accounts for would withdraw every
/// bound of the cases that follow. No case runs meanwhile.
fn end_what_is_left() {
    let since = host::process::start_ticks(std::process::id().cast_signed());
    for pid in host::process::all() {
        let Some(stat) = Stat::of(pid).filter(|stat| stat.start_ticks() > since) else {
            continue;
        };
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let is_orphan = stat.parent() == Some(1) && stat.name().starts_with("timecell");
        if is_orphan || groups.contains("/timecell-cell-test-tmp") {
            eprintln!(
                "left by an earlier case, and killed: {} ({pid})",
                stat.name()
            );
            // SAFETY: it was started by a case, as its name and time of start tell.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}

/// Gives this thread and the processes that it starts an empty `/dev/shm`, and their own ledger.
fn apart() -> std::io::Result<()> {
    std::fs::create_dir_all("/run/timecell")?;
    // SAFETY: nothing but this thread's view of the file system changes, and every string ends with a nul.
    let done = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_SLAVE,
                std::ptr::null(),
            ) == 0
            && libc::mount(
                c"tmpfs".as_ptr(),
                c"/dev/shm".as_ptr(),
                c"tmpfs".as_ptr(),
                libc::MS_NOSUID | libc::MS_NODEV,
                c"mode=1777".as_ptr().cast(),
            ) == 0
            && libc::mount(
                c"tmpfs".as_ptr(),
                c"/run/timecell".as_ptr(),
                c"tmpfs".as_ptr(),
                libc::MS_NOSUID | libc::MS_NODEV,
                c"mode=755".as_ptr().cast(),
            ) == 0
    };
    if done {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}
