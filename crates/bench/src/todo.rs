//! Which trials of a plan take place, and in which order. Trials of a round that differ in nothing but their cells run as one, in turns.

use std::borrow::Cow;

use model::MOST_ARMS;
use record::trial::Arm;

use crate::plan::reports;
use crate::turns::PlannedTurns;
use crate::{Plan, PlannedTrial};

/// One trial that is to take place.
pub(crate) struct Todo<'a> {
    pub planned: Cow<'a, PlannedTrial>,
    pub number: u32,
    pub round: u32,
    /// Activations of each cell.
    pub jobs: Vec<u32>,
    /// The trial whose remaining jobs these are.
    pub continues: Option<u32>,
}

/// Every trial of the plan, interleaved.
pub(crate) fn all(plan: &Plan) -> Vec<Todo<'_>> {
    let trials = plan.trials.len() as u32;
    (1..=plan.experiment.rounds)
        .flat_map(|of| round(plan, of, (of - 1) * trials + 1))
        .collect()
}

/// The trials of one round, whose numbers begin with `first`.
fn round(plan: &Plan, round: u32, first: u32) -> Vec<Todo<'_>> {
    (plan.trials.iter().zip(first..))
        .map(|(planned, number)| Todo {
            planned: Cow::Borrowed(planned),
            number,
            round,
            jobs: planned.jobs(),
            continues: None,
        })
        .collect()
}

/// How long each trial should take, ns: the rest of one that is continued.
pub(crate) fn expected_ns(todo: &[Todo<'_>]) -> Vec<i64> {
    let part = |todo: &Todo| {
        // Each cell's share of its own jobs: they may have different numbers.
        let whole = todo.planned.jobs();
        let left = todo.jobs.iter().zip(&whole).map(|(jobs, whole)| {
            let expected = i128::from(todo.planned.expected_ns());
            (expected * i128::from(*jobs) / i128::from((*whole).max(1))) as i64
        });
        left.max().unwrap_or(0)
    };
    todo.iter().map(part).collect()
}

impl Plan {
    /// How long the run should take, ns: the loops and some creation time.
    pub fn expected_ns(&self) -> i64 {
        let round = (self.round().iter()).fold(0i64, |sum, todo| {
            sum.saturating_add(todo.planned.expected_ns())
        });
        round.saturating_mul(i64::from(self.experiment.rounds))
    }

    /// How many rounds should take so long, ns.
    pub fn rounds_within(&self, ns: i64) -> u32 {
        let round = self.expected_ns() / i64::from(self.experiment.rounds.max(1));
        u32::try_from(ns.max(0) / round.max(1)).unwrap_or(u32::MAX)
    }

    /// Bytes of samples of one trial in shared memory, at most.
    pub fn trial_bytes(&self) -> u64 {
        let bytes =
            |trial: &PlannedTrial| trial.cell_bytes(&self.experiment) * trial.cells.len() as u64;
        (self.round().iter())
            .map(|todo| bytes(&todo.planned))
            .max()
            .unwrap_or(0)
    }

    /// One round, joint trials as one.
    fn round(&self) -> Vec<Todo<'_>> {
        joined(self, round(self, 1, 1))
    }
}

/// Joins trials that may take turns, if the experiment asks for it; the order stays.
pub(crate) fn joined<'a>(plan: &Plan, todo: Vec<Todo<'a>>) -> Vec<Todo<'a>> {
    let Some(turns) = plan.experiment.turns else {
        return todo;
    };
    let mut groups: Vec<Vec<Todo<'a>>> = Vec::new();
    for next in todo {
        let group = groups.iter_mut().find(|group| {
            group[0].round == next.round
                && alike(&group[0].planned, &next.planned)
                && group.len() < MOST_ARMS as usize
        });
        match group {
            Some(group) => group.push(next),
            None => groups.push(vec![next]),
        }
    }
    let groups = groups.into_iter().zip(0..);
    groups
        .map(|(group, place)| join(group, turns, place))
        .collect()
}

/// Whether two trials may take turns: they have the same loads, and their jobs the same pacing. Cells with tasks of their own must run
/// together all the time, and a virtual machine is booted for its trial alone.
fn alike(one: &PlannedTrial, other: &PlannedTrial) -> bool {
    let pace = |trial: &PlannedTrial| (trial.workload.period, trial.workload.work);
    let takes_turns = |trial: &PlannedTrial| trial.own.is_empty() && trial.machine.is_none();
    let shared = takes_turns(one) && takes_turns(other);
    shared && pace(one) == pace(other) && one.loads == other.loads && one.isolate == other.isolate
}

fn join<'a>(mut group: Vec<Todo<'a>>, turns: model::Turns, place: u64) -> Todo<'a> {
    if group.len() == 1 {
        return group.remove(0);
    }
    let number = group[0].number;
    // Cells that are created first get other memory than later ones: the first differs from round to round.
    let seed = seed(place);
    model::shuffle(&mut group, !seed);
    let first = &group[0];
    let arms = group.iter().map(|todo| Arm {
        number: todo.number,
        name: todo.planned.name.clone(),
        continues: todo.continues,
        cells: todo.planned.cells.len(),
    });
    let names: Vec<&str> = group
        .iter()
        .map(|todo| todo.planned.name.as_str())
        .collect();
    // The length of the joint trial, and the room for its records, is that of its longest part.
    let jobs = group.iter().map(|todo| todo.planned.workload.jobs).max();
    let mut workload = first.planned.workload.clone();
    workload.jobs = jobs.unwrap_or(workload.jobs);
    let planned = PlannedTrial {
        name: format!("in turns: {}", names.join(", ")),
        cells: group
            .iter()
            .flat_map(|todo| todo.planned.cells.clone())
            .collect(),
        turns: Some(PlannedTurns {
            jobs: turns.jobs(first.planned.workload.period),
            extra: match reports(&first.planned.workload) {
                true => turns.catch_up,
                false => 0,
            },
            settle: turns.settle,
            seed,
            arms: arms.collect(),
            stages: (group.iter())
                .map(|todo| todo.planned.workload.stage)
                .collect(),
        }),
        workload,
        ..first.planned.clone().into_owned()
    };
    Todo {
        planned: Cow::Owned(planned),
        number,
        round: first.round,
        jobs: group.iter().flat_map(|todo| todo.jobs.clone()).collect(),
        continues: None,
    }
}

/// Another order for each round of each run.
fn seed(place: u64) -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_nanos() as u64);
    now.rotate_left(20).wrapping_add(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Experiment;

    fn plan(trials: &str) -> Plan {
        let text = format!(
            "schema = 1\nname = \"x\"\nrounds = 2\n[workload]\nkind = \"timer\"\njobs = 24\n[scheduling]\nclass = \"other\"\ncpus = [0]\n[turns]\n{trials}"
        );
        Plan::new(Experiment::parse("x", &text).unwrap(), "x").unwrap()
    }

    const FOUR: &str = "[[trial]]\nname = \"a\"\ncells = [\"bare\"]\n[[trial]]\nname = \"slow\"\nperiod = \"2ms\"\ncells = [\"bare\"]\n\
        [[trial]]\nname = \"b\"\ncells = [\"bare\", \"bare\"]\n[[trial]]\nname = \"loaded\"\ncells = [\"bare\"]\nloads = [\"cpu\"]\n";

    #[test]
    fn what_is_alike_is_joined_and_the_rest_stays_apart() {
        let plan = plan(FOUR);
        let joined = joined(&plan, round(&plan, 1, 1));
        let [both, slow, loaded] = joined.as_slice() else {
            panic!("{}", joined.len());
        };
        assert_eq!((both.number, slow.number, loaded.number), (1, 2, 4));
        assert_eq!(both.planned.cells.len(), 3);
        assert_eq!(both.jobs, [24, 24, 24]);
        let turns = both.planned.turns.as_ref().unwrap();
        let of = [0, 1, 2].map(|cell| turns.args(cell).arm);
        let arms: Vec<(u32, &str)> = (turns.arms.iter())
            .map(|arm| (arm.number, arm.name.as_str()))
            .collect();
        // Which comes first is drawn.
        match arms.as_slice() {
            [(1, "a"), (3, "b")] => assert_eq!(of, [0, 1, 1]),
            [(3, "b"), (1, "a")] => assert_eq!(of, [0, 0, 1]),
            other => panic!("{other:?}"),
        }
        assert!(slow.planned.turns.is_none() && loaded.planned.turns.is_none());
    }

    #[test]
    fn a_virtual_machine_takes_no_turns() {
        let mut plan = plan(FOUR);
        plan.trials[0].machine = Some(engine::Machine {
            name: "q35".to_owned(),
            board: String::new(),
            kvm: false,
            why_not_kvm: None,
            kernel: None,
            modules: Vec::new(),
            vcpus: 1,
            memory_bytes: 1 << 28,
            helpers: "other:".to_owned(),
        });
        let joined = joined(&plan, round(&plan, 1, 1));
        assert_eq!(joined.len(), 4);
    }

    #[test]
    fn joint_trials_take_as_long_as_their_turns_and_need_room_for_all() {
        let together = plan(
            "[[trial]]\nname = \"a\"\ncells = [\"bare\"]\n[[trial]]\nname = \"b\"\ncells = [\"bare\"]\n",
        );
        // Two laps of two turns of 12 jobs and two periods each.
        let turns = 2 * 2 * 14 * 1_000_000;
        assert!(together.expected_ns() >= 2 * turns);
        let alone = plan("[[trial]]\nname = \"a\"\ncells = [\"bare\"]\n");
        assert_eq!(together.trial_bytes(), 2 * alone.trial_bytes());
    }

    /// Whichever of them is drawn to be first.
    #[test]
    fn the_longest_part_tells_how_long_the_joint_trial_may_take() {
        let plan = plan(
            "[[trial]]\nname = \"a\"\ncells = [\"bare\"]\n[[trial]]\nname = \"long\"\njobs = 4800\ncells = [\"bare\"]\n",
        );
        for place in 0..20 {
            let group = round(&plan, 1, 1);
            let both = join(group, plan.experiment.turns.unwrap(), place);
            assert_eq!(both.planned.workload.jobs, 4800);
            let mut jobs = both.jobs.clone();
            jobs.sort_unstable();
            assert_eq!(jobs, [24, 4800]);
        }
    }
}
