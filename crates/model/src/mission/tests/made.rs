//! Missions generated from bytes: valid ones of every kind, more varied the more bytes there are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::Enforcer;
use crate::mission::{
    Access, Action, Arrivals, Band, Cell, CellClass, ConsoleKind, Criticality, Device, Escalation,
    ExitStatus, Image, Jailhouse, Latency, Load, MemoryKind, Mission, ModePolicy, Modes, Mount,
    Network, Observed, Partition, PartitionConsole, PartitionDevice, PartitionMemory, Ready,
    Restart, RestartPolicy, Rights, Rule, Seccomp, Supervisor, SupervisorClass, Task, Tmpfs, Uids,
    User, WhenShed,
};
use crate::taskset::{CellTask, Reservation};
use crate::{Bytes, Duration, EngineKind, Machine};

/// Texts that have to survive being written and read.
const TEXTS: [&str; 8] = [
    "",
    "plain",
    "with \"quotes\" and \\",
    "two\nlines",
    "tab\tand\u{7f}",
    "\u{e9}\u{4e2d}\u{1f680}",
    "'''",
    "# no comment",
];

/// Bytes that decide; when they are used up, everything is the first choice.
struct Dice<'a>(std::slice::Iter<'a, u8>);

impl Dice<'_> {
    /// 0 to `sides` - 1.
    fn roll(&mut self, sides: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % sides
    }

    fn flip(&mut self) -> bool {
        self.roll(2) == 1
    }

    fn one<T: Copy>(&mut self, of: &[(&str, T)]) -> T {
        of[self.roll(of.len())].1
    }

    fn text(&mut self) -> String {
        TEXTS[self.roll(TEXTS.len())].to_owned()
    }

    fn words(&mut self, least: usize) -> Vec<String> {
        let count = least + self.roll(3);
        (0..count).map(|_| self.text()).collect()
    }

    /// 1 us to 256 ms.
    fn time(&mut self) -> Duration {
        let unit = [1_000, 1_000_000, 37][self.roll(3)];
        Duration::from_ns(1_000 + unit * self.roll(256) as i64)
    }

    fn count(&mut self) -> u32 {
        1 + self.roll(200) as u32
    }
}

fn plus(time: Duration, more: Duration) -> Duration {
    Duration::from_ns(time.ns() + more.ns())
}

/// A mission that every check accepts.
pub(super) fn mission(bytes: &[u8]) -> Mission {
    let mut dice = Dice(bytes.iter());
    let count = 1 + dice.roll(6);
    let high: Vec<bool> = (0..count).map(|_| dice.flip()).collect();
    let mixed = high.contains(&true) && high.contains(&false);
    let modes = (mixed && dice.flip()).then(|| Modes {
        policy: ModePolicy::AmcRtb,
        return_after: dice.time(),
    });
    let enforcer = dice
        .flip()
        .then(|| dice.one(&Enforcer::names(Enforcer::OF_CHOICE)));
    let cpus = if dice.flip() {
        vec![0, 1, 2, 3]
    } else {
        Vec::new()
    };
    let latency = match dice.roll(3) {
        0 => None,
        1 => Some(Latency::Allowance(dice.time())),
        _ => Some(Latency::Run(PathBuf::from("runs/latency run"))),
    };
    let mut mission = Mission {
        name: "made-1".to_owned(),
        description: dice.text(),
        enforcer,
        cpus,
        latency,
        supply_run: dice.flip().then(|| PathBuf::from("/runs/supply")),
        notify: if dice.flip() {
            [vec!["/bin/n".to_owned()], dice.words(0)].concat()
        } else {
            Vec::new()
        },
        shed: Vec::new(),
        uids: Uids {
            lowest: 1 + dice.count(),
            highest: 3_000_000_000 + dice.count(),
        },
        supervisor: Supervisor {
            class: dice.one(&SupervisorClass::NAMES),
            budget: Duration::from_ns(Supervisor::LEAST_NS + i64::from(dice.count())),
            period: Duration::from_ns(Supervisor::LONGEST_NS - i64::from(dice.count())),
            cpus: (0..dice.count() % 3).collect(),
        },
        modes,
        jailhouse: dice.flip().then(|| Jailhouse {
            system: PathBuf::from("board.cell"),
        }),
        cells: Vec::new(),
    };
    for index in 0..count {
        let cell = cell(&mut dice, &mission, &high, index);
        mission.cells.push(cell);
    }
    let low: Vec<String> = (mission.cells.iter().rev())
        .filter(|cell| !cell.is_high())
        .map(|cell| cell.name.clone())
        .collect();
    mission.shed = low.into_iter().filter(|_| dice.flip()).collect();
    mission
}

fn cell(dice: &mut Dice<'_>, mission: &Mission, high: &[bool], index: usize) -> Cell {
    let (image, engine) = image(dice, mission.jailhouse.is_some());
    let class = dice.flip().then(|| dice.one(&CellClass::NAMES));
    let class = match engine.is_partition() {
        true => Some(CellClass::Other),
        false => class,
    };
    let class = class.filter(|class| mission.enforcer.is_none_or(|e| e.holds(*class)));
    let deadline = match class {
        Some(class) => class == CellClass::Deadline,
        None => mission.enforcer == Some(Enforcer::Deadline),
    };
    let real_time = class != Some(CellClass::Other);
    let cpus: Vec<u32> = (0..4).filter(|_| dice.roll(4) == 1).collect();
    let is_high = high[index];
    let two_modes = mission.modes.is_some() && is_high;
    let base = 1 + index as u8 * 16;
    let band = Band {
        lowest: base,
        highest: base + 15,
    };
    let prioritized = dice.flip() && !deadline;
    let mut tasks = Vec::new();
    for number in 0..dice.roll(4) {
        let priority = prioritized.then(|| i64::from(base) + number as i64);
        tasks.push(task(dice, number, priority, deadline, two_modes));
    }
    for task in &mut tasks {
        if !is_high {
            task.timing.wcet_high = None;
        } else if task.timing.wcet_high.is_none() {
            task.timing.wcet_high = Some(task.timing.wcet);
        }
    }
    let mut reservation = None;
    let mut budget_high = None;
    if tasks.is_empty() || dice.flip() {
        let least = Duration::from_ns(2_000 * cpus.len().max(1) as i64);
        let budget = plus(least, dice.time());
        let ample = plus(budget, dice.time());
        let due = plus(ample, dice.time());
        let period = if dice.flip() && cpus.len() < 2 {
            plus(due, dice.time())
        } else {
            due
        };
        reservation = Some(Reservation {
            budget,
            period,
            deadline: due,
        });
        budget_high = (two_modes && dice.flip()).then_some(ample);
    }
    if !real_time {
        (tasks, reservation, budget_high) = (Vec::new(), None, None);
    }
    let earlier =
        |low_too: bool| -> Vec<usize> { (0..index).filter(|at| low_too || high[*at]).collect() };
    let named = |dice: &mut Dice<'_>, from: Vec<usize>| -> Vec<String> {
        (from.into_iter())
            .filter(|_| dice.roll(3) == 1)
            .map(|at| format!("c{at}"))
            .collect()
    };
    let mut rights = rights(dice);
    let any_low = high.contains(&false);
    let mut health = Vec::new();
    for _ in 0..dice.roll(4) {
        let rule = rule(
            dice,
            &tasks,
            &Situation {
                budget: real_time && mission.enforcer != Some(Enforcer::CpusetOnly),
                memory: rights.memory.is_some(),
                shed: is_high && any_low,
                switch: two_modes,
            },
        );
        if !health.contains(&rule) {
            health.push(rule);
        }
    }
    let wait = dice.time();
    let is_machine = engine.is_machine() && !(deadline && tasks.is_empty());
    let mut machine = Machine::default();
    let (mut env, mut workdir) = (BTreeMap::new(), None);
    if is_machine || engine.is_partition() {
        (rights.network, rights.writable_root, rights.user) = (Network::None, false, None);
        rights.capabilities.clear();
        rights.devices.clear();
        rights.mounts.clear();
        rights.tmpfs.clear();
    }
    if is_machine {
        machine.board = dice.flip().then(|| "my board.toml".to_owned());
        machine.vcpus = dice.flip().then_some(9);
    } else if !engine.is_partition() {
        env = environment(dice);
        workdir = dice.flip().then(|| PathBuf::from("/work dir"));
    }
    Cell {
        name: format!("c{index}"),
        description: dice.text(),
        command: match image {
            Image::Binary(_) | Image::Inmate(_) => Vec::new(),
            Image::Rootfs(_) | Image::Bundle(_) => {
                [vec!["/bin/p".to_owned()], dice.words(0)].concat()
            }
            Image::Reference(_) if dice.flip() => vec!["p".to_owned()],
            Image::Reference(_) => Vec::new(),
        },
        image,
        args: match engine.is_partition() {
            true => Vec::new(),
            false => dice.words(0),
        },
        env,
        workdir,
        engine: match engine.is_machine() && !is_machine {
            true => EngineKind::Embedded,
            false => engine,
        },
        machine,
        partition: engine.is_partition().then(|| partition(dice, index)),
        class,
        criticality: if is_high {
            Criticality::High
        } else {
            Criticality::Low
        },
        when_shed: if is_high {
            WhenShed::Freeze
        } else {
            dice.one(&WhenShed::NAMES)
        },
        cpus,
        priorities: (real_time && !deadline && dice.flip()).then_some(band),
        only_tasks: !tasks.is_empty()
            && !deadline
            && mission.enforcer.is_none_or(Enforcer::has_ample_budgets)
            && dice.flip(),
        reservation,
        budget_high,
        tasks,
        after: named(dice, earlier(true)),
        needs: named(dice, earlier(!is_high)),
        ready: dice.one(&Ready::NAMES),
        start_timeout: plus(Duration::from_ns(1_000_000), dice.time()),
        stop_timeout: dice.time(),
        restart: Restart {
            policy: dice.one(&RestartPolicy::NAMES),
            backoff_min: wait,
            backoff_max: plus(wait, dice.time()),
            limit: dice.count(),
            window: dice.time(),
        },
        health,
        rights,
    }
}

fn environment(dice: &mut Dice<'_>) -> BTreeMap<String, String> {
    let names = ["PATH", "with space", "a.b", "\u{e9}\"'\\\n"];
    let mut all = BTreeMap::new();
    for name in names {
        if dice.roll(4) == 1 {
            all.insert(name.to_owned(), dice.text());
        }
    }
    all
}

fn partition(dice: &mut Dice<'_>, index: usize) -> Partition {
    let interrupts: Vec<u32> = (32..40).filter(|_| dice.roll(4) == 1).collect();
    Partition {
        cpus: vec![100 + index as u32],
        memory: vec![PartitionMemory {
            at: 0x8_0040_0000,
            size: Bytes::new(4096 << dice.roll(9)),
            seen_at: dice.flip().then_some(0),
            kind: dice.one(&MemoryKind::NAMES),
        }],
        entry: dice.count().into(),
        load: (0..dice.roll(3))
            .map(|_| Load {
                file: PathBuf::from("board.dtb"),
                at: dice.count().into(),
            })
            .collect(),
        device: (0..dice.roll(3))
            .map(|_| PartitionDevice {
                at: dice.count().into(),
                size: Bytes::new(dice.count().into()),
                interrupts: interrupts.clone(),
            })
            .collect(),
        console: dice.flip().then(|| PartitionConsole {
            at: dice.count().into(),
            kind: dice.one(&ConsoleKind::NAMES),
            shared: dice.flip(),
        }),
        interrupts: interrupts.clone(),
        heartbeat: dice.flip().then_some(0x8_0040_0010 + 8 * index as u64),
        boot_time: plus(Duration::from_ns(1_000_000), dice.time()),
        prints: dice.flip(),
    }
}

fn image(dice: &mut Dice<'_>, with_partitions: bool) -> (Image, EngineKind) {
    let path = PathBuf::from(["images/a", "/srv/b c", "../d"][dice.roll(3)]);
    let image = match dice.roll(4 + usize::from(with_partitions)) {
        0 => Image::Rootfs(path),
        1 => Image::Bundle(path),
        2 => Image::Binary(path),
        4 => Image::Inmate(path),
        _ => Image::Reference("localhost/x:1".to_owned()),
    };
    let engines = EngineKind::of_missions_from(image.kind());
    let engine = engines[dice.roll(engines.len())];
    (image, engine)
}

fn task(
    dice: &mut Dice<'_>,
    number: usize,
    priority: Option<i64>,
    deadline: bool,
    two_modes: bool,
) -> Task {
    let wcet = dice.time();
    let ample = plus(wcet, dice.time());
    let due = plus(ample, dice.time());
    let period = if deadline {
        plus(due, dice.time())
    } else {
        dice.time()
    };
    Task {
        timing: CellTask {
            deadline: due,
            jitter: dice.time(),
            blocking: dice.time(),
            priority,
            wcet_high: (two_modes && dice.flip()).then_some(ample),
            ..CellTask::new(format!("task {number}"), wcet, period)
        },
        thread: dice.flip().then(|| format!("thread-{number}")),
        arrivals: match dice.flip() {
            true => Arrivals::Sporadic,
            false => Arrivals::Periodic,
        },
    }
}

/// The observations and actions that are possible.
struct Situation {
    budget: bool,
    memory: bool,
    shed: bool,
    switch: bool,
}

fn rule(dice: &mut Dice<'_>, tasks: &[Task], can: &Situation) -> Rule {
    let task = |dice: &mut Dice<'_>| {
        let at = dice.roll(tasks.len() + 1);
        tasks.get(at).map(|task| task.name().to_owned())
    };
    let timeout = |dice: &mut Dice<'_>| plus(Duration::from_ns(1_000_000), dice.time());
    let when = match dice.roll(9) {
        1 => Observed::Heartbeat {
            task: task(dice),
            timeout: timeout(dice),
        },
        2 if !tasks.is_empty() => {
            let misses = dice.count();
            Observed::DeadlineMisses {
                task: task(dice),
                misses,
                jobs: misses + dice.count(),
            }
        }
        3 if can.budget => Observed::BudgetExhausted {
            periods: dice.count(),
        },
        4 if can.memory => Observed::MemoryLimit,
        5 => Observed::NoProgress {
            timeout: timeout(dice),
        },
        6 if !tasks.is_empty() => Observed::Overrun { task: task(dice) },
        7 => Observed::RestartLimit,
        8 if !tasks.is_empty() => Observed::Unproved { task: task(dice) },
        _ => Observed::Exit {
            status: dice.one(&ExitStatus::NAMES),
        },
    };
    let action = |dice: &mut Dice<'_>| match dice.one(&Action::NAMES) {
        Action::Restart | Action::RestartBackoff if when == Observed::RestartLimit => Action::Log,
        Action::Shed if !can.shed => Action::Log,
        Action::SwitchMode if !can.switch => Action::Log,
        action => action,
    };
    let mut after = 0;
    let escalate: Vec<Escalation> = (0..dice.roll(3))
        .map(|_| {
            after += dice.count();
            Escalation {
                after,
                action: action(dice),
            }
        })
        .collect();
    let times = if dice.flip() { dice.count() } else { 1 };
    let window = (times > 1 || !escalate.is_empty() || dice.flip()).then(|| dice.time());
    Rule {
        action: action(dice),
        when,
        times,
        window,
        cooldown: dice.time(),
        escalate,
    }
}

fn rights(dice: &mut Dice<'_>) -> Rights {
    let memory = dice
        .flip()
        .then(|| Bytes::new((2 << 20) + dice.roll(256) as u64));
    Rights {
        network: dice.one(&Network::NAMES),
        writable_root: dice.flip(),
        capabilities: if dice.flip() {
            vec!["CAP_NET_RAW".to_owned(), "CAP_SYS_TIME".to_owned()]
        } else {
            Vec::new()
        },
        seccomp: dice.one(&Seccomp::NAMES),
        user: dice.flip().then(|| User {
            uid: dice.count(),
            gid: u32::MAX - dice.count(),
        }),
        devices: (0..dice.roll(3))
            .map(|number| Device {
                path: PathBuf::from(format!("/dev/d{number}")),
                access: dice.one(&Access::NAMES),
            })
            .collect(),
        evl: false,
        mounts: (0..dice.roll(3))
            .map(|number| Mount {
                source: PathBuf::from(["here", "/srv/there"][dice.roll(2)]),
                target: PathBuf::from(format!("/m{number}")),
                writable: dice.flip(),
            })
            .collect(),
        tmpfs: (0..dice.roll(3))
            .map(|number| Tmpfs {
                target: PathBuf::from(format!("/t{number}")),
                size: Bytes::new(4096 + dice.roll(256) as u64),
            })
            .collect(),
        memory,
        pids: dice.count(),
        pending_signals: dice.count(),
        message_queues: Bytes::new(dice.roll(4) as u64),
        open_files: 16 + dice.count(),
    }
}
