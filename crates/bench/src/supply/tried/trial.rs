//! One run of a task set inside a budget.

use host::sched::Class;
use record::run::Run;
use record::supply::{TriedSet, TriedTrial};

use crate::held::{self, Held, Names, group_name};
use crate::launch::Stage;
use crate::load::PlannedLoad;
use crate::periodic::{self, Thread, jobs_within};
use crate::supply::trial::stolen;
use crate::together::{self, Around, Beside, Member};

/// What the cell is called.
const MEMBER: &str = "tried";

/// A run of a set that is to take place.
pub(super) struct Attempt<'a> {
    pub set: &'a TriedSet,
    /// Whether the budget holds it.
    pub in_budget: bool,
    pub round: u32,
    pub cpu: u32,
    pub length_ns: i64,
    /// What is beside it.
    pub load: Option<&'a PlannedLoad>,
    pub around: Around<'a>,
    /// Where the samples go.
    pub run: &'a Run,
}

impl Attempt<'_> {
    /// Runs it. What fails is on the record; nothing of the trial stays on the machine.
    pub(super) fn run(&self) -> TriedTrial {
        let threads: Vec<Thread<'_>> = (self.set.tasks.iter())
            .map(|task| Thread {
                name: &task.name,
                class: Class::Fifo {
                    priority: task.priority,
                },
                period_ns: task.period_ns,
                jobs: jobs_within(self.length_ns, task.period_ns),
                work_ns: i64::try_from(task.wcet_ns).unwrap_or(i64::MAX),
                bounded: true,
            })
            .collect();
        let before = stolen(&[self.cpu]);
        let mut beside = self.load.map(|load| Beside::new(load, &self.around));
        let measured = self.measure(&threads, beside.as_mut());
        let stolen = before.zip(stolen(&[self.cpu]));
        TriedTrial {
            number: self.around.number,
            round: self.round,
            set: self.set.number,
            in_budget: self.in_budget,
            cpu: self.cpu,
            jobs: threads.iter().map(|thread| thread.jobs).collect(),
            steal_ns: stolen.map(|(before, after)| after.saturating_sub(before)),
            load: beside.map(|beside| beside.record),
            failure: measured.err(),
        }
    }

    fn measure(
        &self,
        threads: &[Thread<'_>],
        beside: Option<&mut Beside<'_>>,
    ) -> Result<(), String> {
        let budget = &self.set.held;
        let held = match held::by(budget.enforcer) {
            Some(holder) if self.in_budget => {
                let name = together::cell_name(self.around.number, MEMBER);
                let names = Names {
                    id: &Stage::id(&name),
                    rt_group: &group_name(),
                };
                holder.hold(budget, self.cpu, &names)?
            }
            _ => None,
        };
        let measured = self.in_cell(threads, held.as_deref(), beside);
        let ended = held.map_or(Ok(()), |held| held.end());
        measured.and(ended)
    }

    fn in_cell(
        &self,
        threads: &[Thread<'_>],
        held: Option<&dyn Held>,
        beside: Option<&mut Beside<'_>>,
    ) -> Result<(), String> {
        periodic::prepare(self.around.stage, threads)?;
        let member = Member {
            name: MEMBER.to_owned(),
            words: periodic::words(threads, 0, self.cpu, &[self.cpu]).to_words(),
            slots: 0..threads.len(),
            classes: threads.iter().map(|thread| thread.class.clone()).collect(),
            rtprio: self
                .set
                .tasks
                .iter()
                .map(|task| task.priority)
                .max()
                .unwrap_or(1),
            held,
        };
        let ran = together::run(&self.around, &[member], None, beside, self.length_ns);
        let (stage, number) = (self.around.stage, self.around.number);
        let kept = periodic::keep(stage, threads, self.run, number, ran.is_ok());
        ran.and(kept)
    }
}
