//! Studies of made-up supplies.

use super::*;
use model::Enforcer;
use record::supply::Times;

const MS: Ns = 1_000_000;

/// Runs and gaps in turn, ms.
fn round(lengths: &[Ns]) -> Round {
    let mut at = 100 * MS;
    let begin = at;
    let mut gaps = Vec::new();
    for (place, &length) in lengths.iter().enumerate() {
        let end = at + length * MS;
        if place % 2 == 1 {
            gaps.push(empirical::Gap { begin: at, end });
        }
        at = end;
    }
    let span = Span::new(begin, at, gaps).unwrap();
    let billed = Share {
        cpu_ns: span.received(),
        of_ns: span.length(),
    };
    Round {
        spans: vec![span],
        billed,
        reacted: None,
    }
}

fn held() -> Budget {
    Budget {
        enforcer: Enforcer::RtCgroup,
        budget_ns: 3 * MS,
        period_ns: 10 * MS,
    }
}

fn machine() -> Machine {
    Machine {
        cpu_model: None,
        cpus: 1,
        virtual_machine: None,
        kernel_release: None,
        kernel_version: None,
        tick_hz: Some(250),
        deadline_by_timer: None,
    }
}

#[test]
fn a_tick_too_long_breaks_the_textbook_and_not_the_bound_of_the_tick() {
    // 4 ms instead of 3, which every third period pays back.
    let rounds = [
        round(&[4, 6, 4, 6, 4, 16, 4, 6, 4, 6, 4, 16, 4, 6, 4]),
        round(&[3, 7, 3, 7, 3, 7, 3, 7, 3, 7, 3]),
    ];
    let found = measured(held(), &machine(), &rounds, None).unwrap();
    assert_eq!(found.points[0].supplied, 300_000);
    assert_eq!((found.rounds, found.starts), (2, 2));
    assert_eq!(
        (found.longest_gap_ns.least, found.longest_gap_ns.most),
        (7 * MS, 16 * MS)
    );
    assert!(
        matches!(found.textbook.kept, Kept::Broken { promised_ns, received_ns, .. } if promised_ns == received_ns + 2 * MS),
        "{:?}",
        found.textbook
    );
    assert_eq!(found.textbook.delay_ns, 14 * MS);
    assert_eq!(found.by_tick.unwrap().kept, Kept::Held);
    assert_eq!(found.cautious.unwrap().kept, Kept::Held);
    let periods = found.periods.unwrap();
    assert_eq!(
        (periods.least_ns, periods.most_ns, periods.count),
        (0, 4 * MS, 9 + 5)
    );
    // Every line lies below: a shorter delay costs rate.
    for two in found.points.windows(2) {
        assert!(two[0].supplied > two[1].supplied && two[0].delay_ns > two[1].delay_ns);
    }
    let envelope: Vec<_> = (found.points.iter())
        .map(|point| (point.supplied, point.per, point.delay_ns))
        .collect();
    let envelope = empirical::Envelope::of(&envelope).unwrap();
    for &(window, received) in &found.least {
        assert!(envelope.sbf(window) <= received, "{window}");
    }
}

#[test]
fn what_the_host_takes_excuses_as_much_and_no_more() {
    let rounds = [round(&[4, 6, 4, 6, 4, 16, 4, 6, 4, 6, 4, 16, 4])];
    let with = |pause: Ns| {
        let host = host(&[round(&[400, pause, 400])]);
        measured(held(), &machine(), &rounds, host.as_ref())
            .unwrap()
            .textbook
            .kept
    };
    assert!(matches!(with(1), Kept::Broken { .. }));
    assert!(matches!(with(2), Kept::HeldButForTheHost { .. }));
}

#[test]
fn the_host_is_what_a_thread_without_a_budget_lost() {
    let host = host(&[round(&[97, 3]), round(&[50, 1, 49])]).unwrap();
    assert_eq!((host.rounds, host.received.of_ns), (2, 200 * MS));
    assert_eq!(host.received.cpu_ns, 196 * MS);
    assert_eq!(host.longest_gap_ns.most, 3 * MS);
    assert_eq!(host.lost_in(3 * MS), 3 * MS);
    // The value of the next longer window examined.
    assert!((MS..=MS + MS / 20).contains(&host.lost_in(MS)));
    assert!(host.lost_in(500 * MS) >= 15 * MS);
}

#[test]
fn nothing_measured_is_no_supply() {
    assert!(measured(held(), &machine(), &[], None).is_none());
    assert!(host(&[]).is_none());
}

fn times(most_ns: Ns) -> Times {
    Times {
        bins: vec![(most_ns + 1, 100)],
        most_ns,
    }
}

fn by_freezer(lengths: &[Ns], late_ns: Ns, overrun_ns: Ns) -> MeasuredSupply {
    let mut round = round(lengths);
    round.reacted = Some(Reacted {
        late: times(late_ns),
        overruns: times(overrun_ns),
        noticed: Some(true),
        cost: Some(Share {
            cpu_ns: 16,
            of_ns: 1_000,
        }),
        takeovers: 0,
        errors: 0,
    });
    let held = Budget {
        enforcer: Enforcer::Freezer,
        ..held()
    };
    measured(held, &machine(), &[round], None).unwrap()
}

#[test]
fn what_the_freezer_supplies_is_bounded_by_how_exact_it_was() {
    let exact = [3, 7, 3, 7, 3, 7, 3, 7, 3, 7, 3];
    let found = by_freezer(&exact, 100_000, 300_000);
    assert_eq!(found.by_tick, None);
    let bound = found.by_reaction.unwrap();
    // P - Q + L + O P / Q.
    assert_eq!(
        (bound.supplied, bound.per, bound.delay_ns),
        (3 * MS, 10 * MS, 8_100_000)
    );
    assert_eq!(bound.kept, Kept::Held);
    assert!(
        found
            .counted_on()
            .iter()
            .all(|line| line.2 >= bound.delay_ns)
    );
    assert_eq!(found.reaction.as_ref().unwrap().textbook_gap_ns, 14_400_000);
    // Assumed without a measurement.
    assert_eq!(found.cautious.unwrap().kept, Kept::Held);
    // A gap that no such reaction explains.
    let gap = by_freezer(&[3, 7, 3, 27, 3, 7, 3, 7, 3], 100_000, 300_000);
    assert!(matches!(gap.by_reaction.unwrap().kept, Kept::Broken { .. }));
    let late = by_freezer(&exact, 11 * MS, 0);
    assert_eq!((late.by_reaction, late.counted_on()), (None, Vec::new()));
    assert!(!late.points.is_empty(), "what was seen stays");
}
