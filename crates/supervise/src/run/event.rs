use std::fmt;

use crate::end::End;

/// What happens while a mission is kept running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A cell runs.
    Started {
        /// Its name.
        cell: String,
        /// How often it has been started by then.
        generation: u64,
        /// Its first process.
        pid: i32,
        /// What holds it, one sentence.
        guarantee: String,
        /// From asking for it until its program was executed, ns.
        took_ns: i64,
    },
    /// A cell of an earlier supervisor was taken over as it runs.
    Adopted {
        /// Its name.
        cell: String,
        /// Its first process.
        pid: i32,
    },
    /// A cell could not be started.
    NotStarted {
        /// Its name.
        cell: String,
        /// Why.
        why: String,
    },
    /// A cell's program has ended.
    Ended {
        /// Its name.
        cell: String,
        /// How.
        end: End,
        /// Whether it was told to.
        asked: bool,
    },
    /// It will be restarted.
    Restarts {
        /// Its name.
        cell: String,
        /// In so long, ns.
        wait_ns: i64,
    },
    /// It stays stopped.
    Stays {
        /// Its name.
        cell: String,
        /// Why.
        why: String,
    },
    /// Something of a cell could not be removed.
    Left {
        /// Its name.
        cell: String,
        /// What.
        what: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: i64| ns as f64 / 1e6;
        match self {
            Event::Started {
                cell,
                generation,
                pid,
                guarantee,
                took_ns,
            } => write!(
                f,
                "{cell}: runs (pid {pid}, start {generation}, {:.1} ms): {guarantee}",
                ms(*took_ns)
            ),
            Event::Adopted { cell, pid } => {
                write!(f, "{cell}: runs since before (pid {pid}), taken over")
            }
            Event::NotStarted { cell, why } => write!(f, "{cell}: could not be started: {why}"),
            Event::Ended {
                cell,
                end,
                asked: true,
            } => write!(f, "{cell}: {end}, as it was told to"),
            Event::Ended {
                cell,
                end,
                asked: false,
            } => write!(f, "{cell}: {end}"),
            Event::Restarts { cell, wait_ns: 0 } => write!(f, "{cell}: is restarted"),
            Event::Restarts { cell, wait_ns } => {
                write!(f, "{cell}: is restarted in {:.1} ms", ms(*wait_ns))
            }
            Event::Stays { cell, why } => write!(f, "{cell}: stays stopped: {why}"),
            Event::Left { cell, what } => write!(f, "{cell}: left behind: {what}"),
        }
    }
}
