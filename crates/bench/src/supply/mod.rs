//! `supply`: the cpu time that the kernel's enforcers really give to a cell that always wants it. One spinning thread at a time, held by
//! one enforcer to one budget, or by none to learn the host's share; round by round, each beginning with the next. Its gaps go on record;
//! `study` evaluates them. Then sets of tasks are run inside the budgets, chosen by the measured supply.

mod options;
mod run;
mod setting;
mod stretches;
mod subject;
mod trial;
mod tried;

use model::{Enforcer, InputError, LoadKind, LoadPlan, Requirement};
use record::{Budget, Condition, Machine, NotMeasured};

pub use options::{Reservation, SupplyOptions};
pub(crate) use options::{once, within};
pub use run::run_supply;
pub use subject::Subject;
pub(crate) use trial::stolen_while;

use crate::held::{self, Spot};
use crate::here::fifo_requirement;
use crate::load::{self, PlannedLoad};
use crate::needs::Needs;
use setting::Setting;
use stretches::Stretches;
use tried::Trying;

/// The question it answers.
pub const SUPPLY_QUESTION: &str = "What is the least cpu time that each enforcer of this kernel gives a cell in a window of any \
                                   length, and does the textbook's bound hold?";

/// Its name on the command line.
const SCENARIO: &str = "supply";

/// Guess of the time that making and removing a cell takes, ns.
const CELL_GUESS_NS: i64 = 60_000_000;

/// Guess of the time that a load takes to start and to end, ns.
const LOAD_GUESS_NS: i64 = 500_000_000;

/// A run's plan.
pub struct SupplyPlan {
    /// How often every budget is measured.
    pub rounds: u32,
    options: SupplyOptions,
    subjects: Vec<Subject>,
    needs: Needs,
    setting: Setting,
    /// The sets after the spinning; `None`: none.
    trying: Option<Trying>,
    /// The load beside every trial; `None`: nothing.
    load: Option<PlannedLoad>,
}

impl SupplyPlan {
    /// The plan for these options. Changes nothing on the machine.
    ///
    /// # Errors
    /// Names the option that is out of range.
    pub fn new(options: &SupplyOptions) -> Result<SupplyPlan, InputError> {
        let checked = options.check()?;
        let tick_ns = Machine::here().slowest_tick_ns().cast_signed();
        let mut plan = SupplyPlan {
            rounds: checked.rounds,
            options: options.clone(),
            subjects: Vec::new(),
            needs: Needs::default(),
            setting: Setting {
                spot: checked.spot,
                threads: checked.threads,
                stretches: Stretches {
                    long_ns: checked.long_ns,
                    starts: checked.starts,
                    tick_ns,
                },
            },
            trying: None,
            load: None,
        };
        if let Some(kind) = checked.load
            && let Err(unmet) = plan.find_load(kind)
        {
            // Without it, the figures would not be the requested ones.
            plan.needs.note(&unmet.what.clone(), vec![unmet]);
            return Ok(plan);
        }
        for &enforcer in &checked.enforcers {
            for reservation in &checked.reservations {
                let held = Budget {
                    enforcer,
                    budget_ns: reservation.budget_ns,
                    period_ns: reservation.period_ns,
                };
                plan.add(Subject { held: Some(held) });
            }
        }
        // Only beside something: the host's share is not supply.
        if !plan.subjects.is_empty() {
            plan.add(Subject { held: None });
        }
        let measured = plan.subjects.iter().filter_map(|subject| subject.held);
        plan.trying = (checked.tried_ns).map(|length_ns| Trying::of(length_ns, measured));
        Ok(plan)
    }

    fn find_load(&mut self, kind: LoadKind) -> Result<(), Requirement> {
        let planned = load::resolve(&LoadPlan::new(kind), &self.setting.spot.allowed)?;
        self.load = Some(planned);
        Ok(())
    }

    /// Adds a subject, or the reason why it cannot be measured.
    fn add(&mut self, subject: Subject) {
        let needs = needs(&subject, &self.setting);
        if self.needs.note(&subject.name(), needs) {
            self.subjects.push(subject);
        }
    }

    /// The subjects of every round.
    pub fn subjects(&self) -> &[Subject] {
        &self.subjects
    }

    /// Sets that are run inside the budgets in every round once these are measured; fewer where the two sets cannot differ.
    pub fn tried(&self) -> Vec<String> {
        self.trying.as_ref().map(Trying::names).unwrap_or_default()
    }

    /// Trials of all rounds, at most.
    pub fn trials(&self) -> u32 {
        let spinning = u32::try_from(self.subjects.len()).unwrap_or(u32::MAX);
        let tried = self.trying.as_ref().map_or(0, Trying::runs);
        spinning.saturating_add(tried).saturating_mul(self.rounds)
    }

    /// Subjects left out, and why.
    pub fn not_measured(&self) -> &[NotMeasured] {
        &self.needs.not_measured
    }

    /// The study's requirements, met and unmet.
    pub fn requirements(&self) -> &[Requirement] {
        &self.needs.requirements
    }

    /// How long the run should take, ns.
    pub fn expected_ns(&self) -> i64 {
        let tried = (self.trying.as_ref())
            .map_or(0, |trying| self.tried_ns(trying) * i64::from(trying.runs()));
        self.round_ns()
            .saturating_add(tried)
            .saturating_mul(self.rounds.into())
    }

    /// A round of spinning, ns.
    fn round_ns(&self) -> i64 {
        (self.subjects.iter())
            .map(|subject| self.trial_ns(subject))
            .sum()
    }

    fn trial_ns(&self, subject: &Subject) -> i64 {
        (self.setting.stretches).expected_ns(subject) + CELL_GUESS_NS + self.load_ns()
    }

    /// One run of a set, ns.
    fn tried_ns(&self, trying: &Trying) -> i64 {
        trying.run_ns() + self.load_ns()
    }

    /// The load's time in a trial, ns.
    fn load_ns(&self) -> i64 {
        self.load.as_ref().map_or(0, |_| LOAD_GUESS_NS)
    }

    fn conditions(&self) -> Vec<Condition> {
        let Setting {
            spot: Spot { cpu, priority, .. },
            stretches,
            ..
        } = &self.setting;
        let ms = |ns: i64| ns as f64 / 1e6;
        let mut all = vec![
            Condition::new(
                "payload",
                "one thread in a plain process that reads the clock without a pause; two readings more than 1 us apart (or \
                 16 readings, where those take longer) have a gap between them, and what is shorter counts as received",
            ),
            Condition::new(
                "stretches",
                format!(
                    "one of {} ms, then {} short ones of some periods, each after a rest in which the kernel forgets the one \
                     before, and each at another instant between two ticks ({} ms)",
                    ms(stretches.long_ns),
                    stretches.starts,
                    ms(stretches.tick_ns)
                ),
            ),
        ];
        if self.setting.threads > 1 {
            all.push(Condition::new(
                "threads",
                format!(
                    "{} more in the process, one step less urgent, want the cpu whenever the measured one does, but not under an \
                     enforcer that holds threads one by one; what they get is not in what was received",
                    self.setting.threads - 1
                ),
            ));
        }
        let mut enforcers: Vec<Enforcer> = Vec::new();
        for held in self.subjects.iter().filter_map(|subject| subject.held) {
            if !enforcers.contains(&held.enforcer) {
                enforcers.push(held.enforcer);
            }
        }
        all.extend(held::conditions(&enforcers, &self.setting.spot));
        all.extend([
            Condition::new(
                "no budget",
                format!(
                    "SCHED_FIFO {priority} on cpu {cpu}, in stretches short enough for real-time throttling, which stays on"
                ),
            ),
            Condition::new(
                "competition",
                "none: no other real-time thread of ours runs; whoever shares the cpu with a cell takes from it what these \
                 figures do not hold",
            ),
        ]);
        all.extend(self.load.as_ref().map(|load| {
            let text = format!(
                "{} ({}) beside every trial, class OTHER, on cpus {}; what it achieved is on record",
                load.plan.name,
                load.form,
                host::cpus::format_list(&load.cpus)
            );
            Condition::new("load", text)
        }));
        all.extend(self.trying.as_ref().map(Trying::condition));
        all
    }
}

/// A subject's requirements, met and unmet.
fn needs(subject: &Subject, setting: &Setting) -> Vec<Requirement> {
    match subject.held.map(|held| (held, held::by(held.enforcer))) {
        None => vec![fifo_requirement(setting.spot.priority)],
        Some((held, Some(holder))) => holder.needs(&held, &setting.spot),
        Some((held, None)) => vec![Requirement::unmet(
            held.enforcer.name(),
            "timecell cannot measure this enforcer",
            "name another one",
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_enforcer_and_budget_is_measured_or_the_reason_is_told() {
        let plan = SupplyPlan::new(&SupplyOptions::default()).unwrap();
        let mut names: Vec<String> = plan.subjects().iter().map(Subject::name).collect();
        names.extend(plan.not_measured().iter().map(|n| n.trial.clone()));
        for budget in ["30ms/100ms", "10ms/50ms", "3ms/10ms", "1ms/10ms"] {
            for enforcer in Enforcer::OF_BENCH {
                let name = format!("{} {budget}", enforcer.name());
                assert!(names.contains(&name), "{name} in {names:?}");
            }
        }
        assert!(
            plan.not_measured().iter().all(|n| !n.reason.is_empty()),
            "{:?}",
            plan.not_measured()
        );
        assert!(!plan.requirements().is_empty());
    }

    #[test]
    fn what_is_tried_is_planned_and_can_be_left_out() {
        let plan = |no_try| {
            let options = SupplyOptions {
                no_try,
                rounds: Some(2),
                ..SupplyOptions::default()
            };
            SupplyPlan::new(&options).unwrap()
        };
        let with = plan(false);
        let held = with.subjects().iter().filter_map(|subject| subject.held);
        let groups = held
            .filter(|held| held.enforcer != Enforcer::Deadline)
            .count();
        assert_eq!(with.tried().len(), groups);
        assert_eq!(
            with.trials() as usize,
            2 * (with.subjects().len() + 4 * groups)
        );
        assert!(with.expected_ns() >= 2 * with.round_ns());
        let without = plan(true);
        assert!(without.tried().is_empty());
        assert_eq!(without.trials() as usize, 2 * without.subjects().len());
        assert_eq!(without.expected_ns(), 2 * without.round_ns());
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        let options = SupplyOptions {
            cpus: vec![60_000],
            ..SupplyOptions::default()
        };
        let error = SupplyPlan::new(&options).err().unwrap().to_string();
        assert!(
            error.contains("--cpus") && error.contains("usable"),
            "{error}"
        );
    }
}
