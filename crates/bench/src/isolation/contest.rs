//! One contest: a victim and an attacker side by side.

use host::sched::Class;
use model::Enforcer;
use record::isolation::{Arm, Attacker, ContestTrial, DrawnCell, DrawnSet, DrawnTask, Role};
use record::run::Run;

use super::root_domain::OwnDomain;
use super::setting::Setting;
use crate::held::{Wanted, group_name};
use crate::load::PlannedLoad;
use crate::periodic::{self, Thread, jobs_within};
use crate::supply::stolen_while;
use crate::together::{self, Around, Beside, Member};

/// How long an honest cell's jobs are, in thousandths of the declared wcet: that is a bound, and the speed of a machine is not constant.
/// Of jobs that reach it on average, every tenth exceeds the runtime of its SCHED_DEADLINE thread on a shared virtual machine, and is
/// late by its own fault.
pub(super) const HONEST_PERMILLE: u128 = 800;

/// A contest that is to take place.
pub(super) struct Contest<'a> {
    pub set: &'a DrawnSet,
    pub arm: Arm,
    pub load: Option<&'a PlannedLoad>,
    pub round: u32,
    pub setting: &'a Setting,
    pub around: Around<'a>,
    pub run: &'a Run,
}

impl Contest<'_> {
    /// Runs it. Failures are on the record; nothing of the trial stays on the machine.
    pub(super) fn run(&self) -> ContestTrial {
        let mut beside = self.load.map(|load| Beside::new(load, &self.around));
        let domain = OwnDomain::of(self.arm.enforcer, self.setting, &self.around);
        let measure = || self.measure(&domain, beside.as_mut());
        let (steal_ns, measured) = stolen_while(&domain.cpus, measure);
        let (cpus, root_domain) = (domain.cpus.clone(), domain.found.clone());
        let put_back = domain.end();
        ContestTrial {
            number: self.around.number,
            round: self.round,
            set: self.set.number,
            arm: self.arm,
            load: beside.map(|beside| beside.record),
            cpus,
            root_domain,
            jobs: (self.cells().into_iter())
                .flat_map(|(_, cell)| &cell.tasks)
                .map(|task| (task.name.clone(), self.jobs(task)))
                .collect(),
            steal_ns,
            failure: measured.and(put_back).err(),
        }
    }

    /// The cells that take part, in the order of their slots.
    fn cells(&self) -> Vec<(Role, &DrawnCell)> {
        let mut cells = vec![(Role::Victim, &self.set.victim)];
        if self.arm.attacker != Attacker::Absent {
            cells.push((Role::Attacker, &self.set.attacker));
        }
        cells
    }

    /// Activations whose deadlines are within the contest.
    fn jobs(&self, task: &DrawnTask) -> u32 {
        jobs_within(self.setting.contest_ns, task.period_ns)
    }

    /// Budget of a cell that its class does not hold.
    fn held(&self, role: Role, cell: &DrawnCell) -> Option<Wanted> {
        let held = cell.budget_of(self.arm.enforcer?)?;
        let group = format!("{}/{}", group_name(), role.name());
        Some((self.around).wanted(role.name(), held, self.setting.spot.cpu, group))
    }

    fn measure(&self, domain: &OwnDomain, beside: Option<&mut Beside<'_>>) -> Result<(), String> {
        let cpus = &domain.cpus;
        let cells = self.cells();
        let threads: Vec<Vec<Thread<'_>>> = (cells.iter())
            .map(|(role, cell)| self.threads(*role, cell))
            .collect();
        let mut members = Vec::new();
        let mut first = 0;
        for ((role, cell), threads) in cells.iter().zip(&threads) {
            let slots = first..first + threads.len();
            first = slots.end;
            periodic::prepare(self.around.stage, threads)?;
            members.push(Member {
                name: role.name().to_owned(),
                words: periodic::words(threads, slots.start, self.setting.spot.cpu, cpus)
                    .to_words(),
                classes: threads.iter().map(|thread| thread.class.clone()).collect(),
                slots,
                rtprio: self.setting.spot.priority,
                held: self.held(*role, cell),
            });
        }
        let partition = domain.group();
        let ran = together::run(
            &self.around,
            &members,
            partition,
            beside,
            self.setting.contest_ns,
        );
        let mut kept = Ok(());
        for threads in &threads {
            let (stage, trial) = (self.around.stage, self.around.number);
            kept = kept.and(periodic::keep(stage, threads, self.run, trial, ran.is_ok()));
        }
        ran.map(drop).and(kept)
    }

    /// The threads of a cell, in the order of their slots.
    fn threads<'b>(&self, role: Role, cell: &'b DrawnCell) -> Vec<Thread<'b>> {
        let thread = |task: &'b DrawnTask| Thread {
            name: &task.name,
            class: self.class(task),
            period_ns: task.period_ns,
            jobs: self.jobs(task),
            work_ns: self.work_ns(role, task),
            bounded: false,
        };
        cell.tasks.iter().map(thread).collect()
    }

    fn class(&self, task: &DrawnTask) -> Class {
        match (self.arm.enforcer, task.runtime_ns) {
            (Some(Enforcer::Deadline), Some(runtime_ns)) => Class::Deadline {
                runtime_ns,
                deadline_ns: task.period_ns,
                period_ns: task.period_ns,
            },
            _ => Class::Fifo {
                priority: task.priority,
            },
        }
    }

    /// How long a job computes, ns.
    fn work_ns(&self, role: Role, task: &DrawnTask) -> i64 {
        let permille = match (role, self.arm.attacker) {
            (Role::Attacker, Attacker::Overruns) => u128::from(self.setting.overrun_permille),
            _ => HONEST_PERMILLE,
        };
        let work = u128::from(task.wcet_ns) * permille / 1_000;
        i64::try_from(work).unwrap_or(i64::MAX).max(1)
    }
}
