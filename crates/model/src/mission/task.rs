//! A task of a cell.

use super::keys::SOME_TIME;
use crate::Duration;
use crate::file::{Field, Kind, Node, Writer, table};
use crate::taskset::CellTask;

table! {
    /// A task of the cell, with the keys of a task-set file.
    pub struct Task: "task", "[[cell.task]]" {
        /// Name and times, as the analysis takes them. `wcet_high` is set for every task of a cell of high criticality, and for no
        /// other.
        timing: CellTask, by timing;
        /// its name; unique in the cell
        "name" = Kind::Label, Required "\"loop\"";
        /// worst-case execution time; at most the deadline
        "wcet" = SOME_TIME, Required "\"1ms\"";
        /// the wcet in high mode, from `wcet` to the deadline; only with [modes] and criticality `hi`
        "wcet_hi" = SOME_TIME, Without "the wcet";
        /// minimum time between arrivals
        "period" = SOME_TIME, Required "\"10ms\"";
        /// counted from the arrival; may exceed the period unless the class is `deadline`
        "deadline" = SOME_TIME, Without "the period";
        /// longest delay from the arrival of a job to its release
        "jitter" = Duration::KIND, Default "\"0ms\"";
        /// the longest time for which less urgent work can delay a job
        "blocking" = Duration::KIND, Default "\"0ms\"";
        /// priority that the program itself gives its thread, which tells the order of the tasks; for all tasks of a cell or for none; unique in the cell. Its thread runs at this priority where the cell has it, else in the same order within those it has
        "priority" = Kind::Integer { least: 1, most: 99 }, Without "chosen by admission";
        /// name of its thread (`comm`), by which it is found where the application does not report its jobs; unique in the cell
        thread: Option<String> = Kind::Thread, Without "the name of the task";
        /// `periodic`: a skipped release is a missed deadline; `sporadic`: jobs are released by events, at least a period apart
        arrivals: Arrivals, Default "\"periodic\"";
    }
}

mod timing {
    use super::{CellTask, Duration, Field, Node, Task, Writer};

    pub(super) fn read(node: &Node<'_>) -> CellTask {
        let period = Duration::read(node, "period");
        CellTask {
            deadline: node.time("deadline").unwrap_or(period),
            jitter: Duration::read(node, "jitter"),
            blocking: Duration::read(node, "blocking"),
            priority: node.integer("priority"),
            wcet_high: node.time("wcet_hi"),
            ..CellTask::new(node.text("name"), Duration::read(node, "wcet"), period)
        }
    }

    pub(super) fn write(task: &Task, out: &mut Writer) {
        let timing = &task.timing;
        timing.name.write("name", out);
        timing.wcet.write("wcet", out);
        let high = timing.wcet_high.filter(|high| *high != timing.wcet);
        high.write("wcet_hi", out);
        timing.period.write("period", out);
        let deadline = Some(timing.deadline).filter(|deadline| *deadline != timing.period);
        deadline.write("deadline", out);
        timing.jitter.write("jitter", out);
        timing.blocking.write("blocking", out);
        if let Some(priority) = timing.priority {
            out.line("priority", &priority.to_string());
        }
    }
}

choice! {
    /// When the jobs of a task are released, which decides whether one can be missing.
    #[derive(Default)]
    pub enum Arrivals {
        /// One in every period: a skipped release is a missed deadline.
        #[default]
        Periodic = "periodic",
        /// Released by events, at least a period apart.
        Sporadic = "sporadic",
    }
}

impl Task {
    /// Its name; unique in its cell.
    pub fn name(&self) -> &str {
        &self.timing.name
    }
}
