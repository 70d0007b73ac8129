//! Several devices side by side: names, largest values, and who is lower beyond intervals.

use crate::synthetic::{Chance, Synthetic, cell, taking};
use model::EngineKind::Bare;
use study::study;
use timecell_report::{Device, Style, devices_figures, devices_html, devices_table};

fn toml(periods: &str) -> String {
    format!(
        "schema = 1\nname = \"t\"\nrounds = 1\n[workload]\nkind = \"mac\"\njobs = 1000\n[matrix]\ncells = [[\"bare\"]]\n\
         periods = [{periods}]\n"
    )
}

/// A device whose jobs take this many ns at least, and its trials.
fn device(name: &str, least_ns: i64, periods: &[&str]) -> Device {
    let dir = tempfile::tempdir().unwrap();
    let quoted: Vec<String> = periods.iter().map(|each| format!("\"{each}\"")).collect();
    let mut run = Synthetic::new(dir.path(), &toml(&quoted.join(", ")));
    let mut chance = Chance(least_ns as u64);
    for period in periods {
        let jobs: Vec<i64> = (0..1_000)
            .map(|_| least_ns + (10_000.0 * chance.unit()) as i64)
            .collect();
        let one = cell("1-bare", Bare, &taking(&jobs));
        run.trial(&format!("bare-{period}"), 1, vec![one]);
    }
    let study = study(&run.run).unwrap();
    Device {
        name: name.to_owned(),
        study,
        judged: None,
    }
}

#[test]
fn the_faster_of_several_is_so_in_the_trials_that_others_have() {
    let devices = [
        device("slow", 90_000, &["1ms", "2ms"]),
        device("fast <b>", 30_000, &["1ms", "2ms", "4ms"]),
        device("alike", 90_000, &["1ms"]),
    ];
    let text = devices_table(&devices, Style::default());
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    for (name, lowest) in [
        ("slow", "0 of 2"),
        ("fast <b>", "2 of 2"),
        ("alike", "0 of 1"),
    ] {
        assert!(line(name).ends_with(lowest), "{text}");
    }
    // A trial that one device alone has.
    let [slow, alike] = ["bare-2ms", "bare-4ms"].map(|name| line(name).matches(" us").count());
    assert_eq!([slow, alike], [2, 1], "{text}");
    assert!(
        text.contains("The largest execution time seen: slow "),
        "{text}"
    );
    let page = devices_html(&devices);
    for part in [
        "fast &lt;b&gt;",
        "ran another experiment than slow",
        "id=\"maxima\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<b>") && !page.contains("NaN"));
    // Three panels, with two, two and one bar, and a sample of each device.
    let (name, svg) = &devices_figures(&devices)[0];
    assert_eq!(name, "max-by-device.svg");
    assert_eq!(svg.matches("class=\"bar f").count(), 3 + 3 + 2 + 1);
}
