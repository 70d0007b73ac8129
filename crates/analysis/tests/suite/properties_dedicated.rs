//! The analyses of a dedicated cpu against textbook implementations, and against bad input.
//!
//! The textbook ones are slow and obvious: windows grown one nanosecond at a time, every deadline of a hyperperiod
//! looked at, every order of priorities tried.

use proptest::prelude::*;
use timecell_analysis::fp::{self, Assignment, Fast, Response, Section};
use timecell_analysis::{MAX_NS, MixedTask, Ns, Task, Undecided, Verdict, edf};

fn task() -> impl Strategy<Value = Task> {
    (1u64..8, 2u64..24, 1u64..40, 0u64..6, 0u64..6).prop_map(
        |(wcet, period, deadline, jitter, blocking)| {
            Task::new(wcet, period)
                .due(deadline)
                .jittered(jitter.saturating_sub(2))
                .blocked(blocking.saturating_sub(2))
        },
    )
}

/// Light enough to be schedulable often.
fn light() -> impl Strategy<Value = Task> {
    (1u64..5, 6u64..40, 0u64..100, 0u64..5, 0u64..5).prop_map(
        |(wcet, period, slack, jitter, blocking)| {
            Task::new(wcet, period)
                .due(period - (period - wcet) * slack / 150)
                .jittered(jitter.saturating_sub(2))
                .blocked(blocking.saturating_sub(2))
        },
    )
}

fn released(task: &Task, t: Ns) -> Ns {
    (t + task.jitter).div_ceil(task.period) * task.wcet
}

/// Utilisation in a common denominator: (sum, one).
fn load(tasks: &[Task]) -> (u128, u128) {
    let one: u128 = tasks.iter().map(|task| u128::from(task.period)).product();
    let sum = tasks
        .iter()
        .map(|task| one / u128::from(task.period) * u128::from(task.wcet))
        .sum();
    (sum, one)
}

fn hyperperiod(tasks: &[Task]) -> Ns {
    let gcd = |mut a: Ns, mut b: Ns| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    tasks
        .iter()
        .fold(1, |lcm, task| lcm / gcd(lcm, task.period) * task.period)
}

/// The worst response time by the definition: each of the jobs of one hyperperiod and more, windows by linear search.
/// `None` if there is no bound.
fn textbook_response(task: &Task, higher: &[Task], blocking: Ns, tail: Ns) -> Option<Ns> {
    let all: Vec<Task> = higher.iter().chain([task]).copied().collect();
    let (sum, one) = load(&all);
    if sum > one {
        return None;
    }
    let jobs = 2 * hyperperiod(&all) / task.period + 4;
    let mut worst = 0;
    let mut window = 1;
    for job in 0..jobs {
        loop {
            let demand = blocking + (job + 1) * task.wcet - tail
                + higher.iter().map(|task| released(task, window)).sum::<Ns>();
            if demand <= window {
                break;
            }
            window += 1;
        }
        worst = worst.max((window + tail + task.jitter).saturating_sub(job * task.period));
    }
    Some(worst)
}

/// Jobs looked at by the textbook: keeps the property tests short.
fn is_small(tasks: &[Task]) -> bool {
    hyperperiod(tasks) < 20_000
}

/// Every instant up to the horizon of the textbook: hyperperiod plus the longest deadline and jitter.
fn textbook_edf(tasks: &[Task]) -> Option<Ns> {
    let longest = tasks.iter().map(|task| task.deadline).max().unwrap_or(0);
    (0..=2 * hyperperiod(tasks) + 2 * longest).find(|&t| {
        let mut demand = 0;
        let mut blocking = 0;
        for task in tasks {
            if t + task.jitter >= task.deadline {
                demand += ((t + task.jitter - task.deadline) / task.period + 1) * task.wcet;
                blocking = blocking.max(task.blocking);
            }
        }
        demand + blocking > t
    })
}

fn check_witness(tasks: &[Task], verdict: &Verdict, blocking: impl Fn(Ns, usize) -> Ns) {
    let Verdict::Unschedulable(witness) = verdict else {
        return;
    };
    assert!(witness.demand > witness.supply, "{witness:?}");
    assert_eq!(witness.supply, witness.instant);
    assert!(witness.task < tasks.len());
    let parts: Ns = witness.parts.iter().map(|part| part.demand).sum();
    let blocked = blocking(witness.instant, witness.task);
    assert_eq!(parts + blocked, witness.demand, "{witness:?}");
    for part in &witness.parts {
        assert_eq!(part.demand, part.jobs * tasks[part.task].wcet);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn response_times_are_the_textbooks(tasks in prop::collection::vec(prop_oneof![task(), light()], 1..5)) {
        prop_assume!(is_small(&tasks));
        let responses = fp::response_times(&tasks);
        let mut all_meet = true;
        for (index, (task, response)) in tasks.iter().zip(&responses).enumerate() {
            let expected = match textbook_response(task, &tasks[..index], task.blocking, 0) {
                Some(bound) if bound <= task.deadline => Response::Meets(bound),
                bound => Response::Misses(bound),
            };
            all_meet &= expected.meets();
            prop_assert_eq!(response, &expected, "task {}", index);
            prop_assert_eq!(&fp::response_time(task, &tasks[..index]), &expected);
        }
        let verdict = fp::verdict(&tasks);
        prop_assert_eq!(verdict.is_schedulable(), all_meet);
        prop_assert!(!matches!(verdict, Verdict::Undecided(_)));
        check_witness(&tasks, &verdict, |_, index| tasks[index].blocking);
        if let Verdict::Unschedulable(witness) = &verdict {
            prop_assert_eq!(Some(witness.task), responses.iter().position(|r| !r.meets()));
            // The job of the witness really is late: no window up to the instant is long enough for it.
            let (task, higher) = (&tasks[witness.task], &tasks[..witness.task]);
            let own = witness.parts.iter().find(|part| part.task == witness.task).unwrap().demand;
            for window in 1..=witness.instant {
                let demand = task.blocking + own + higher.iter().map(|task| released(task, window)).sum::<Ns>();
                prop_assert!(demand > window);
            }
        }
    }

    #[test]
    fn the_fast_path_says_the_same(tasks in prop::collection::vec(light(), 1..20)) {
        let mut out = vec![0; tasks.len()];
        let proved = match fp::response_times_into(&tasks, &mut out) {
            Fast::AllMeet => tasks.len(),
            Fast::Misses(index) => {
                prop_assert!(!fp::response_time(&tasks[index], &tasks[..index]).meets());
                index
            }
            Fast::NotCovered(index) => return Err(TestCaseError::fail(format!("task {index} is not covered"))),
        };
        for index in 0..proved {
            prop_assert_eq!(fp::response_time(&tasks[index], &tasks[..index]), Response::Meets(out[index]));
        }
    }

    #[test]
    fn edf_is_the_textbooks(tasks in prop::collection::vec(prop_oneof![task(), light()], 1..6)) {
        prop_assume!(is_small(&tasks));
        let verdict = edf::verdict(&tasks);
        let expected = textbook_edf(&tasks);
        let (sum, one) = load(&tasks);
        match &verdict {
            Verdict::Schedulable => prop_assert_eq!(expected, None),
            Verdict::Unschedulable(witness) if sum <= one => {
                prop_assert_eq!(Some(witness.instant), expected, "the first violation");
            }
            Verdict::Unschedulable(_) => prop_assert!(sum > one),
            Verdict::Undecided(why) => return Err(TestCaseError::fail(why.to_string())),
        }
        if let Some(answer) = edf::decide(&tasks) {
            prop_assert_eq!(answer, expected.is_none() && sum <= one);
        }
        check_witness(&tasks, &verdict, |t, _| {
            let due = tasks.iter().filter(|task| task.deadline <= t + task.jitter);
            due.map(|task| task.blocking).max().unwrap_or(0)
        });
    }

    #[test]
    fn edf_at_full_load_is_the_textbooks(
        base in prop::collection::vec((1u64..6, 2u64..12), 1..4), early in 0u64..9, jitter in 0u64..2,
    ) {
        // A last task that fills the cpu exactly.
        let mut tasks: Vec<Task> = base.iter().map(|&(wcet, period)| Task::new(wcet, period)).collect();
        let (sum, one) = load(&tasks);
        prop_assume!(sum < one && one < 3_000);
        let (wcet, period) = ((one - sum) as u64, one as u64);
        tasks.push(Task::new(wcet, period).due((period - early.min(period - 1)).max(1)).jittered(jitter));
        prop_assume!(is_small(&tasks));
        let verdict = edf::verdict(&tasks);
        match textbook_edf(&tasks) {
            None => prop_assert_eq!(verdict, Verdict::Schedulable),
            Some(first) => {
                let Verdict::Unschedulable(witness) = verdict else {
                    return Err(TestCaseError::fail(format!("{verdict:?}, but {first} is violated")));
                };
                prop_assert_eq!(witness.instant, first);
            }
        }
    }

    #[test]
    fn sections_are_the_textbooks(
        tasks in prop::collection::vec(light(), 1..5), cuts in prop::collection::vec((1u64..5, 1u64..5), 5),
    ) {
        prop_assume!(is_small(&tasks));
        let sections: Vec<Section> = tasks.iter().zip(&cuts).map(|(task, cut)| {
            let longest = cut.0.min(task.wcet);
            Section { longest, last: cut.1.min(longest) }
        }).collect();
        let responses = fp::response_times_with_sections(&tasks, &sections);
        for (index, task) in tasks.iter().enumerate() {
            let below = sections[index + 1..].iter().map(|section| section.longest - 1).max().unwrap_or(0);
            let expected = textbook_response(task, &tasks[..index], task.blocking + below, sections[index].last - 1);
            match (&responses[index], expected) {
                (Response::Meets(bound), Some(expected)) => prop_assert_eq!(*bound, expected),
                (Response::Misses(bound), expected) => {
                    prop_assert_eq!(*bound, expected);
                    prop_assert!(expected.is_none_or(|expected| expected > task.deadline));
                }
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            }
        }
        let preemptive = vec![Section::PREEMPTIVE; tasks.len()];
        prop_assert_eq!(fp::response_times_with_sections(&tasks, &preemptive), fp::response_times(&tasks));
    }

    #[test]
    fn an_order_is_found_if_any_of_all_orders_does(tasks in prop::collection::vec(prop_oneof![task(), light()], 1..5)) {
        prop_assume!(is_small(&tasks));
        let mut any = false;
        permutations(&mut (0..tasks.len()).collect(), 0, &mut |order: &[usize]| {
            let set: Vec<Task> = order.iter().map(|&index| tasks[index]).collect();
            any |= fp::verdict(&set).is_schedulable();
        });
        match fp::optimal_order(&tasks) {
            Assignment::Order(order) => {
                let set: Vec<Task> = order.iter().map(|&index| tasks[index]).collect();
                prop_assert!(fp::verdict(&set).is_schedulable());
                prop_assert_eq!(order.len(), tasks.len());
            }
            Assignment::None => prop_assert!(!any),
            Assignment::Undecided(why) => return Err(TestCaseError::fail(why.to_string())),
        }
        let audsley = fp::audsley(&tasks, |task, higher| fp::response_time(task, higher).meets());
        prop_assert_eq!(audsley.is_some(), any);
    }

    #[test]
    fn monotonic_orders_are_optimal_where_they_should_be(tasks in prop::collection::vec(light(), 1..6)) {
        let by = |tasks: &[Task], order: Vec<usize>| -> Vec<Task> { order.iter().map(|&index| tasks[index]).collect() };
        let plain: Vec<Task> = tasks.iter().map(|task| task.jittered(0).blocked(0)).collect();
        let possible = |tasks: &[Task]| matches!(fp::optimal_order(tasks), Assignment::Order(_));
        let deadline = by(&plain, fp::deadline_monotonic(&plain));
        prop_assert_eq!(fp::verdict(&deadline).is_schedulable(), possible(&plain));
        let implicit: Vec<Task> = plain.iter().map(|task| task.due(task.period)).collect();
        let rate = by(&implicit, fp::rate_monotonic(&implicit));
        prop_assert_eq!(fp::verdict(&rate).is_schedulable(), possible(&implicit));
        let jittered: Vec<Task> = tasks.iter().map(|task| task.blocked(0)).collect();
        let slack = by(&jittered, fp::deadline_minus_jitter_monotonic(&jittered));
        prop_assert_eq!(fp::verdict(&slack).is_schedulable(), possible(&jittered));
    }

    #[test]
    fn edf_accepts_whatever_fixed_priority_does(tasks in prop::collection::vec(light(), 1..8)) {
        let plain: Vec<Task> = tasks.iter().map(|task| task.blocked(0)).collect();
        if let Assignment::Order(_) = fp::optimal_order(&plain) {
            prop_assert_eq!(edf::verdict(&plain), Verdict::Schedulable);
        }
    }

    #[test]
    fn equal_assurance_is_no_mixed_criticality(tasks in prop::collection::vec(light(), 1..6)) {
        let plain: Vec<Task> = tasks.iter().map(|task| task.jittered(0)).collect();
        let mixed: Vec<MixedTask> = plain.iter().map(|task| MixedTask::high(*task, task.wcet)).collect();
        for (mixed, response) in fp::amc_rtb(&mixed).iter().zip(fp::response_times(&plain)) {
            prop_assert_eq!(&mixed.low, &response);
            match response {
                Response::Meets(_) => prop_assert_eq!(mixed.high.as_ref(), Some(&response)),
                _ => prop_assert_eq!(mixed.high.as_ref(), Some(&Response::Misses(None))),
            }
        }
    }

    #[test]
    fn virtual_deadlines_are_the_theorems(
        set in prop::collection::vec((1u64..5, 3u64..13, prop::option::of(0u64..7)), 1..6),
    ) {
        let set: Vec<MixedTask> = set.into_iter().map(|(wcet, period, high)| {
            let task = Task::new(wcet.min(period), period);
            match high {
                Some(more) => MixedTask::high(task, (task.wcet + more).min(period)),
                None => MixedTask::low(task),
            }
        }).collect();
        // Everything in units of 1 / one, which each period divides.
        let one = 27_720i128;
        let (mut low, mut high_low, mut high_high) = (0, 0, 0);
        for mixed in &set {
            let share = |wcet: u64| i128::from(wcet) * one / i128::from(mixed.task.period);
            match mixed.wcet_high {
                None => low += share(mixed.task.wcet),
                Some(wcet) => {
                    high_low += share(mixed.task.wcet);
                    high_high += share(wcet);
                }
            }
        }
        let expected_plain = low + high_high <= one;
        // x = high_low / (one - low); x low + high_high <= one.
        let expected_scaled = low < one && high_low * low + high_high * (one - low) <= one * (one - low);
        match edf::edf_vd(&set) {
            edf::EdfVd::Plain => prop_assert!(expected_plain),
            edf::EdfVd::Scaled(x, of) => {
                prop_assert!(!expected_plain && expected_scaled);
                prop_assert_eq!(i128::from(x) * (one - low), i128::from(of) * high_low);
            }
            edf::EdfVd::Refused => prop_assert!(!expected_plain && !expected_scaled),
            edf::EdfVd::Undecided(why) => return Err(TestCaseError::fail(why.to_string())),
        }
    }

    #[test]
    fn whatever_the_input_an_answer_comes(
        tasks in prop::collection::vec(
            (extreme(), extreme(), extreme(), extreme(), extreme()).prop_map(|(wcet, period, deadline, jitter, blocking)| {
                Task { wcet, period, deadline, jitter, blocking }
            }),
            0..6,
        ),
    ) {
        let steps = 3_000;
        let fixed = fp::verdict_within(&tasks, steps);
        prop_assert_eq!(fp::response_times_within(&tasks, steps).len(), tasks.len());
        let deadline = edf::verdict_within(&tasks, steps);
        let bad = tasks.iter().any(|task| task.wcet == 0 || task.period == 0 || task.deadline == 0);
        prop_assert!(!(bad && fixed.is_schedulable()), "{:?}", tasks);
        prop_assert!(!(bad && deadline.is_schedulable()), "{:?}", tasks);
        let overload = !bad && timecell_analysis::utilization::compare_with_one(&tasks).is_gt();
        prop_assert!(!(overload && fixed.is_schedulable()), "{:?}", tasks);
        prop_assert!(!(overload && deadline.is_schedulable()), "{:?}", tasks);
        let sections: Vec<Section> = tasks.iter().map(|task| Section { longest: task.jitter, last: task.blocking }).collect();
        if tasks.iter().all(|task| task.period > task.wcet.saturating_mul(8)) {
            fp::response_times_with_sections(&tasks, &sections);
        }
        let mixed: Vec<MixedTask> = tasks.iter().map(|task| MixedTask::high(*task, task.deadline)).collect();
        edf::edf_vd(&mixed);
        edf::demand(&tasks, Ns::MAX);
    }
}

fn extreme() -> impl Strategy<Value = Ns> {
    prop_oneof![
        Just(0),
        1u64..20,
        (0u32..64, 0u64..3).prop_map(|(bit, less)| (1u64 << bit).saturating_sub(less)),
        (0u64..3).prop_map(|less| MAX_NS - less),
        (0u64..3).prop_map(|less| u64::MAX - less),
    ]
}

fn permutations(order: &mut Vec<usize>, from: usize, visit: &mut impl FnMut(&[usize])) {
    if from == order.len() {
        visit(order);
    }
    for index in from..order.len() {
        order.swap(from, index);
        permutations(order, from + 1, visit);
        order.swap(from, index);
    }
}

#[test]
fn nothing_is_schedulable_nothing() {
    assert_eq!(fp::verdict(&[]), Verdict::Schedulable);
    assert_eq!(edf::verdict(&[]), Verdict::Schedulable);
    assert_eq!(fp::response_times(&[]), []);
    assert_eq!(fp::optimal_order(&[]), Assignment::Order(vec![]));
    assert_eq!(fp::amc_rtb(&[]), []);
    assert_eq!(edf::edf_vd(&[]), edf::EdfVd::Plain);
}

#[test]
fn out_of_range_is_undecided_from_there_on() {
    let fine = Task::new(1, 10);
    for bad in [
        Task::new(0, 10),
        Task::new(1, 0),
        Task::new(1, 10).due(0),
        Task::new(1, MAX_NS + 1),
        Task::new(1, 10).jittered(u64::MAX).due(5),
        Task::new(1, 10).blocked(u64::MAX).due(5),
    ] {
        let responses = fp::response_times(&[fine, bad, fine]);
        assert_eq!(responses[0], Response::Meets(1), "{bad:?}");
        assert!(!responses[1].meets(), "{bad:?}");
        assert!(!responses[2].meets(), "{bad:?}");
        assert!(!fp::verdict(&[fine, bad, fine]).is_schedulable(), "{bad:?}");
        assert!(!edf::verdict(&[fine, bad]).is_schedulable(), "{bad:?}");
        // Not even a certain miss is a verdict on such a set.
        let late = Task::new(5, 10).due(4);
        assert!(matches!(
            edf::verdict(&[late, Task::new(0, 0)]),
            Verdict::Undecided(_)
        ));
    }
    let Verdict::Undecided(why) = fp::verdict(&[Task::new(0, 10)]) else {
        panic!("a task without work was judged");
    };
    assert_eq!(
        why.to_string(),
        "undecided: the wcet is 0; it must be at least 1 ns"
    );
}

#[test]
fn a_wcet_beyond_the_deadline_is_a_miss() {
    let Verdict::Unschedulable(witness) = fp::verdict(&[Task::new(5, 10).due(4)]) else {
        panic!();
    };
    assert_eq!((witness.instant, witness.demand), (4, 5));
    let Verdict::Unschedulable(witness) = edf::verdict(&[Task::new(5, 10).due(4)]) else {
        panic!();
    };
    assert_eq!((witness.instant, witness.demand), (4, 5));
    // Legal with a deadline beyond the period, but more than the cpu can do in the long run.
    let task = Task::new(12, 10).due(20);
    assert_eq!(fp::response_times(&[task]), [Response::Misses(None)]);
    assert!(matches!(fp::verdict(&[task]), Verdict::Unschedulable(_)));
    assert!(matches!(edf::verdict(&[task]), Verdict::Unschedulable(_)));
}

#[test]
fn full_load_is_no_overload() {
    let thirds = [Task::new(1, 3); 3];
    assert_eq!(edf::verdict(&thirds), Verdict::Schedulable);
    assert_eq!(fp::verdict(&thirds), Verdict::Schedulable);
    // One part in 10^18 more.
    let over = [
        Task::new(500_000_000, 1_000_000_000),
        Task::new(500_000_000, 999_999_999),
    ];
    assert!(matches!(edf::verdict(&over), Verdict::Unschedulable(_)));
    // The backlog grows by half a nanosecond a second: no job is late for years, and yet the answer is no.
    let patient = [over[0], over[1].due(1_200_000_000)];
    let Verdict::Unschedulable(witness) = fp::verdict(&patient) else {
        panic!("accepted, or undecided");
    };
    assert!(
        witness.demand > witness.instant && witness.instant > 100_000_000_000_000_000,
        "{witness:?}"
    );
    // Blocking at full load: the busy period has no end.
    assert_eq!(
        edf::verdict(&[Task::new(1, 2).blocked(1), Task::new(1, 2)]),
        Verdict::Unschedulable(timecell_analysis::Witness {
            task: 0,
            instant: 2,
            demand: 3,
            supply: 2,
            parts: vec![
                timecell_analysis::Part {
                    task: 0,
                    jobs: 1,
                    demand: 1
                },
                timecell_analysis::Part {
                    task: 1,
                    jobs: 1,
                    demand: 1
                },
            ],
        })
    );
    let responses = fp::response_times(&[Task::new(1, 2), Task::new(2, 4).due(9).blocked(2)]);
    assert_eq!(responses[1], Response::Meets(8));
}

#[test]
fn coprime_periods_end() {
    // Fifteen primes near 10^9: a hyperperiod of some 10^135 ns, a load near 1.
    let primes = [
        999_999_937,
        999_999_929,
        999_999_893,
        999_999_883,
        999_999_797,
        999_999_761,
        999_999_757,
        999_999_751,
        999_999_739,
        999_999_733,
        999_999_677,
        999_999_667,
        999_999_613,
        999_999_607,
        999_999_599u64,
    ];
    let tasks: Vec<Task> = primes
        .iter()
        .map(|&period| Task::new(period / 15, period).due(period - 7))
        .collect();
    assert_eq!(edf::verdict_within(&tasks, 1 << 22), Verdict::Schedulable);
    let responses = fp::response_times_within(&tasks, 1 << 22);
    assert!(responses.iter().filter(|response| response.meets()).count() >= 14);

    // Full load to the last unit, and deadlines one short: nothing but patience could tell, so nothing is said.
    let wcets: u64 = 499_999_999;
    let slow = [
        Task::new(wcets, 1_000_000_000).due(999_999_999),
        Task::new(500_000_003, 1_000_000_007).due(1_000_000_006),
    ];
    let verdict = edf::verdict_within(&slow, 1_000);
    assert!(
        !matches!(verdict, Verdict::Schedulable)
            || timecell_analysis::utilization::compare_with_one(&slow).is_lt()
    );
}

#[test]
fn steps_run_out_rather_than_time() {
    // A busy period of 10^9 short periods.
    let tasks = [
        Task::new(999_999_999, 1_000_000_000),
        Task::new(100_000_000, 1 << 59),
    ];
    let responses = fp::response_times_within(&tasks, 10_000);
    assert_eq!(
        responses[1],
        Response::Undecided(Undecided::TooManySteps { steps: 10_000 })
    );
    assert_eq!(
        fp::verdict_within(&tasks, 10_000),
        Verdict::Undecided(Undecided::TooManySteps { steps: 10_000 })
    );
}

#[test]
fn ten_thousand_tasks_are_judged() {
    // Periods 1 ms to 2 s, load some 0.7; in order of their periods.
    let tasks: Vec<Task> = (0..10_000u64)
        .map(|index| {
            let period = 1_000_000 + index * index * 20 + index * 13;
            Task::new(period / 14_000, period)
        })
        .collect();
    let responses = fp::response_times(&tasks);
    assert!(responses.iter().all(Response::meets));
    let constrained: Vec<Task> = tasks
        .iter()
        .map(|task| task.due(task.period - task.period / 50))
        .collect();
    assert_eq!(edf::verdict(&constrained), Verdict::Schedulable);
    let overload: Vec<Task> = tasks
        .iter()
        .map(|task| Task::new(task.period / 9_000, task.period))
        .collect();
    assert!(matches!(edf::verdict(&overload), Verdict::Unschedulable(_)));
    assert!(matches!(fp::verdict(&overload), Verdict::Unschedulable(_)));
}
