//! Health of one cell, rule by rule.

use super::*;
use crate::End;
use model::Duration;
use model::mission::{Action, Escalation, ExitStatus, Observed, Restart, RestartPolicy, Rule};

mod properties;

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

/// The decisions to act, in short.
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
    // After the window it starts afresh.
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
fn a_supervisor_that_was_late_does_not_take_its_own_silence_for_the_cells() {
    let timeout = time(50 * MS);
    let when = Observed::NoProgress { timeout };
    let mut health = health(RestartPolicy::Never, vec![rule(when, Action::Restart)]);
    assert_eq!(health.observe(500 * MS, Event::Ran), []);
    assert_eq!(health.tick(500 * MS), []);
    assert_eq!(health.due_ns(), Some(550 * MS));
    assert_eq!(health.tick(550 * MS).len(), 1);
}

/// A cell with this rule and a timeout of 50 ms.
fn silent_for_50_ms(progress: bool) -> CellHealth {
    let (task, timeout) = (None, time(50 * MS));
    let when = match progress {
        true => Observed::NoProgress { timeout },
        false => Observed::Heartbeat { task, timeout },
    };
    health(RestartPolicy::Never, vec![rule(when, Action::Restart)])
}

#[test]
fn what_came_unseen_while_nobody_looked_is_a_sign_of_life() {
    let unseen = Event::JobsUnseen {
        task: 0,
        jobs: 800,
        late: 0,
        stalled: true,
    };
    let events = [
        vec![(4_000, unseen)],
        // The other task's old jobs say nothing of this one's.
        vec![(30, ended(1, 1)), (1_000, ended(1, 1)), (3_990, unseen)],
        vec![(3_850, unseen), (3_855, ended(0, 1)), (3_990, ended(0, 1))],
    ];
    for (events, progress) in events.iter().flat_map(|each| [(each, false), (each, true)]) {
        let mut health = silent_for_50_ms(progress);
        for (at, event) in events {
            assert_eq!(health.observe(at * MS, *event), []);
        }
        assert_eq!(health.tick(4_000 * MS), [], "{events:?}");
        // It wedges, and is found when its timeout after the last sign is over.
        let last = events.last().unwrap().0;
        assert_eq!(health.due_ns(), Some((last + 50) * MS));
        assert_eq!(health.tick((last + 50) * MS).len(), 1);
    }
    let mut health = silent_for_50_ms(false);
    assert_eq!(health.observe(1_000 * MS, ended(1, 1)), []);
    // Beats have no times: the last may have come just now.
    let beat = Event::Heartbeat { task: 0 };
    assert_eq!(health.observe(4_000 * MS, beat), []);
    assert_eq!(health.tick(4_049 * MS), []);
    assert_eq!(health.tick(4_050 * MS).len(), 1);
}

#[test]
fn a_silence_that_is_seen_late_gets_its_time_once_more_and_no_oftener() {
    let mut health = silent_for_50_ms(false);
    // By less than half of the timeout: late as anybody may be.
    assert_eq!(health.clone().tick(75 * MS).len(), 1);
    assert_eq!(health.tick(4_000 * MS), []);
    assert_eq!(health.due_ns(), Some(4_050 * MS));
    let mut wedged = health.clone();
    assert_eq!(wedged.tick(4_050 * MS).len(), 1);
    let mut late_again = health.clone();
    assert_eq!(late_again.tick(9_000 * MS).len(), 1);
    // It goes on, and gets its time again.
    health.observe(4_040 * MS, ended(0, 1));
    assert_eq!(health.tick(9_000 * MS), []);
    assert_eq!(health.tick(9_050 * MS).len(), 1);
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
        stalled: false,
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
