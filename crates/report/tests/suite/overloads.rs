//! Why activations were skipped and jobs came late: said only as far as the record shows it.

use crate::synthetic::{Cell, Synthetic, cell, miss, provenance, taking};
use model::Enforcer;
use model::EngineKind::Bare;
use record::summary::RunSummary;
use record::supply::{Budget, Machine};
use record::trial::{HeldBy, HeldCell, HoldsRecord, TaskRecord};
use study::{JobsStudy, study};
use timecell_report::{Style, findings, html, table};

const MAC: &str = "schema = 1\nname = \"t\"\nquestion = \"q\"\nrounds = 1\n[workload]\nkind = \"mac\"\njobs = 20\n\
                   period = \"1ms\"\n[[trial]]\ncells = [\"bare\"]\n";

/// One cell that skipped 5 of 15 activations and used so much cpu time for each job; in no real-time class if `other`.
fn missing(used_ns: u64, other: bool) -> Vec<String> {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), MAC);
    let mut one = cell("1-bare", Bare, &taking(&[175_000; 10]));
    miss(&mut one, 4, 5);
    if let Some((header, samples)) = &mut one.samples {
        header.cpu_time_ns = used_ns * samples.len() as u64;
    }
    if other {
        one.record.class_got = Some("OTHER".to_owned());
        one.record.class_wanted = "OTHER".to_owned();
        one.record.real_time = false;
    }
    run.trial("bare", 1, vec![one]);
    let summary = study(&run.run).unwrap();
    let shown = table(
        &summary,
        Style {
            colour: false,
            width: 4_000,
        },
    );
    let page = html(&summary);
    for why in &summary.overloads {
        assert!(shown.contains(&format!("overload: {why}")), "{shown}");
        assert!(
            findings(&summary).contains(why) && page.contains(why),
            "{why}"
        );
    }
    summary.summary.overloads
}

#[test]
fn only_jobs_that_take_their_period_do_not_fit_it() {
    let full = missing(1_000_000, false).join("\n");
    assert!(
        full.contains("bare skipped 33 % of its activations")
            && full.contains("do not fit in their period"),
        "{full}"
    );
    // All of a cpu is more than the kernel lets real-time work have.
    assert!(full.contains("real-time throttling"), "{full}");
    let other = missing(175_000, true);
    assert_eq!(other.len(), 1);
    assert!(
        other[0].contains("others took the cpu, which class OTHER cannot prevent"),
        "{other:?}"
    );
    let kept = missing(175_000, false);
    assert!(kept[0].contains("something else took the cpu"), "{kept:?}");
    for few in [other, kept] {
        assert!(!few[0].contains("do not fit"), "{few:?}");
    }
}

const SET: &str = "schema = 1\nname = \"t\"\nquestion = \"q\"\nrounds = 1\n[workload]\nkind = \"taskset\"\n\
                   duration = \"100ms\"\npolicy = \"POLICY\"\n\
                   [[workload.task]]\nname = \"a\"\nwcet = \"4ms\"\nperiod = \"10ms\"\n\
                   [[workload.task]]\nname = \"b\"\nwcet = \"5ms\"\nperiod = \"10ms\"\n[[trial]]\ncells = [\"bare\"]\n";

/// A thread of the set; its jobs take so much cpu time and respond so late.
fn thread(id: &str, name: &str, class: &str, wcet_ns: i64, used_ns: u64, response_ns: i64) -> Cell {
    let jobs: Vec<(i64, i64, i64)> = (0..10)
        .map(|job| {
            let release = crate::synthetic::GO + job * 10_000_000;
            (release, release + 2_000, release + response_ns)
        })
        .collect();
    let mut one = cell(id, Bare, &jobs);
    if let Some((header, samples)) = &mut one.samples {
        header.cpu_time_ns = used_ns * samples.len() as u64;
        header.period_ns = 10_000_000;
    }
    one.record.class_got = Some(class.to_owned());
    one.record.class_wanted = class.to_owned();
    one.record.task = Some(TaskRecord {
        name: name.to_owned(),
        cell: "set".to_owned(),
        cell_number: 1,
        competes: false,
        wcet_ns,
        period_ns: 10_000_000,
        deadline_ns: 10_000_000,
        jobs: 10,
        cpus: vec![1],
        calibration: None,
    });
    one
}

fn set(policy: &str, class: &str, used_ns: [u64; 2], response_ns: i64) -> Vec<String> {
    let base = tempfile::tempdir().unwrap();
    let machine = provenance();
    let mut run = Synthetic::with(base.path(), &SET.replace("POLICY", policy), &machine);
    let a = thread("1-a", "a", class, 4_000_000, used_ns[0], response_ns);
    let b = thread("2-b", "b", class, 5_000_000, used_ns[1], response_ns);
    run.trial("bare", 1, vec![a, b]);
    study(&run.run).unwrap().summary.overloads
}

#[test]
fn demand_beyond_the_limit_names_throttling() {
    // 0.45 and 0.52 of the cpu are 0.97, where 0.95 is allowed.
    let beyond = set("fifo", "FIFO 79", [4_500_000, 5_200_000], 9_000_000);
    assert_eq!(beyond.len(), 1, "{beyond:?}");
    assert!(beyond[0].contains("cpu 1 takes 0.970 of it"), "{beyond:?}");
    assert!(
        beyond[0].contains("950.0 ms of every 1.00 s (real-time throttling"),
        "{beyond:?}"
    );
    assert_eq!(
        set("fifo", "FIFO 79", [4_000_000, 5_200_000], 9_000_000),
        [""; 0]
    );
    // Throttling is not about SCHED_DEADLINE, nor about best effort.
    let other = set("fifo", "OTHER", [4_500_000, 5_200_000], 9_000_000);
    assert_eq!(other, [""; 0]);
}

#[test]
fn a_runtime_that_jobs_use_up_is_named() {
    let class = "DEADLINE 4.4 ms/10 ms/10 ms";
    // Runtimes are 4.4 and 5.5 ms.
    let beyond = set("deadline", class, [4_500_000, 5_200_000], 11_000_000);
    assert_eq!(beyond.len(), 1, "{beyond:?}");
    for part in [
        "of 1 task took",
        "of a with 4.50 ms of 4.40 ms",
        "bandwidth server",
        "10 jobs of these",
    ] {
        assert!(beyond[0].contains(part), "{part} in {beyond:?}");
    }
    let within = set("deadline", class, [4_300_000, 5_200_000], 11_000_000);
    assert!(
        within[0].contains("20 jobs missed") && within[0].contains("single jobs may have"),
        "{within:?}"
    );
    assert_eq!(
        set("deadline", class, [4_500_000, 5_200_000], 9_000_000),
        [""; 0]
    );
}

/// Two threads, each alone in a cell that its class holds to `budget_ns` of every 10 ms, in a set of FIFO threads.
fn held(budget_ns: u64, used_ns: [u64; 2], response_ns: i64) -> JobsStudy {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), &SET.replace("POLICY", "fifo"));
    let class = "DEADLINE";
    let mut cells = vec![
        thread("1-a", "a", class, 4_000_000, used_ns[0], response_ns),
        thread("2-b", "b", class, 5_000_000, used_ns[1], response_ns),
    ];
    let held = (cells.iter_mut().zip(1..)).map(|(cell, number)| {
        let task = cell.record.task.as_mut().unwrap();
        task.cell_number = number;
        HeldCell {
            cell: task.name.clone(),
            cell_number: number,
            cpu: 1,
            by: HeldBy {
                held: Budget {
                    enforcer: Enforcer::Deadline,
                    budget_ns,
                    period_ns: 10_000_000,
                },
                given: true,
            },
            reacted: None,
        }
    });
    run.holds = Some(HoldsRecord {
        machine: Machine::here(),
        cells: held.collect(),
    });
    run.trial("bare", 1, cells);
    study(&run.run).unwrap()
}

#[test]
fn threads_that_their_class_holds_are_told_by_their_budgets() {
    // The runtime is the budget, with any margin on the wcet.
    let within = held(5_500_000, [4_500_000, 5_200_000], 11_000_000)
        .summary
        .overloads;
    assert!(
        within.len() == 1 && within[0].contains("20 jobs missed"),
        "{within:?}"
    );
    let beyond = held(5_000_000, [4_500_000, 5_200_000], 11_000_000)
        .summary
        .overloads;
    assert!(
        beyond.len() == 1 && beyond[0].contains("of b with 5.20 ms of 5.00 ms"),
        "{beyond:?}"
    );
    // A FIFO thread has no runtime.
    let fifo = set("deadline", "FIFO 79", [4_500_000, 4_000_000], 11_000_000);
    assert_eq!(fifo, [""; 0]);
}

#[test]
fn a_set_with_bounds_as_supplied_has_bounds() {
    let mut summary = held(5_000_000, [4_000_000, 4_000_000], 9_000_000);
    let with = |summary: &mut RunSummary, certain_ns: Option<i64>| {
        for task in summary
            .cells
            .iter_mut()
            .filter_map(|cell| cell.task.as_mut())
        {
            task.bound_ns = None;
            task.held.as_mut().unwrap().certain_ns = certain_ns;
        }
        findings(summary)
            .iter()
            .any(|said| said.contains("has no bound"))
    };
    assert!(with(&mut summary, None));
    assert!(!with(&mut summary, Some(10_000_000)));
}

#[test]
fn a_task_is_compared_with_the_same_one_of_the_same_cell() {
    let base = tempfile::tempdir().unwrap();
    let trials =
        ["part", "other"].map(|name| format!("[[trial]]\nname = \"{name}\"\ncells = [\"bare\"]\n"));
    let text = SET
        .replace("POLICY", "fifo")
        .replace("rounds = 1", "rounds = 3")
        + &trials.concat();
    let mut run = Synthetic::new(base.path(), &text);
    let of = |id: &str, name: &str, cell: &str, response_ns: i64| {
        let mut one = thread(id, name, "FIFO 79", 1_000_000, 1_000_000, response_ns);
        one.record.task.as_mut().unwrap().cell = cell.to_owned();
        one
    };
    for round in 1..=3 {
        let both = vec![
            of("1-a", "a", "first", 8_000_000),
            of("2-a", "a", "second", 2_000_000),
            of("3-b", "b", "second", 4_000_000),
        ];
        run.trial("bare", round, both);
        // Without the first cell all places are one less.
        let second = vec![
            of("1-a", "a", "second", 2_000_000),
            of("2-b", "b", "second", 4_000_000),
        ];
        run.trial("part", round, second);
        run.trial("other", round, vec![of("1-a", "a", "third", 2_000_000)]);
    }
    let summary = study(&run.run).unwrap();
    let cell = |trial: &str, id: &str| {
        let mut cells = summary.cells.iter();
        cells
            .find(|cell| cell.trial == trial && cell.cell == id)
            .unwrap()
    };
    for id in ["1-a", "2-b"] {
        let part = cell("part", id);
        let ratio = &part.against_baseline.as_ref().unwrap().ratio_of_medians;
        assert!((ratio.value - 1.0).abs() < 1e-9, "{id}: {ratio:?}");
        assert!(!part.notes.iter().any(|note| note.contains("not compared")));
    }
    let other = cell("other", "1-a");
    assert!(other.against_baseline.is_none());
    let told = "no thread of the baseline `bare` runs task `a` of cell `third`";
    assert!(
        other.notes.iter().any(|note| note.contains(told)),
        "{:?}",
        other.notes
    );
}

#[test]
fn a_task_with_and_without_interference_is_in_one_panel() {
    let base = tempfile::tempdir().unwrap();
    let two = SET.replace("POLICY", "fifo").replace(
        "[[trial]]\n",
        "[[trial]]\nname = \"beside\"\ncells = [\"bare\"]\nload = \"cpu\"\n[[trial]]\n",
    );
    let mut run = Synthetic::with(base.path(), &two, &provenance());
    let threads = |response_ns| {
        let one = |id, name| thread(id, name, "FIFO 79", 4_000_000, 4_000_000, response_ns);
        vec![one("1-a", "a"), one("2-b", "b")]
    };
    run.trial("beside", 1, threads(9_000_000));
    let drawn = |run: &Synthetic| {
        let files = timecell_report::figures(&study(&run.run).unwrap());
        let found = files
            .into_iter()
            .find(|(name, _)| name == "interference.svg");
        found.map(|(_, svg)| svg)
    };
    assert_eq!(drawn(&run), None, "there is nothing to compare with");
    run.trial("bare", 1, threads(6_000_000));
    let svg = drawn(&run).unwrap();
    assert!(svg.contains("a with and without interference"), "{svg}");
    // One panel, and in it a curve for each trial, which has a name.
    assert_eq!(svg.matches("share of jobs<").count(), 1, "{svg}");
    for trial in ["beside", "bare"] {
        assert!(
            svg.contains(&format!("<title>{trial}</title>")),
            "{trial}: {svg}"
        );
    }
    assert!(!svg.contains("<title>b</title>"), "{svg}");
}
