//! Tests of the kernel's answer next to the verdict of the analysis.

use model::Enforcer;
use model::taskset::{Policy, TaskSet};
use record::supply::{Between, Budget, Kept, Machine, MeasuredSupply, Promise, Share, SupplyPoint};

use super::*;
use crate::study;
use text::style::Style;

fn cells(top: &str, reservations: &[&str]) -> TaskSet {
    let mut text = format!("schema = 1\n{top}\n");
    for (place, reservation) in reservations.iter().enumerate() {
        text += &format!(
            "[[cell]]\nname = \"c{place}\"\nreservation = {{ {reservation} }}\n\
             [[cell.task]]\nname = \"t\"\nwcet = \"1us\"\nperiod = \"20s\"\n"
        );
    }
    TaskSet::parse("x", &text).expect("a task set")
}

fn asked(set: &TaskSet, enforcer: Enforcer, limit: RtLimit) -> Admission {
    let mut set = set.clone();
    set.enforcer = Some(enforcer);
    admission(&set, &study(&set, false), limit, Known::NOTHING).expect("there are reservations")
}

/// `budget/period` in ms.
fn of(top: &str, reservations: &[&str], enforcer: Enforcer) -> Admission {
    let texts: Vec<String> = reservations
        .iter()
        .map(|text| {
            let (budget, period) = text.split_once('/').expect("budget/period");
            format!("budget = \"{budget}ms\", period = \"{period}ms\"")
        })
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    asked(&cells(top, &texts), enforcer, RtLimit::KERNEL)
}

#[test]
fn feasible_is_not_admitted_and_admitted_is_not_feasible() {
    let standing = |reservations: &[&str]| of("", reservations, Enforcer::Deadline).standing;
    assert_eq!(standing(&["45/100", "44/100"]), Standing::Guaranteed);
    // 91 % is below 95 %, but the fair server has 5 %.
    assert_eq!(
        standing(&["45/100", "46/100"]),
        Standing::RefusedThoughFeasible
    );
    assert_eq!(
        standing(&["60/100", "46/100"]),
        Standing::RefusedAndNotSupplied
    );
    // The kernel divides by the period, and the budgets are due in a tenth of it.
    let short = "budget = \"6ms\", period = \"100ms\", deadline = \"10ms\"";
    let found = asked(
        &cells("", &[short, short]),
        Enforcer::Deadline,
        RtLimit::KERNEL,
    );
    assert_eq!(found.standing, Standing::AdmittedThoughNotSupplied);
    assert!(found.standing.differs() && found.cpus_assumed);
    let text = admission_text(&found, Style::default());
    assert!(
        text.contains("admitted by the kernel, though the reservations cannot all be supplied"),
        "{text}"
    );
}

#[test]
fn the_kernel_numbers_are_the_reference() {
    // n x 10 ms every 100 ms on two cpus without fair servers: 19 are admitted (vector linux-01); with them 18.
    let found = of("", &["10/100"; 9], Enforcer::Deadline);
    assert_eq!(found.bounds[0].asked, 9 * 104_857);
    assert_eq!(found.bounds[0].available, Some(996_147 - 52_428));
    assert!(found.admitted);
    assert!(!of("", &["10/100"; 10], Enforcer::Deadline).admitted);
    // Vector linux-04: 0.9 of each cpu is left for HCBS; 8.75 every 10 ms fits and 0.5 every 10 ms more does not.
    let found = of("cpus = 2", &["8.75/10", "0.5/10"], Enforcer::Hcbs);
    assert_eq!(found.bounds[0].available, Some(943_718));
    assert_eq!(found.bounds[0].asked, 917_504 + 52_428);
    assert_eq!(found.bounds[0].refusals.len(), 1);
    assert!(
        found.bounds[0].refusals[0].starts_with("cell c1: "),
        "{found:?}"
    );
    let writes: Vec<_> = found
        .writes
        .iter()
        .map(|w| (w.file.as_str(), w.value.as_str()))
        .collect();
    assert_eq!(
        writes,
        [
            ("/sys/fs/cgroup/cpu.rt.max", "900000 1000000"),
            ("/sys/fs/cgroup/c0/cpu.rt.max", "8750 10000"),
        ]
    );
}

#[test]
fn each_cpu_has_its_own_bound_where_the_kernel_has_one() {
    // One cell on each of two cpus: SCHED_DEADLINE counts them apart, groups count them together.
    let two = ["60/100", "60/100"];
    let deadline = of("cpus = 2", &two, Enforcer::Deadline);
    assert_eq!(deadline.standing, Standing::Guaranteed);
    assert_eq!(deadline.bounds.len(), 2);
    for enforcer in [Enforcer::RtCgroup, Enforcer::Hcbs] {
        let groups = of("cpus = 2", &two, enforcer);
        assert_eq!(
            groups.standing,
            Standing::RefusedThoughFeasible,
            "{groups:?}"
        );
        assert!(
            groups
                .notes
                .iter()
                .any(|note| note.contains("on every cpu"))
        );
    }
    // Neither cpu of its own has room for 92 %, and the two together do.
    let found = of("cpus = 2", &["92/100", "10/100"], Enforcer::Deadline);
    assert_eq!(found.standing, Standing::RefusedThoughFeasible);
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("one root domain")),
        "{found:?}"
    );
}

#[test]
fn a_reservation_over_several_cpus_is_a_share_on_each() {
    let top = |cpus: &str| {
        let set = format!(
            "schema = 1\n{cpus}\n[[cell]]\nname = \"wide\"\npolicy = \"global-edf\"\n\
             reservation = {{ budget = \"12ms\", period = \"10ms\", cpus = 2 }}\n\
             [[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"1s\"\n\
             [[cell]]\nname = \"thin\"\nreservation = {{ budget = \"5ms\", period = \"10ms\" }}\n\
             [[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"1s\"\n"
        );
        TaskSet::parse("x", &set).expect("a task set")
    };
    let six = 629_145;
    let found = asked(&top("cpus = 3"), Enforcer::Deadline, RtLimit::KERNEL);
    assert_eq!(found.standing, Standing::Guaranteed);
    let ratios: Vec<u64> = found.bounds.iter().map(|bound| bound.asked).collect();
    assert_eq!(ratios, [six, six, 1 << 19]);
    // On two cpus each has a share, and no room for the other; together they are 1.7 of 1.8.
    let found = asked(&top("cpus = 2"), Enforcer::Deadline, RtLimit::KERNEL);
    assert_eq!(found.bounds[0].of, "2 cpus");
    assert_eq!(found.bounds[0].asked, 2 * six + (1 << 19));
    assert_eq!(found.standing, Standing::AdmittedUndecided);
    let found = asked(&top(""), Enforcer::Hcbs, RtLimit::KERNEL);
    assert_eq!(found.writes[1].value, "6000 10000");
    assert_eq!(found.standing, Standing::RefusedAndNotSupplied);
}

#[test]
fn the_placement_is_one_that_the_kernel_admits_if_there_is_one() {
    // First fit puts 50 and 45 on one cpu, which EDF bears and the kernel does not.
    let found = of("cpus = 2", &["50/100", "45/100"], Enforcer::Deadline);
    assert_eq!(found.standing, Standing::Guaranteed);
}

#[test]
fn the_period_is_written_before_the_runtime() {
    let found = of("", &["1500/2000", "5/50"], Enforcer::RtCgroup);
    let writes: Vec<_> = found
        .writes
        .iter()
        .map(|w| (w.file.as_str(), w.value.as_str()))
        .collect();
    assert_eq!(
        writes,
        [
            ("/sys/fs/cgroup/cpu/c0/cpu.rt_period_us", "2000000"),
            ("/sys/fs/cgroup/cpu/c0/cpu.rt_runtime_us", "1500000"),
            ("/sys/fs/cgroup/cpu/c1/cpu.rt_period_us", "50000"),
            ("/sys/fs/cgroup/cpu/c1/cpu.rt_runtime_us", "5000"),
        ]
    );
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("only limits what a cell takes"))
    );
    let odd = cells("", &["budget = \"1500ns\", period = \"1ms\""]);
    for enforcer in [Enforcer::RtCgroup, Enforcer::Hcbs] {
        let found = asked(&odd, enforcer, RtLimit::KERNEL);
        assert!(
            found.bounds[0].refusals[0].contains("microseconds"),
            "{found:?}"
        );
    }
}

#[test]
fn what_the_kernel_takes_for_one_thread_is_checked() {
    for (reservation, why) in [
        (
            "budget = \"20us\", period = \"50us\"",
            "a period of 50000 ns",
        ),
        (
            "budget = \"1us\", period = \"1ms\"",
            "below the minimum of 1024 ns",
        ),
        (
            "budget = \"1s\", period = \"5s\"",
            "a period of 5000000000 ns",
        ),
    ] {
        let found = asked(
            &cells("", &[reservation]),
            Enforcer::Deadline,
            RtLimit::KERNEL,
        );
        assert!(found.bounds[0].refusals[0].contains(why), "{found:?}");
        assert_eq!(found.standing, Standing::RefusedThoughFeasible);
    }
}

#[test]
fn on_one_cpu_there_is_no_placement_to_look_for() {
    let short = "budget = \"3ms\", period = \"10ms\", deadline = \"4ms\"";
    let found = asked(
        &cells("cpus = 1", &[short, short]),
        Enforcer::Deadline,
        RtLimit::KERNEL,
    );
    assert_eq!(found.standing, Standing::AdmittedThoughNotSupplied);
    assert_eq!((&*found.bounds[0].of, &*found.notes), ("cpu 0", &[][..]));
    // A deadline that no cell misses is not said to be missed, and the verdict says on which condition it rests.
    let study = study(&cells("", &[short, short]), false);
    let shown = crate::feasibility_table(&study, Style::default());
    for part in [
        "verdict every deadline holds if every reservation is supplied",
        "linux   admitted by the kernel, though the reservations cannot all be supplied",
    ] {
        assert!(shown.contains(part), "`{part}` is not in\n{shown}");
    }
}

#[test]
fn another_limit_is_another_answer() {
    let set = cells("", &["budget = \"92ms\", period = \"100ms\""]);
    let by =
        |limit: &str| asked(&set, Enforcer::Deadline, limit.parse().expect("a limit")).admitted;
    assert!(!by("950ms/1s"));
    assert!(by("980ms/1s"));
    assert!(by("none"));
    for bad in ["", "1s", "2s/1s", "0s/0s", "1/2", "100ns/1s"] {
        assert!(bad.parse::<RtLimit>().is_err(), "{bad}");
    }
}

#[test]
fn no_reservation_is_no_question() {
    let text = "schema = 1\n[[cell]]\nname = \"c\"\n[[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"1s\"\n";
    assert_eq!(
        study(&TaskSet::parse("x", text).expect("a task set"), false).linux,
        None
    );
}

#[test]
fn what_the_freezer_supplies_is_less_than_the_textbook_by_its_reaction() {
    let set = |period: &str| {
        let text = format!(
            "schema = 1\n[[cell]]\nname = \"c\"\nreservation = {{ budget = \"3ms\", period = \"10ms\" }}\n\
             [[cell.task]]\nname = \"t\"\nwcet = \"3ms\"\nperiod = \"{period}\"\n"
        );
        let mut set = TaskSet::parse("x", &text).expect("a task set");
        set.enforcer = Some(Enforcer::Freezer);
        set
    };
    let of = |period, reaction: &str| {
        let set = set(period);
        let reaction = reaction.parse::<ReactionText>().expect("a reaction").0;
        let known = Known {
            reaction,
            ..Known::NOTHING
        };
        admission(&set, &study(&set, false), RtLimit::KERNEL, known).expect("a reservation")
    };
    // 3 ms within 24 ms by the textbook; behind others, with 0.1 ms late and 0.3 ms beyond, some 2 ms later.
    assert_eq!(
        of("24ms", "0us/0us/noticed").standing,
        Standing::AdmittedUndecided
    );
    assert_eq!(
        of("27ms", "100us/300us/noticed").standing,
        Standing::GuaranteedByReaction
    );
    let late = of("25ms", "100us/300us/noticed");
    // Alone on its cpu the cell would make it: a deadline not shown to hold is not called missed.
    assert_eq!(late.standing, Standing::AdmittedUndecided);
    assert!(
        late.notes[2].starts_with("cell c: 28.80 % of its cpu after "),
        "{:?}",
        late.notes
    );
    // A lateness beyond the budget leaves nothing, and without notice a budget more may be missing.
    assert!(of("27ms", "3ms/3ms/noticed").notes[2].contains("none of its budget is guaranteed"));
    assert_eq!(
        of("27ms", "100us/300us").standing,
        Standing::AdmittedUndecided
    );
    for bad in ["", "1us", "2us/1us", "1us/2us/seen", "-1us/1us"] {
        assert!(bad.parse::<ReactionText>().is_err(), "{bad}");
    }
}

/// Three such cells are 90 % of the cpu, and the thread that holds them has no more than the rest of the 95 %.
#[test]
fn what_the_freezers_thread_takes_counts_towards_the_kernels_limit() {
    let of = |budget: &str, period: &str| {
        let own = format!("budget = \"{budget}\", period = \"{period}\"");
        let cells = cells("cpus = 1", &[own.as_str(), &own, &own]);
        asked(&cells, Enforcer::Freezer, RtLimit::KERNEL)
    };
    assert!(!of("300us", "1ms").admitted);
    let wide = of("30ms", "100ms");
    assert!(wide.admitted);
    // 30.25 ms of 100 ms each.
    assert_eq!(wide.bounds[0].asked, 3 * ((3025 << 20) / 10_000));
}

#[test]
fn the_kernel_stops_what_the_freezer_lets_through_beyond_its_limit() {
    let reservations = [
        "budget = \"60ms\", period = \"100ms\"",
        "budget = \"40ms\", period = \"100ms\"",
    ];
    let found = asked(
        &cells("cpus = 1", &reservations),
        Enforcer::Freezer,
        RtLimit::KERNEL,
    );
    assert!(!found.admitted);
    assert!(
        found.bounds[0].refusals[0].starts_with("cell c1: "),
        "{:?}",
        found.bounds
    );
    let text = admission_text(&found, Style::default());
    assert!(
        text.contains("budgets by the clock and the freezer (cgroup v2)"),
        "{text}"
    );
}

const MS: u64 = 1_000_000;

/// 3 ms every 10 ms, of which 29 % came after so many ms.
fn measured(enforcer: Enforcer, delay_ms: u64) -> MeasuredSupply {
    let delay_ns = delay_ms * MS;
    let one = Between::of(vec![delay_ns]).expect("one figure");
    MeasuredSupply {
        held: Budget {
            enforcer,
            budget_ns: 3 * MS,
            period_ns: 10 * MS,
        },
        machine: Machine {
            tick_hz: Some(250),
            deadline_by_timer: Some(false),
            ..Machine::here()
        },
        rounds: 1,
        starts: 9,
        points: vec![SupplyPoint {
            supplied: 29,
            per: 100,
            delay_ns,
        }],
        measured_to_ns: 1_000 * MS,
        delay_ns: one,
        longest_gap_ns: one,
        billed: None,
        received: Share {
            cpu_ns: 29,
            of_ns: 100,
        },
        periods: None,
        textbook: Promise {
            supplied: 3,
            per: 10,
            delay_ns: 14 * MS,
            kept: Kept::Held,
        },
        by_tick: None,
        by_reaction: None,
        reaction: None,
        cautious: None,
        least: Vec::new(),
    }
}

/// Cells of such a budget every 10 ms, each with a task of 1 ms in such a period.
fn reserving(cells: &[(&str, &str)]) -> TaskSet {
    let mut text = "schema = 1\n".to_owned();
    for (place, (budget, period)) in cells.iter().enumerate() {
        text += &format!(
            "[[cell]]\nname = \"c{place}\"\nreservation = {{ budget = \"{budget}\", period = \"10ms\" }}\n\
             [[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"{period}\"\n"
        );
    }
    TaskSet::parse("x", &text).expect("a task set")
}

fn with(set: &TaskSet, enforcer: Enforcer, measured: &[MeasuredSupply]) -> Admission {
    let mut set = set.clone();
    set.enforcer = Some(enforcer);
    let known = Known {
        measured,
        ..Known::NOTHING
    };
    admission(&set, &study(&set, false), RtLimit::KERNEL, known).expect("a reservation")
}

/// The note on a cell.
fn said<'a>(found: &'a Admission, cell: &str) -> &'a str {
    let begin = format!("cell {cell}: ");
    let note = found.notes.iter().find(|note| note.starts_with(&begin));
    note.expect("what was measured of it")
}

#[test]
fn what_was_measured_of_a_reservation_counts_as_well_as_the_textbook() {
    let one = reserving(&[("3ms", "30ms")]);
    for enforcer in [Enforcer::Hcbs, Enforcer::RtCgroup, Enforcer::Deadline] {
        let with = |delay_ms| with(&one, enforcer, &[measured(enforcer, delay_ms)]);
        // 1 ms at 29 % takes 3.45 ms behind the delay.
        let good = with(26);
        assert_eq!(good.standing, Standing::Guaranteed, "{good:?}");
        let said = said(&good, "c0");
        assert!(said.contains("29.00 % of its cpu after 26.0"), "{said}");
        assert!(
            said.ends_with("measured; with that, every deadline holds"),
            "{said}"
        );
        assert_eq!(with(27).standing, Standing::AdmittedUndecided);
    }
    let (hcbs, supply) = (Enforcer::Hcbs, [measured(Enforcer::Hcbs, 20)]);
    assert_eq!(with(&one, hcbs, &[]).standing, Standing::Guaranteed);
    let of = |cells: &[(&str, &str)]| with(&reserving(cells), hcbs, &supply);
    // A budget that nobody has measured is not shown to hold, nor are windows longer than any that was.
    let other = of(&[("4ms", "30ms")]);
    assert_eq!(other.standing, Standing::AdmittedUndecided);
    assert!(said(&other, "c0").contains("did not measure 4ms every 10ms with hcbs"));
    assert_eq!(of(&[("3ms", "2s")]).standing, Standing::AdmittedUndecided);
    // Beside another one on its cpu its budget comes up to 7 ms later.
    let beside = of(&[("3ms", "30ms"), ("3ms", "31ms")]);
    assert_eq!(beside.standing, Standing::AdmittedUndecided, "{beside:?}");
    let slow = of(&[("3ms", "31ms"), ("3ms", "31ms")]);
    assert_eq!(slow.standing, Standing::Guaranteed, "{slow:?}");
    // A delay below the textbook's 14 ms guarantees nothing that the textbook refuses.
    let tight = with(&reserving(&[("3ms", "12ms")]), hcbs, &[measured(hcbs, 7)]);
    assert_eq!(tight.standing, Standing::AdmittedThoughInfeasible);
    let said = said(&tight, "c0");
    assert!(
        said.ends_with("measured; with that, every deadline holds"),
        "{said}"
    );
}

/// Two cells of 4 ms every 10 ms by a tick of 4 ms: exact EDF supplies both, and one that runs a tick too long leaves the other 2 ms.
#[test]
fn a_budget_that_others_may_put_off_beyond_its_period_is_not_counted_on() {
    let both = reserving(&[("4ms", "1s"), ("4ms", "1s")]);
    let supply = |enforcer, by_timer| {
        let mut one = measured(enforcer, 20);
        one.held.budget_ns = 4 * MS;
        one.machine.deadline_by_timer = Some(by_timer);
        [one]
    };
    for (enforcer, by_timer, standing) in [
        (Enforcer::Hcbs, false, Standing::AdmittedUndecided),
        // The timer is for threads of SCHED_DEADLINE.
        (Enforcer::Hcbs, true, Standing::AdmittedUndecided),
        (Enforcer::Deadline, false, Standing::AdmittedUndecided),
        (Enforcer::Deadline, true, Standing::Guaranteed),
        (Enforcer::RtCgroup, true, Standing::AdmittedUndecided),
    ] {
        let found = with(&both, enforcer, &supply(enforcer, by_timer));
        assert_eq!(found.standing, standing, "{enforcer:?}, {by_timer}");
        let why = "is not shown to get its 4ms in every 10ms";
        let is_told = ["c0", "c1"].map(|cell| said(&found, cell).contains(why));
        assert_eq!(is_told, [standing != Standing::Guaranteed; 2], "{found:?}");
        let alone = with(
            &reserving(&[("4ms", "1s")]),
            enforcer,
            &supply(enforcer, by_timer),
        );
        assert_eq!(alone.standing, Standing::Guaranteed, "{enforcer:?}");
    }
}

/// Of two groups the more urgent one has its budget despite the other; where no priority is given, either may come first.
#[test]
fn a_group_waits_for_those_that_are_not_below_it() {
    let set = |servers: [&str; 2]| {
        let cells = [0, 1].map(|place| {
            format!(
                "[[cell]]\nname = \"c{place}\"\nreservation = {{ budget = \"3ms\", period = \"10ms\" }}\n{}\
                 [[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"1s\"\n",
                servers[place]
            )
        });
        let text = format!("schema = 1\n{}{}", cells[0], cells[1]);
        TaskSet::parse("x", &text).expect("a task set")
    };
    let ordered = set([
        "server = \"deferrable\"\npriority = 2\n",
        "server = \"deferrable\"\npriority = 1\n",
    ]);
    let supply = [measured(Enforcer::RtCgroup, 20)];
    let found = |set: &TaskSet| {
        let found = with(set, Enforcer::RtCgroup, &supply);
        assert_eq!(found.standing, Standing::AdmittedUndecided);
        ["c0", "c1"].map(|cell| said(&found, cell).contains("is not shown to get"))
    };
    assert_eq!(found(&ordered), [false, true]);
    assert_eq!(found(&set(["", ""])), [true, true]);
}

#[test]
fn lines_that_are_taken_to_go_on_are_said_to_be() {
    let mut set = reserving(&[("3ms", "1s")]);
    let supply = [measured(Enforcer::Hcbs, 20)];
    let goes_on = |set: &TaskSet| {
        let found = with(set, Enforcer::Hcbs, &supply);
        assert_eq!(found.standing, Standing::Guaranteed);
        said(&found, "c0")
            .contains("in windows of up to 1 s; longer windows are assumed to be alike")
    };
    assert!(!goes_on(&set));
    set.cells[0].policy = Policy::Edf;
    assert!(goes_on(&set));
    let mut set = reserving(&[("3ms", "500ms")]);
    set.cells[0].tasks[0].deadline = model::Duration::from_ns(1_000_000_000);
    assert!(goes_on(&set));
}
