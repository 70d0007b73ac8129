//! Studies of times and sets at the ends of the range: an answer or "undecided", never a crash, never a wrong yes.

use std::fmt::Write;

use timecell_feasibility::{Outcome, Style, feasibility_table, study};

use crate::set;

/// C, T, D, J, B in ns.
type Times = [u64; 5];

/// The longest time, 36 years.
const LONGEST: u64 = 1 << 60;

/// The point of the row; the tasks; budget and period of the reservation; the outcomes for fixed priorities and for EDF.
type Row = (
    &'static str,
    Vec<Times>,
    Option<(u64, u64)>,
    Outcome,
    Outcome,
);

const HOLDS: Outcome = Outcome::Holds;
const FAILS: Outcome = Outcome::Fails;

/// An implicit deadline, without jitter and blocking.
const fn plain(wcet: u64, period: u64) -> Times {
    [wcet, period, period, 0, 0]
}

const fn due(wcet: u64, period: u64, deadline: u64) -> Times {
    [wcet, period, deadline, 0, 0]
}

fn file(policy: &str, reservation: Option<(u64, u64)>, tasks: &[Times]) -> String {
    let mut text = format!("schema = 1\n[[cell]]\nname = \"cell\"\npolicy = \"{policy}\"\n");
    if let Some((budget, period)) = reservation {
        let line =
            format!("reservation = {{ budget = \"{budget}ns\", period = \"{period}ns\" }}\n");
        text.push_str(&line);
    }
    for (index, [wcet, period, deadline, jitter, blocking]) in tasks.iter().enumerate() {
        write!(
            text,
            "[[cell.task]]\nname = \"{index}\"\nwcet = \"{wcet}ns\"\nperiod = \"{period}ns\"\n\
             deadline = \"{deadline}ns\"\njitter = \"{jitter}ns\"\nblocking = \"{blocking}ns\"\n"
        )
        .unwrap();
    }
    text
}

#[test]
fn every_answer_is_the_right_one() {
    let whole = None;
    let half = Some((500, 1_000));
    let third = LONGEST / 3;
    let table: [Row; 25] = [
        (
            "more work than a period, due in the second",
            vec![due(11, 10, 100)],
            whole,
            FAILS,
            FAILS,
        ),
        (
            "one task for 36 years",
            vec![plain(LONGEST, LONGEST)],
            whole,
            HOLDS,
            HOLDS,
        ),
        (
            "36 years of which half is supplied",
            vec![plain(LONGEST, LONGEST)],
            half,
            FAILS,
            FAILS,
        ),
        (
            "two that fill 36 years",
            vec![plain(LONGEST / 2, LONGEST); 2],
            whole,
            HOLDS,
            HOLDS,
        ),
        (
            "three thirds and a ns",
            vec![
                plain(third, LONGEST),
                plain(third, LONGEST),
                plain(third + 2, LONGEST),
            ],
            whole,
            FAILS,
            FAILS,
        ),
        (
            "2 ns beside 36 years",
            vec![plain(1, 2), plain(LONGEST / 2, LONGEST)],
            whole,
            HOLDS,
            HOLDS,
        ),
        (
            "2 ns beside 36 years, a ns too much",
            vec![plain(1, 2), plain(LONGEST / 2 + 1, LONGEST)],
            whole,
            FAILS,
            FAILS,
        ),
        (
            "full to the last ns",
            vec![plain(1, 2), plain(1, 4), plain(1, 4)],
            whole,
            HOLDS,
            HOLDS,
        ),
        (
            "full, and due early",
            vec![due(1, 2, 1), due(2, 4, 4)],
            whole,
            HOLDS,
            HOLDS,
        ),
        (
            "full, and one due a ns too early",
            vec![due(1, 2, 1), due(2, 4, 3)],
            whole,
            FAILS,
            FAILS,
        ),
        (
            "full, periods without a common divisor",
            vec![due(1, 2, 5), due(1, 3, 7), due(1, 6, 100)],
            whole,
            HOLDS,
            HOLDS,
        ),
        (
            "full, late deadlines, a ns of jitter",
            vec![[1, 2, 1_000, 1, 0], due(1, 2, 1_000)],
            whole,
            HOLDS,
            HOLDS,
        ),
        (
            "above full by 2^-60",
            vec![
                due(LONGEST / 2, LONGEST, LONGEST),
                due(LONGEST / 2 + 1, LONGEST, LONGEST),
            ],
            whole,
            FAILS,
            FAILS,
        ),
        (
            "above full by a thousandth, seen late",
            vec![due(501, 1_000, 3_000), due(1, 2, 3_000)],
            whole,
            FAILS,
            FAILS,
        ),
        (
            "a rate that is all used",
            vec![plain(1, 2_000), plain(999, 2_000)],
            half,
            FAILS,
            FAILS,
        ),
        (
            "more than the rate",
            vec![due(501, 1_000, 3_000)],
            half,
            FAILS,
            FAILS,
        ),
        (
            "jitter beyond the period",
            vec![[1, 10, 100, 55, 0], plain(2, 20)],
            whole,
            HOLDS,
            HOLDS,
        ),
        (
            "jitter beyond the deadline",
            vec![[1, 10, 10, 55, 0], plain(2, 20)],
            whole,
            FAILS,
            FAILS,
        ),
        (
            "a burst of 100,000 jobs",
            vec![[1, 10, 1 << 30, 1 << 20, 0], plain(1 << 26, 1 << 30)],
            whole,
            HOLDS,
            HOLDS,
        ),
        (
            "blocking of 36 years",
            vec![[1, 10, 10, 0, LONGEST], plain(1, 20)],
            whole,
            FAILS,
            FAILS,
        ),
        (
            "blocking and jitter of 36 years",
            vec![[1, LONGEST, LONGEST, LONGEST, LONGEST]; 3],
            half,
            FAILS,
            FAILS,
        ),
        (
            "ten orders of magnitude",
            vec![
                plain(1, 4),
                plain(1_000, 10_000),
                plain(1_000_000_000, 10_000_000_000),
                plain(100_000_000_000_000_000, 1_000_000_000_000_000_000),
            ],
            whole,
            HOLDS,
            HOLDS,
        ),
        (
            "a budget of 1 ns in 36 years",
            vec![plain(1, LONGEST)],
            Some((1, LONGEST)),
            FAILS,
            FAILS,
        ),
        (
            "full and due early in a reservation that is a cpu",
            vec![due(1, 2, 1), due(1, 4, 2), plain(1, 4)],
            Some((LONGEST, LONGEST)),
            HOLDS,
            HOLDS,
        ),
        (
            "a reservation that is a cpu",
            vec![plain(1, 3), plain(1, 3), plain(1, 3)],
            Some((LONGEST, LONGEST)),
            HOLDS,
            HOLDS,
        ),
    ];
    for (what, tasks, reservation, fixed, edf) in table {
        for (policy, outcome) in [("fp", fixed), ("edf", edf)] {
            let study = study(&set(&file(policy, reservation, &tasks)), false);
            let shown = feasibility_table(&study, Style::default());
            assert_eq!(
                study.outcome() == Outcome::Undecided,
                shown.contains("undecided: "),
                "{what}, {policy}: {shown}"
            );
            assert_eq!(study.outcome(), outcome, "{what}, {policy}: {shown}");
            if outcome == FAILS {
                let json = serde_json::to_value(&study.cells[0]).unwrap();
                let witness = &json["verdict"]["unschedulable"];
                let [demand, supply] = ["demand", "supply"].map(|key| witness[key].as_u64());
                assert!(
                    demand > supply && supply.is_some(),
                    "{what}, {policy}: {witness}"
                );
            }
        }
    }
}

/// Prime periods from here on: their common multiple has hundreds of digits.
fn primes(from: u64) -> impl Iterator<Item = u64> {
    (from..).filter(|&number| {
        (2..)
            .take_while(|d| d * d <= number)
            .all(|d| number % d != 0)
    })
}

#[test]
fn ten_thousand_tasks() {
    let answer = |tasks: &[Times], policy: &str| {
        let study = study(&set(&file(policy, None, tasks)), false);
        let shown = feasibility_table(&study, Style::default());
        assert!(shown.lines().count() > tasks.len());
        study.outcome()
    };
    for policy in ["fp", "edf"] {
        assert_eq!(answer(&vec![plain(1, 10_000); 10_000], policy), HOLDS);
        assert_eq!(answer(&vec![plain(1, 10_000); 10_001], policy), FAILS);
        let coprime = |wcet: fn(u64) -> u64| -> Vec<Times> {
            let periods = primes(1_000_003).take(50);
            periods
                .map(|period| due(wcet(period), period, period - 1))
                .collect()
        };
        assert_eq!(answer(&coprime(|period| period / 51), policy), HOLDS);
        assert_eq!(answer(&coprime(|period| period / 49), policy), FAILS);
    }
}
