//! The rule when another process continues it, or the budget changes.

use super::*;
use proptest::prelude::*;

const US: i64 = 1_000;

fn reservations() -> impl Strategy<Value = Reservation> {
    (100i64..50_000, 1i64..=1000).prop_map(|(period, permille)| {
        let budget = (period * permille / 1000).max(1);
        Reservation::new(budget * US, period * US).unwrap()
    })
}

fn notices() -> impl Strategy<Value = Notice> {
    prop_oneof![Just(Notice::Clock), Just(Notice::Use)]
}

proptest! {
    /// A server that takes over the state decides like the previous one, at every later look.
    #[test]
    fn a_state_is_all_that_a_server_knows(
        reservation in reservations(),
        notice in notices(),
        grid in -100_000i64..100_000,
        looks in prop::collection::vec((0i64..60_000, 0i64..=1000), 1..40),
        dies_at in 0usize..40,
    ) {
        let mut one = Server::new(reservation, notice, grid, 0, 0);
        let mut other = one.clone();
        let (mut now, mut used) = (0, 0);
        for (at, (step, share)) in looks.into_iter().enumerate() {
            now += step * US;
            used += step * US * share / 1000;
            prop_assert_eq!(one.look(now, used), other.look(now, used));
            // Killed before it could act: the next one looks again at once, and decides the same.
            let again = other.clone().look(now, used);
            prop_assert_eq!(again.thawed, other.left_ns() > 0);
            prop_assert_eq!(again.ended, None);
            if at == dies_at {
                other = Server::resume(reservation, notice, grid, other.state());
            }
        }
    }

    /// A look that is lost with its keeper, before it was noted, is a late one: no use is forgotten.
    #[test]
    fn what_is_used_while_nobody_looks_is_owed(
        reservation in reservations(),
        notice in notices(),
        alone in 1i64..100_000,
    ) {
        let mut server = Server::new(reservation, notice, 0, 0, 0);
        server.look(0, 0);
        let noted = server.state();
        // This look is taken and lost; the group runs on while nobody holds it.
        server.look(reservation.budget_ns(), reservation.budget_ns());
        let until = reservation.budget_ns() + alone * US;
        let mut next = Server::resume(reservation, notice, 0, noted);
        next.look(until, until);
        // From then on it wants the cpu whenever it may: it gets its share, less its use beyond it.
        let (mut now, mut used) = (until, until);
        for _ in 0..10_000 {
            let said = next.look(now, used);
            let due = said.look_at_ns.unwrap_or(now + 1);
            if said.thawed {
                used += due - now;
            }
            now = due;
        }
        let periods = now / reservation.period_ns() + 1;
        let most = periods * reservation.budget_ns() + next.coarseness_ns();
        prop_assert!(used <= most.max(until), "{used} of {most} in {now}");
    }

    /// However long a group ran while nobody held it: it is thawed within five periods, owes the rest, and does not owe the waived part.
    #[test]
    fn what_is_used_while_nobody_holds_it_is_owed_up_to_a_few_budgets(
        reservation in reservations(),
        notice in notices(),
        alone in 1i64..100_000_000,
    ) {
        let mut server = Server::new(reservation, notice, 0, 0, 0);
        let until = alone * US;
        server.look(until, until);
        let owed = -server.left_ns();
        let waived = server.waive();
        prop_assert_eq!(-server.left_ns(), owed - waived);
        prop_assert_eq!(waived, (owed - MOST_OWED * reservation.budget_ns()).max(0));
        prop_assert_eq!(server.waive(), 0);
        let said = server.look(until, until);
        prop_assert_eq!(said.thawed, owed < 0);
        if !said.thawed {
            let back = said.look_at_ns.unwrap();
            prop_assert!(back - until <= (MOST_OWED + 1) * reservation.period_ns());
            prop_assert!(server.look(back, until).thawed);
        }
    }

    /// For any changes of a group's budget, at any time: nothing is given at once, and the next budget comes no sooner after
    /// the last one than the new period is long.
    #[test]
    fn a_change_gives_nothing_at_once(
        from in reservations(),
        changes in prop::collection::vec((1i64..100_000, reservations()), 1..8),
        notice in notices(),
    ) {
        let mut server = Server::new(from, notice, 0, 0, 0);
        let (mut now, mut used) = (0i64, 0i64);
        for (after, reservation) in changes {
            // It wants the cpu all the time.
            let until = now + after * US;
            let (began, used_before) = (now, used);
            let left_before = server.left_ns().max(0);
            while now < until {
                let said = server.look(now, used);
                let due = said.look_at_ns.unwrap_or(now + FIRST_USE_NS).min(until);
                used += if said.thawed { due - now } else { 0 };
                now = due;
            }
            let held = server.reservation();
            let periods = (now - began) / held.period_ns() + 1;
            let most = left_before + periods * held.budget_ns() + server.coarseness_ns();
            prop_assert!(used - used_before <= most, "{} of {most}", used - used_before);
            server.look(now, used);
            let (left, end) = (server.left_ns(), server.period_end_ns());
            server.change(reservation, now);
            prop_assert_eq!(server.left_ns(), left.min(reservation.budget_ns()));
            let last = end.unwrap() - held.period_ns();
            let next = server.period_end_ns().unwrap();
            prop_assert!(next > now && next - last >= reservation.period_ns());
            prop_assert_eq!(next.rem_euclid(reservation.period_ns()), 0);
        }
    }
}

#[test]
fn a_change_takes_effect_with_the_next_period() {
    let ms = |ms: i64| ms * 1_000 * US;
    let of = |budget, period| Reservation::new(ms(budget), ms(period)).unwrap();
    let mut server = Server::new(of(3, 10), Notice::Clock, 0, 0, 0);
    server.look(ms(1), ms(1));
    // Less: the rest is cut at once. The period of 0 to 10 ms had its budget; the next is 5 ms later at the earliest.
    server.change(of(1, 5), ms(1));
    assert_eq!(server.left_ns(), ms(1));
    assert_eq!(server.period_end_ns(), Some(ms(5)));
    // More: with the next period, which begins at a multiple of 8 ms, 8 ms after the last budget or later.
    server.look(ms(2), ms(2));
    server.change(of(6, 8), ms(2));
    assert_eq!((server.left_ns(), server.period_end_ns()), (0, Some(ms(8))));
    assert_eq!(server.look(ms(8), ms(2)).look_at_ns, Some(ms(14) + 10_000));
    // A debt stays one.
    server.look(ms(16), ms(12));
    let owed = server.left_ns();
    server.change(of(1, 4), ms(16));
    assert!(server.left_ns() <= owed.min(ms(1)));
}
