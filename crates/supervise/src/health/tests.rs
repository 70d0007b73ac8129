use model::Duration;
use model::mission::{Action, Escalation, ExitStatus, Observed, Restart, RestartPolicy, Rule};
use proptest::prelude::*;

use super::*;
use crate::End;

const MS: i64 = 1_000_000;
const CRASH: End = End::Killed {
    signal: 11,
    core_dumped: false,
};

fn time(ns: i64) -> Duration {
    Duration::from_ns(ns)
}

fn rule(when: Observed, action: Action) -> Rule {
    Rule {
        when,
        times: 1,
        window: None,
        cooldown: time(0),
        action,
        escalate: Vec::new(),
    }
}

fn failure() -> Observed {
    let status = ExitStatus::Failure;
    Observed::Exit { status }
}

fn restart(policy: RestartPolicy) -> Restart {
    Restart {
        policy,
        backoff_min: time(100 * MS),
        backoff_max: time(1_000 * MS),
        limit: 5,
        window: time(60_000 * MS),
    }
}

fn health(policy: RestartPolicy, rules: Vec<Rule>) -> CellHealth {
    let config = Config {
        tasks: ["loop", "log"]
            .map(|name| TaskTimes {
                name: name.to_owned(),
                deadline_ns: Some(10),
                wcet_ns: Some(5),
            })
            .to_vec(),
        rules,
        restart: restart(policy),
    };
    let mut health = CellHealth::new(config, &[]).unwrap();
    assert_eq!(health.observe(0, Event::Started), []);
    health
}

fn ended(task: usize, response_ns: i64) -> Event {
    Event::JobEnded {
        task,
        response_ns,
        ran_ns: None,
    }
}

/// What is to be done, in short.
fn actions(findings: &[Finding]) -> Vec<(Option<usize>, Action, i64)> {
    (findings.iter())
        .filter_map(|finding| match finding.decision {
            Decision::Act {
                action, wait_ns, ..
            } => Some((finding.rule, action, wait_ns / MS)),
            Decision::Nothing(_) => None,
        })
        .collect()
}

fn whys(findings: &[Finding]) -> Vec<(Option<usize>, Why)> {
    (findings.iter())
        .filter_map(|finding| match finding.decision {
            Decision::Nothing(why) => Some((finding.rule, why)),
            Decision::Act { .. } => None,
        })
        .collect()
}

#[test]
fn a_crash_is_restarted_later_each_time_and_in_the_end_not_at_all() {
    let told = rule(Observed::RestartLimit, Action::Shed);
    let mut health = health(RestartPolicy::OnFailure, vec![told]);
    let mut crash = |at: i64| {
        let findings = health.observe(at * MS, Event::Ended(CRASH));
        health.observe(at * MS, Event::Started);
        findings
    };
    let waits: Vec<_> = (1..6).map(|at| actions(&crash(at))).collect();
    let later = |wait| vec![(None, Action::RestartBackoff, wait)];
    assert_eq!(waits, [0, 100, 200, 400, 800].map(later));
    let last = crash(6);
    assert_eq!(
        actions(&last),
        [(None, Action::Stop, 0), (Some(0), Action::Shed, 0)]
    );
    assert_eq!(whys(&last), [(None, Why::RestartLimit)]);
    // After the window it begins anew.
    assert_eq!(actions(&crash(70_000)), later(0));
}

#[test]
fn the_policy_decides_where_no_rule_does() {
    let end = |policy, end| {
        let mut health = health(policy, vec![rule(failure(), Action::Notify)]);
        let findings = health.observe(MS, Event::Ended(end));
        assert!(!health.is_watched());
        actions(&findings)
    };
    let fine = End::Exited { code: 0 };
    let notify = (Some(0), Action::Notify, 0);
    let later = (None, Action::RestartBackoff, 0);
    assert_eq!(end(RestartPolicy::Never, CRASH), [notify]);
    assert_eq!(end(RestartPolicy::OnFailure, CRASH), [notify, later]);
    assert_eq!(end(RestartPolicy::OnFailure, fine), []);
    assert_eq!(end(RestartPolicy::Always, fine), [later]);
}

#[test]
fn stopping_goes_before_restarting_and_rules_before_the_policy() {
    let rules = [Action::RestartBackoff, Action::Stop, Action::Restart];
    let rules = rules.map(|action| rule(failure(), action)).to_vec();
    let mut health = health(RestartPolicy::Always, rules);
    let findings = health.observe(MS, Event::Ended(CRASH));
    assert_eq!(actions(&findings), [(Some(1), Action::Stop, 0)]);
    let stronger = Why::Stronger { rule: Some(1) };
    assert_eq!(
        whys(&findings),
        [(Some(0), stronger), (Some(2), stronger), (None, stronger)]
    );
}

#[test]
fn a_memory_limit_is_told_without_a_rule() {
    let mut health = health(RestartPolicy::Never, Vec::new());
    let findings = health.observe(MS, Event::MemoryLimit);
    assert_eq!(whys(&findings), [(None, Why::NoRule)]);
    assert!(health.is_watched());
}

#[test]
fn an_end_that_was_asked_for_is_no_incident() {
    let mut health = health(RestartPolicy::Always, vec![rule(failure(), Action::Stop)]);
    health.observe(MS, Event::Stopping);
    assert_eq!(health.observe(2 * MS, Event::Ended(CRASH)), []);
    assert_eq!(health.due_ns(), None);
}

#[test]
fn a_silent_cell_is_restarted_and_its_end_told_once() {
    let silent = |task: Option<&str>| Observed::Heartbeat {
        task: task.map(str::to_owned),
        timeout: time(50 * MS),
    };
    let rules = vec![
        rule(silent(None), Action::Log),
        rule(silent(Some("log")), Action::Restart),
    ];
    let mut health = health(RestartPolicy::Never, rules);
    assert_eq!(health.due_ns(), Some(50 * MS));
    assert_eq!(health.observe(40 * MS, Event::Heartbeat { task: 0 }), []);
    assert_eq!(health.tick(49 * MS), []);
    let findings = health.tick(50 * MS);
    assert_eq!(actions(&findings), [(Some(1), Action::Restart, 0)]);
    let silent_ns = 50 * MS;
    assert_eq!(
        findings[0].sight,
        Sight::Silent {
            task: Some(1),
            silent_ns,
            timeout_ns: 50 * MS
        }
    );
    assert_eq!(health.observe(51 * MS, Event::Ended(CRASH)), []);
    health.observe(60 * MS, Event::Started);
    assert_eq!(health.due_ns(), Some(110 * MS));
}

#[test]
fn a_silence_that_goes_on_is_told_again_after_as_much_again() {
    let timeout = time(50 * MS);
    let when = Observed::Heartbeat {
        task: None,
        timeout,
    };
    let mut health = health(RestartPolicy::Never, vec![rule(when, Action::Log)]);
    let mut told = Vec::new();
    for now in 1..=210 {
        for finding in health.tick(now * MS) {
            match finding.sight {
                Sight::Silent { silent_ns, .. } => told.push((now, silent_ns / MS)),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(told, [(50, 50), (100, 100), (150, 150), (200, 200)]);
}

#[test]
fn a_frozen_cell_need_not_report() {
    let timeout = time(50 * MS);
    let when = Observed::NoProgress { timeout };
    let mut health = health(RestartPolicy::Never, vec![rule(when, Action::Restart)]);
    health.observe(10 * MS, Event::Frozen);
    assert_eq!((health.due_ns(), health.tick(500 * MS)), (None, vec![]));
    health.observe(600 * MS, Event::Thawed);
    assert_eq!(health.tick(649 * MS), []);
    assert_eq!(health.tick(650 * MS).len(), 1);
}

#[test]
fn where_jobs_are_reported_only_their_ends_are_progress() {
    let timeout = time(50 * MS);
    let when = Observed::NoProgress { timeout };
    let mut health = health(RestartPolicy::Never, vec![rule(when, Action::Restart)]);
    assert_eq!(health.observe(30 * MS, Event::Ran), []);
    assert_eq!(health.due_ns(), Some(80 * MS));
    health.observe(40 * MS, ended(0, 1));
    health.observe(60 * MS, Event::JobBegun { task: 0 });
    health.observe(80 * MS, Event::Ran);
    assert_eq!(health.tick(90 * MS).len(), 1);
}

#[test]
fn each_task_breaks_its_own_constraint() {
    let misses = |task: Option<&str>| Observed::DeadlineMisses {
        task: task.map(str::to_owned),
        misses: 2,
        jobs: 3,
    };
    let rules = vec![
        rule(misses(None), Action::Log),
        rule(misses(Some("log")), Action::Notify),
    ];
    let mut health = health(RestartPolicy::Never, rules);
    assert_eq!(health.observe(1, ended(0, 11)), []);
    assert_eq!(health.observe(2, ended(1, 11)), []);
    assert_eq!(health.observe(3, ended(0, 10)), []);
    assert_eq!(
        actions(&health.observe(4, ended(0, 11))),
        [(Some(0), Action::Log, 0)]
    );
    let missed = Event::JobsMissed { task: 1, jobs: 1 };
    let both = [(Some(0), Action::Log, 0), (Some(1), Action::Notify, 0)];
    assert_eq!(actions(&health.observe(5, missed)), both);
    let unseen = Event::JobsUnseen {
        task: 1,
        jobs: u64::MAX,
        late: 1 << 60,
    };
    assert_eq!(actions(&health.observe(6, unseen)), both);
    // A restart forgets the jobs of the life before.
    health.observe(7, ended(0, 11));
    health.observe(8, Event::Started);
    assert_eq!(health.observe(9, ended(0, 11)), []);
}

#[test]
fn budgets_memory_and_overruns() {
    let rules = vec![
        rule(Observed::BudgetExhausted { periods: 3 }, Action::SwitchMode),
        rule(Observed::MemoryLimit, Action::Restart),
        rule(Observed::Overrun { task: None }, Action::Log),
    ];
    let mut health = health(RestartPolicy::Never, rules);
    let mut periods = |pattern: &str| -> Vec<usize> {
        let seen = pattern.bytes().enumerate().filter(|(_, period)| {
            let exhausted = *period == b'x';
            !health
                .observe(1, Event::BudgetPeriod { exhausted })
                .is_empty()
        });
        seen.map(|(at, _)| at).collect()
    };
    assert_eq!(periods("xx-xxx-xxxxxx"), [5, 9, 12]);
    let ran = |ran_ns| Event::JobEnded {
        task: 1,
        response_ns: 1,
        ran_ns,
    };
    assert_eq!(health.observe(2, ran(Some(5))), []);
    assert_eq!(health.observe(2, ran(None)), []);
    let (task, ran_ns) = (Some(1), Some(6));
    assert_eq!(
        health.observe(2, ran(Some(6)))[0].sight,
        Sight::Overran { task, ran_ns }
    );
    assert_eq!(health.observe(2, Event::Overran { task: Some(0) }).len(), 1);
    assert_eq!(
        actions(&health.observe(3, Event::MemoryLimit)),
        [(Some(1), Action::Restart, 0)]
    );
}

#[test]
fn a_rule_counts_cools_down_and_escalates() {
    let step = |after, action| Escalation { after, action };
    let rule = Rule {
        times: 2,
        window: Some(time(100 * MS)),
        cooldown: time(10 * MS),
        escalate: vec![step(1, Action::Notify), step(2, Action::Stop)],
        ..rule(Observed::MemoryLimit, Action::Log)
    };
    let mut health = health(RestartPolicy::Never, vec![rule]);
    let mut hit = |at: i64| health.observe(at * MS, Event::MemoryLimit)[0].decision;
    let below = Decision::Nothing(Why::Below { seen: 1, times: 2 });
    let act = |action, before| Decision::Act {
        action,
        wait_ns: 0,
        before,
    };
    assert_eq!(hit(0), below);
    assert_eq!(hit(101), below);
    assert_eq!(hit(102), act(Action::Log, 0));
    assert_eq!(hit(103), below);
    let left_ns = 8 * MS;
    assert_eq!(hit(104), Decision::Nothing(Why::Cooldown { left_ns }));
    assert_eq!(hit(112), act(Action::Notify, 1));
    assert_eq!(hit(150), below);
    assert_eq!(hit(160), act(Action::Stop, 2));
}

#[test]
fn restarts_of_earlier_supervisors_count() {
    let config = Config {
        tasks: Vec::new(),
        rules: Vec::new(),
        restart: restart(RestartPolicy::Always),
    };
    let past: Vec<i64> = (1..=5).map(|at| at * 1_000 * MS).collect();
    let crash = |at: i64| {
        let mut health = CellHealth::new(config.clone(), &past).unwrap();
        health.observe(at * MS, Event::Started);
        actions(&health.observe(at * MS, Event::Ended(CRASH)))
    };
    assert_eq!(crash(60_000), [(None, Action::Stop, 0)]);
    assert_eq!(crash(61_001), [(None, Action::RestartBackoff, 800)]);
}

#[test]
fn a_rule_about_an_unknown_task_is_refused() {
    let task = Some("lop".to_owned());
    let config = Config {
        tasks: Vec::new(),
        rules: vec![rule(Observed::Overrun { task }, Action::Log)],
        restart: restart(RestartPolicy::Always),
    };
    let error = CellHealth::new(config, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a health rule is about task `lop`, which the cell does not have"
    );
}

fn any_action() -> impl Strategy<Value = Action> {
    prop::sample::select(vec![
        Action::Log,
        Action::Notify,
        Action::Restart,
        Action::RestartBackoff,
        Action::Stop,
        Action::Shed,
        Action::SwitchMode,
    ])
}

fn any_observed() -> impl Strategy<Value = Observed> {
    let task = || {
        prop::option::of(prop::sample::select(vec![
            "loop".to_owned(),
            "log".to_owned(),
        ]))
    };
    let status = prop::sample::select(vec![ExitStatus::Any, ExitStatus::Failure]);
    let timeout = || (1i64..40).prop_map(time);
    prop_oneof![
        status.prop_map(|status| Observed::Exit { status }),
        (task(), timeout()).prop_map(|(task, timeout)| Observed::Heartbeat { task, timeout }),
        (task(), 1u32..4, 0u32..4).prop_map(|(task, misses, more)| Observed::DeadlineMisses {
            task,
            misses,
            jobs: misses + more
        }),
        (1u32..4).prop_map(|periods| Observed::BudgetExhausted { periods }),
        Just(Observed::MemoryLimit),
        timeout().prop_map(|timeout| Observed::NoProgress { timeout }),
        task().prop_map(|task| Observed::Overrun { task }),
        Just(Observed::RestartLimit),
    ]
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let steps = prop::collection::btree_map(1u32..5, any_action(), 0..3);
    let window = prop::option::of((1i64..100).prop_map(time));
    (
        any_observed(),
        1u32..5,
        window,
        0i64..30,
        any_action(),
        steps,
    )
        .prop_map(|(when, times, window, cooldown, action, steps)| Rule {
            when,
            times,
            window,
            cooldown: time(cooldown),
            action,
            escalate: (steps.into_iter())
                .map(|(after, action)| Escalation { after, action })
                .collect(),
        })
}

fn any_event() -> impl Strategy<Value = Event> {
    let task = 0usize..3;
    let end = prop::sample::select(vec![CRASH, End::Exited { code: 0 }, End::Unknown]);
    prop_oneof![
        3 => Just(Event::Started),
        1 => Just(Event::Stopping),
        3 => end.prop_map(Event::Ended),
        1 => Just(Event::Frozen),
        1 => Just(Event::Thawed),
        2 => task.clone().prop_map(|task| Event::Heartbeat { task }),
        2 => task.clone().prop_map(|task| Event::JobBegun { task }),
        4 => (task.clone(), 0i64..20, prop::option::of(0i64..10))
            .prop_map(|(task, response_ns, ran_ns)| Event::JobEnded { task, response_ns, ran_ns }),
        1 => (task.clone(), any::<u64>(), any::<u64>())
            .prop_map(|(task, jobs, late)| Event::JobsUnseen { task, jobs, late }),
        1 => (task.clone(), any::<u64>()).prop_map(|(task, jobs)| Event::JobsMissed { task, jobs }),
        1 => task.prop_map(|task| Event::Overran { task: Some(task) }),
        4 => any::<bool>().prop_map(|exhausted| Event::BudgetPeriod { exhausted }),
        3 => Just(Event::MemoryLimit),
        2 => Just(Event::Ran),
    ]
}

/// What a rule does, reckoned from everything that was ever observed: instants, and the verdict at each.
fn brute_force(rule: &Rule, observed_ns: &[i64]) -> Vec<Option<Action>> {
    let window = rule.window.map_or(i64::MAX, |window| window.ns());
    let mut acted: Vec<i64> = Vec::new();
    let mut used = 0;
    let mut verdicts = Vec::new();
    for (index, now) in observed_ns.iter().enumerate() {
        let within = |at: &&i64| now - **at <= window;
        let seen = observed_ns[used..=index].iter().filter(within).count();
        let quiet = acted
            .last()
            .is_some_and(|last| now - last < rule.cooldown.ns());
        if seen < rule.times as usize || quiet {
            verdicts.push(None);
            continue;
        }
        let before = acted.iter().filter(within).count() as u32;
        let mut steps = rule.escalate.iter().filter(|step| step.after <= before);
        verdicts.push(Some(
            steps.next_back().map_or(rule.action, |step| step.action),
        ));
        acted.push(*now);
        used = index + 1;
    }
    verdicts
}

proptest! {
    #[test]
    fn a_rule_does_what_its_words_say(rule in any_rule(), gaps in prop::collection::vec(0i64..40, 1..80)) {
        let observed: Vec<i64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        let mut counting = counting::Counting::new(&rule);
        let verdicts: Vec<Option<Action>> = (observed.iter())
            .map(|now| match counting.observe(&rule, *now) {
                counting::Verdict::Act { action, .. } => Some(action),
                _ => None,
            })
            .collect();
        prop_assert_eq!(&verdicts, &brute_force(&rule, &observed));
        let acted: Vec<i64> = (observed.iter().zip(&verdicts))
            .filter(|(_, verdict)| verdict.is_some())
            .map(|(at, _)| *at)
            .collect();
        prop_assert!(acted.windows(2).all(|pair| pair[1] - pair[0] >= rule.cooldown.ns()));
    }

    #[test]
    fn escalation_only_goes_up_while_nothing_is_forgotten(
        mut rule in any_rule(),
        gaps in prop::collection::vec(0i64..40, 1..60),
    ) {
        rule.window = None;
        let mut counting = counting::Counting::new(&rule);
        let (mut now, mut last) = (0, 0);
        for gap in gaps {
            now += gap;
            if let counting::Verdict::Act { action, before } = counting.observe(&rule, now) {
                let step = rule.escalate.iter().filter(|step| step.after <= before).count();
                prop_assert!(step >= last);
                let expected = step.checked_sub(1).map_or(rule.action, |step| rule.escalate[step].action);
                prop_assert_eq!(action, expected);
                last = step;
            }
        }
    }

    #[test]
    fn restarts_keep_to_their_waits_and_their_limit(
        (limit, window, min, more) in (1u32..8, 1i64..200, 0i64..50, 0i64..500),
        crashes in prop::collection::vec((0i64..60, any::<bool>()), 1..80),
    ) {
        let restart = Restart {
            policy: RestartPolicy::Always,
            backoff_min: time(min),
            backoff_max: time(min + more),
            limit,
            window: time(window),
        };
        let mut restarts = restarts::Restarts::new(&restart, &[]);
        let (mut now, mut all) = (0i64, Vec::<i64>::new());
        for (gap, at_once) in crashes {
            now += gap;
            let before = all.iter().filter(|at| now - **at <= window).count();
            let waited = restarts.next(&restart, now, at_once);
            if before >= limit as usize {
                prop_assert_eq!(waited, None);
                continue;
            }
            let mut expected = if before == 0 { 0 } else { min };
            for _ in 1..before {
                expected = (expected * 2).min(min + more);
            }
            prop_assert_eq!(waited, Some(if at_once { 0 } else { expected.min(min + more) }));
            all.push(now);
        }
        for from in &all {
            let within = all.iter().filter(|at| (*from..=from + window).contains(*at)).count();
            prop_assert!(within <= limit as usize);
        }
    }

    #[test]
    fn whatever_happens_a_cell_is_stopped_or_restarted_once_at_a_time_and_told_when_it_is_due(
        rules in prop::collection::vec(any_rule(), 0..5),
        policy in prop::sample::select(vec![RestartPolicy::Never, RestartPolicy::OnFailure, RestartPolicy::Always]),
        events in prop::collection::vec((0i64..30, any_event()), 0..120),
    ) {
        let mut health = health(policy, rules.clone());
        let mut now = 0;
        for (gap, event) in events {
            // Every instant that is due comes first, and none before it has anything to say.
            let then = now + gap;
            while let Some(due) = health.due_ns().filter(|due| *due <= then) {
                prop_assert!(due >= now);
                let mut early = health.clone();
                prop_assert_eq!(early.tick(due - 1), vec![]);
                now = due;
                let findings = health.tick(due);
                prop_assert!(!findings.is_empty());
                check(&findings, &health, &rules)?;
            }
            now = then;
            let was_watched = health.is_watched();
            let findings = health.observe(now, event);
            check(&findings, &health, &rules)?;
            if was_watched && matches!(event, Event::Ended(_)) {
                prop_assert!(findings.iter().any(|finding| matches!(finding.sight, Sight::Ended(_))));
                prop_assert!(!health.is_watched());
            }
            prop_assert!(health.is_watched() || health.due_ns().is_none());
        }
    }
}

fn check(findings: &[Finding], health: &CellHealth, rules: &[Rule]) -> Result<(), TestCaseError> {
    let changes = (actions(findings).into_iter())
        .filter(|(_, action, _)| {
            matches!(
                action,
                Action::Stop | Action::Restart | Action::RestartBackoff
            )
        })
        .count();
    prop_assert!(changes <= 1, "{:?}", findings);
    prop_assert!(changes == 0 || !health.is_watched());
    for finding in findings {
        if let Some(rule) = finding.rule {
            prop_assert_eq!(rules[rule].when.name(), finding.sight.name());
        }
    }
    Ok(())
}
