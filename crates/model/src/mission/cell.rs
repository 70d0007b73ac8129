//! A cell of a mission.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::keys::{CELL_NAMES, CPUS, SOME_TIME};
use super::{Band, CellClass, Image, Limits, Partition, Restart, Rights, Rule, Task, image};
use crate::file::{Field, Kind, Node, Shape, Writer, keys, names_of, table, tables};
use crate::taskset::{Order, Policy, Reservation, TaskCell};
use crate::{Duration, EngineKind, Machine};

const ARGUMENTS: Kind = Kind::List {
    of: &Kind::Word,
    least: 0,
    most: 4_096,
    unique: false,
};
const COMMAND: Kind = Kind::List {
    of: &Kind::Word,
    least: 1,
    most: 4_096,
    unique: false,
};
const START: Kind = Kind::Time {
    least_ns: 1_000_000,
};

table! {
    /// A cell: an isolated place in which one application runs.
    pub struct Cell: "cell", "[[cell]]" {
        /// its name; unique in the mission; not `supervisor`
        ///
        /// A letter or digit, then letters, digits, `-` and `_`; 64 at most.
        name: String = Kind::Name, Required "\"control\"";
        /// its purpose
        description: String, Default "\"\"";
        /// Its image.
        image: Image, by image;
        /// the cell's image
        "image" = Kind::Table(&image::IMAGE), Required "{ rootfs = \"DIR\" }";
        /// program inside the cell and its first arguments; required with `rootfs`, refused with `binary`
        command: Vec<String> = COMMAND, Without "the image's";
        /// further arguments; without `command` they replace those of the image; not with a `bundle` alone
        args: Vec<String> = ARGUMENTS, Default "[]";
        /// environment variables
        env: BTreeMap<String, String>, Without "only the image's";
        /// working directory of the program
        workdir: Option<PathBuf> = Kind::CellPath, Without "the image's, else `/`";
        /// engine that makes it
        engine: EngineKind = Kind::Choice(&names_of!([], EngineKind::OF_MISSIONS)), Default "\"embedded\"";
        /// the virtual machine that it is; only with engine `qemu`, whose guest runs the image's `binary`
        machine: Machine, Without "a `microvm` or `virt`", unless is_no_machine;
        /// the partition of the machine that it is; required with engine `jailhouse`, refused with others
        partition: Option<Partition>, Without "none";
        /// scheduling class of its threads; `other` is best effort: nothing is guaranteed
        class: Option<CellClass>, Without "what the enforcer needs";
        /// `lo` may be shed in favour of others, `hi` never is
        criticality: Criticality, Default "\"lo\"";
        /// effect of shedding on it; only with criticality `lo`
        when_shed: WhenShed, Default "\"freeze\"", unless is_high;
        /// cpus that its threads may use; within the mission's `cpus` unless its class is `other`
        ///
        /// Each once; empty: it is yet to be placed.
        cpus: Vec<u32> = CPUS, Without "one of the mission's, chosen by admission; class `other`: all cpus that are not the mission's, if any, else all";
        /// SCHED_FIFO priorities that its threads may have; those of cells that may share a cpu must not overlap
        ///
        /// See [`Cell::band`].
        priorities: Option<Band>, Without "those of its tasks, else chosen by admission";
        /// cpu time that is guaranteed to it; required without tasks, refused in class `other`
        "reservation" = Kind::Table(&RESERVATION), Without "the least that its tasks need";
        /// The cpu time that it is guaranteed; for a cell on several cpus, the budget is the sum over them. `None`: the least
        /// that its tasks need, or nothing for a best-effort cell.
        reservation: Option<Reservation>, by reservation;
        /// The reservation's budget in high mode, at least that in low mode; `None`: the same.
        budget_high: Option<Duration>, by budget_high;
        /// `true`: the cell runs nothing but its tasks, so an ample budget, which they cannot use up, suffices; needs tasks, class `fifo` or `rr` and enforcer `freezer` or `rt-cgroup`
        only_tasks: bool, Default "false";
        /// Its tasks, in the order of the file; may be empty if there is a reservation, and is empty for a best-effort cell.
        tasks: Vec<Task>, by tasks;
        /// its tasks; required without a reservation, refused in class `other`
        "task" = self::tables::<Task>(Limits::TASKS), Without "none";
        /// cells that must be started and ready before it
        after: Vec<String> = CELL_NAMES, Default "[]";
        /// as `after`; it is also stopped as soon as one of them stops
        needs: Vec<String> = CELL_NAMES, Default "[]";
        /// when the cells that wait for it may start; `first-job`: once it has reported the end of a job
        ready: Ready, Default "\"started\"";
        /// how long it may take to become ready
        ///
        /// From 1 ms; beyond it, the start has failed.
        start_timeout: Duration = START, Default "\"10s\"";
        /// how long it may take to end after SIGTERM before it is killed; a program that does not handle SIGTERM is killed at once
        stop_timeout: Duration, Default "\"1s\"";
        /// reaction to the end of its program on its own
        restart: Restart, Without "its defaults";
        /// observations watched for, and the actions on them
        health: Vec<Rule> = self::tables::<Rule>(64), Without "observations are only recorded";
        /// its rights on the machine
        rights: Rights, Without "nothing";
    }
}

static RESERVATION: Shape = Shape {
    title: "`reservation`",
    name: "reservation",
    doc: "A budget in every period; for a cell on several cpus, the sum over them.",
    choice: false,
    keys: keys! {
        "budget": SOME_TIME, Required "\"3ms\"", "cpu time in every period";
        "period": SOME_TIME, Required "\"10ms\"", "time between refills";
        "deadline": SOME_TIME, Without "the period",
            "time after a refill by which the budget must have been supplied; at most the period; not on several cpus";
        "budget_hi": SOME_TIME, Without "the budget",
            "the budget in high mode, at least `budget`; only with [modes] and criticality `hi`";
    },
};

mod reservation {
    use super::{Cell, Node, Reservation, Writer};

    pub(super) fn read(cell: &Node<'_>) -> Option<Reservation> {
        let table = cell.table("reservation")?;
        let period = table.time_or_zero("period");
        Some(Reservation {
            budget: table.time_or_zero("budget"),
            period,
            deadline: table.time("deadline").unwrap_or(period),
        })
    }

    pub(super) fn write(cell: &Cell, out: &mut Writer) {
        let Some(own) = &cell.reservation else {
            return;
        };
        let mut text = format!("budget = \"{}\", period = \"{}\"", own.budget, own.period);
        if own.deadline != own.period {
            text += &format!(", deadline = \"{}\"", own.deadline);
        }
        if let Some(budget) = cell.budget_high {
            text += &format!(", budget_hi = \"{budget}\"");
        }
        out.line("reservation", &format!("{{ {text} }}"));
    }
}

mod budget_high {
    use super::{Cell, Duration, Node, Writer};

    pub(super) fn read(cell: &Node<'_>) -> Option<Duration> {
        cell.table("reservation")?.time("budget_hi")
    }

    /// Written with the reservation.
    pub(super) fn write(_: &Cell, _: &mut Writer) {}
}

mod tasks {
    use super::{Cell, Criticality, Field, Node, Task, Writer};

    pub(super) fn read(cell: &Node<'_>) -> Vec<Task> {
        let is_high = Criticality::read(cell, "criticality") == Criticality::High;
        let mut tasks = Vec::<Task>::read(cell, "task");
        for Task { timing, .. } in &mut tasks {
            timing.wcet_high = is_high.then(|| timing.wcet_high.unwrap_or(timing.wcet));
        }
        tasks
    }

    pub(super) fn write(cell: &Cell, out: &mut Writer) {
        cell.tasks.write("task", out);
    }
}

choice! {
    /// How much depends on a cell.
    pub enum Criticality {
        /// It may be shed in favour of others.
        Low = "lo",
        /// It is never shed.
        High = "hi",
    }
}

choice! {
    /// The effect of shedding on a cell.
    pub enum WhenShed {
        /// It is frozen, keeps its memory and continues later.
        Freeze = "freeze",
        /// It is stopped, and started again later.
        Stop = "stop",
        /// It continues in SCHED_OTHER with the remaining cpu time.
        BestEffort = "best-effort",
    }
}

choice! {
    /// When a cell is ready, so that the cells that wait for it may start.
    pub enum Ready {
        /// As soon as its program runs.
        Started = "started",
        /// When its application has reported the end of a job.
        FirstJob = "first-job",
    }
}

impl Cell {
    /// Default of how long it may take to end.
    pub const STOP_TIMEOUT: Duration = Duration::from_ns(1_000_000_000);

    /// Whether it has a guarantee, that is, is not best effort.
    pub fn is_real_time(&self) -> bool {
        self.class != Some(CellClass::Other)
    }

    /// Whether its engine makes no virtual machines.
    pub fn is_no_machine(&self) -> bool {
        !self.engine.is_machine()
    }

    /// Whether it is of high criticality.
    pub fn is_high(&self) -> bool {
        self.criticality == Criticality::High
    }

    /// Program and arguments, as far as the mission sets them.
    pub fn argv(&self) -> impl Iterator<Item = &str> {
        self.command.iter().chain(&self.args).map(String::as_str)
    }

    /// The priorities that its threads have by themselves: those of the file, else from the lowest to the highest of its tasks. `None`:
    /// the file has none, or its class. Admission gives the cell these if it says `priorities`, else where they are free.
    pub fn band(&self) -> Option<Band> {
        if let (Some(CellClass::Deadline | CellClass::Other), _) | (_, Some(_)) =
            (self.class, self.priorities)
        {
            return self.priorities;
        }
        let of_tasks = || self.tasks.iter().map(|task| task.timing.priority);
        let all: Option<Vec<u8>> = of_tasks()
            .map(|priority| u8::try_from(priority?).ok())
            .collect();
        let all = all?;
        Some(Band {
            lowest: *all.iter().min()?,
            highest: *all.iter().max()?,
        })
    }

    /// The name of the thread of its task at this place: of a virtual machine, QEMU's name of that virtual cpu's thread, of which the last
    /// part, behind the slash, tells who executes it.
    pub fn thread_of(&self, task: usize) -> String {
        let own = self.tasks.get(task);
        match own.and_then(|task| task.thread.as_ref()) {
            Some(thread) => thread.clone(),
            None if self.engine.is_machine() => format!("CPU {task}/"),
            None => own.map_or_else(String::new, |task| task.name().to_owned()),
        }
    }

    /// The number of cpus that it runs on; one, if it is yet to be placed.
    pub fn cpu_count(&self) -> u32 {
        u32::try_from(self.cpus.len().max(1)).unwrap_or(u32::MAX)
    }

    /// Its tasks and reservation as a cell of the analysis under this class; the order of fixed priorities is that of the
    /// tasks' priorities if they have some, else that of their deadlines.
    pub fn analysed(&self, class: CellClass) -> TaskCell {
        let given = self.tasks.iter().any(|task| task.timing.priority.is_some());
        TaskCell {
            name: self.name.clone(),
            policy: match class {
                CellClass::Deadline => Policy::Edf,
                _ if given => Policy::Fixed(Order::Priority),
                _ => Policy::Fixed(Order::Deadline),
            },
            reservation: self.reservation,
            server: None,
            tasks: self.tasks.iter().map(|task| task.timing.clone()).collect(),
        }
    }
}
