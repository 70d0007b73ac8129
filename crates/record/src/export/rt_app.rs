//! A task set as rt-app runs it: a task of busy work with a timer for each task, under SCHED_DEADLINE in cells of
//! policy `edf` and under SCHED_FIFO in cells of policy `fp`.

use std::collections::HashSet;
use std::fmt::Write as _;

use model::InputError;
use model::taskset::{CellTask, Policy, TaskCell, TaskSet};

use super::Exported;

/// The key in `global`, ignored by rt-app, that holds the task set itself, so that everything that rt-app cannot express can
/// be read back.
pub(crate) const EMBEDDED: &str = "timecell";

/// The highest SCHED_FIFO priority that is used: 99 belongs to the kernel's own threads.
const HIGHEST: usize = 98;

/// Writes the set, to be run for `seconds`; `name` names it in messages.
///
/// rt-app counts in whole microseconds: runtimes are rounded up, periods and deadlines down, which demands more than the
/// set, never less.
///
/// # Errors
/// When a cell has more tasks of fixed priority than SCHED_FIFO has priorities, or a period is below 1 us.
pub fn write_rt_app(set: &TaskSet, name: &str, seconds: u32) -> Result<Exported, InputError> {
    let mut notes = vec![
        "each task works for its wcet in every job; rt-app calibrates the work, which may be off by some percent".to_owned(),
    ];
    if set.cells.iter().any(|cell| cell.policy.order().is_none()) {
        notes.push("dl-runtime is the wcet, without room for rt-app's own loop: tasks of a few microseconds are throttled".to_owned());
    }
    let mut tasks = Vec::new();
    let mut names = HashSet::new();
    for cell in &set.cells {
        if cell.reservation.is_some() || cell.server.is_some() {
            notes.push(format!(
                "cell {}: its reservation is left out; rt-app has no cells",
                cell.name
            ));
        }
        if matches!(cell.policy, Policy::AmcRtb(_) | Policy::EdfVd) {
            notes.push(format!(
                "cell {}: criticality and the wcet in high mode are left out",
                cell.name
            ));
        }
        let order = cell.by_urgency();
        if cell.policy.order().is_some() && order.len() > HIGHEST {
            return Err(InputError::new(
                name,
                format!(
                    "cell {} has {} tasks of fixed priority",
                    cell.name,
                    order.len()
                ),
                "SCHED_FIFO has 98 priorities for tasks",
            ));
        }
        for (rank, &index) in order.iter().enumerate() {
            let task = &cell.tasks[index];
            let mut title = if set.cells.len() > 1 {
                format!("{}-{}", cell.name, task.name)
            } else {
                task.name.clone()
            };
            while !names.insert(title.clone()) {
                title.push('\'');
            }
            tasks.push(entry(&title, cell, task, rank, &mut notes).map_err(|what| {
                InputError::new(
                    name,
                    format!("task {}: {what}", task.name),
                    "rt-app counts in microseconds",
                )
            })?);
        }
    }
    if set.cells.len() > 1 {
        let why = if set.cells.iter().any(|cell| cell.policy.order().is_none()) {
            ": SCHED_DEADLINE refuses pinned tasks, so none is pinned"
        } else {
            ", none of them pinned"
        };
        notes.push(format!("the cells' tasks run together on all cpus{why}"));
    }
    let mut text =
        String::from("/* Task set of timecell for rt-app. What its format cannot express:\n");
    for note in &notes {
        let _ = writeln!(text, " * - {}", note.replace("*/", "* /"));
    }
    let _ = write!(
        text,
        " */\n{{\n\t\"tasks\" : {{\n{}\n\t}},\n\t\"global\" : {{\n\t\t\"duration\" : {seconds},\n\t\t\"calibration\" : \"CPU0\",\n\
         \t\t\"default_policy\" : \"SCHED_OTHER\",\n\t\t\"lock_pages\" : true,\n\t\t\"logdir\" : \"./\",\n\
         \t\t\"log_basename\" : \"rt-app\",\n\t\t\"gnuplot\" : false,\n\t\t\"{EMBEDDED}\" : {}\n\t}}\n}}\n",
        tasks.join(",\n"),
        serde_json::Value::String(set.to_toml())
    );
    Ok(Exported { text, notes })
}

/// One task's object; the error is a clause.
fn entry(
    title: &str,
    cell: &TaskCell,
    task: &CellTask,
    rank: usize,
    notes: &mut Vec<String>,
) -> Result<String, String> {
    let quoted = serde_json::Value::String(title.to_owned());
    let (wcet, period) = (task.wcet.ns(), task.period.ns());
    let run = wcet.div_euclid(1_000) + i64::from(wcet.rem_euclid(1_000) > 0);
    let mut deadline = task.deadline.ns() / 1_000;
    let period_us = period / 1_000;
    if period_us < 1 || run > period_us || (cell.policy.order().is_none() && run > deadline) {
        return Err("it cannot be rounded to whole microseconds".to_owned());
    }
    if wcet % 1_000 != 0 || period % 1_000 != 0 || task.deadline.ns() % 1_000 != 0 {
        notes.push(format!(
            "{title}: rounded to whole microseconds, the wcet up, period and deadline down"
        ));
    }
    for (what, time) in [("release jitter", task.jitter), ("blocking", task.blocking)] {
        if time.ns() > 0 {
            notes.push(format!("{title}: its {what} of {time} is left out"));
        }
    }
    let by_deadline = match cell.policy {
        Policy::EdfOverFixed => task.priority.is_none(),
        policy => policy.order().is_none(),
    };
    let class = match by_deadline {
        true => {
            if deadline > period_us {
                notes.push(format!(
                    "{title}: its deadline of {} exceeds the period, which SCHED_DEADLINE does not allow; replaced by the period",
                    task.deadline
                ));
                deadline = period_us;
            }
            format!(
                "\"policy\" : \"SCHED_DEADLINE\", \"dl-runtime\" : {run}, \"dl-period\" : {period_us}, \"dl-deadline\" : {deadline}"
            )
        }
        false => {
            if deadline != period_us {
                notes.push(format!(
                    "{title}: its deadline of {} is left out; SCHED_FIFO has none",
                    task.deadline
                ));
            }
            format!(
                "\"policy\" : \"SCHED_FIFO\", \"priority\" : {}",
                HIGHEST - rank
            )
        }
    };
    Ok(format!(
        "\t\t{quoted} : {{\n\t\t\t{class},\n\t\t\t\"loop\" : -1, \"run\" : {run}, \"timer\" : {{ \"ref\" : \"unique\", \"period\" : {period_us}, \"mode\" : \"absolute\" }}\n\t\t}}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::taskset::{Format, Options, import};
    use model::Duration;
    use model::taskset::{CellServer, Order, Refill, Reservation, ServerKind};
    use proptest::prelude::*;

    fn set(tasks: Vec<CellTask>, policy: Policy) -> TaskSet {
        let cell = TaskCell {
            name: "c".to_owned(),
            policy,
            reservation: None,
            server: None,
            tasks,
        };
        TaskSet {
            cpus: None,
            refill: Refill::default(),
            enforcer: None,
            cells: vec![cell],
        }
    }

    fn task(name: &str, wcet: i64, period: i64, deadline: i64) -> CellTask {
        CellTask {
            deadline: Duration::from_ns(deadline),
            ..CellTask::new(name, Duration::from_ns(wcet), Duration::from_ns(period))
        }
    }

    #[test]
    fn fixed_priorities_hear_nothing_of_sched_deadline() {
        let mut two = set(
            vec![task("a", 1_000, 10_000, 10_000)],
            Policy::Fixed(Order::Listed),
        );
        two.cells.push(TaskCell {
            name: "d".to_owned(),
            ..two.cells[0].clone()
        });
        let fixed = write_rt_app(&two, "s", 2).expect("a set");
        assert!(!fixed.text.contains("dl-runtime") && !fixed.text.contains("SCHED_DEADLINE"));
        assert!(
            fixed
                .notes
                .iter()
                .any(|note| note.contains("none of them pinned"))
        );
        two.cells[1].policy = Policy::Edf;
        let mixed = write_rt_app(&two, "s", 2).expect("a set").notes.join("\n");
        assert!(mixed.contains("dl-runtime") && mixed.contains("refuses pinned tasks"));
    }

    #[test]
    fn rounding_and_what_is_left_out_are_said() {
        let mut odd = task("a", 1_500, 10_999, 20_000);
        odd.jitter = Duration::from_ns(5);
        let out = write_rt_app(&set(vec![odd], Policy::Edf), "s", 2).expect("a set");
        assert!(
            out.text
                .contains("\"dl-runtime\" : 2, \"dl-period\" : 10, \"dl-deadline\" : 10"),
            "{}",
            out.text
        );
        let notes = out.notes.join("\n");
        for part in [
            "rounded to whole",
            "release jitter of 5ns",
            "exceeds the period",
        ] {
            assert!(notes.contains(part), "{part} in {notes}");
        }
        assert!(out.text.starts_with("/*") && out.text.contains("release jitter"));
    }

    #[test]
    fn fixed_priorities_become_fifo_in_order_of_urgency() {
        let policy = Policy::Fixed(Order::Rate);
        let tasks = vec![
            task("slow", 1_000, 50_000, 50_000),
            task("fast", 1_000, 10_000, 10_000),
        ];
        let text = write_rt_app(&set(tasks, policy), "s", 2)
            .expect("a set")
            .text;
        let at = |part: &str| text.find(part).expect(part);
        assert!(at("\"fast\"") < at("\"priority\" : 98"));
        assert!(at("\"priority\" : 98") < at("\"slow\""));
        assert!(at("\"slow\"") < at("\"priority\" : 97"));
    }

    #[test]
    fn what_cannot_fit_is_refused() {
        let error = write_rt_app(&set(vec![task("a", 10, 900, 900)], Policy::Edf), "s", 1);
        assert!(
            error
                .expect_err("too short")
                .to_string()
                .contains("task a: it cannot be rounded")
        );
    }

    fn policies() -> impl Strategy<Value = Policy> {
        let orders = prop::sample::select(vec![
            Order::Deadline,
            Order::Rate,
            Order::Listed,
            Order::Priority,
        ]);
        (0u8..7, orders, 2u32..5).prop_map(|(kind, order, cpus)| match kind {
            0 => Policy::Edf,
            1 => Policy::Fixed(order),
            2 => Policy::GlobalEdf(cpus),
            3 => Policy::GlobalFixed(order, cpus),
            4 => Policy::AmcRtb(order),
            5 => Policy::EdfVd,
            _ => Policy::Fixed(Order::Audsley),
        })
    }

    /// A reservation of this budget and twice the period, and a server where the policy goes with one.
    fn kept(cell: &mut TaskCell, number: usize, budget_us: i64, kind: Option<ServerKind>) {
        let within = Duration::from_ns(2_000 * budget_us);
        cell.reservation = (!cell.policy.is_mixed()).then_some(Reservation {
            budget: Duration::from_ns(1_000 * budget_us),
            period: within,
            deadline: within,
        });
        let priority = 50 - i64::try_from(number).unwrap_or(0);
        cell.server = kind.map(|kind| CellServer {
            kind,
            priority: (kind != ServerKind::ConstantBandwidth).then_some(priority),
            cpu: u32::try_from(number % 2).ok(),
        });
        if cell.server_fault().is_some() {
            cell.server = None;
        }
    }

    proptest! {
        /// An export for rt-app is read back as the same set, including everything that rt-app cannot express.
        #[test]
        fn what_is_exported_is_read_back_as_the_same_set(
            cells in prop::collection::vec(
                (
                    policies(),
                    prop::option::of((1i64..9_000, prop::option::of(prop::sample::select(ServerKind::NAMES.to_vec())))),
                    prop::collection::vec(
                        (1i64..500, 500i64..100_000, 0i64..120, 0i64..3_000, prop::option::of(0i64..3)),
                        1..8,
                    ),
                ),
                1..4,
            ),
            in_ns in any::<bool>(),
        ) {
            let unit = if in_ns { 777 } else { 1_000 };
            let mut whole = set(Vec::new(), Policy::Edf);
            whole.cells = cells.into_iter().enumerate().map(|(number, (policy, held, tasks))| {
                let by_priority = policy.order() == Some(Order::Priority);
                let tasks = tasks.into_iter().zip(0i64..).map(|((c, t, percent, jitter, high), i)| {
                    let deadline = c + (t - c) * percent / 100;
                    CellTask {
                        jitter: Duration::from_ns(jitter),
                        priority: by_priority.then_some(7 * i % 8),
                        wcet_high: high.filter(|_| policy.is_mixed()).map(|more| Duration::from_ns((c + more) * unit)),
                        ..task(&format!("t{i}"), c * unit, (t + 2) * unit, (deadline + 2) * unit)
                    }
                });
                let mut cell = TaskCell {
                    name: format!("cell {number}"),
                    policy,
                    tasks: tasks.collect(),
                    reservation: None,
                    server: None,
                };
                if let Some((budget_us, kind)) = held {
                    kept(&mut cell, number, budget_us, kind.map(|(_, kind)| kind));
                }
                cell
            }).collect();
            let written = TaskSet::parse("s", &whole.to_toml());
            prop_assert_eq!(written.as_ref(), Ok(&whole), "the drawn set is one");
            let Ok(exported) = write_rt_app(&whole, "s", 1) else {
                return Ok(());
            };
            let back = import(Format::named("rt-app"), "s", exported.text.as_bytes(), Options::default()).expect("its own output");
            prop_assert_eq!(&back.set, &whole);
            // After a change of a thread, the threads decide.
            let changed = exported.text.replacen("\"run\" : ", "\"run\" : 1", 1).replacen("\"dl-runtime\" : ", "\"dl-runtime\" : 1", 1);
            if let Ok(back) = import(Format::named("rt-app"), "s", changed.as_bytes(), Options { cpus: Some(2), ..Options::default() }) {
                prop_assert!(back.notes.iter().any(|note| note.contains("have been changed since")), "{:?}", back.notes);
                prop_assert_ne!(&back.set, &whole);
            }
        }
    }
}
