//! What Linux says of reservations beside what is true.

use analysis::linux::Reaction;
use model::Enforcer;
use model::taskset::TaskSet;

use super::*;
use crate::feasibility::study;
use crate::style::Style;

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
    admission(&set, &study(&set, false), limit, Reaction::MEASURED).expect("there are reservations")
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
            .any(|note| note.contains("bounds what a cell takes"))
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
            "below the least of 1024 ns",
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
    // What no cell misses is not said to be missed, and the verdict says what it rests on.
    let study = study(&cells("", &[short, short]), false);
    let shown = crate::feasibility::feasibility_table(&study, Style::default());
    for part in [
        "verdict every deadline holds, if every reservation is supplied",
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
        admission(&set, &study(&set, false), RtLimit::KERNEL, reaction).expect("a reservation")
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
    // Alone on its cpu the cell would make it: what is not shown is not called missed.
    assert_eq!(late.standing, Standing::AdmittedUndecided);
    assert!(
        late.notes[2].starts_with("cell c: 28.80 % of its cpu after "),
        "{:?}",
        late.notes
    );
    // A lateness beyond the budget leaves nothing, and without notice a budget more may be missing.
    assert!(of("27ms", "3ms/3ms/noticed").notes[2].contains("nothing of its budget is certain"));
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
