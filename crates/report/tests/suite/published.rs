//! A run beside published figures: corresponding ones stand side by side, the others are listed, nothing is judged.

use crate::synthetic::{Synthetic, cell, taking};
use model::EngineKind;
use study::published::beside;
use study::study;
use timecell_report::{Extras, Style, beside_table, html_with, sources_table};

fn run(base: &std::path::Path, work: &str) -> Synthetic {
    let toml = format!(
        "schema = 1\nname = \"t\"\nquestion = \"q?\"\nrounds = 2\n\n[workload]\nkind = {work}\njobs = 400\nperiod = \"1ms\"\n\n\
         [scheduling]\nclass = \"fifo\"\npriority = 80\ncpus = [1]\n\n[[trial]]\nname = \"bare\"\ncells = [\"bare\"]\n\n\
         [[trial]]\nname = \"pair\"\ncells = [\"podman\", \"podman\"]\n"
    );
    let mut made = Synthetic::new(base, &toml);
    for round in 1..=2 {
        let times: Vec<i64> = (0..400).map(|i| 500_000 + i * 100).collect();
        let one = |id: &str, engine| cell(id, engine, &taking(&times));
        made.trial("bare", round, vec![one("1-bare", EngineKind::Bare)]);
        let pair = vec![
            one("1-podman", EngineKind::Podman),
            one("2-podman", EngineKind::Podman),
        ];
        made.trial("pair", round, pair);
    }
    made.finish();
    made
}

#[test]
fn figures_with_a_counterpart_stand_beside_it_with_their_source_and_hardware() {
    let dir = tempfile::tempdir().unwrap();
    let made = run(dir.path(), "\"mac\"");
    let summary = study(&made.run).unwrap();
    let found = beside(&made.run, &summary).unwrap();
    let block = |place: &str| {
        found
            .blocks
            .iter()
            .find(|block| block.place == place)
            .expect(place)
    };

    let real = block("Figs. 5.8 to 5.10");
    assert_eq!(real.published_by, "Coppola 2026");
    let max = real
        .lines
        .iter()
        .find(|line| line.kind == study::published::Kind::Max)
        .expect("the maximum");
    assert_eq!(
        (max.published.as_str(), max.published_base),
        ("0.551 ms", Some(551_000.0))
    );
    assert_eq!(
        (max.ours[0].label.as_str(), max.ours[0].value),
        ("bare", 539_900.0)
    );

    // Two containers of a kind: both of ours stand beside each of theirs; single ones have none here.
    let pair = block("Table 4.2");
    assert!(pair.conditions.contains("two containers"));
    assert!(
        pair.lines
            .iter()
            .all(|line| line.ours.len() == 2 && line.subject.contains("Rootful"))
    );

    // 1 ms and idle correspond, 100 us, 10 ms and loads do not.
    let sabre = block("Table 4.1");
    let theirs: Vec<&str> = sabre
        .lines
        .iter()
        .map(|line| line.published.as_str())
        .collect();
    assert_eq!(theirs, ["26 us", "8 us", "10.25 us"]);
    let reasons: Vec<&str> = found
        .without
        .iter()
        .map(|none| none.reason.as_str())
        .collect();
    for part in [
        "the period of the run is not 100 us",
        "no trial under the load disk",
        "measured no start-up",
        "no cell of docker",
        "no engine that corresponds",
        "no trial of 3 cells",
    ] {
        assert!(
            reasons.iter().any(|reason| reason.contains(part)),
            "{part}: {reasons:?}"
        );
    }

    let table = beside_table(&found, Style::default());
    assert!(
        table.contains("published by Coppola 2026 (Figs. 5.8 to 5.10), measured on"),
        "{table}"
    );
    assert!(table.contains("not by us") && table.contains("not compared"));
    let extras = Extras {
        beside: Some(&found),
        ..Extras::default()
    };
    let page = html_with(&summary, extras);
    assert!(page.contains("Other hardware, other kernels, other programs."));
    // Nothing is judged: no ratio and no word of better or worse in the section.
    let section = page
        .split("id=\"published\"")
        .nth(1)
        .unwrap()
        .split("</section>")
        .next()
        .unwrap();
    for word in [
        "faster",
        "slower",
        "ratio",
        "better",
        "worse",
        "class=\"good",
        "class=\"bad",
    ] {
        assert!(!section.contains(word), "{word}");
    }
}

#[test]
fn a_timer_stands_beside_no_execution_time() {
    let dir = tempfile::tempdir().unwrap();
    let made = run(dir.path(), "\"timer\"");
    let found = beside(&made.run, &study(&made.run).unwrap()).unwrap();
    assert!(
        found
            .blocks
            .iter()
            .all(|block| block.published_by != "Coppola 2026" || block.place.contains("3.23"))
    );
    assert!(
        found
            .blocks
            .iter()
            .any(|block| block.published_by == "Moceri 2018")
    );
}

#[test]
fn the_list_names_every_document() {
    let list = sources_table(Style::default());
    for author in [
        "C. Coppola",
        "D. Moceri",
        "N.-M. Iliakopoulou",
        "L. Abeni",
        "M. Cinque",
    ] {
        assert!(list.contains(author), "{author}");
    }
}
