//! One run of a task set inside a budget.

use host::sched::Class;
use record::run::Run;
use record::supply::{TriedSet, TriedTrial};

use crate::held::group_name;
use crate::load::PlannedLoad;
use crate::periodic::{self, Thread, jobs_within};
use crate::supply::stolen_while;
use crate::together::{self, Around, Beside, Member};

/// The cell's name.
const MEMBER: &str = "tried";

/// A run of a set that is to take place.
pub(super) struct Attempt<'a> {
    pub set: &'a TriedSet,
    /// Whether the budget holds it.
    pub in_budget: bool,
    pub round: u32,
    pub cpu: u32,
    pub length_ns: i64,
    /// Load beside it.
    pub load: Option<&'a PlannedLoad>,
    pub around: Around<'a>,
    /// Where the samples go.
    pub run: &'a Run,
}

impl Attempt<'_> {
    /// Runs it. Failures are on the record; nothing of the trial stays on the machine.
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
        let mut beside = self.load.map(|load| Beside::new(load, &self.around));
        let measure = || self.measure(&threads, beside.as_mut());
        let (steal_ns, measured) = stolen_while(&[self.cpu], measure);
        TriedTrial {
            number: self.around.number,
            round: self.round,
            set: self.set.number,
            in_budget: self.in_budget,
            cpu: self.cpu,
            jobs: threads.iter().map(|thread| thread.jobs).collect(),
            steal_ns,
            load: beside.map(|beside| beside.record),
            failure: measured.err(),
        }
    }

    fn measure(
        &self,
        threads: &[Thread<'_>],
        beside: Option<&mut Beside<'_>>,
    ) -> Result<(), String> {
        periodic::prepare(self.around.stage, threads)?;
        let priorities = self.set.tasks.iter().map(|task| task.priority);
        let member = Member {
            name: MEMBER.to_owned(),
            words: periodic::words(threads, 0, self.cpu, &[self.cpu]).to_words(),
            slots: 0..threads.len(),
            classes: threads.iter().map(|thread| thread.class.clone()).collect(),
            rtprio: priorities.max().unwrap_or(1),
            held: self
                .in_budget
                .then(|| (self.around).wanted(MEMBER, self.set.held, self.cpu, group_name())),
        };
        let ran = together::run(&self.around, &[member], None, beside, self.length_ns);
        let (stage, number) = (self.around.stage, self.around.number);
        let kept = periodic::keep(stage, threads, self.run, number, ran.is_ok());
        ran.map(drop).and(kept)
    }
}
