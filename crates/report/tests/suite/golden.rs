//! The exact text of verdicts and comparisons for each kind of run: the verdicts as the terminal prints them, their section of the page
//! and its place among the others, and the figures of the run. The texts stand in `tests/golden`; `TIMECELL_GOLDEN=write` rewrites them;
//! read the diff before you keep it.

use std::path::{Path, PathBuf};

use record::import::measured::{Options, import};
use record::run::{Manifest, RUN_SCHEMA, Run, Status};
use record::series::{Condition, Quantity, SERIES_SCHEMA, SeriesRecord, Value};
use record::summary::NotMeasured;
use record::supply::{Machine, SUPPLY_SCHEMA, SupplyRecord, SupplySummary};
use study::judge::{Judged, Readings, Threshold, judge};
use study::{Ask, Compared, Kind, Studied, measured_readings};
use timecell_report::{
    Drawn, Extras, Style, compared_html, compared_table, judged_table, measured_html,
};

use crate::synthetic::crowd::{DEMAND, add, toml};
use crate::synthetic::{Synthetic, lacking, provenance};

/// Holds a text against the file of this name.
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("TIMECELL_GOLDEN").is_some_and(|what| what == "write") {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "{} is no longer what is said:\n{text}\nTIMECELL_GOLDEN=write keeps this instead",
        path.display()
    );
}

fn parse(texts: &[&str]) -> Vec<Threshold> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// The table, the order of the page's sections, and the section on thresholds.
fn said(judged: &Judged, page: &str) -> String {
    let ids = page.split("<section id=\"").skip(1);
    let ids: Vec<&str> = ids.filter_map(|rest| rest.split('"').next()).collect();
    let section = page
        .split("<section id=\"thresholds\"")
        .nth(1)
        .expect("a section");
    let section = section.split("</section>").next().unwrap_or_default();
    let section = section.replace("<tr>", "\n<tr>").replace("<p", "\n<p");
    format!(
        "{}\noutcome: {}\nsections: {}\n\n<section id=\"thresholds\"{section}\n</section>\n",
        judged_table(judged, Style::default()),
        judged.outcome(),
        ids.join(", "),
    )
}

/// The verdicts on such a run, and its figures.
fn of_run(name: &str, run: &Run, studied: &dyn Drawn, thresholds: &[&str]) {
    let thresholds = parse(thresholds);
    let judged = studied.judged(run, &thresholds, None).unwrap();
    let extras = Extras {
        judged: Some(&judged),
        ..Extras::default()
    };
    let page = studied.page(run, extras).unwrap();
    golden(&format!("judged-{name}.txt"), &said(&judged, &page));
    // A kind offers its runs' figures, and no more.
    let readings = studied.readings();
    for reading in readings
        .subjects
        .iter()
        .flat_map(|subject| &subject.readings)
    {
        assert!(
            readings.kind.has(reading.figure),
            "{} of {name}",
            reading.figure
        );
    }
}

/// The figures as `export --statistics` writes them.
fn statistics(name: &str, readings: &Readings) {
    let rows = readings.rows().into_iter().map(|row| row.join(","));
    let head = record::export::FIGURES.join(",");
    let lines: Vec<String> = std::iter::once(head).chain(rows).collect();
    golden(
        &format!("statistics-{name}.csv"),
        &(lines.join("\n") + "\n"),
    );
}

fn manifest() -> Manifest {
    Manifest {
        schema: RUN_SCHEMA,
        timecell_version: "0".to_owned(),
        status: Status::Complete,
        started: "2026-11-22T10:00:00Z".to_owned(),
        finished: None,
        trials_planned: 1,
        trials_done: 1,
        requirements: Vec::new(),
        not_measured: Vec::new(),
        failure: None,
        resumed: Vec::new(),
        remarks: Vec::new(),
    }
}

fn absent(name: &str) -> NotMeasured {
    serde_json::from_value(serde_json::json!({
        "trial": name, "reason": "no daemon answers", "mend": "apt install docker.io"
    }))
    .unwrap()
}

#[test]
fn periodic_jobs() {
    let base = tempfile::tempdir().unwrap();
    let run = crate::judge::run(base.path(), 3);
    let summary = study::study(&run.run).unwrap();
    of_run(
        "jobs",
        &run.run,
        &summary,
        &[
            "execution.median > 2us",
            "podman.execution.median > 2x",
            "execution.p99.9 > 1s",
            "skipped > 5",
            "late > 0.1%",
            "docker.latency.p99 > 1us",
            "nobody.latency.p99 > 1us",
            "skew.max > 1us",
            "memory.max > 1MB",
        ],
    );
}

#[test]
fn growing_numbers_of_cells() {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), &toml(&["embedded"], &[1, 2, 10]));
    for count in [1, 2, 10] {
        add(&mut run, model::EngineKind::Embedded, count, 50, DEMAND);
    }
    lacking(&mut run.manifest);
    run.finish();
    let summary = study::scale_study(&run.run).unwrap();
    of_run(
        "scale",
        &run.run,
        &summary,
        &[
            "failed > 0",
            "lost > 0",
            "embedded-10.response.mean > 1ms",
            "execution.mean > 1ms",
            "skew.max > 1s",
            "response.p99 > 1ms",
        ],
    );
    statistics("scale", &summary.readings());
}

/// 40 rounds of two subjects, the second `times` as slow; docker is not there.
fn series(base: &Path, time: &str, times: i64) -> Run {
    let mut record = SeriesRecord {
        schema: SERIES_SCHEMA,
        scenario: "recovery".to_owned(),
        question: "How long?".to_owned(),
        conditions: vec![Condition {
            name: "payload".to_owned(),
            text: format!("beats every {times} ms"),
        }],
        rounds_planned: 40,
        baseline_subject: Some("bare".to_owned()),
        series: Vec::new(),
        sweep: Vec::new(),
        not_measured: vec![absent("docker")],
    };
    for round in 1..=40 {
        for (subject, factor) in [("bare", 1), ("crun", times)] {
            let mut put = |part: &str, of, unit, value| {
                let value = Value {
                    round,
                    order: round,
                    value,
                };
                record.of(subject, part, of, unit).values.push(value);
            };
            let ns = factor * (1_000_000 + i64::from(round) * 10_000);
            put("killed, runs again", None, Quantity::Ns, ns);
            put("create", Some("killed, runs again"), Quantity::Ns, ns / 2);
            put("PSS", None, Quantity::Bytes, 2_000_000 + i64::from(round));
        }
    }
    Run::create(
        base,
        time,
        record::Kind::Series,
        "recovery",
        |run| run.write(&record),
        &provenance(),
        &manifest(),
    )
    .unwrap()
}

#[test]
fn single_measurements() {
    let base = tempfile::tempdir().unwrap();
    let run = series(base.path(), "2026", 3);
    let summary = study::series_study(&run).unwrap();
    of_run(
        "series",
        &run,
        &summary,
        &[
            "time.median > 3ms",
            "crun*.time.max > 10ms",
            "time.p99 > 10ms",
            "memory.max > 3MB",
            "bare.creation.median > 1ms",
            "docker.time.max > 1s",
            "missed > 0",
        ],
    );
    statistics("series", &summary.readings());
}

#[test]
fn two_runs_of_single_measurements() {
    let base = tempfile::tempdir().unwrap();
    let [first, second] = [("2026-1", 3), ("2026-2", 4)];
    let first = series(base.path(), first.0, first.1);
    let second = series(base.path(), second.0, second.1);
    let compared = Compared::of(&first, &second).unwrap();
    let table = compared_table(&compared, Style::default());
    golden("compared-series.txt", &table);
    let page = compared_html(&compared);
    for part in ["1.333x, larger", "1.000x, within noise", "beats every 4 ms"] {
        assert!(page.contains(part) && table.contains(part), "{part}");
    }
    // The same comparison stands on the page of the second.
    let summary = study::series_study(&second).unwrap();
    let extras = Extras {
        compared: Some(&compared),
        ..Extras::default()
    };
    let own = summary.page(&second, extras).unwrap();
    assert!(own.contains("id=\"baseline\"") && own.contains("Against run 2026-1-recovery"));
    assert_eq!(study::unlike_runs(&first, &second).unwrap(), None);
}

fn supply_summary() -> SupplySummary {
    let foretold = serde_json::json!({ "accepted": true, "responses_ns": [], "witness": null });
    let misses = |late: u64| {
        serde_json::json!({
            "jobs": 100, "late": late, "skipped": 0, "trials": 3, "trials_with": late.min(1), "over_declared": 0,
            "worst_lateness_ns": 5
        })
    };
    let tried = |number: u32, chosen_by: &str, late: u64| {
        serde_json::json!({
            "set": {
                "number": number,
                "held": { "enforcer": "rt-cgroup", "budget_ns": 3_000_000, "period_ns": 10_000_000 },
                "chosen_by": chosen_by, "tasks": [], "textbook": foretold, "measured": foretold,
            },
            "in_budget": { "tasks": [misses(late)], "quiet": misses(late), "steal_ns": null },
            "without": { "tasks": [misses(0)], "quiet": misses(0), "steal_ns": null },
        })
    };
    let between =
        |most: u64| serde_json::json!({ "least": most / 2, "median": most / 2, "most": most });
    let promise = serde_json::json!({ "supplied": 3, "per": 10, "delay_ns": 14_000_000, "kept": { "verdict": "held" } });
    let supply = |enforcer: &str, gap: u64| {
        serde_json::json!({
            "held": { "enforcer": enforcer, "budget_ns": 3_000_000, "period_ns": 10_000_000 },
            "machine": serde_json::to_value(Machine::here()).unwrap(),
            "rounds": 3, "starts": 9, "points": [], "measured_to_ns": 1_000_000_000,
            "delay_ns": between(gap), "longest_gap_ns": between(gap), "billed": null,
            "received": { "cpu_ns": 30, "of_ns": 100 }, "periods": null, "textbook": promise,
            "by_tick": null, "cautious": null, "least": [[1_000_000, 0], [20_000_000, 3_000_000]],
        })
    };
    let json = serde_json::json!({
        "schema": 1, "run": "2026-supply",
        "supplies": [supply("rt-cgroup", 14_500_000), supply("deadline", 9_000_000)],
        "host": { "rounds": 3, "received": { "cpu_ns": 97, "of_ns": 100 }, "longest_gap_ns": between(400_000),
            "point": { "supplied": 97, "per": 100, "delay_ns": 400_000 }, "most_lost": [[1_000_000, 400_000]] },
        "not_measured": [{ "trial": "freezer 3 ms / 10 ms", "reason": "no freezer", "fix": "" }],
        "tried": [tried(1, "textbook", 40), tried(2, "measured", 0)],
        "unmet": [], "failures": [],
    });
    serde_json::from_value(json).unwrap()
}

#[test]
fn what_budgets_supply() {
    let base = tempfile::tempdir().unwrap();
    let record = SupplyRecord {
        schema: SUPPLY_SCHEMA,
        question: "What?".to_owned(),
        machine: Machine::here(),
        conditions: Vec::new(),
        rounds_planned: 3,
        trials: Vec::new(),
        not_measured: Vec::new(),
        tried: record::supply::Tried::default(),
    };
    let run = Run::create(
        base.path(),
        "2026",
        record::Kind::Supply,
        "supply",
        |run| run.write(&record),
        &provenance(),
        &manifest(),
    )
    .unwrap();
    let summary = supply_summary();
    of_run(
        "supply",
        &run,
        &summary,
        &[
            "missed > 0",
            "textbook.missed > 0",
            "measured/3ms/10ms.late > 0",
            "gap.max > 14ms",
            "deadline.gap.max > 14ms",
            "none.gap.max > 1ms",
            "tick.missed > 0",
            "latency.p99 > 1us",
            "missed > 1%",
        ],
    );
    statistics("supply", &summary.readings());
}

/// Three budgets that the freezer enforces, as `timecell-study` makes them out: held, broken by a gap, and looked at too late.
#[test]
fn what_the_freezer_supplies() {
    let mut summary = supply_summary();
    let measured = include_str!("../golden/freezer.json");
    summary.supplies = serde_json::from_str(measured).unwrap();
    summary.load = Some("disk".to_owned());
    let style = Style {
        colour: false,
        width: 1_000,
    };
    let table = timecell_report::supply_table(&summary, style);
    for part in [
        "has its cpu to itself, beside load disk",
        "how exact the freezer was",
        "14.4 ms",
        "1.60 % of a cpu",
        "the freezer checked up to 11.0 ms late",
        "`--reaction 11000us/11000us/noticed`",
        "nothing is certain then for 3 ms / 10 ms",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
}

#[test]
fn contests_of_two_cells() {
    let base = tempfile::tempdir().unwrap();
    let run = crate::isolation::run(base.path());
    let summary = study::isolation_study(&run).unwrap();
    of_run(
        "isolation",
        &run,
        &summary,
        &[
            "missed > 0",
            "none.missed > 0",
            "late > 0",
            "hcbs.missed > 0",
            "memory.max > 1MB",
        ],
    );
    statistics("isolation", &summary.readings());
}

#[test]
fn files_of_other_tools() {
    let file = |name: &str| -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../record/tests/data")
            .join(name)
    };
    let mut files = Vec::new();
    for name in ["cyclictest-2.40.json", "cyclictest-2.40-overflow.txt"] {
        let bytes = std::fs::read(file(name)).unwrap();
        files.push(import(None, name, &bytes, Options::default()).unwrap());
    }
    let fewer = "{\"cmdline\": \"cyclictest -t4\", \"rt_test_version\": \"2.5\", \"num_threads\": 4, \"resolution_in_ns\": 0, \
        \"return_code\": 1, \"thread\": {\"0\": {\"histogram\": {\"1\": 5, \"2\": 5}, \"cycles\": 10, \"min\": 1, \"max\": 2, \
        \"avg\": 1.5}}}";
    files.push(import(None, "fewer.json", fewer.as_bytes(), Options::default()).unwrap());
    let thresholds = parse(&[
        "latency.max > 1h",
        "latency.p99 > 1us",
        "fewer.json.latency.max > 1h",
        "nobody.latency.max > 1h",
        "execution.max > 1ns",
        "late > 0",
        "latency.median > 1.1x",
    ]);
    let judged = judge(&measured_readings(&files), &thresholds);
    let extras = Extras {
        judged: Some(&judged),
        ..Extras::default()
    };
    golden(
        "judged-files.txt",
        &said(&judged, &measured_html(&files, extras)),
    );
}

/// The book and the list agree on every kind.
#[test]
fn the_book_tells_what_every_kind_can() {
    let book = include_str!("../../../../docs/src/thresholds.md");
    for kind in Kind::all() {
        let name = kind.name();
        let row = book
            .lines()
            .find(|line| line.starts_with(&format!("| {name} |")));
        let row = row.unwrap_or_else(|| panic!("no row `| {name} |`"));
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for (place, ask) in Ask::ALL.into_iter().enumerate() {
            let told = cells[place + 2] == "yes";
            assert_eq!(told, kind.can(ask), "{name}: {}", ask.words());
        }
    }
}
