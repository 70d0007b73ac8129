use analysis::inside::edf_demand;
use analysis::{Ns, Supply, Task, Verdict};
use model::taskset::{Policy, TaskCell, TaskSet};

use super::judge::{CellSupply, ns, task};
use super::ordered::settled;
use super::servers::Group;
use super::special::Special;
use super::study::{CellStudy, Study};
use crate::demand::{Mark, Picture};

/// Steps and corners that a picture has at most; what is finer could not be seen.
const MOST_POINTS: usize = 1_500;

/// Demand against supply of the first cell that misses a deadline, else of the task with the least slack for its
/// deadline. `None` when the set has no such cell, or its times leave the range.
pub fn picture(set: &TaskSet, study: &Study) -> Option<Picture> {
    let late = study
        .cells
        .iter()
        .position(|cell| is_drawn(cell) && matches!(cell.verdict, Verdict::Unschedulable(_)));
    let place = late.or_else(|| nearest(study)).unwrap_or(0);
    let (cell, answer) = (&*settled(set.cells.get(place)?), study.cells.get(place)?);
    if !is_drawn(answer) {
        return None;
    }
    let subject = match &answer.verdict {
        Verdict::Unschedulable(witness) => witness.task,
        _ => tightest(answer)?,
    };
    let supply = match cell.server {
        Some(server) => CellSupply::Served(Group::on_cpu(set, server.on_cpu()).supply(place)?),
        None => CellSupply::of(cell)?,
    };
    let demand = Demand::of(cell, subject);
    let mark = mark(answer, &demand, &supply, subject);
    let end = mark.as_ref().map_or(0, |mark| mark.instant);
    let deadline = ns(cell.tasks.get(subject)?.deadline);
    let until = end.max(deadline);
    let until = until.checked_add(until / 8)?.max(1);
    let name = &cell.tasks[subject].name;
    let demand_of = match cell.policy.order() {
        Some(_) => format!("demand of {name} and all that is more urgent"),
        None => "demand of all jobs due by then".to_owned(),
    };
    Some(Picture {
        title: format!("Cell {} ({}): task {name}", cell.name, answer.policy),
        demand_of,
        supply_of: format!("supply {}", super::explain::supply_words(answer)),
        until,
        demand: demand.steps(until),
        supply: corners(&supply, until),
        deadlines: demand.deadlines(until, deadline),
        mark,
    })
}

/// Two levels of criticality have no one demand, and several cpus no one supply.
fn is_drawn(cell: &CellStudy) -> bool {
    !matches!(cell.special, Some(Special::Mixed(_) | Special::Global(_)))
}

/// The cell whose tightest task has the least slack relative to its deadline.
fn nearest(study: &Study) -> Option<usize> {
    let slack = |cell: &CellStudy| tightest(cell).map(|task| relative_slack(cell, task));
    (0..study.cells.len())
        .filter(|&cell| is_drawn(&study.cells[cell]) && slack(&study.cells[cell]).is_some())
        .min_by(|&a, &b| {
            let slacks = [a, b].map(|cell| slack(&study.cells[cell]).unwrap_or(f64::MAX));
            slacks[0].total_cmp(&slacks[1])
        })
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

/// The demand that a picture shows.
enum Demand {
    /// One job of the last task, and all more urgent work released before t.
    Fixed { higher: Vec<Task>, own: Task },
    /// All jobs released and due within t.
    Edf(Vec<Task>),
}

impl Demand {
    fn of(cell: &TaskCell, subject: usize) -> Demand {
        if cell.policy == Policy::Edf {
            return Demand::Edf(cell.tasks.iter().map(task).collect());
        }
        let order = cell.by_urgency();
        let higher = order.iter().take_while(|&&place| place != subject);
        Demand::Fixed {
            higher: higher.map(|&place| task(&cell.tasks[place])).collect(),
            own: task(&cell.tasks[subject]),
        }
    }

    /// Demand just after `t`.
    fn at(&self, t: Ns) -> Ns {
        match self {
            Demand::Edf(tasks) => {
                let blocking = tasks
                    .iter()
                    .filter(|task| task.deadline.saturating_sub(task.jitter) <= t);
                let blocking = blocking.map(|task| task.blocking).max().unwrap_or(0);
                edf_demand(tasks, t).saturating_add(blocking)
            }
            Demand::Fixed { higher, own } => {
                let own = own.wcet.saturating_add(own.blocking);
                higher.iter().fold(own, |sum, task| {
                    let jobs = t.saturating_add(task.jitter) / task.period.max(1) + 1;
                    sum.saturating_add(jobs.saturating_mul(task.wcet))
                })
            }
        }
    }

    /// Instants at which it can step, and the demand from there on.
    fn steps(&self, until: Ns) -> Vec<(Ns, Ns)> {
        let (tasks, edf) = match self {
            Demand::Edf(tasks) => (tasks, true),
            Demand::Fixed { higher, .. } => (higher, false),
        };
        let mut instants = vec![0];
        for task in tasks {
            let first = if edf {
                task.deadline.saturating_sub(task.jitter)
            } else {
                task.period - task.jitter % task.period.max(1)
            };
            let mut t = first;
            let mut count = 0;
            while t <= until && count < MOST_POINTS {
                instants.push(t);
                t = t.saturating_add(task.period.max(1));
                count += 1;
            }
        }
        instants.sort_unstable();
        instants.dedup();
        if instants.len() > MOST_POINTS {
            let step = until / MOST_POINTS as u64;
            instants = (0..MOST_POINTS as u64).map(|k| k * step).collect();
        }
        instants.into_iter().map(|t| (t, self.at(t))).collect()
    }

    /// The deadlines that count: the task's own, or all of them under EDF while they can be told apart.
    fn deadlines(&self, until: Ns, own: Ns) -> Vec<Ns> {
        let Demand::Edf(tasks) = self else {
            return vec![own];
        };
        let mut all: Vec<Ns> = tasks
            .iter()
            .flat_map(|task| {
                (0..20).filter_map(|k| task.period.checked_mul(k)?.checked_add(task.deadline))
            })
            .filter(|&deadline| deadline <= until)
            .collect();
        all.sort_unstable();
        all.dedup();
        all.truncate(24);
        all
    }
}

fn mark(answer: &CellStudy, demand: &Demand, supply: &CellSupply, subject: usize) -> Option<Mark> {
    if let Verdict::Unschedulable(witness) = &answer.verdict {
        return Some(Mark {
            instant: witness.instant,
            demand: witness.demand,
            supply: witness.supply,
            missed: true,
        });
    }
    // Under fixed priorities the curves meet at the response time, less the jitter, of a job that is alone in its
    // busy window.
    let task = answer.tasks.get(subject)?;
    let instant = task.response_ns?.checked_sub(task.jitter_ns)?;
    let Demand::Fixed { .. } = demand else {
        return None;
    };
    let at = demand.at(instant.saturating_sub(1));
    (supply.sbf(instant) == at).then_some(Mark {
        instant,
        demand: at,
        supply: at,
        missed: false,
    })
}

/// Where the supply bends: at the end of each pause and at the end of each stretch of supply.
fn corners(supply: &CellSupply, until: Ns) -> Vec<(Ns, Ns)> {
    let mut corners = vec![(0, 0)];
    let (budget, _) = supply.rate();
    let mut done: Ns = 0;
    while !matches!(supply, CellSupply::Whole) && corners.len() < MOST_POINTS {
        let Some(begins) = done.checked_add(1).and_then(|work| supply.inverse(work)) else {
            break;
        };
        if begins > until {
            break;
        }
        corners.push((begins - 1, done));
        let Some((ends, stretch)) = stretch(supply, begins, done + 1, budget) else {
            break;
        };
        corners.push((ends, stretch));
        done = stretch;
    }
    corners.push((until, supply.sbf(until)));
    corners.retain(|&(t, _)| t <= until);
    corners.sort_unstable();
    corners.dedup();
    corners
}

/// How far the supply goes on at full rate from `work` at `t`, at most to the end of the budget: the instant, and the
/// work by then.
fn stretch(supply: &CellSupply, t: Ns, work: Ns, budget: Ns) -> Option<(Ns, Ns)> {
    let most = work.div_ceil(budget.max(1)).checked_mul(budget)?;
    let goes_on = |to: Ns| supply.inverse(to).is_some_and(|at| at - t == to - work);
    let (mut low, mut high) = (work, most.checked_add(1)?);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if goes_on(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some((t + (low - work), low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::picture_svg;
    use crate::feasibility::study;

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
        assert!(!mark.missed);
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
        assert!(picture_svg(&picture).contains("met at"));
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
            assert!(mark.missed && mark.demand > mark.supply, "{mark:?}");
            assert!(picture.until > mark.instant);
            assert!(picture_svg(&picture).contains("witness at"));
        }
    }
}
