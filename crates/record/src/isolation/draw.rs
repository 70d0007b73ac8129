//! The task sets of an isolation study, and how they were drawn.

use serde::{Deserialize, Serialize};

use model::Enforcer;

use crate::ground::{Budget, NotMeasured};

/// How the sets of one utilisation were drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draws {
    /// Declared utilisation of both cells together, in thousandths of a cpu.
    pub utilisation_permille: u32,
    /// Sets that were drawn.
    pub drawn: u32,
    /// Number of sets refused by each enforcer that was asked: (its name, number).
    pub refused: Vec<(String, u32)>,
    /// Enforcers that take no part at this utilisation, with the reason.
    pub without: Vec<NotMeasured>,
}

/// The tasks of two cells, and their budgets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawnSet {
    /// Number, from 1.
    pub number: u32,
    /// Round in which it is run, from 1.
    pub round: u32,
    /// See [`Draws::utilisation_permille`].
    pub utilisation_permille: u32,
    /// Index of the draw at this utilisation, from 0: together with the seed it gives the same set again.
    pub draw: u64,
    /// The cell of higher priority, which overruns.
    pub attacker: DrawnCell,
    /// The cell whose deadlines count.
    pub victim: DrawnCell,
    /// Whether, by response time analysis, the victim misses a deadline in the worst case when the attacker overruns
    /// without an enforcer.
    pub late_without: bool,
}

/// One of the two cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct DrawnCell {
    /// Tasks, the most urgent first.
    pub tasks: Vec<DrawnTask>,
    /// The budget of the whole cell under each enforcer that takes part and holds whole cells.
    pub budgets: Vec<Budget>,
}

/// A cell as it may stand on record: runs of the time of two such enforcers have a field for each.
#[derive(Deserialize)]
struct Stored {
    tasks: Vec<DrawnTask>,
    #[serde(default)]
    budgets: Vec<Budget>,
    budget_ns: Option<(u64, u64)>,
    freezer_ns: Option<(u64, u64)>,
}

impl From<Stored> for DrawnCell {
    fn from(stored: Stored) -> DrawnCell {
        let mut budgets = stored.budgets;
        let former = [
            (Enforcer::RtCgroup, stored.budget_ns),
            (Enforcer::Freezer, stored.freezer_ns),
        ];
        budgets.extend(former.into_iter().filter_map(|(enforcer, held)| {
            let (budget_ns, period_ns) = held?;
            Some(Budget {
                enforcer,
                budget_ns,
                period_ns,
            })
        }));
        DrawnCell {
            tasks: stored.tasks,
            budgets,
        }
    }
}

impl DrawnCell {
    /// The budget of the whole cell under this enforcer; `None`: it takes no part, or holds each thread.
    pub fn budget_of(&self, enforcer: Enforcer) -> Option<Budget> {
        let mut all = self.budgets.iter().copied();
        all.find(|held| held.enforcer == enforcer)
    }
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawnTask {
    /// Name, such as `victim-1`; its samples are `trials/<number>/<name>.samples`.
    pub name: String,
    /// Declared execution time, ns.
    pub wcet_ns: u64,
    /// Period and relative deadline, ns.
    pub period_ns: u64,
    /// Runtime of its SCHED_DEADLINE thread, ns; `None` if that enforcer takes no part.
    pub runtime_ns: Option<u64>,
    /// SCHED_FIFO priority under other enforcers.
    pub priority: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_former_versions_are_read_as_those_of_now() {
        let former = r#"{"tasks":[],"budget_ns":[2,10],"freezer_ns":[3,20]}"#;
        let cell: DrawnCell = serde_json::from_str(former).unwrap();
        let of = |enforcer| {
            let held = cell.budget_of(enforcer)?;
            Some((held.budget_ns, held.period_ns))
        };
        assert_eq!(of(Enforcer::RtCgroup), Some((2, 10)));
        assert_eq!(of(Enforcer::Freezer), Some((3, 20)));
        assert_eq!(of(Enforcer::Hcbs), None);
        let written = serde_json::to_string(&cell).unwrap();
        assert!(!written.contains("freezer_ns"), "{written}");
        assert_eq!(serde_json::from_str::<DrawnCell>(&written).unwrap(), cell);
        let none: DrawnCell = serde_json::from_str(r#"{"tasks":[],"budget_ns":null}"#).unwrap();
        assert!(none.budgets.is_empty());
    }
}
