//! Makes up a realistic run and writes its report, figures and tables into a directory, to be looked at.
//!
//! `cargo run -p timecell-report --example demo -- DIR [plain|timer|rough|many]`

#[path = "../tests/suite/synthetic/mod.rs"]
mod synthetic;

use model::EngineKind;
use record::run::Status;
use std::path::Path;
use synthetic::{Cell, Chance, GO, Synthetic, cell, lacking, miss};
use timecell_report::Style;

/// How an engine's cells behave: median in ns, noise, share and weight of the tail.
struct Temper(f64, f64, f64, f64);

fn jobs(chance: &mut Chance, temper: &Temper, count: usize, timer: bool) -> Vec<(i64, i64, i64)> {
    let mut shift = 0.0;
    (0..count as i64)
        .map(|index| {
            let release = GO + index * 1_000_000;
            let mut late = 2_300.0 * (0.25 * chance.normal()).exp();
            shift = 0.9 * shift + 0.1 * chance.normal();
            let mut work = temper.0 * (1.0 + temper.1 * (chance.normal() + shift)).max(0.8);
            if chance.unit() < temper.2 || index % 977 == 400 {
                let blow = temper.3 * chance.unit().powf(-0.55);
                work += blow.min(9e6);
                late += 0.3 * blow.min(4e6);
            }
            if timer && chance.unit() < 0.01 {
                late = -120.0;
            }
            let start = release + late as i64;
            (
                release,
                start,
                if timer { start } else { start + work as i64 },
            )
        })
        .collect()
}

fn temper(engine: EngineKind, together: usize) -> Temper {
    let crowd = 1.0 + 0.02 * (together as f64 - 1.0);
    match engine {
        EngineKind::Bare => Temper(270_000.0 * crowd, 0.006, 0.002, 20_000.0),
        EngineKind::Embedded => Temper(270_600.0 * crowd, 0.006, 0.003, 22_000.0),
        EngineKind::Crun | EngineKind::Runc => Temper(271_000.0 * crowd, 0.007, 0.004, 30_000.0),
        EngineKind::Podman => Temper(279_000.0 * crowd, 0.01, 0.012, 60_000.0),
        _ => Temper(283_000.0 * crowd, 0.012, 0.02, 90_000.0),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let base = Path::new(arguments.first().map_or("demo", String::as_str)).to_owned();
    let kind = arguments.get(1).map_or("plain", String::as_str);
    std::fs::create_dir_all(&base).unwrap();
    let run = make(&base, kind, 1.0);
    write(&base, &run);
    if kind == "plain" {
        let second = make(&base, kind, 1.04);
        let both = study::compare(&run.run, &second.run).unwrap();
        std::fs::write(
            base.join("compare.html"),
            timecell_report::compare_html(&both),
        )
        .unwrap();
        print!(
            "\n{}",
            timecell_report::compare_table(&both, Style::default())
        );
    }
}

fn make(base: &Path, kind: &str, faster: f64) -> Synthetic {
    let toml = match kind {
        "many" => include_str!("many.toml"),
        "timer" => include_str!("timer.toml"),
        _ => include_str!("plain.toml"),
    };
    let mut run = Synthetic::new(base, toml);
    let plan = run.run.experiment().unwrap();
    let rough = kind == "rough";
    let mut chance = Chance(7 + faster.to_bits());
    lacking(&mut run.manifest);
    for round in 1..=if rough { 2 } else { plan.rounds } {
        for trial in &plan.trials {
            if trial.name == "docker" || (rough && round == 2 && trial.name == "crun") {
                continue;
            }
            let drift = 1.0 + 0.002 * chance.normal();
            let count = if rough {
                120
            } else {
                plan.workload.jobs as usize
            };
            let cells: Vec<Cell> = trial
                .cells
                .iter()
                .enumerate()
                .map(|(place, &engine)| {
                    let mut temper = temper(engine, trial.cells.len());
                    temper.0 *= drift / faster;
                    let times = jobs(&mut chance, &temper, count, kind == "timer");
                    let mut one = cell(&format!("{}-{engine}", place + 1), engine, &times);
                    one.record.cpu = place as u32 % 2;
                    one.record.started_ns = Some(
                        GO + 3_000 + (chance.unit() * 4_000.0) as i64 + place as i64 / 2 * 290_000,
                    );
                    let create = if engine == EngineKind::Bare {
                        1.1e6
                    } else if engine < EngineKind::Podman {
                        9e6
                    } else {
                        212e6
                    };
                    one.record.create_ns = Some((create * (1.0 + 0.1 * chance.unit())) as i64);
                    if engine == EngineKind::Podman && !rough {
                        miss(&mut one, 1_000.min(count - 1), 2);
                    }
                    if rough && engine == EngineKind::PodmanRootless {
                        one.record.class_got = Some("OTHER".to_owned());
                        one.record.real_time = false;
                        one.record.notes.push(
                            "SCHED_FIFO was refused: the user has no RLIMIT_RTPRIO".to_owned(),
                        );
                    }
                    one
                })
                .collect();
            let failure = (rough && round == 2 && trial.name == "podman")
                .then_some("podman did not answer within 30 s");
            run.trial_failed(&trial.name, round, cells, failure);
        }
    }
    if rough {
        run.manifest.status = Status::Interrupted;
    }
    run.finish();
    run
}

fn write(base: &Path, run: &Synthetic) {
    let summary = study::study(&run.run).unwrap();
    run.run.write(&summary.summary).unwrap();
    let page = timecell_report::html(&summary);
    println!("{} bytes of HTML", page.len());
    std::fs::write(base.join("report.html"), page).unwrap();
    for (name, svg) in timecell_report::figures(&summary) {
        println!("{} bytes of {name}", svg.len());
        std::fs::write(base.join(name), svg).unwrap();
    }
    print!("\n{}", timecell_report::table(&summary, Style::default()));
}
