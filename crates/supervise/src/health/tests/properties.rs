//! Properties of any rules and any events: rules against a calculation from everything that was observed.

use proptest::prelude::*;

use super::*;

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
            .prop_map(|(task, jobs, late)| Event::JobsUnseen {
                task,
                jobs,
                late,
                stalled: jobs % 2 == 0,
            }),
        1 => (task.clone(), any::<u64>()).prop_map(|(task, jobs)| Event::JobsMissed { task, jobs }),
        1 => task.prop_map(|task| Event::Overran { task: Some(task) }),
        4 => any::<bool>().prop_map(|exhausted| Event::BudgetPeriod { exhausted }),
        3 => Just(Event::MemoryLimit),
        2 => Just(Event::Ran),
    ]
}

/// The actions of a rule, reckoned from all observations ever: instants, and the verdict at each.
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

    /// However a supervisor's looks fall, a cell that reports within its timeout is left alone, and one that stops is found.
    #[test]
    fn looks_that_are_late_kill_nobody_and_miss_nothing(
        gaps in prop::collection::vec(1i64..=49, 1..400),
        waits in prop::collection::vec(1i64..=1_000, 1..100),
        records in 0usize..32,
        progress in any::<bool>(),
    ) {
        let mut health = silent_for_50_ms(progress);
        let ends: Vec<i64> = gaps.iter().scan(0, |end, gap| { *end += gap; Some(*end) }).collect();
        let last = *ends.last().unwrap();
        let (mut now, mut next) = (0, 0);
        let mut waits = waits.into_iter().cycle();
        while now < last {
            // As late as it likes, but not so late that the cell has stopped.
            now = (now + waits.next().unwrap()).min(last);
            let new = ends[next..].partition_point(|end| *end <= now);
            let (unseen, seen) = ends[next..next + new].split_at(new.saturating_sub(records));
            next += new;
            if !unseen.is_empty() {
                let at = seen.first().map_or(now, |end| end - 1);
                let jobs = unseen.len() as u64;
                let event = Event::JobsUnseen { task: 0, jobs, late: 0, stalled: true };
                prop_assert_eq!(health.observe(at * MS, event), vec![]);
            }
            for end in seen {
                prop_assert_eq!(health.observe(end * MS, ended(0, 1)), vec![]);
            }
            prop_assert_eq!(health.tick(now * MS), vec![]);
        }
        let on = now + waits.next().unwrap();
        if health.tick(on * MS).is_empty() {
            let due = health.due_ns().unwrap();
            prop_assert!(due <= (on + 50) * MS);
            prop_assert_eq!(health.tick(due).len(), 1);
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
