//! Relations between the tests for several cpus and the exact ones for one, and against a simulation of m cpus:
//! no yes of a sufficient test is ever followed by a missed deadline.

use proptest::prelude::*;
use timecell_analysis::inside::{self, Policy};
use timecell_analysis::linux::{DeadlineParams, RootDomain, Standing};
use timecell_analysis::multi::{
    DedicatedCpu, Fit, Mpr, Order, Ovh, bcl_edf, bcl_edf_with_slack, bcl_fp, gfb, mpr_edf, mpr_fp,
    overloaded, partition, partition_ovh, rta_bc_edf, rta_bc_fp, rta_lc,
};
use timecell_analysis::reservation::Periodic;
use timecell_analysis::{Task, Verdict, edf, fp};

fn tasks(most: usize) -> impl Strategy<Value = Vec<Task>> {
    let task = (1u64..6, 0u64..10, 0u64..10)
        .prop_map(|(c, more, rest)| Task::new(c, c + more + rest).due(c + more));
    proptest::collection::vec(task, 1..=most)
}

fn jittered(most: usize) -> impl Strategy<Value = Vec<Task>> {
    let task = (1u64..6, 0u64..10, 0u64..10, 0u64..4).prop_map(|(c, more, rest, jitter)| {
        Task::new(c, c + more + rest).due(c + more).jittered(jitter)
    });
    proptest::collection::vec(task, 1..=most)
}

/// Whether a set is shown to hold its deadlines on so many cpus.
type Test<'a> = &'a dyn Fn(&[Task], u32) -> bool;

/// The machine that runs sporadic jobs on m cpus in steps of 1 ns.
struct Machine<'a> {
    tasks: &'a [Task],
    cpus: usize,
    edf: bool,
    /// How many cpus the cell has at each instant.
    supply: &'a dyn Fn(u64) -> usize,
    random: u64,
}

struct Job {
    task: usize,
    released: u64,
    due: u64,
    left: u64,
}

impl Machine<'_> {
    fn draw(&mut self, below: u64) -> u64 {
        // splitmix64
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below.max(1)
    }

    /// The first task that misses a deadline by `end`; all start together, or each at random and with random gaps.
    fn first_miss(&mut self, together: bool, end: u64) -> Option<usize> {
        let mut worst = vec![0; self.tasks.len()];
        self.run(together, end, &mut worst)
    }

    /// The same, and the longest response time of each task until then.
    fn run(&mut self, together: bool, end: u64, worst: &mut [u64]) -> Option<usize> {
        let mut next: Vec<u64> = (0..self.tasks.len())
            .map(|i| {
                if together {
                    0
                } else {
                    self.draw(self.tasks[i].period)
                }
            })
            .collect();
        let mut jobs: Vec<Job> = vec![];
        for now in 0..end {
            for (i, arrival) in next.iter_mut().enumerate() {
                if *arrival > now {
                    continue;
                }
                let task = self.tasks[i];
                let (mut jitter, mut gap) = (0, 0);
                if !together {
                    self.random = self
                        .random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    jitter = (self.random >> 33) % (task.jitter + 1);
                    gap = u64::from((self.random >> 20).is_multiple_of(7))
                        * ((self.random >> 40) % 5);
                }
                jobs.push(Job {
                    task: i,
                    released: now + jitter,
                    due: now + task.deadline,
                    left: task.wcet,
                });
                *arrival = now + task.period + gap;
            }
            if let Some(late) = jobs.iter().find(|job| job.due <= now) {
                return Some(late.task);
            }
            if self.edf {
                jobs.sort_by_key(|job| (job.due, job.task));
            } else {
                jobs.sort_by_key(|job| (job.task, job.due));
            }
            let cpus = (self.supply)(now).min(self.cpus);
            for job in jobs.iter_mut().filter(|job| job.released <= now).take(cpus) {
                job.left -= 1;
                if job.left == 0 {
                    let task = &self.tasks[job.task];
                    let response = now + 1 + task.deadline - job.due;
                    worst[job.task] = worst[job.task].max(response);
                }
            }
            jobs.retain(|job| job.left > 0);
        }
        None
    }
}

fn misses(tasks: &[Task], cpus: u32, edf: bool, supply: &dyn Fn(u64) -> usize, seed: u64) -> bool {
    (0..6).any(|round| {
        Machine {
            tasks,
            cpus: cpus as usize,
            edf,
            supply,
            random: seed.wrapping_add(round),
        }
        .first_miss(round == 0, 250)
        .is_some()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn no_global_edf_yes_is_followed_by_a_miss(tasks in jittered(6), cpus in 1u32..4, seed in any::<u64>()) {
        let slack = bcl_edf_with_slack(&tasks, cpus).is_schedulable();
        prop_assert!(slack || !bcl_edf(&tasks, cpus).is_schedulable());
        if gfb(&tasks, cpus).is_schedulable() || slack {
            prop_assert!(overloaded(&tasks, cpus).is_none());
            prop_assert!(!misses(&tasks, cpus, true, &|_| usize::MAX, seed));
        }
    }

    #[test]
    fn no_global_fixed_priority_yes_is_followed_by_a_miss(tasks in jittered(6), cpus in 1u32..4, seed in any::<u64>()) {
        if rta_lc(&tasks, cpus).verdict.is_schedulable() || bcl_fp(&tasks, cpus).is_schedulable() {
            prop_assert!(overloaded(&tasks, cpus).is_none());
            prop_assert!(!misses(&tasks, cpus, false, &|_| usize::MAX, seed));
        }
    }

    /// Random phases and gaps of which none may show a response beyond any bound.
    #[test]
    fn no_response_exceeds_its_bound(tasks in tasks(6), cpus in 1u32..4, seed in any::<u64>()) {
        let fixed = [rta_lc(&tasks, cpus).responses, rta_bc_fp(&tasks, cpus).responses];
        let edf = [rta_bc_edf(&tasks, cpus).responses, vec![None; tasks.len()]];
        for (bounds, edf) in [(fixed, false), (edf, true)] {
            let mut worst = vec![0; tasks.len()];
            let mut missed = None;
            for round in 0..40u64 {
                let random = seed.wrapping_add(round);
                let supply = &|_| usize::MAX;
                let mut machine = Machine { tasks: &tasks, cpus: cpus as usize, edf, supply, random };
                missed = missed.or(machine.run(round == 0, 200, &mut worst));
            }
            for (k, &simulated) in worst.iter().enumerate() {
                for bound in bounds.iter().filter_map(|bounds| bounds[k]) {
                    prop_assert!(bound >= simulated, "task {k}, edf {edf}: {bound} ns, simulated {simulated} ns");
                }
            }
            let all = |bounds: &[Option<u64>]| bounds.iter().all(Option::is_some);
            prop_assert!(missed.is_none() || !bounds.iter().any(|bounds| all(bounds)));
        }
    }

    /// Each cpu's budget comes early once and late ever after, or anywhere in each period.
    #[test]
    fn no_yes_inside_a_resource_is_followed_by_a_miss(
        tasks in tasks(5), budget in 1u64..8, idle in 0u64..5, cpus in 1u32..4, seed in any::<u64>(), start in 0u64..12,
    ) {
        let period = budget + idle;
        let resource = Mpr::of_equal_shares(budget, period, cpus).unwrap();
        let late = |now: u64| {
            let x = now + start % period;
            let has = if x < period { x < budget } else { x % period >= idle };
            if has { usize::MAX } else { 0 }
        };
        let anywhere = |now: u64| {
            (0..u64::from(cpus)).filter(|cpu| {
                let shift = (now / period).wrapping_mul(0x9e37_79b9).wrapping_add(seed ^ cpu.wrapping_mul(77)) % (idle + 1);
                (shift..shift + budget).contains(&(now % period))
            }).count()
        };
        for (verdict, edf) in [(mpr_edf(&tasks, &resource), true), (mpr_fp(&tasks, &resource), false)] {
            if verdict.is_schedulable() {
                prop_assert!(!misses(&tasks, cpus, edf, &late, seed));
                prop_assert!(!misses(&tasks, cpus, edf, &anywhere, seed));
            }
        }
    }

    #[test]
    fn on_one_cpu_limited_carry_in_is_exact(tasks in tasks(6)) {
        let bounds = rta_lc(&tasks, 1);
        prop_assert_eq!(bounds.verdict.is_schedulable(), fp::verdict(&tasks).is_schedulable());
        if bounds.verdict.is_schedulable() {
            for (k, response) in bounds.responses.iter().enumerate() {
                let exact = fp::response_times_within(&tasks[..=k], 1_000_000);
                prop_assert_eq!(exact[k].bound(), *response);
            }
        }
    }

    #[test]
    fn on_one_cpu_a_global_yes_is_an_exact_yes(tasks in jittered(6)) {
        if gfb(&tasks, 1).is_schedulable() || bcl_edf_with_slack(&tasks, 1).is_schedulable() {
            prop_assert!(edf::verdict(&tasks).is_schedulable());
        }
        if bcl_fp(&tasks, 1).is_schedulable() {
            prop_assert!(fp::verdict(&tasks).is_schedulable());
        }
        if overloaded(&tasks, 1).is_some() {
            prop_assert!(!edf::verdict(&tasks).is_schedulable());
        }
    }

    #[test]
    fn on_one_cpu_a_yes_inside_a_resource_is_a_yes_inside_a_reservation(
        tasks in tasks(4), budget in 1u64..8, idle in 0u64..5,
    ) {
        let period = budget + idle;
        let resource = Mpr::new(period, budget, 1).unwrap();
        let reservation = Periodic::new(budget, period).unwrap();
        if mpr_edf(&tasks, &resource).is_schedulable() {
            prop_assert!(inside::test(&tasks, Policy::Edf, &reservation).verdict.is_schedulable());
        }
        if mpr_fp(&tasks, &resource).is_schedulable() {
            prop_assert!(inside::test(&tasks, Policy::FixedPriority, &reservation).verdict.is_schedulable());
        }
    }

    #[test]
    fn more_cpus_or_less_work_never_turn_yes_to_no(tasks in tasks(6), cpus in 1u32..4, which in 0usize..6) {
        let lighter: Vec<Task> = tasks
            .iter()
            .enumerate()
            .map(|(index, task)| if index == which { Task { wcet: task.wcet.div_ceil(2), ..*task } } else { *task })
            .collect();
        let whole = |cpus: u32| Mpr::of_equal_shares(5, 5, cpus).unwrap();
        let tests: [Test; 8] = [
            &|tasks, cpus| gfb(tasks, cpus).is_schedulable(),
            &|tasks, cpus| bcl_fp(tasks, cpus).is_schedulable(),
            &|tasks, cpus| bcl_edf(tasks, cpus).is_schedulable(),
            &|tasks, cpus| bcl_edf_with_slack(tasks, cpus).is_schedulable(),
            &|tasks, cpus| rta_lc(tasks, cpus).verdict.is_schedulable(),
            &|tasks, cpus| mpr_fp(tasks, &whole(cpus)).is_schedulable(),
            &|tasks, cpus| rta_bc_fp(tasks, cpus).verdict.is_schedulable(),
            &|tasks, cpus| rta_bc_edf(tasks, cpus).verdict.is_schedulable(),
        ];
        for (index, test) in tests.into_iter().enumerate() {
            if test(&tasks, cpus) {
                prop_assert!(test(&tasks, cpus + 1), "test {index}: one more cpu");
                // The workload bounds of BCL grow when an interfering C shrinks below the slack it leaves.
                if matches!(index, 0 | 2 | 4) {
                    prop_assert!(test(&lighter, cpus), "test {index}: less work");
                }
            }
        }
    }

    #[test]
    fn a_budget_that_is_enough_stays_so(tasks in tasks(5), period in 1u64..8, cpus in 1u32..4, total in 1u64..20) {
        let (Ok(less), Ok(more)) = (Mpr::new(period, total, cpus), Mpr::new(period, total + 1, cpus)) else {
            return Ok(());
        };
        if mpr_edf(&tasks, &less).is_schedulable() {
            prop_assert!(mpr_edf(&tasks, &more).is_schedulable());
        }
        if mpr_fp(&tasks, &less).is_schedulable() {
            prop_assert!(mpr_fp(&tasks, &more).is_schedulable());
        }
    }

    #[test]
    fn every_bin_of_every_heuristic_passes_the_exact_test(tasks in tasks(8), bins in 1usize..4, which in 0usize..9, edf_inside in any::<bool>()) {
        let policy = if edf_inside { Policy::Edf } else { Policy::FixedPriority };
        let found = if which == 8 {
            partition_ovh(&tasks, bins, Ovh { delay: 1 }, &DedicatedCpu(policy))
        } else {
            let fit = [Fit::First, Fit::Best, Fit::Worst, Fit::Next][which / 2];
            let order = [Order::AsGiven, Order::Decreasing][which % 2];
            partition(&tasks, bins, fit, order, &DedicatedCpu(policy))
        };
        for bin in &found.bins {
            let there: Vec<Task> = bin.iter().map(|&index| tasks[index]).collect();
            let verdict = if edf_inside { edf::verdict(&there) } else { fp::verdict(&there) };
            prop_assert!(verdict.is_schedulable());
        }
        let placed: usize = found.bins.iter().map(Vec::len).sum();
        prop_assert_eq!(placed + found.homeless.len(), tasks.len());
    }

    /// A set called guaranteed is so, and one called infeasible misses on one cpu from a common start.
    #[test]
    fn standings_tell_the_truth(sets in proptest::collection::vec((1u64..40, 0u64..60, 0u64..60), 1..5), cpus in 1usize..3, seed in any::<u64>()) {
        let unit = 10_000;
        let threads: Vec<DeadlineParams> = sets
            .iter()
            .map(|&(runtime, more, rest)| DeadlineParams {
                runtime: runtime * unit,
                deadline: (runtime + more) * unit,
                period: (runtime + more + rest + 10) * unit,
            })
            .collect();
        let small: Vec<Task> = threads
            .iter()
            .map(|thread| Task::new(thread.runtime / unit, thread.period / unit).due(thread.deadline / unit))
            .collect();
        let domain = RootDomain::of_cpus(cpus);
        let standing = domain.standing(&threads);
        prop_assert_eq!(standing.is_admitted(), domain.admits(&threads).is_ok());
        match standing.is_feasible() {
            Some(true) => prop_assert!(!misses(&small, cpus as u32, true, &|_| usize::MAX, seed)),
            Some(false) if cpus == 1 => prop_assert!(matches!(edf::verdict(&small), Verdict::Unschedulable(_))),
            _ => {}
        }
        if standing == Standing::Guaranteed {
            prop_assert!(standing.to_string().contains("every deadline holds"));
        }
    }
}

/// Ten thousand tasks, periods far apart: every test ends.
#[test]
fn great_sets_end() {
    let tasks: Vec<Task> = (0..10_000u64)
        .map(|index| Task::new(1 + index % 7, 1_000_003 + index * index * 977))
        .collect();
    assert!(gfb(&tasks, 2).is_schedulable());
    rta_lc(&tasks[..1_000], 2);
    rta_bc_fp(&tasks[..1_000], 2);
    rta_bc_edf(&tasks, 2);
    mpr_edf(&tasks[..200], &Mpr::new(1_000, 1_500, 2).unwrap());
    mpr_fp(&tasks[..2_000], &Mpr::new(1_000, 1_500, 2).unwrap());
    overloaded(&tasks, 2);
    let found = partition(&tasks, 3, Fit::Worst, Order::Decreasing, &|_: &[Task]| true);
    assert!(found.is_complete());
    let found = partition_ovh(&tasks[..1_000], 3, Ovh::default(), &|_: &[Task]| true);
    assert!(found.is_complete());
}
