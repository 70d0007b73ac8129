//! The report of a scale study: made from a real run of a few cells, made again, and refused where it does not apply.

use std::path::Path;

use record::run::Run;
use record::scale::ScaleSummary;

use crate::support::{only_run, say};

const STUDY: &str = "schema = 1\nname = \"few\"\nquestion = \"Does it scale?\"\nrounds = 1\n[workload]\nkind = \"mac\"\n\
    steps = 1000\njobs = 100\npacing = \"relative\"\n[scheduling]\nclass = \"other\"\n[scale]\nengines = [\"bare\"]\n\
    counts = [1, 2, 6]\n";

#[case]
fn a_study_of_a_few_cells_has_its_summary_page_and_figures(dir: &Path) {
    let file = dir.join("few.toml");
    std::fs::write(&file, STUDY).unwrap();
    let said = say(dir, &["bench", "few.toml"]).ends_with(0);
    for words in [
        "bare: cells that run together",
        "start skew",
        "cpus used",
        "not real-time",
    ] {
        assert!(said.out.contains(words), "{words}:\n{}", said.out);
    }
    let run = only_run(dir);
    let kept = Run::open(&run).unwrap().read::<ScaleSummary>().unwrap();
    let counts: Vec<(u32, usize, u64)> = (kept.points.iter())
        .map(|point| (point.count, point.cells.number.len(), point.executed))
        .collect();
    assert_eq!(counts, [(1, 1, 100), (2, 2, 200), (6, 6, 600)]);
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("Cell by cell") && page.contains("6 cells of bare"));

    let name = run.to_string_lossy().into_owned();
    let json = say(dir, &["report", &name, "--json"]).ends_with(0);
    let again: ScaleSummary = serde_json::from_str(&json.out).unwrap();
    assert_eq!(again, kept);
    let figures = say(
        dir,
        &[
            "report",
            &name,
            "--figures",
            "figures",
            "--against",
            "published",
        ],
    );
    assert!(figures.ends_with(0).out.contains("SVG files in figures"));
    assert!(dir.join("figures/response-mean.svg").is_file());

    let said = say(
        dir,
        &[
            "report",
            &name,
            "--fail-if",
            "failed > 0",
            "--fail-if",
            "response.mean > 1ns",
        ],
    );
    // Without a real-time class, the report says nothing about times.
    assert!(matches!(said.code, Some(3 | 4)), "{}{}", said.out, said.err);
    assert!(said.out.contains("failed > 0"), "{}", said.out);
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("Thresholds: "), "verdicts stand on the page");
    let compared = say(dir, &["report", &name, &name]).ends_with(0);
    assert!(compared.out.contains("the same"), "{}", compared.out);
    let words = ["export", &name, "--statistics", "-o", "-"];
    let figures = say(dir, &words).ends_with(0);
    assert!(
        figures.out.contains(",bare-6,failed,count,0,,,"),
        "{}",
        figures.out
    );

    for (words, sentence) in [
        (
            vec!["bench", "few.toml", "--fail-if", "response.p99 > 1ms"],
            "a scale study has no `response.p99`",
        ),
        (
            vec!["bench", "overhead", "--baseline", &name, "--dry-run"],
            "it is a scale study, and this run is a run of periodic jobs",
        ),
    ] {
        let error = say(dir, &words).ends_with(2).error();
        assert!(error.contains(sentence), "{error}");
    }
}
