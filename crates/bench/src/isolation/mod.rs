//! `isolation`: whether a cell keeps its deadlines beside one of higher priority that runs longer than it declared, with each enforcer and
//! with none, and whether cells that spin beside each other receive the budgets they were granted. Observations go on record; `study`
//! evaluates them.

mod conditions;
mod contest;
mod draw;
mod options;
mod received;
mod room;
mod root_domain;
mod run;
mod setting;

use host::root::Root;
use host::rtgroup;
use model::Enforcer;
use model::grouped;
use model::{InputError, LoadPlan, Requirement};
use record::isolation::{Arm, Attacker, DrawnSet, Draws};
use record::{Budget, Machine, NotMeasured};

pub use options::IsolationOptions;
pub use run::run_isolation;
pub use setting::Part;

use crate::held;
use crate::here::fifo_requirement;
use crate::load::{self, PlannedLoad};
use crate::needs::Needs;
use crate::supply::Reservation;
use draw::Room;
use options::Checked;
use room::room;
use setting::Setting;

/// The question it answers.
pub const ISOLATION_QUESTION: &str = "Does a cell keep its deadlines beside a cell of higher priority that runs longer than \
                                      it declared, with each enforcer and with none, and do cells receive their budgets?";

/// Its name on the command line.
const SCENARIO: &str = "isolation";

/// Guess of the time that making and removing the cells of a trial takes, ns.
const CELLS_GUESS_NS: i64 = 400_000_000;
/// Guess of the time that a load takes to start and to end, ns.
const LOAD_GUESS_NS: i64 = 500_000_000;

/// The plan of a run.
pub struct IsolationPlan {
    /// Sets of each utilisation.
    pub rounds: u32,
    options: IsolationOptions,
    checked: Checked,
    enforcers: Vec<Enforcer>,
    /// The enforcers that can grant all budgets of the spinning cells.
    spinning: Vec<Enforcer>,
    loads: Vec<Option<PlannedLoad>>,
    draws: Vec<Draws>,
    sets: Vec<DrawnSet>,
    needs: Needs,
    setting: Setting,
}

/// A trial that is to take place.
#[derive(Debug, Clone, Copy)]
enum Todo<'a> {
    Contest {
        set: &'a DrawnSet,
        arm: Arm,
        load: Option<&'a PlannedLoad>,
    },
    Received(Enforcer),
}

impl Todo<'_> {
    fn name(&self) -> String {
        match self {
            Todo::Contest { set, arm, load } => format!(
                "U {}, {}{}",
                f64::from(set.utilisation_permille) / 1_000.0,
                arm.name(),
                load.map_or(String::new(), |load| format!(", load {}", load.plan.name))
            ),
            Todo::Received(enforcer) => format!("received, {}", enforcer.name()),
        }
    }
}

impl IsolationPlan {
    /// The plan for these options. Changes nothing on the machine.
    ///
    /// # Errors
    /// Names the option that is out of range.
    pub fn new(options: &IsolationOptions) -> Result<IsolationPlan, InputError> {
        let checked = options.check()?;
        let root = Root::live();
        let tick_ns = Machine::here().slowest_tick_ns();
        let setting = Setting {
            spot: checked.spot.clone(),
            tick_ns,
            overrun_permille: checked.overrun_permille,
            contest_ns: checked.contest_ns,
            received_ns: checked.received_ns,
            free_us: rtgroup::largest_free_runtime().unwrap_or(0),
        };
        let mut plan = IsolationPlan {
            rounds: checked.rounds,
            options: options.clone(),
            enforcers: Vec::new(),
            spinning: Vec::new(),
            loads: Vec::new(),
            draws: Vec::new(),
            sets: Vec::new(),
            needs: Needs {
                requirements: vec![fifo_requirement(checked.spot.priority)],
                ..Needs::default()
            },
            setting,
            checked,
        };
        plan.find_enforcers();
        plan.find_spinning();
        plan.find_loads();
        if plan.checked.parts.contains(&Part::Contest) && plan.needs.requirements[0].met {
            plan.draw_sets(&room(&plan.setting, &root));
        }
        Ok(plan)
    }

    fn find_enforcers(&mut self) {
        for enforcer in self.checked.enforcers.clone() {
            // As small as can be: how much a set needs is decided set by set.
            let small = Budget {
                enforcer,
                budget_ns: 1_000_000,
                period_ns: 1_000_000_000,
            };
            let needs = held::by(enforcer).map(|by| by.needs(&small, &self.setting.spot));
            let needs = needs.unwrap_or_default();
            if self.needs.note(enforcer.name(), needs) {
                self.enforcers.push(enforcer);
            }
        }
    }

    fn find_spinning(&mut self) {
        if !self.checked.parts.contains(&Part::Received) {
            return;
        }
        let real_time_us = held::real_time_us(&Root::live());
        for &enforcer in &self.enforcers {
            match self.cannot_spin(enforcer, real_time_us) {
                None => self.spinning.push(enforcer),
                Some((reason, fix)) => self.needs.not_measured.push(NotMeasured {
                    trial: format!("received, {}", enforcer.name()),
                    reason,
                    fix,
                }),
            }
        }
    }

    /// Why the enforcer cannot hold the spinning cells, one of them or all together, and the fix.
    fn cannot_spin(&self, enforcer: Enforcer, real_time_us: u64) -> Option<(String, String)> {
        let spot = &self.setting.spot;
        let holder = held::by(enforcer)?;
        let budget = |one: &Reservation| Budget {
            enforcer,
            budget_ns: one.budget_ns,
            period_ns: one.period_ns,
        };
        let all: Vec<Budget> = self.checked.reservations.iter().map(budget).collect();
        let mut needs = all.iter().flat_map(|held| holder.needs(held, spot));
        // Threads that are held one by one are requested in the root domain of the trial.
        let means = holder.means(&Machine::here());
        let lacks = needs.find(|one| !one.met).or_else(|| {
            let cpus = vec![spot.cpu; all.len()];
            let smaller = "request smaller or fewer ones with --reservation";
            let together = means.map(|_| holder.together(&all, &cpus, &spot.allowed, smaller));
            together?.err()
        });
        if let Some(unmet) = lacks {
            return Some((unmet.reason, unmet.fix.unwrap_or_default()));
        }
        let cost = means.filter(|_| holder.is_throttled())?.cost();
        let with_cost = |held: &Budget| Budget {
            budget_ns: held.budget_ns + cost.min(held.period_ns),
            ..*held
        };
        let all: Vec<Budget> = all.iter().map(with_cost).collect();
        let asked_us = held::together_us(&all);
        (asked_us > real_time_us).then(|| {
            (
                format!(
                    "the kernel lets real-time threads run {} us of every second (sched_rt_runtime_us), and {} us are \
                     needed, including the cost of holding the cells",
                    grouped(real_time_us),
                    grouped(asked_us)
                ),
                "request less with --reservation".to_owned(),
            )
        })
    }

    fn find_loads(&mut self) {
        for kind in self.checked.loads.clone() {
            match kind.map(|kind| load::resolve(&LoadPlan::new(kind), &self.setting.spot.allowed)) {
                None => self.loads.push(None),
                Some(Ok(planned)) => self.loads.push(Some(planned)),
                Some(Err(unmet)) => {
                    self.needs.note(&unmet.what.clone(), vec![unmet]);
                }
            }
        }
    }

    fn draw_sets(&mut self, room: &Room) {
        for &permille in &self.checked.utilisations_permille {
            let first = self.sets.len() as u32 + 1;
            let (draws, sets) = draw::draw(
                self.checked.seed,
                permille,
                self.rounds,
                &self.enforcers,
                room,
                first,
            );
            self.needs
                .not_measured
                .extend(draws.without.iter().cloned());
            self.draws.push(draws);
            self.sets.extend(sets);
        }
    }

    /// Every trial, round by round; in each, every set is run under every arm, each round beginning with the next arm.
    fn todo(&self) -> Vec<(u32, Todo<'_>)> {
        let mut todo = Vec::new();
        for round in 1..=self.rounds {
            for set in self.sets.iter().filter(|set| set.round == round) {
                for load in &self.loads {
                    let arms = arms(set);
                    let from = round as usize % arms.len();
                    let turned = arms[from..].iter().chain(&arms[..from]);
                    todo.extend(turned.map(|&arm| {
                        let load = load.as_ref();
                        (round, Todo::Contest { set, arm, load })
                    }));
                }
            }
            if round <= self.checked.received_trials {
                let each = self.spinning.iter();
                todo.extend(each.map(|&enforcer| (round, Todo::Received(enforcer))));
            }
        }
        todo
    }

    /// Trials to be run, one name each, with their number.
    pub fn trials(&self) -> Vec<(String, usize)> {
        let mut names: Vec<(String, usize)> = Vec::new();
        for (_, todo) in self.todo() {
            let name = todo.name();
            match names.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => names.push((name, 1)),
            }
        }
        names
    }

    /// Trials not measured, and why.
    pub fn not_measured(&self) -> &[NotMeasured] {
        &self.needs.not_measured
    }

    /// The requirements of the study, met and unmet.
    pub fn requirements(&self) -> &[Requirement] {
        &self.needs.requirements
    }

    /// How the sets came about.
    pub fn draws(&self) -> &[Draws] {
        &self.draws
    }

    /// How long the run should take, ns.
    pub fn expected_ns(&self) -> i64 {
        (self.todo().iter())
            .map(|(_, todo)| self.trial_ns(todo))
            .sum()
    }

    fn trial_ns(&self, todo: &Todo<'_>) -> i64 {
        let load = |load: &Option<&PlannedLoad>| if load.is_some() { LOAD_GUESS_NS } else { 0 };
        CELLS_GUESS_NS
            + match todo {
                Todo::Contest { load: beside, .. } => self.setting.contest_ns + load(beside),
                Todo::Received(_) => self.setting.received_ns,
            }
    }
}

/// The arms of a set: the machine's noise, both cells honest, the attacker with nothing to hold it, and with each enforcer that can hold
/// the set.
fn arms(set: &DrawnSet) -> Vec<Arm> {
    let arm = |attacker, enforcer| Arm { attacker, enforcer };
    let mut arms = vec![
        Arm::NOISE,
        arm(Attacker::Honest, None),
        arm(Attacker::Overruns, None),
    ];
    let by_thread = (set.victim.tasks.iter()).all(|task| task.runtime_ns.is_some());
    let held = (Enforcer::OF_BENCH.iter().copied()).filter(|&enforcer| match enforcer {
        Enforcer::Deadline => by_thread,
        by_cell => set.victim.budget_of(by_cell).is_some(),
    });
    arms.extend(held.map(|enforcer| arm(Attacker::Overruns, Some(enforcer))));
    arms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(budget: bool, runtime: bool, frozen: bool) -> DrawnSet {
        let task = record::isolation::DrawnTask {
            name: "victim-1".to_owned(),
            wcet_ns: 1_000_000,
            period_ns: 100_000_000,
            runtime_ns: runtime.then_some(1_200_000),
            priority: 70,
        };
        let cell = record::isolation::DrawnCell {
            tasks: vec![task],
            budgets: [(Enforcer::RtCgroup, budget), (Enforcer::Freezer, frozen)]
                .into_iter()
                .filter(|(_, is_there)| *is_there)
                .map(|(enforcer, _)| Budget {
                    enforcer,
                    budget_ns: 2_000_000,
                    period_ns: 50_000_000,
                })
                .collect(),
        };
        DrawnSet {
            number: 1,
            round: 1,
            utilisation_permille: 400,
            draw: 0,
            attacker: cell.clone(),
            victim: cell,
            late_without: false,
        }
    }

    #[test]
    fn a_set_is_run_alone_honest_without_and_with_each_enforcer_that_can_hold_it() {
        let names = |budget, runtime, frozen| -> Vec<String> {
            let arms = arms(&set(budget, runtime, frozen));
            arms.into_iter().map(Arm::name).collect()
        };
        assert_eq!(
            names(true, true, true),
            [
                "victim alone, no enforcer",
                "attacker honest, no enforcer",
                "attacker overruns, no enforcer",
                "attacker overruns, rt-cgroup",
                "attacker overruns, deadline",
                "attacker overruns, freezer",
            ]
        );
        assert_eq!(names(false, true, false).len(), 4);
        assert_eq!(names(false, false, true)[3], "attacker overruns, freezer");
        assert_eq!(names(true, false, false)[3], "attacker overruns, rt-cgroup");
    }

    #[test]
    fn a_plan_names_every_trial_or_the_reason_why_there_is_none() {
        let options = IsolationOptions {
            rounds: Some(2),
            utilisations: vec![0.3],
            ..IsolationOptions::default()
        };
        let plan = IsolationPlan::new(&options).unwrap();
        let of_each = |one: &Enforcer| {
            let name = match one {
                Enforcer::Deadline => "SCHED_DEADLINE",
                named => named.name(),
            };
            let needed = plan.requirements().iter();
            needed
                .filter(|needed| needed.what.starts_with(name))
                .count()
        };
        assert!(Enforcer::OF_BENCH.iter().all(|one| of_each(one) == 1));
        let unmet = plan.requirements().iter().any(|needed| !needed.met);
        let told = unmet || !plan.not_measured().is_empty();
        let names: Vec<String> = plan.trials().into_iter().map(|(name, _)| name).collect();
        for enforcer in ["rt-cgroup", "deadline", "freezer"] {
            let named = names.iter().any(|name| name.ends_with(enforcer));
            assert!(named || told, "{enforcer} in {names:?}");
        }
        assert!(plan.trials().iter().all(|(_, count)| *count == 2));
        assert_eq!(plan.expected_ns() > 0, !names.is_empty());
    }

    #[test]
    fn budgets_that_cannot_be_held_are_not_measured() {
        let spins = |reservations: &[(u64, u64)], real_time_us: u64| {
            let each = |&(budget_ns, period_ns): &(u64, u64)| Reservation {
                budget_ns,
                period_ns,
            };
            let options = IsolationOptions {
                enforcers: vec![Enforcer::Freezer],
                reservations: reservations.iter().map(each).collect(),
                parts: vec![Part::Received],
                ..IsolationOptions::default()
            };
            let plan = IsolationPlan::new(&options).unwrap();
            plan.cannot_spin(Enforcer::Freezer, real_time_us)
        };
        // Either the machine cannot hold any, or not those of so short a period.
        assert!(spins(&[(10_000, 50_000)], 950_000).is_some());
        let ms = 1_000_000;
        if spins(&[(ms, 10 * ms)], 950_000).is_none() {
            // Four times 22 of 100, and four times a quarter of a millisecond every 10.
            let four = [(22 * ms / 10, 10 * ms); 4];
            let (reason, _) = spins(&four, 950_000).unwrap();
            assert!(reason.contains("980,000 us"), "{reason}");
            assert_eq!(spins(&four, 980_001), None);
        }
    }

    #[test]
    fn parts_have_names() {
        for part in Part::ALL {
            assert_eq!(part.name().parse(), Ok(part));
        }
        assert!("wakeup".parse::<Part>().unwrap_err().contains("received"));
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        let options = IsolationOptions {
            cpus: vec![60_000],
            ..IsolationOptions::default()
        };
        let error = IsolationPlan::new(&options).err().unwrap().to_string();
        assert!(
            error.contains("--cpus") && error.contains("usable"),
            "{error}"
        );
    }
}
