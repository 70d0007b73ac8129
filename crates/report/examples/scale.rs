//! Makes up a scale study and writes its report, figures and table into a directory, to be looked at.
//!
//! `cargo run -p timecell-report --example scale -- DIR [SAMPLES-OF-A-CELL]`

#[path = "../tests/suite/synthetic/mod.rs"]
mod synthetic;

use model::EngineKind;
use synthetic::crowd::{DEMAND, add, crowd, pids, simulate, toml};
use synthetic::{Synthetic, lacking};
use timecell_report::Style;

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = std::path::PathBuf::from(args.next().unwrap_or_else(|| "scale-demo".to_owned()));
    let jobs: u32 = args
        .next()
        .and_then(|jobs| jobs.parse().ok())
        .unwrap_or(300);
    let _ = std::fs::remove_dir_all(&dir);
    let mut run = Synthetic::new(
        &dir,
        &toml(&["embedded", "crun", "podman-rootless"], &model::COUNTS),
    );
    for (engine, most, demand) in [
        (EngineKind::Embedded, 2048, DEMAND),
        (EngineKind::Crun, 2048, DEMAND + 4_000),
        (EngineKind::PodmanRootless, 128, DEMAND + 9_000),
    ] {
        for count in model::COUNTS.into_iter().filter(|&count| count <= most) {
            add(&mut run, engine, count, jobs, demand);
        }
    }
    let mut cells = simulate(EngineKind::PodmanRootless, 256, jobs, DEMAND, Some(17));
    for cell in &mut cells[198..] {
        cell.record.failure = Some("podman start: join keyctl: Disk quota exceeded".to_owned());
        cell.samples = None;
        cell.record.started_ns = None;
    }
    run.crowd = Some(record::crowd::CrowdRecord {
        gave_out: Some(pids()),
        ..crowd(256, 198)
    });
    run.trial("podman-rootless-256", 1, cells);
    lacking(&mut run.manifest);
    run.finish();
    let began = std::time::Instant::now();
    let summary = study::scale_study(&run.run).unwrap();
    let studied = began.elapsed();
    let beside = study::scale_beside(&run.run, &summary).unwrap();
    let page = {
        let extras = timecell_report::Extras {
            beside: Some(&beside),
            ..timecell_report::Extras::default()
        };
        timecell_report::scale_html(&run.run, &summary, extras).unwrap()
    };
    println!(
        "{}",
        timecell_report::scale_table(&summary, Style::default())
    );
    println!(
        "{}",
        timecell_report::beside_table(&beside, Style::default())
    );
    println!(
        "studied in {studied:?}, page of {} bytes in {:?}",
        page.len(),
        began.elapsed() - studied
    );
    std::fs::write(dir.join("report.html"), page).unwrap();
    run.run.write(&summary).unwrap();
    for (name, svg) in timecell_report::scale_figures(&summary) {
        std::fs::write(dir.join(name), svg).unwrap();
    }
}
