//! One run of a task set inside a budget.

use host::rtgroup::RtGroup;
use host::sched::Class;
use record::run::Run;
use record::supply::{TriedSet, TriedTrial};

use crate::interrupt::Interrupt;
use crate::launch::Stage;
use crate::load::Ground;
use crate::periodic::{self, Thread, jobs_within};
use crate::supply::trial::{group_name, stolen};
use crate::together::{self, Around, Member};

/// A run of a set that is to take place.
pub(super) struct Attempt<'a> {
    pub set: &'a TriedSet,
    /// Whether the budget holds it.
    pub in_budget: bool,
    pub number: u32,
    pub round: u32,
    pub cpu: u32,
    pub length_ns: i64,
    pub stage: &'a Stage,
    pub interrupt: &'a Interrupt,
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
        let measured = self.measure(&threads);
        let stolen = before.zip(stolen(&[self.cpu]));
        TriedTrial {
            number: self.number,
            round: self.round,
            set: self.set.number,
            in_budget: self.in_budget,
            cpu: self.cpu,
            jobs: threads.iter().map(|thread| thread.jobs).collect(),
            steal_ns: stolen.map(|(before, after)| after.saturating_sub(before)),
            failure: measured.err(),
        }
    }

    fn measure(&self, threads: &[Thread<'_>]) -> Result<(), String> {
        let held = self.set.held;
        let group = if self.in_budget {
            let (budget, period) = (held.budget_ns / 1_000, held.period_ns / 1_000);
            let group = RtGroup::create(&group_name(), budget, period);
            Some(group.map_err(|error| error.to_string())?)
        } else {
            None
        };
        let measured = self.in_cell(threads, group.as_ref());
        let removed = group.map_or(Ok(()), |group| {
            group.remove().map_err(|error| error.to_string())
        });
        measured.and(removed)
    }

    fn in_cell(&self, threads: &[Thread<'_>], group: Option<&RtGroup>) -> Result<(), String> {
        periodic::prepare(self.stage, threads)?;
        let member = Member {
            name: "tried".to_owned(),
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
            group,
        };
        let around = Around {
            stage: self.stage,
            ground: &Ground::default(),
            interrupt: self.interrupt,
            number: self.number,
        };
        let ran = together::run(&around, &[member], None, None, self.length_ns);
        let kept = periodic::keep(self.stage, threads, self.run, self.number, ran.is_ok());
        ran.and(kept)
    }
}
