//! Scale studies, made up by simulation: the study's findings, the page's content and how large it may become.

use crate::synthetic::crowd::{DEMAND, REST, add, crowd, pids, simulate, toml};
use crate::synthetic::{Synthetic, lacking};
use model::EngineKind;
use record::Document;
use record::crowd::Priorities;
use record::scale::ScaleSummary;
use stats::{Even, Growth};
use study::{Studied, scale_beside, scale_study};
use timecell_report::{Extras, Style, scale_figures, scale_html, scale_table};

const COUNTS: [u32; 8] = [1, 2, 10, 16, 20, 32, 50, 64];

/// Embedded cells, all numbers of them.
fn study(base: &std::path::Path) -> Synthetic {
    let mut run = Synthetic::new(base, &toml(&["embedded"], &COUNTS));
    for count in COUNTS {
        add(&mut run, EngineKind::Embedded, count, 300, DEMAND);
    }
    run
}

#[test]
fn a_simulated_machine_does_what_is_predicted_and_bends_where_it_saturates() {
    let dir = tempfile::tempdir().unwrap();
    let run = study(dir.path());
    let summary = scale_study(&run.run).unwrap();
    assert_eq!(summary.points.len(), COUNTS.len());
    let engine = &summary.engines[0];
    assert_eq!(engine.largest, Some(64));
    // m (E + Z) / E with the cells' usage.
    let demand = summary.points[0].sharing.unwrap().demand_alone_ns;
    let saturation = 2.0 * (demand + REST as f64) / demand;
    assert!((engine.saturation.unwrap() / saturation - 1.0).abs() < 1e-9);
    for point in &summary.points {
        let sharing = point.sharing.unwrap();
        let low = 0.97 * sharing.floor_ns;
        assert!(
            sharing.response_ns >= low && sharing.response_ns <= 1.05 * sharing.ceiling_ns,
            "{sharing:?}"
        );
        assert_eq!(
            (point.executed, point.skipped, point.unexplained),
            (u64::from(point.count) * 300, 0, 0)
        );
    }
    let last = summary.points.last().unwrap();
    let sharing = last.sharing.unwrap();
    assert!(
        (sharing.response_ns / sharing.sharing_ns - 1.0).abs() < 0.05,
        "{sharing:?}"
    );
    assert!(sharing.utilization > 0.95 && summary.points[0].sharing.unwrap().utilization < 0.25);
    let growth = engine
        .growth
        .iter()
        .find(|g| g.what == "mean response time")
        .unwrap();
    let Growth::Knee(knee) = growth.growth else {
        panic!("{growth:?}");
    };
    assert!((6.0..14.0).contains(&knee.at), "{knee:?}");
    // In line on a cpu nobody is preempted: execution times stay the same.
    let execution = last.execution.as_ref().unwrap();
    assert!((execution.spread.mean / demand - 1.0).abs() < 0.02);
}

#[test]
fn a_remark_on_the_run_stands_where_sharing_explains_too_little() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = study(dir.path());
    let limit = "only 440 ms of real-time budget per second were free for the cells";
    run.manifest.remarks = vec![limit.to_owned()];
    run.run.write(&run.manifest).unwrap();
    let mut summary = scale_study(&run.run).unwrap();
    let told =
        format!("more than any sharing of the cpus among the cells explains (remarks: {limit})");
    let table =
        |summary: &ScaleSummary| scale_table(summary, Style::default()).replace("\n    ", " ");
    assert!(!table(&summary).contains(limit), "sharing explains it");
    let last = summary.points.last_mut().unwrap();
    let sharing = last.sharing.as_mut().unwrap();
    sharing.response_ns = 2.0 * sharing.ceiling_ns;
    assert!(table(&summary).contains(&told), "{}", table(&summary));
    let page = scale_html(&run.run, &summary, Extras::default()).unwrap();
    let banner = format!("<strong>Remark:</strong> {limit}.");
    assert!(page.contains(&banner) && page.contains(&told));
    summary.remarks.clear();
    assert!(
        table(&summary).contains("among the cells explains.")
            || table(&summary).contains("among the cells explains\n")
    );
}

#[test]
fn a_cell_that_is_slower_than_its_neighbours_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(dir.path(), &toml(&["embedded"], &[1, 10]));
    run.crowd = Some(crowd(1, 1));
    run.trial(
        "embedded-1",
        1,
        simulate(EngineKind::Embedded, 1, 300, DEMAND, None),
    );
    run.crowd = Some(crowd(10, 10));
    run.trial(
        "embedded-10",
        1,
        simulate(EngineKind::Embedded, 10, 300, DEMAND, Some(4)),
    );
    let summary = scale_study(&run.run).unwrap();
    let execution = summary.points[1].execution.as_ref().unwrap();
    assert_eq!(execution.fairness.unwrap().verdict, Even::Uneven);
    assert!(execution.spread.coefficient_of_variation.unwrap() > 0.2);
    let text = scale_table(&summary, Style::default());
    assert!(text.contains("10 cells"), "{text}");
}

#[test]
fn cells_of_sched_deadline_hold_what_is_told_and_are_compared_all_together() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(dir.path(), &toml(&["embedded"], &[10]));
    let mut cells = simulate(EngineKind::Embedded, 10, 300, DEMAND, Some(4));
    for (at, cell) in cells.iter_mut().enumerate() {
        cell.record.cpus = vec![0, 1];
        cell.samples.as_mut().unwrap().0.cpu_first = at as u32 / 7;
    }
    run.crowd = Some(record::crowd::CrowdRecord {
        reservation: Some(record::crowd::Reservation {
            runtime_us: 160_000,
            period_us: 1_000_000,
            enforcer: model::Enforcer::Deadline,
        }),
        ..crowd(10, 10)
    });
    run.trial("embedded-10", 1, cells);
    run.finish();
    let summary = scale_study(&run.run).unwrap();
    let point = &summary.points[0];
    assert!(!point.pinned);
    let began: Vec<u32> = point.cpus.iter().map(|cpu| cpu.cells).collect();
    assert_eq!(
        began,
        [7, 3],
        "where they began, not where they were meant to be"
    );
    let execution = point.execution.as_ref().unwrap();
    assert_eq!(execution.fairness.unwrap().verdict, Even::Uneven);
    let text = scale_table(&summary, Style::default());
    for part in [
        "160.0 ms of 1 s",
        "on any cpu, an equal share, by SCHED_DEADLINE",
        "10 cells, none of them pinned, differ",
    ] {
        assert!(
            text.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains(part),
            "{part}: {text}"
        );
    }
    let page = scale_html(&run.run, &summary, Extras::default()).unwrap();
    for part in ["any cpu", "of cells that share all cpus"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn cells_that_fail_are_told_and_the_others_are_measured() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(dir.path(), &toml(&["embedded", "crun"], &[1, 10, 16]));
    add(&mut run, EngineKind::Embedded, 1, 300, DEMAND);
    add(&mut run, EngineKind::Embedded, 10, 300, DEMAND);
    let mut cells = simulate(EngineKind::Embedded, 16, 300, DEMAND, None);
    for cell in &mut cells[14..] {
        cell.record.failure = Some("fork: Resource temporarily unavailable".to_owned());
        cell.samples = None;
        cell.record.started_ns = None;
    }
    // Killed in its middle.
    cells[3].record.failure = Some("killed by signal 9".to_owned());
    if let Some((header, samples)) = &mut cells[3].samples {
        header.complete = 0;
        samples.truncate(100);
        header.count = 100;
    }
    run.crowd = Some(record::crowd::CrowdRecord {
        gave_out: Some(pids()),
        ..crowd(16, 13)
    });
    run.trial("embedded-16", 1, cells);
    lacking(&mut run.manifest);
    run.finish();
    let summary = scale_study(&run.run).unwrap();
    let point = summary.points.last().unwrap();
    assert_eq!((point.failed_cells, point.cells.number.len()), (3, 13));
    assert_eq!((point.lost_with_cells, point.unexplained), (200, 0));
    assert_eq!(summary.engines[0].largest, Some(10));
    assert_eq!(summary.engines[1].largest, None);
    let text = scale_table(&summary, Style::default());
    for words in [
        "13 of 16",
        "with 16 cells process ids ran out: /sys/fs/cgroup/pids/pids.max (1,000 of 1,000); write a larger number",
        "failed: embedded-16, round 1, 2 cells: fork: Resource temporarily unavailable",
        "crun-16: not measured: the run holds no record of it",
    ] {
        assert!(
            text.replace("\n    ", " ").contains(words),
            "{words}\n{text}"
        );
    }
    let html = scale_html(&run.run, &summary, Extras::default()).unwrap();
    assert!(html.contains("What ran out") && html.contains("write a larger number"));
}

#[test]
fn guard_rails_that_did_not_stand_above_the_cells_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(dir.path(), &toml(&["embedded", "crun"], &[2, 10]));
    add(&mut run, EngineKind::Crun, 2, 64, DEMAND);
    let below = |count| {
        let mut found = crowd(count, count);
        if let Some(watchdog) = &mut found.watchdog {
            watchdog.priorities = Some(Priorities {
                coordinator: 0,
                watchdog: 99,
                cells: 99,
            });
        }
        found
    };
    for count in [2, 10] {
        run.crowd = Some(below(count));
        let cells = simulate(EngineKind::Embedded, count, 64, DEMAND, None);
        run.trial(&format!("embedded-{count}"), 1, cells);
    }
    let summary = scale_study(&run.run).unwrap();
    let words = "embedded: the coordinator (no real-time class) and the watchdog (FIFO 99) did not both run above the 10 cells (FIFO 99): \
                 only the kernel's real-time throttling";
    let text = scale_table(&summary, Style::default()).replace("\n    ", " ");
    assert_eq!(text.matches("did not both run").count(), 1, "{text}");
    assert!(text.contains(words), "{text}");
    let html = scale_html(&run.run, &summary, Extras::default()).unwrap();
    assert!(html.contains("did not both run above"));
}

#[test]
fn jobs_that_vanish_in_a_sound_cell_are_told_as_lost() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(dir.path(), &toml(&["embedded"], &[2]));
    let mut cells = simulate(EngineKind::Embedded, 2, 300, DEMAND, None);
    if let Some((header, samples)) = &mut cells[1].samples {
        header.complete = 0;
        samples.truncate(290);
        header.count = 290;
    }
    run.trial("embedded-2", 1, cells);
    let summary = scale_study(&run.run).unwrap();
    assert_eq!(summary.points[0].unexplained, 10);
    assert!(summary.failures[0].contains("10 activations neither ran nor were counted"));
}

#[test]
fn jobs_that_an_interrupted_trial_did_not_reach_are_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(dir.path(), &toml(&["embedded"], &[2]));
    let mut cells = simulate(EngineKind::Embedded, 2, 300, DEMAND, None);
    for cell in &mut cells {
        if let Some((header, samples)) = &mut cell.samples {
            header.complete = 0;
            samples.truncate(200);
            header.count = 200;
        }
    }
    run.crowd = Some(record::crowd::CrowdRecord {
        finished: 0,
        ..crowd(2, 2)
    });
    run.trial("embedded-2", 1, cells);
    let mut record = run.run.trial(1).unwrap();
    record.cut_off = Some("interrupted".to_owned());
    record
        .write(&run.run.dir().join("trials/1/trial.json"))
        .unwrap();
    let summary = scale_study(&run.run).unwrap();
    let point = &summary.points[0];
    assert_eq!((point.not_reached, point.unexplained), (200, 0));
    assert_eq!((point.planned, point.executed), (600, 400));
    assert_eq!(
        summary.failures,
        ["embedded-2: 200 of 600 activations not reached: the trial was cut off (interrupted)"]
    );
    let text = scale_table(&summary, Style::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("200 were not reached, as the trial was cut off"),
        "{text}"
    );
    assert!(!text.contains("200 were lost"), "{text}");
    assert!(summary.has_failed());
    // Resumed, it is whole.
    let cells = simulate(EngineKind::Embedded, 2, 100, DEMAND, None);
    run.crowd = Some(crowd(2, 2));
    run.trial("embedded-2", 1, cells);
    let mut record = run.run.trial(2).unwrap();
    record.continues = Some(1);
    record
        .write(&run.run.dir().join("trials/2/trial.json"))
        .unwrap();
    let summary = scale_study(&run.run).unwrap();
    let point = &summary.points[0];
    assert_eq!((point.not_reached, point.unexplained), (0, 0));
    assert_eq!((point.planned, point.executed), (600, 600));
    assert!(point.cut_off.is_empty() && !summary.has_failed());
    // Its two parts are one round of two cells.
    assert_eq!((point.rounds, point.crowds.len()), (1, 1));
    assert_eq!(point.cells.number, [1, 2]);
    assert_eq!(point.cells.jobs, [300, 300]);
    assert_eq!(point.skew_ns.len(), 1);
    let sharing = point.sharing.unwrap();
    assert!(sharing.jobs_in_window > 0.9 && sharing.utilization > 0.0);
    let text = scale_table(&summary, Style::default());
    assert!(text.contains(" all ") && !text.contains(" of 4"), "{text}");
}

#[test]
fn two_thousand_cells_are_a_small_page() {
    let dir = tempfile::tempdir().unwrap();
    let counts = [1, 10, 64, 512, 2048];
    let mut run = Synthetic::new(dir.path(), &toml(&["embedded"], &counts));
    for count in counts {
        add(&mut run, EngineKind::Embedded, count, 64, DEMAND);
    }
    let summary = scale_study(&run.run).unwrap();
    let html = scale_html(&run.run, &summary, Extras::default()).unwrap();
    assert!(html.len() < 1 << 20, "{} bytes", html.len());
    assert!(
        !html.contains("NaN") && !html.contains(">inf<"),
        "a number that is none"
    );
    let json = serde_json::to_string(&summary).unwrap();
    assert!(json.len() < 1 << 20, "{} bytes", json.len());
    run.run.write(&summary).unwrap();
    // The last digit of a fraction may differ when it is read back; whole numbers do not.
    let read = run.run.read::<ScaleSummary>().unwrap();
    let cells = |s: &record::scale::ScaleSummary| {
        let of_points = s.points.iter().map(|point| point.cells.clone());
        of_points.collect::<Vec<_>>()
    };
    assert!(cells(&read) == cells(&summary));
    // 64 jobs bound no 99th percentile.
    assert!(
        summary
            .points
            .iter()
            .all(|p| p.execution.as_ref().unwrap().p99.is_none())
    );
}

#[test]
fn the_thesis_stands_beside_the_same_numbers_of_cells() {
    let dir = tempfile::tempdir().unwrap();
    let run = study(dir.path());
    let summary = scale_study(&run.run).unwrap();
    let beside = scale_beside(&run.run, &summary).unwrap();
    let text = timecell_report::beside_table(&beside, Style::default());
    assert!(text.contains("0.0282240115"), "{text}");
    let table = beside
        .blocks
        .iter()
        .find(|block| block.place == "Table 4.4")
        .unwrap();
    assert_eq!(table.lines.len(), 6);
    assert!(table.lines.iter().all(|line| line.ours.len() == 2));
    assert_eq!(table.lines[5].ours[0].label, "embedded-64");
    let extras = Extras {
        beside: Some(&beside),
        ..Extras::default()
    };
    let html = scale_html(&run.run, &summary, extras).unwrap();
    assert!(html.contains("Table 4.4"));
}

#[test]
fn every_figure_is_sound_xml_and_has_its_words() {
    let dir = tempfile::tempdir().unwrap();
    let run = study(dir.path());
    let summary = scale_study(&run.run).unwrap();
    let figures = scale_figures(&summary);
    let names: Vec<&str> = figures.iter().map(|(name, _)| name.as_str()).collect();
    for name in [
        "growth.svg",
        "start-skew.svg",
        "creation-rate.svg",
        "memory.svg",
        "execution-mean.svg",
        "execution-sd.svg",
        "response-p95.svg",
        "response-p99.svg",
        "cells-embedded-16-execution.svg",
        "cells-embedded-32-response.svg",
        "cells-embedded-64-execution.svg",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    for (name, svg) in &figures {
        roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!svg.contains("NaN"), "{name}");
    }
}

#[test]
fn switches_in_band_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(dir.path(), &toml(&["crun"], &[2]));
    run.crowd = Some(crowd(2, 2));
    for (switches, told) in [
        (0, "out of band by EVL (ABI 32), never in band"),
        (3, "in band 3 times in the measuring loop"),
    ] {
        let mut cells = simulate(EngineKind::Crun, 2, 300, DEMAND, None);
        for cell in &mut cells {
            cell.samples.as_mut().unwrap().0.evl_level = 32;
        }
        let (header, _) = cells[1].samples.as_mut().unwrap();
        header.in_band_switches = switches;
        run.trial("crun-2", switches + 1, cells);
        let text = scale_table(&scale_study(&run.run).unwrap(), Style::default());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(told), "{text}");
    }
}
