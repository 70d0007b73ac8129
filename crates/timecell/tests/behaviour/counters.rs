//! Counters of each activation: kept by the measuring threads, shown against their latency, or absent with the reason.

use std::path::Path;

use host::counters::{Counter, HARDWARE, SOFTWARE, TaskCounters};
use record::run::Run;
use record::summary::{Per, RunSummary};
use record::trial::CellCounters;

use crate::support::{only_run, say};

const JOBS: usize = 400;

/// Runs one cell for a while; returns the counts beside it.
fn counted(dir: &Path, engine: &str, counters: &str, period: &str) -> CellCounters {
    let file = dir.join("counted.toml");
    let text = format!(
        "schema = 1\nname = \"counted\"\nrounds = 1\ncounters = {counters}\n\
         [workload]\nkind = \"timer\"\nperiod = \"{period}\"\njobs = {JOBS}\n[[trial]]\ncells = [\"{engine}\"]\n"
    );
    std::fs::write(&file, text).unwrap();
    say(dir, &["bench", &file.to_string_lossy()]).ends_with(0);
    let trial = Run::open(&only_run(dir)).unwrap().trial(1).unwrap();
    let [counters] = trial.counters.as_slice() else {
        panic!("{:?}", trial.counters);
    };
    counters.clone()
}

/// The counters that a thread of this machine can use; `None` if it may use none.
fn countable() -> Option<&'static [Counter]> {
    let can = |counters: &[Counter]| TaskCounters::attach(0, counters).is_ok();
    if can(&HARDWARE) {
        return Some(&HARDWARE);
    }
    can(&SOFTWARE).then_some(&SOFTWARE)
}

#[case(Alone)]
fn each_activation_has_its_counts(dir: &Path) {
    let found = counted(dir, "bare", "\"activation\"", "1ms");
    let Some(countable) = countable() else {
        assert_eq!(found.activations, None);
        assert!(
            found
                .lacking
                .iter()
                .any(|why| why.contains("count themselves"))
        );
        return;
    };
    let activations = found.activations.unwrap();
    let names: Vec<&str> = countable.iter().map(|counter| counter.name()).collect();
    assert_eq!(activations.names, names);
    assert!(activations.reading_cost_ns > 0);
    assert_eq!(
        found.names,
        ["interrupts of its cpu"],
        "no one else reads them"
    );
    let run = only_run(dir);
    let opened = Run::open(&run).unwrap();
    let samples = opened.samples(1, "1-bare").unwrap().unwrap();
    assert_eq!(samples.counts.len(), samples.samples.len());
    // A job that sleeps is switched out; a job that works takes cycles.
    let sure = match countable.contains(&Counter::Cycles) {
        true => Counter::Cycles,
        false => Counter::ContextSwitches,
    };
    let place = (countable.iter()).position(|of| *of == sure).unwrap();
    let slept = samples.counts.iter().filter(|row| row[place] > 0).count();
    // A job whose release has passed does not sleep before it, and another machine may take this cpu for a while.
    assert!(
        slept * 2 > samples.samples.len(),
        "{slept} of {:?}",
        samples.counts
    );
    let summary = opened.read::<RunSummary>().unwrap();
    let counters = &summary.points[0].counters;
    let of = counters.iter().find(|of| of.name == sure.name()).unwrap();
    assert_eq!(of.per, Per::Activation);
    assert_eq!(of.windows as usize, samples.samples.len() - 1);
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("the measuring thread read its own counters once for each activation"));
    let words = ["export", "--csv", "-o", "-", &run.to_string_lossy()];
    let table = say(dir, &words).ends_with(0).out;
    let mut lines = table.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = head.iter().position(|name| *name == sure.column()).unwrap();
    for (line, row) in lines.zip(&samples.counts) {
        let value = line.split(',').nth(column).unwrap();
        assert_eq!(value, row[place].to_string());
    }
}

#[case]
fn a_reading_too_dear_for_the_period_is_left_to_windows(dir: &Path) {
    // No kernel reads a group of counters within 100 ns: it takes a system call.
    let found = counted(dir, "bare", "true", "10us");
    assert_eq!(found.activations, None);
    if countable().is_some() {
        let why = "more than 1/100 of the period";
        assert!(
            found.lacking.iter().any(|lacking| lacking.contains(why)),
            "{found:?}"
        );
        assert!(found.names.len() > 1, "windows in their place: {found:?}");
    }
    let run = only_run(dir);
    let samples = Run::open(&run)
        .unwrap()
        .samples(1, "1-bare")
        .unwrap()
        .unwrap();
    assert!(samples.counts.is_empty());
    let length = std::fs::metadata(run.join("trials/1/1-bare.samples"))
        .unwrap()
        .len();
    assert_eq!(
        length,
        4096 + 32 * samples.header.count,
        "no room for counts is kept"
    );
}

#[case(Root, GroupsOfItsOwn(120))]
fn a_cell_that_may_not_count_says_so(dir: &Path) {
    let found = counted(dir, "embedded", "\"activation\"", "1ms");
    assert_eq!(found.activations, None);
    let why = "in embedded cells: their threads may not count themselves";
    assert!(
        found.lacking.iter().any(|lacking| lacking.contains(why)),
        "{found:?}"
    );
    assert!(found.names.len() > 1, "windows in their place: {found:?}");
}
