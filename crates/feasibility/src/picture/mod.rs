//! Demand against supply in one cell: which cell and which deadline, the curves, and the instant that decides. It is
//! drawn elsewhere.

mod corners;
mod demand;

use analysis::{Ns, Verdict};
use model::taskset::{Policy, TaskCell, TaskSet};

use self::corners::corners;
use self::demand::{Demand, MOST_TRIED};
use super::judge::CellSupply;
use super::ordered::settled;
use super::servers::{Group, ServerShortage};
use super::special::Special;
use super::study::{CellStudy, Outcome, Study};
use crate::drawn::{Mark, Picture, Touch};
use text::units::exact;
use text::words::{plural, short_among};

/// Maximum number of steps and corners of a picture; finer ones could not be seen.
const MOST_POINTS: usize = 1_500;

/// Maximum length of a name in the heading; the description has all of it.
const NAME: usize = 28;

/// Demand against supply of the first cell that misses a deadline, else of the first that is undecided, else of the one
/// with the least slack for a deadline. For a cell whose server can be late, the budgets against the cpu. `None` when the
/// set has no cell that can be drawn, or its times leave the range.
pub fn picture(set: &TaskSet, study: &Study) -> Option<Picture> {
    let drawn = |outcome: Outcome| {
        let mut cells = study.cells.iter().enumerate();
        cells.find_map(|(place, cell)| {
            (cell.outcome == outcome).then(|| drawing(set, cell, place))?
        })
    };
    drawn(Outcome::Fails)
        .or_else(|| drawn(Outcome::Undecided))
        .or_else(|| {
            let place = nearest(set, study)?;
            drawing(set, &study.cells[place], place)
        })
}

/// Two levels of criticality have no one demand, and several cpus no one supply.
fn is_drawn(cell: &CellStudy) -> bool {
    !matches!(cell.special, Some(Special::Mixed(_) | Special::Global(_)))
}

fn short_cell(set: &TaskSet, name: &str) -> String {
    let names: Vec<&str> = set.cells.iter().map(|cell| cell.name.as_str()).collect();
    short_among(name, &names, NAME)
}

fn drawing(set: &TaskSet, answer: &CellStudy, place: usize) -> Option<Picture> {
    if !is_drawn(answer) {
        return None;
    }
    if let Some(server) = &answer.server
        && server.outcome != Outcome::Holds
    {
        return of_server(set, answer, place, server.shortage.as_ref()?);
    }
    let cell = &*settled(set.cells.get(place)?);
    let supply = supply(set, cell, place)?;
    let curves = Curves::of(cell, answer, &supply)?;
    let until = curves.until()?;
    let Curves {
        subject,
        demand,
        mark,
    } = curves;
    let name = &cell.tasks.get(subject)?.name;
    let names: Vec<&str> = cell.tasks.iter().map(|task| task.name.as_str()).collect();
    let short = short_among(name, &names, NAME);
    let (whose, demand_of) = match &demand {
        Demand::Edf(_)
            if mark
                .as_ref()
                .is_some_and(|mark| mark.touch == Touch::Missed) =>
        {
            (
                format!("deadline of {short}"),
                "demand of all jobs due by then".to_owned(),
            )
        }
        Demand::Edf(_) => (
            "all deadlines".to_owned(),
            "demand of all jobs due by then".to_owned(),
        ),
        Demand::Fixed { jobs: 1, .. } => (
            format!("deadline of {short}"),
            format!("demand of {name} and all more urgent tasks"),
        ),
        Demand::Fixed { jobs, .. } => (
            format!("deadline of {short}, job {jobs} of the busy window"),
            format!(
                "demand of {} of {name} and all more urgent tasks",
                plural(*jobs, "job")
            ),
        ),
    };
    Some(Picture {
        title: format!(
            "Cell {} ({}): {whose}",
            short_cell(set, &cell.name),
            answer.policy
        ),
        demand_of: demand_of + &blocking(cell, &demand),
        supply_of: format!("supply {}", super::explain::supply_words(answer)),
        deadlines_of: deadlines_of(cell, &demand),
        until,
        demand: demand.steps(until, mark.as_ref().map(|mark| mark.instant)),
        supply: corners(&supply, until),
        deadlines: demand.deadlines(until),
        mark,
    })
}

fn blocking(cell: &TaskCell, demand: &Demand) -> String {
    match demand {
        Demand::Fixed { own, .. } if own.blocking > 0 => {
            format!(", with {} of blocking", exact(own.blocking))
        }
        Demand::Edf(_) if cell.tasks.iter().any(|task| task.blocking.ns() > 0) => {
            ", with the longest blocking among them".to_owned()
        }
        _ => String::new(),
    }
}

fn deadlines_of(cell: &TaskCell, demand: &Demand) -> String {
    match demand {
        Demand::Fixed { own, .. } if own.jitter > 0 => {
            format!("deadline, less {} of jitter", exact(own.jitter))
        }
        Demand::Fixed { .. } => "deadline".to_owned(),
        Demand::Edf(_) if cell.tasks.iter().any(|task| task.jitter.ns() > 0) => {
            "deadlines, less the jitter".to_owned()
        }
        Demand::Edf(_) => "deadlines".to_owned(),
    }
}

/// The guaranteed supply inside a cell if its server gets its budget.
fn supply(set: &TaskSet, cell: &TaskCell, place: usize) -> Option<CellSupply> {
    match cell.server {
        Some(server) => Group::on_cpu(set, server.on_cpu())
            .supply(place)
            .map(CellSupply::Served),
        None => CellSupply::of(cell),
    }
}

/// The budgets of a server and of more urgent ones against the cpu.
fn of_server(
    set: &TaskSet,
    answer: &CellStudy,
    place: usize,
    shortage: &ServerShortage,
) -> Option<Picture> {
    let server = answer.server.as_ref()?;
    let (higher, own) = Group::on_cpu(set, server.cpu).as_tasks(place)?;
    let demand = Demand::Fixed {
        higher,
        own,
        jobs: 1,
    };
    let until = shortage.instant_ns.max(own.deadline);
    let until = until.checked_add(until / 8)?.max(1);
    let fails = server.outcome == Outcome::Fails;
    Some(Picture {
        title: format!(
            "Cell {}: budget of its {} server",
            short_cell(set, &answer.name),
            server.kind
        ),
        demand_of: format!("budgets of {} and more urgent servers", answer.name),
        supply_of: "supply of the whole cpu".to_owned(),
        deadlines_of: "deadline of the budget".to_owned(),
        until,
        demand: demand.steps(until, Some(shortage.instant_ns)),
        supply: corners(&CellSupply::Whole, until),
        deadlines: demand.deadlines(until),
        mark: Some(Mark {
            instant: shortage.instant_ns,
            demand: shortage.demand_ns,
            supply: shortage.supply_ns,
            touch: if fails { Touch::Missed } else { Touch::Doubt },
        }),
    })
}

/// The curves of one deadline, and the instant that decides.
struct Curves {
    subject: usize,
    demand: Demand,
    mark: Option<Mark>,
}

impl Curves {
    fn of(cell: &TaskCell, answer: &CellStudy, supply: &CellSupply) -> Option<Curves> {
        if let Verdict::Unschedulable(witness) = &answer.verdict {
            let own = witness.parts.iter().find(|part| part.task == witness.task);
            let jobs = own.map_or(1, |part| part.jobs);
            let mark = Mark {
                instant: witness.instant,
                demand: witness.demand,
                supply: witness.supply,
                touch: Touch::Missed,
            };
            return Some(Curves {
                subject: witness.task,
                demand: Demand::of(cell, witness.task).with_jobs(jobs),
                mark: Some(mark),
            });
        }
        let subject = match answer.outcome {
            Outcome::Holds => tightest(answer)?,
            _ => unknown(cell, answer)?,
        };
        let response = answer.tasks.get(subject)?.response_ns;
        let (demand, mark) = Demand::of(cell, subject).settle(supply, response, MOST_TRIED);
        Some(Curves {
            subject,
            demand,
            mark,
        })
    }

    /// The length of the picture: up to the decisive instant, and a little further.
    fn until(&self) -> Option<Ns> {
        let end = self.mark.as_ref().map_or(0, |mark| mark.instant);
        let end = match &self.demand {
            Demand::Fixed { .. } => {
                let end = end.max(self.demand.due()?);
                end.checked_add(end / 8)?
            }
            Demand::Edf(tasks) => {
                let first = tasks.iter().map(|task| task.deadline).max().unwrap_or(0);
                let end = if end == 0 { first } else { end };
                end.checked_add(end / 2)?
                    .max(first.min(end.checked_mul(2)?))
            }
        };
        Some(end.max(1))
    }
}

/// The most urgent task that is undecided.
fn unknown(cell: &TaskCell, answer: &CellStudy) -> Option<usize> {
    let open = |&place: &usize| {
        let task = answer.tasks.get(place);
        task.is_some_and(|task| task.response_ns.is_none())
    };
    cell.by_urgency().into_iter().find(open)
}

/// The cell with the smallest margin relative to its tightest deadline.
fn nearest(set: &TaskSet, study: &Study) -> Option<usize> {
    let tried = (MOST_TRIED * 16 / study.cells.len().max(1)).clamp(256, MOST_TRIED);
    let slack = |place: usize| {
        let (cell, answer) = (set.cells.get(place)?, &study.cells[place]);
        if !is_drawn(answer) {
            return None;
        }
        if cell.policy != Policy::Edf {
            return Some(relative_slack(answer, tightest(answer)?));
        }
        let (_, mark) = Demand::of(cell, 0).settle(&supply(set, cell, place)?, None, tried);
        let mark = mark?;
        Some(mark.supply.saturating_sub(mark.demand) as f64 / mark.instant.max(1) as f64)
    };
    let slacks = (0..study.cells.len()).filter_map(|place| Some((place, slack(place)?)));
    slacks
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(place, _)| place)
}

fn tightest(cell: &CellStudy) -> Option<usize> {
    (0..cell.tasks.len())
        .min_by(|&a, &b| relative_slack(cell, a).total_cmp(&relative_slack(cell, b)))
}

fn relative_slack(cell: &CellStudy, task: usize) -> f64 {
    let task = &cell.tasks[task];
    task.slack_ns
        .map_or(1.0, |slack| slack as f64 / task.deadline_ns.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study;
    use analysis::Supply;

    fn drawn(text: &str) -> Picture {
        let set = TaskSet::parse("x", text).expect("a task set");
        picture(&set, &study(&set, false)).expect("a picture")
    }

    const SET: &str = "schema = 1\n[[cell]]\nname = \"c\"\npolicy = \"fp\"\n\
        reservation = { budget = \"2ms\", period = \"5ms\", deadline = \"4ms\" }\n\
        [[cell.task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"20ms\"\n\
        [[cell.task]]\nname = \"b\"\nwcet = \"2ms\"\nperiod = \"30ms\"\n";

    #[test]
    fn the_curves_meet_where_the_response_is() {
        let picture = drawn(SET);
        let mark = picture.mark.clone().expect("a mark");
        assert_eq!(mark.touch, Touch::Met);
        assert_eq!(mark.demand, mark.supply);
        assert!(
            picture
                .supply
                .windows(2)
                .all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1)
        );
        assert!(
            picture
                .demand
                .windows(2)
                .all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1)
        );
    }

    #[test]
    fn the_corners_lie_on_the_supply() {
        let set = TaskSet::parse("x", SET).expect("a task set");
        let supply = CellSupply::of(&set.cells[0]).expect("a supply");
        for (t, up) in corners(&supply, 60_000_000) {
            assert_eq!(supply.sbf(t), up, "at {t}");
        }
    }

    #[test]
    fn the_supply_of_a_server_bends_where_others_come_first() {
        let high = "[[cell]]\nname = \"h\"\nreservation = { budget = \"2ms\", period = \"7ms\" }\n\
            server = \"deferrable\"\npriority = 2\n\
            [[cell.task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"1s\"\n";
        let low = high
            .replace("name = \"h\"", "name = \"l\"")
            .replace("\"2ms\", period = \"7ms\"", "\"4ms\", period = \"12ms\"")
            .replace("priority = 2", "priority = 1");
        let set = TaskSet::parse("x", &format!("schema = 1\n{high}{low}")).expect("a task set");
        let supply = Group::on_cpu(&set, 0).supply(1).expect("a supply");
        let supply = CellSupply::Served(supply);
        let corners = corners(&supply, 50_000_000);
        for &(t, up) in &corners {
            assert_eq!(supply.sbf(t), up, "at {t}");
        }
        // After the gap of 8 ms, 2 + 2 ms of the other come first: two of its budgets back to back.
        assert_eq!(
            corners[..3],
            [(0, 0), (12_000_000, 0), (16_000_000, 4_000_000)]
        );
        assert!(corners.windows(2).all(|two| two[0].0 < two[1].0));
        assert!(picture(&set, &study(&set, false)).is_some());
    }

    #[test]
    fn the_witness_is_the_mark_under_both_policies() {
        for policy in ["\"fp\"", "\"edf\""] {
            let text = SET
                .replace("wcet = \"2ms\"", "wcet = \"20ms\"")
                .replace("\"fp\"", policy);
            let picture = drawn(&text);
            let mark = picture.mark.clone().expect("a mark");
            assert!(
                mark.touch == Touch::Missed && mark.demand > mark.supply,
                "{mark:?}"
            );
            assert!(picture.until > mark.instant);
        }
    }

    /// The demand by an instant, as drawn.
    fn drawn_by(picture: &Picture, instant: Ns) -> Ns {
        let before = picture.demand.iter().take_while(|&&(t, _)| t < instant);
        before.last().map_or(0, |&(_, up)| up)
    }

    #[test]
    fn a_later_job_that_misses_is_drawn_with_all_jobs_and_its_deadline() {
        let text = "schema = 1\n[[cell]]\nname = \"leh\"\npolicy = \"fp\"\n\
            [[cell.task]]\nname = \"t1\"\nwcet = \"26ms\"\nperiod = \"70ms\"\n\
            [[cell.task]]\nname = \"t2\"\nwcet = \"62ms\"\nperiod = \"100ms\"\ndeadline = \"117ms\"\n";
        let late = drawn(text);
        let mark = late.mark.clone().expect("a mark");
        assert_eq!((mark.instant, mark.demand), (517_000_000, 518_000_000));
        assert_eq!(drawn_by(&late, mark.instant), mark.demand);
        assert_eq!(late.deadlines, [mark.instant]);
        assert!(
            late.title
                .ends_with("deadline of t2, job 5 of the busy window")
        );
        let held = drawn(&text.replace("117ms", "118ms"));
        let mark = held.mark.clone().expect("a mark");
        assert_eq!((mark.touch, mark.instant), (Touch::Met, 518_000_000));
        assert_eq!(drawn_by(&held, mark.instant), mark.demand);
    }

    #[test]
    fn jitter_and_blocking_are_in_the_curves_and_said() {
        let text = "schema = 1\n[[cell]]\nname = \"c\"\npolicy = \"fp\"\n\
            [[cell.task]]\nname = \"a\"\nwcet = \"2ms\"\nperiod = \"6ms\"\ndeadline = \"5500us\"\njitter = \"1ms\"\nblocking = \"2ms\"\n";
        let fixed = drawn(text);
        assert_eq!(fixed.deadlines, [4_500_000]);
        assert_eq!(fixed.demand[0], (0, 4_000_000));
        assert!(fixed.demand_of.contains("with 2 ms of blocking"));
        assert!(fixed.deadlines_of.contains("less 1 ms of jitter"));
        let edf = drawn(&text.replace("fp", "edf"));
        assert_eq!(edf.deadlines[0], 4_500_000);
        assert!(edf.deadlines_of.contains("less the jitter"));
    }

    #[test]
    fn of_an_edf_cell_the_tightest_deadline_is_marked() {
        let task = |name: &str, wcet: u32, period: u32, deadline: u32| {
            format!(
                "[[cell.task]]\nname = \"{name}\"\nwcet = \"{wcet}ms\"\nperiod = \"{period}ms\"\ndeadline = \"{deadline}ms\"\n"
            )
        };
        let text = format!(
            "schema = 1\n[[cell]]\nname = \"c\"\npolicy = \"edf\"\n{}{}{}",
            task("t1", 2, 6, 4),
            task("t2", 2, 8, 5),
            task("t3", 3, 9, 7)
        );
        let picture = drawn(&text);
        let mark = picture.mark.clone().expect("a mark");
        assert_eq!((mark.touch, mark.instant), (Touch::Nearest, 7_000_000));
        assert_eq!(mark.demand, mark.supply);
        assert!(picture.until > 7_000_000 && picture.deadlines.contains(&7_000_000));
    }

    #[test]
    fn a_server_that_can_be_late_is_drawn_and_not_a_cell_that_holds() {
        let cell = |name: &str, budget: u32, period: u32, priority: u32| {
            format!(
                "[[cell]]\nname = \"{name}\"\nreservation = {{ budget = \"{budget}ms\", period = \"{period}ms\" }}\n\
                 server = \"deferrable\"\npriority = {priority}\n\
                 [[cell.task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"100ms\"\n"
            )
        };
        let picture = drawn(&format!(
            "schema = 1\n{}{}",
            cell("hi", 3, 6, 9),
            cell("lo", 4, 10, 3)
        ));
        assert_eq!(picture.title, "Cell lo: budget of its deferrable server");
        let mark = picture.mark.clone().expect("a mark");
        assert!(mark.demand > mark.supply);
        assert_eq!(drawn_by(&picture, mark.instant), mark.demand);
        assert_eq!(picture.deadlines, [10_000_000]);
    }
}
