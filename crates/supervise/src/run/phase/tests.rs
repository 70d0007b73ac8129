//! Every phase with every event, by properties that hold of all of them; the interesting pairs by their results; and long
//! random lives.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const NOW: i64 = 1_000;
const DONE: End = End::Exited { code: 0 };
const ASK: Ask = Ask {
    signal: libc::SIGTERM,
    patience_ns: 100,
};

fn not_ready() -> Reason {
    Reason::NotReady { waited_ns: 7 }
}

fn rule() -> Reason {
    let rule = "exit".to_owned();
    Reason::Rule { rule }
}

fn by(reason: Reason) -> Option<Cause> {
    Some(Cause::Supervisor { reason })
}

fn gone(end: End, cause: Option<Cause>, asked: bool) -> Gone {
    Gone { end, cause, asked }
}

/// Every kind of phase. The running instance has number 1.
fn phases() -> Vec<Phase<u32>> {
    let nexts = [Next::Stays, Next::Waits, Next::Due(5)];
    let mut phases = vec![Phase::Running(1), Phase::Starting(3, None)];
    for next in nexts {
        phases.push(Phase::Down(next));
        phases.push(Phase::Starting(3, Some((ASK, next))));
        for ending in [
            Ending::Asked(900, 1_100),
            Ending::Asked(900, NOW),
            Ending::Killed(rule(), false),
            Ending::Killed(rule(), true),
            Ending::Dies(not_ready()),
        ] {
            phases.push(Phase::Ending(1, ending, next));
        }
        for asked in [false, true] {
            phases.push(Phase::Removing(gone(DONE, None, asked), next));
        }
    }
    phases
}

/// Every kind of event. The made instance has number 2.
fn events() -> Vec<Event<u32>> {
    let memory = Some(Cause::Memory(crate::cause::ForMemory { limit_bytes: None }));
    vec![
        Event::Follow(Next::Stays),
        Event::Follow(Next::Waits),
        Event::Follow(Next::Due(9)),
        Event::Start,
        Event::Made(2),
        Event::NotMade("no".to_owned()),
        Event::AskEnd(ASK),
        Event::Kill(Reason::AskedTwice),
        Event::NotReady(not_ready()),
        Event::Ended {
            end: DONE,
            memory: None,
        },
        Event::Ended {
            end: KILLED,
            memory,
        },
        Event::Runs {
            killed_as_asked: false,
        },
        Event::Runs {
            killed_as_asked: true,
        },
        Event::Removed(None),
        Event::Removed(Some(KILLED)),
    ]
}

fn has(effects: &[Effect<u32>], kind: &str) -> bool {
    let name = |effect: &Effect<u32>| format!("{effect:?}");
    (effects.iter()).any(|effect| name(effect).split(['(', ' ']).next() == Some(kind))
}

/// The invariants of any event in any phase.
fn check(before: &Phase<u32>, event: &Event<u32>, after: &Phase<u32>, effects: &[Effect<u32>]) {
    let pair = format!("{before:?} with {event:?}: {after:?} by {effects:?}");
    // A running instance is neither lost nor there twice: it is in the phase, or handed on to be removed.
    let mut lives: Vec<u32> = before.live().copied().into_iter().collect();
    lives.extend(match event {
        Event::Made(live) => Some(*live),
        _ => None,
    });
    let removed = effects.iter().filter_map(|effect| match effect {
        Effect::Remove(live) => Some(*live),
        _ => None,
    });
    let mut kept: Vec<u32> = after.live().copied().into_iter().chain(removed).collect();
    kept.sort_unstable();
    assert_eq!(kept, lives, "{pair}");
    // Nothing is done twice.
    for (at, effect) in effects.iter().enumerate() {
        assert!(!effects[..at].contains(effect), "{pair}");
    }
    // It is created only where nothing is there, and only if it is wanted.
    let makes = has(effects, "Make");
    assert_eq!(
        makes,
        after.is_starting() && !before.is_starting(),
        "{pair}"
    );
    assert!(
        !makes || matches!(before, Phase::Down(Next::Waits | Next::Due(_))),
        "{pair}"
    );
    // It is watched exactly when it has begun to run.
    let begins = matches!(event, Event::Made(_)) && before.is_starting();
    assert_eq!(has(effects, "Begin"), begins, "{pair}");
    // Nothing is left only once its end, or its failed creation, is on record; and then somebody decides the next step.
    let ends = before.is_there() && !after.is_there();
    let told = has(effects, "TellEnd") || has(effects, "TellNotMade");
    assert_eq!(told, ends, "{pair}");
    let judged = has(effects, "Judge") || has(effects, "JudgeNotMade");
    assert_eq!(judged, ends && !before.is_told(), "{pair}");
    assert_eq!(
        has(effects, "Forget"),
        has(effects, "TellEnd") && before.is_told(),
        "{pair}"
    );
    // A cell that is asked, or killed at once, is asked as it begins to end.
    let is_ending = matches!(after, Phase::Ending(..));
    assert!(
        is_ending || !(has(effects, "Ask") || has(effects, "Kill")),
        "{pair}"
    );
    // A present life was told to end once it was asked; and a running one, once it has to be killed.
    match event {
        Event::AskEnd(_) => assert_eq!(after.is_told(), after.is_there(), "{pair}"),
        Event::Kill(_) => assert!(after.is_told() || after.live().is_none(), "{pair}"),
        _ => {}
    }
    // A life told to end does not become wanted by that, and only `Follow` sets the next step.
    assert!(!before.is_told() || after.is_told() || ends, "{pair}");
    if !matches!(event, Event::Follow(_)) && before.next() != Next::Stays {
        assert!(after.next() == before.next() || makes, "{pair}");
    }
}

#[test]
fn every_phase_with_every_event_keeps_what_runs_and_does_nothing_twice() {
    for before in phases() {
        for event in events() {
            let (after, effects) = before.clone().decide(event.clone(), NOW);
            check(&before, &event, &after, &effects);
        }
    }
}

/// Every pair in which something changes but for the next step, by the name of the phase after it.
#[test]
fn only_these_events_take_a_cell_from_phase_to_phase() {
    let kind = |phase: &Phase<u32>| match phase {
        Phase::Down(_) => "down",
        Phase::Starting(..) => "starting",
        Phase::Running(_) => "running",
        Phase::Ending(..) => "ending",
        Phase::Removing(..) => "removing",
    };
    let mut moves = std::collections::BTreeSet::new();
    for before in phases() {
        for event in events() {
            let name = format!("{event:?}");
            let name = name.split(['(', ' ']).next().unwrap().to_owned();
            let (after, _) = before.clone().decide(event, NOW);
            if kind(&after) != kind(&before) {
                moves.insert(format!("{} {name} {}", kind(&before), kind(&after)));
            }
        }
    }
    let expected = [
        "down Start starting",
        "ending Ended removing",
        "ending Runs removing",
        "removing Removed down",
        "running AskEnd ending",
        "running Ended removing",
        "running Kill ending",
        "running NotReady ending",
        "starting Made ending",
        "starting Made running",
        "starting NotMade down",
    ];
    let moves: Vec<&str> = moves.iter().map(String::as_str).collect();
    assert_eq!(moves, expected);
}

#[test]
fn an_end_is_told_with_its_reason_and_whether_it_was_asked_for() {
    let late = Reason::StopTimeout { waited_ns: 200 };
    let asked = || Ending::Asked(800, NOW);
    let killed = |was_asked| Ending::Killed(rule(), was_asked);
    let dies = || Ending::Dies(not_ready());
    let ended = |end| Event::Ended { end, memory: None };
    let runs = |killed_as_asked| Event::Runs { killed_as_asked };
    for (ending, event, expected) in [
        (asked(), ended(DONE), gone(DONE, Some(Cause::Asked), true)),
        (
            asked(),
            ended(KILLED),
            gone(KILLED, Some(Cause::Asked), true),
        ),
        (asked(), runs(false), gone(KILLED, by(late), true)),
        (asked(), runs(true), gone(KILLED, Some(Cause::Asked), true)),
        (killed(false), ended(DONE), gone(DONE, None, true)),
        (
            killed(true),
            ended(DONE),
            gone(DONE, Some(Cause::Asked), true),
        ),
        (killed(true), ended(KILLED), gone(KILLED, by(rule()), true)),
        (killed(false), runs(true), gone(KILLED, by(rule()), true)),
        (dies(), ended(KILLED), gone(KILLED, by(not_ready()), false)),
        (dies(), ended(DONE), gone(DONE, None, false)),
    ] {
        let told = format!("{ending:?} with {event:?}");
        let (after, _) = Phase::Ending(1, ending, Next::Waits).decide(event, NOW);
        assert_eq!(after, Phase::Removing(expected, Next::Waits), "{told}");
    }
    // One that has time, and one that was killed and is yet to die.
    for ending in [Ending::Asked(800, NOW + 1), dies()] {
        let phase = Phase::Ending(1, ending, Next::Stays);
        assert_eq!(phase.clone().decide(runs(false), NOW), (phase, vec![]));
    }
}

#[test]
fn a_kill_for_memory_is_told_where_nobody_else_has_ended_it() {
    let memory = Some(Cause::Memory(crate::cause::ForMemory { limit_bytes: None }));
    let ended = |phase: Phase<u32>| {
        let (end, memory) = (KILLED, memory.clone());
        match phase.decide(Event::Ended { end, memory }, NOW).0 {
            Phase::Removing(gone, _) => gone.cause,
            phase => panic!("{phase:?}"),
        }
    };
    let ending = |ending| ended(Phase::Ending(1, ending, Next::Stays));
    assert_eq!(ended(Phase::Running(1)), memory);
    assert_eq!(ending(Ending::Asked(1, 2)), Some(Cause::Asked));
    assert_eq!(ending(Ending::Killed(rule(), false)), by(rule()));
    // A program that turns out to have exited was not killed.
    let removing = Phase::<u32>::Removing(gone(KILLED, memory, false), Next::Stays);
    let (_, effects) = removing.decide(Event::Removed(Some(DONE)), NOW);
    let told = Effect::TellEnd(gone(DONE, None, false));
    assert_eq!(effects, [told, Effect::Judge(DONE)]);
}

#[test]
fn who_asks_first_and_what_it_is_killed_for_first_counts() {
    let other = Ask {
        signal: libc::SIGHUP,
        patience_ns: 5,
    };
    let go_on = |phase: Phase<u32>, events: Vec<Event<u32>>| {
        let each = events.into_iter();
        each.fold(phase, |phase, event| phase.decide(event, NOW).0)
    };
    let asked = || vec![Event::AskEnd(ASK), Event::AskEnd(other)];
    let started = go_on(Phase::Starting(0, None), asked());
    let (after, effects) = started.decide(Event::Made(2), NOW);
    let until = Ending::Asked(NOW, NOW + ASK.patience_ns);
    assert_eq!(after, Phase::Ending(2, until.clone(), Next::Stays));
    assert_eq!(effects, [Effect::Begin(0), Effect::Ask(libc::SIGTERM)]);
    assert_eq!(go_on(Phase::Running(2), asked()), after);
    let killed = |events| match go_on(Phase::Running(1), events) {
        Phase::Ending(_, Ending::Killed(why, was_asked), _) => (why, was_asked),
        phase => panic!("{phase:?}"),
    };
    let kills = [Event::Kill(rule()), Event::Kill(Reason::AskedTwice)];
    assert_eq!(killed(kills.to_vec()), (rule(), false));
    let (kill, ask) = (Event::Kill(rule()), Event::AskEnd(ASK));
    assert_eq!(killed(vec![ask.clone(), kill.clone()]), (rule(), true));
    let late = Event::NotReady(not_ready());
    assert_eq!(killed(vec![late.clone(), kill]), (not_ready(), false));
    assert_eq!(killed(vec![late, ask]), (not_ready(), true));
}

proptest! {
    /// However a life goes: a cell is started again only after its end was seen and told, and never while nothing is to follow.
    #[test]
    fn a_cell_is_never_there_twice_and_one_that_stays_is_never_started(
        events in prop::collection::vec((select(events()), 0_i64..200), 0..200)
    ) {
        let (mut phase, mut now) = (Phase::<u32>::default(), 0);
        let (mut there, mut wanted, mut number) = (false, false, 0);
        for (mut event, after_ns) in events {
            now += after_ns;
            if let Event::Made(live) = &mut event {
                number += 1;
                *live = number;
            }
            if let Event::Follow(next) = event
                && !matches!(phase, Phase::Running(_) | Phase::Starting(_, None))
            {
                wanted = next != Next::Stays;
            }
            let (before, event_was) = (phase.clone(), event.clone());
            let (after, effects) = phase.decide(event, now);
            check(&before, &event_was, &after, &effects);
            for effect in &effects {
                match effect {
                    Effect::Make => {
                        prop_assert!(!there && wanted, "{before:?} {event_was:?}");
                        (there, wanted) = (true, false);
                    }
                    Effect::TellEnd(_) | Effect::TellNotMade(_) => {
                        prop_assert!(there);
                        there = false;
                    }
                    _ => {}
                }
            }
            prop_assert_eq!(there, after.is_there());
            phase = after;
        }
        // It ends from any phase: asked, killed, and removed.
        let way_out = [
            Event::NotMade(String::new()),
            Event::Kill(rule()),
            Event::Runs { killed_as_asked: false },
            Event::Ended { end: DONE, memory: None },
            Event::Removed(None),
        ];
        for event in way_out {
            phase = phase.decide(event, now).0;
        }
        prop_assert!(!phase.is_there());
    }
}
