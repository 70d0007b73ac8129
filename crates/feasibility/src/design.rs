//! Choosing reservations, and placing them on cpus.

use analysis::design::{self, Cell, Fit, Placement};
use analysis::least_budget::Periods;
use analysis::linux::Reaction;
use analysis::multi::{Mpr, least_theta};
use analysis::reservation::Periodic;
use analysis::{Ns, Verdict};
use model::Duration;
use model::taskset::{Policy, Refill, Reservation, TaskCell, TaskSet};
use serde::Serialize;

use super::admission::{Admission, RtLimit, admission_text, of_design};
use super::global::within;
use super::judge::{holds, ns, task};
use super::ordered::settled;
use super::study::{Outcome, urgent_first};
use text::grid::{Column, Text, render};
use text::style::{Style, Tone};
use text::units::exact;
use text::words::{clean, plural};

/// Which reservations may be chosen.
#[derive(Debug, Clone, Copy)]
pub struct DesignOptions {
    /// The period of every reservation; `None`: the best from `shortest` on.
    pub period: Option<Duration>,
    /// Shortest period.
    pub shortest: Duration,
    /// Step from one period to the next.
    pub step: Duration,
    /// Budgets are multiples of this.
    pub grid: Duration,
    /// Cpu time that each period costs besides the budget.
    pub overhead: Duration,
    /// The share of each cpu that reservations may take together, in percent.
    pub share_percent: u32,
    /// How a cpu is chosen.
    pub fit: Fit,
    /// The kernel's limit for the admission test.
    pub limit: RtLimit,
    /// The reaction of the freezer.
    pub reaction: Reaction,
}

/// A designed machine.
#[derive(Debug, Clone)]
pub struct Designed {
    /// Holds if every cell has a place; fails if some cell has none; undecided if a search gave up.
    pub outcome: Outcome,
    /// The cells, in the order of the file.
    pub cells: Vec<DesignedCell>,
    /// The cpus.
    pub cpus: Vec<DesignedCpu>,
    /// Whether Linux would admit the reservations that are placed; not part of the outcome.
    pub linux: Option<Admission>,
    /// The set with the reservations that were found.
    pub set: TaskSet,
}

/// The result for one cell.
#[derive(Debug, Clone, Serialize)]
pub struct DesignedCell {
    /// Its name.
    pub name: String,
    /// The cpu it is on.
    pub cpu: Option<usize>,
    /// The number of cpus on which its tasks are scheduled globally, if several.
    pub cpus: Option<u32>,
    /// The least budget, ns; for a cell on several cpus, the sum over them.
    pub budget_ns: Option<Ns>,
    /// The equal share of each of several cpus, ns, rounded up.
    pub budget_on_each_ns: Option<Ns>,
    /// Its period, ns.
    pub period_ns: Option<Ns>,
    /// Whether it misses a deadline even on a whole cpu.
    #[serde(skip)]
    pub hopeless: bool,
    /// Whether it has a place.
    pub outcome: Outcome,
    /// A remark on it.
    pub what: String,
}

/// The load of one cpu.
#[derive(Debug, Clone, Serialize)]
pub struct DesignedCpu {
    /// The names of its cells.
    pub cells: Vec<String>,
    /// Reserved, overhead included, in 10^-9 of the cpu, rounded up.
    pub used_ppb: u64,
    /// Left of the usable share, in 10^-9 of the cpu, rounded down.
    pub left_ppb: u64,
}

/// Finds the reservation of least bandwidth for each cell, and a cpu for each.
///
/// Each reservation is tested once more, as a cell of the file that is printed.
pub fn design(set: &TaskSet, cpus: u32, options: &DesignOptions) -> Designed {
    let plain: Vec<usize> = (0..set.cells.len())
        .filter(|&place| is_plain(set.cells[place].policy))
        .collect();
    let cells: Vec<Cell> = plain
        .iter()
        .map(|&place| cell(&settled(&on_whole_cpu(&set.cells[place])), options))
        .collect();
    let plan = design::design(
        &cells,
        usize::try_from(cpus).unwrap_or(usize::MAX),
        &design::Options {
            shortest_period: ns(options.shortest),
            period_step: ns(options.step),
            grid: ns(options.grid),
            overhead: ns(options.overhead),
            share: (options.share_percent.into(), 100),
            fit: options.fit,
        },
    );
    let mut reserved = TaskSet {
        cpus: Some(cpus),
        refill: Refill::default(),
        enforcer: set.enforcer,
        cells: set.cells.clone(),
    };
    let mut designed = Vec::new();
    let mut placements = plan.cells.iter();
    for (cell, reserved) in set.cells.iter().zip(&mut reserved.cells) {
        reserved.server = None;
        reserved.reservation = None;
        let placement = placements.as_slice().first();
        designed.push(match placement.filter(|_| is_plain(cell.policy)) {
            Some(placement) => {
                placements.next();
                reserved.reservation = found(placement).map(reservation);
                cell_result(&settled(&on_whole_cpu(cell)), placement, reserved, options)
            }
            None => several_cpus(cell, reserved, options),
        });
    }
    let outcomes = designed.iter().map(|cell| cell.outcome);
    let outcome = outcomes.fold(Outcome::Holds, Outcome::worst);
    let on: Vec<Option<usize>> = designed.iter().map(|cell| cell.cpu).collect();
    // Nothing is known about a cell without a place, unless no place could help it.
    let theory = designed.iter().map(|cell| match cell.cpu {
        Some(_) => cell.outcome,
        None if cell.hopeless => Outcome::Fails,
        None => Outcome::Undecided,
    });
    let theory = theory.fold(Outcome::Holds, Outcome::worst);
    let linux = of_design(
        &reserved,
        &on,
        cpus,
        theory,
        (options.limit, options.reaction),
    );
    let name = |&cell: &usize| set.cells[plain[cell]].name.clone();
    let cpus = plan.cpus.iter().map(|load| DesignedCpu {
        cells: load.cells.iter().map(name).collect(),
        used_ppb: load.used_ppb,
        left_ppb: load.left_ppb,
    });
    Designed {
        outcome,
        cells: designed,
        cpus: cpus.collect(),
        linux,
        set: reserved,
    }
}

/// The cell without the reservation in the file.
fn on_whole_cpu(cell: &TaskCell) -> TaskCell {
    TaskCell {
        reservation: None,
        server: None,
        ..cell.clone()
    }
}

/// Whether a cell's reservation is on one cpu and must be placed.
fn is_plain(policy: Policy) -> bool {
    matches!(policy, Policy::Fixed(_) | Policy::Edf)
}

/// The least interface of a cell on several cpus, for the requested period, else the shortest allowed: a longer one never needs
/// less of the cpus. Policies that are analysed on a whole cpu only get none.
fn several_cpus(cell: &TaskCell, reserved: &mut TaskCell, options: &DesignOptions) -> DesignedCell {
    let mut designed = DesignedCell {
        name: cell.name.clone(),
        cpu: None,
        cpus: cell.policy.cpus(),
        budget_ns: None,
        budget_on_each_ns: None,
        period_ns: None,
        hopeless: false,
        outcome: Outcome::Undecided,
        what: String::new(),
    };
    let (Some(within), Some(cpus)) = (within(cell), cell.policy.cpus()) else {
        designed.what = format!(
            "undecided: policy {} is analysed only on a whole cpu, so no reservation is searched for",
            cell.policy.name()
        );
        return designed;
    };
    let period = ns(options.period.unwrap_or(options.shortest));
    let grid = ns(options.grid);
    match least_theta(&urgent_first(cell), period, cpus, grid, within) {
        Ok(Some(found)) => {
            let each = found.equal_share().budget;
            reserved.reservation = Some(over_cpus(&found));
            designed.budget_ns = Some(found.total());
            designed.budget_on_each_ns = Some(each);
            designed.period_ns = Some(found.period());
            designed.what = format!(
                "{} over {}, which is {} every {} on each; it is not placed and not counted on \
                 the cpus below",
                exact(found.total()),
                plural(cpus.into(), "cpu"),
                exact(each),
                exact(found.period())
            );
            if holds(reserved, analysis::STEPS) == Some(true) {
                designed.outcome = Outcome::Holds;
            }
        }
        Ok(None) => {
            designed.what = format!(
                "undecided: with a period of {} the test shows no budget to be enough, not even \
                 all of {}; allow shorter periods, or more cpus",
                exact(period),
                plural(cpus.into(), "cpu")
            );
        }
        Err(error) => designed.what = format!("undecided: {error}"),
    }
    designed
}

fn over_cpus(found: &Mpr) -> Reservation {
    let time = |ns: Ns| Duration::from_ns(i64::try_from(ns).unwrap_or(i64::MAX));
    Reservation {
        budget: time(found.total()),
        period: time(found.period()),
        deadline: time(found.period()),
    }
}

fn cell(cell: &TaskCell, options: &DesignOptions) -> Cell {
    let order = cell.by_urgency();
    Cell {
        tasks: order
            .iter()
            .map(|&place| task(&cell.tasks[place]))
            .collect(),
        policy: match cell.policy.order() {
            Some(_) => analysis::inside::Policy::FixedPriority,
            None => analysis::inside::Policy::Edf,
        },
        periods: options.period.map(|period| Periods::only(ns(period))),
    }
}

fn found(placement: &Placement) -> Option<&Periodic> {
    match placement {
        Placement::Placed { reservation, .. } | Placement::NoRoom { reservation } => {
            Some(reservation)
        }
        Placement::NoReservation { .. } | Placement::Undecided(_) => None,
    }
}

fn reservation(found: &Periodic) -> Reservation {
    let time = |ns: Ns| Duration::from_ns(i64::try_from(ns).unwrap_or(i64::MAX));
    Reservation {
        budget: time(found.budget()),
        period: time(found.period()),
        deadline: time(found.period()),
    }
}

fn cell_result(
    cell: &TaskCell,
    placement: &Placement,
    reserved: &TaskCell,
    options: &DesignOptions,
) -> DesignedCell {
    let (outcome, what) = match placement {
        Placement::Placed { .. } if holds(reserved, analysis::STEPS) == Some(true) => (Outcome::Holds, String::new()),
        Placement::Placed { .. } => (
            Outcome::Undecided,
            "undecided: the reservation found does not pass the test when repeated".to_owned(),
        ),
        Placement::NoRoom { .. } => (
            Outcome::Fails,
            "no cpu has room for it besides the others".to_owned(),
        ),
        Placement::NoReservation { on_whole_cpu: Verdict::Unschedulable(witness) } => {
            let task = cell.by_urgency().get(witness.task).map(|&place| &cell.tasks[place].name);
            let what = format!(
                "task {} can miss its deadline even on a whole cpu: {} of work is due by {}, but there is only {} of cpu time by then",
                task.map_or("?", |name| name),
                exact(witness.demand),
                exact(witness.instant),
                exact(witness.supply)
            );
            (Outcome::Fails, what)
        }
        Placement::NoReservation { .. } => (
            Outcome::Fails,
            match options.period {
                Some(period) => format!(
                    "no reservation with a period of {} suffices; allow a shorter one, or give it its own cpu",
                    exact(ns(period))
                ),
                None => "no reservation with these periods suffices; allow shorter ones, or give it its own cpu".to_owned(),
            },
        ),
        Placement::Undecided(why) => (Outcome::Undecided, why.to_string()),
    };
    DesignedCell {
        name: cell.name.clone(),
        cpu: match placement {
            Placement::Placed { cpu, .. } => Some(*cpu),
            _ => None,
        },
        cpus: None,
        budget_ns: found(placement).map(Periodic::budget),
        budget_on_each_ns: None,
        period_ns: found(placement).map(Periodic::period),
        hopeless: matches!(
            placement,
            Placement::NoReservation {
                on_whole_cpu: Verdict::Unschedulable(_)
            }
        ),
        outcome,
        what,
    }
}

/// The table of cells and that of cpus. Ends with a line break.
pub fn design_table(plan: &Designed, style: Style) -> String {
    let cells = &plan.cells;
    let column = |heading: &str, of: &dyn Fn(&DesignedCell) -> String| {
        Column::plain(heading, cells.iter().map(of).collect())
    };
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let verdicts = cells.iter().map(|cell| match cell.outcome {
        Outcome::Holds if cell.cpu.is_none() => Text("found".to_owned(), Tone::Plain),
        Outcome::Holds => Text("placed".to_owned(), Tone::Plain),
        Outcome::Fails => Text("not placed".to_owned(), Tone::Bad),
        Outcome::Undecided => Text("undecided".to_owned(), Tone::Caution),
    });
    let columns = [
        column("cell", &|cell| clean(&cell.name)),
        column("cpu", &|cell| dash(cell.cpu.map(|cpu| cpu.to_string()))).right(),
        column("budget", &|cell| dash(cell.budget_ns.map(exact))).right(),
        column("every", &|cell| dash(cell.period_ns.map(exact))).right(),
        column("of a cpu", &|cell| {
            dash(
                cell.budget_ns
                    .zip(cell.period_ns)
                    .map(|(q, p)| percent(share(q, p))),
            )
        })
        .right(),
        Column::new("verdict", verdicts.collect()),
    ];
    let mut out = render(&columns, style);
    for cell in cells.iter().filter(|cell| !cell.what.is_empty()) {
        out += &style.wrap(&clean(&format!("cell    {}: {}", cell.name, cell.what)), 8);
        out.push('\n');
    }
    out.push('\n');
    for (number, cpu) in plan.cpus.iter().enumerate() {
        let names = if cpu.cells.is_empty() {
            "nothing".to_owned()
        } else {
            cpu.cells.join(", ")
        };
        let line = format!(
            "cpu {number:<3} {} reserved, {} left: {names}",
            percent(cpu.used_ppb),
            percent(cpu.left_ppb)
        );
        out += &style.wrap(&clean(&line), 8);
        out.push('\n');
    }
    if let Some(linux) = &plan.linux {
        out += &admission_text(linux, style);
    }
    out
}

/// Q/P in 10^-9, rounded up.
fn share(budget: Ns, period: Ns) -> u64 {
    let share = (u128::from(budget) * 1_000_000_000).div_ceil(u128::from(period.max(1)));
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn percent(ppb: u64) -> String {
    format!("{:.2} %", ppb as f64 / 1e7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Standing;

    const OPTIONS: DesignOptions = DesignOptions {
        period: None,
        shortest: Duration::from_ns(10_000_000),
        step: Duration::from_ns(1_000_000),
        grid: Duration::from_ns(500_000),
        overhead: Duration::from_ns(0),
        share_percent: 100,
        fit: Fit::First,
        limit: RtLimit::KERNEL,
        reaction: Reaction::MEASURED,
    };

    fn set(cells: &[&[(&str, &str)]]) -> TaskSet {
        let mut text = String::from("schema = 1\n");
        for (place, tasks) in cells.iter().enumerate() {
            text += &format!("[[cell]]\nname = \"c{place}\"\n");
            for (number, (wcet, period)) in tasks.iter().enumerate() {
                text += &format!(
                    "[[cell.task]]\nname = \"t{number}\"\nwcet = \"{wcet}\"\nperiod = \"{period}\"\n"
                );
            }
        }
        TaskSet::parse("x", &text).expect("a task set")
    }

    #[test]
    fn a_period_that_is_asked_for_is_the_one_of_every_reservation() {
        let asked = set(&[&[("1ms", "30ms")], &[("2ms", "40ms"), ("1ms", "50ms")]]);
        let with = |period: i64| {
            let options = DesignOptions {
                period: Some(Duration::from_ns(period)),
                ..OPTIONS
            };
            design(&asked, 1, &options)
        };
        let eleven = with(11_000_000);
        assert_eq!(eleven.outcome, Outcome::Holds);
        for cell in &eleven.cells {
            assert_eq!(cell.period_ns, Some(11_000_000));
        }
        // Below the shortest period of a search, too.
        assert_eq!(with(3_000_000).cells[0].period_ns, Some(3_000_000));
        // Much longer than the deadlines: nearly a whole cpu for each.
        assert_eq!(with(200_000_000).outcome, Outcome::Fails);
    }

    #[test]
    fn what_linux_says_is_no_guarantee_for_a_cell_without_a_place() {
        let small: &[(&str, &str)] = &[("1ms", "50ms")];
        let options = DesignOptions {
            share_percent: 7,
            ..OPTIONS
        };
        let full = design(&set(&[small; 5]), 1, &options);
        assert_eq!(full.outcome, Outcome::Fails);
        let linux = full.linux.expect("some have a place");
        assert_eq!(linux.standing, Standing::AdmittedUndecided);
        assert!(linux.notes[0].contains("placed, not c"), "{linux:?}");
        let late: &[(&str, &str)] = &[("6ms", "10ms"), ("6ms", "11ms")];
        let linux = design(&set(&[small, late]), 2, &OPTIONS)
            .linux
            .expect("one has a place");
        assert_eq!(linux.standing, Standing::AdmittedThoughInfeasible);
    }

    #[test]
    fn the_least_reservations_are_found_and_printed() {
        let cell: &[(&str, &str)] = &[("1720us", "90ms"), ("23266us", "164ms")];
        let plan = design(&set(&[cell, cell]), 1, &OPTIONS);
        assert_eq!(plan.outcome, Outcome::Holds);
        assert_eq!(
            (plan.cells[1].budget_ns, plan.cells[1].period_ns),
            (Some(2_000_000), Some(11_000_000))
        );
        let shown = design_table(&plan, Style::default());
        for part in [
            "c1       0     2 ms   11 ms    18.18 %   placed",
            "cpu 0   36.36 % reserved, 63.64 % left: c0, c1",
        ] {
            assert!(shown.contains(part), "`{part}` is not in\n{shown}");
        }
        let study = crate::study(&plan.set, false);
        assert_eq!(study.outcome(), Outcome::Holds);
    }

    #[test]
    fn what_cannot_be_placed_says_why() {
        let plan = design(
            &set(&[&[("60ms", "100ms"), ("60ms", "100ms")]]),
            1,
            &OPTIONS,
        );
        assert_eq!(plan.outcome, Outcome::Fails);
        assert!(
            plan.cells[0].what.contains("even on a whole cpu"),
            "{}",
            plan.cells[0].what
        );
        let heavy: &[(&str, &str)] = &[("60ms", "100ms")];
        let plan = design(&set(&[heavy, heavy]), 1, &OPTIONS);
        assert!(
            plan.cells
                .iter()
                .any(|cell| cell.what.contains("no cpu has room"))
        );
        assert_eq!(
            design(&set(&[heavy, heavy]), 2, &OPTIONS).outcome,
            Outcome::Holds
        );
    }
}
