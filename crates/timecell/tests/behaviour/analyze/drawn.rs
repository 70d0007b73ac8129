//! The drawings of `analyze`: the picture of demand and supply, and explanations as wide as the terminal.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::analyze::{SET, file, json, late};
use crate::support::{Said, say, timecell};

#[case]
fn plots_are_svg(dir: &Path) {
    let good = file(dir, "good.toml", SET);
    let bad = file(dir, "bad.toml", &late());
    say(dir, &["analyze", &good, "--plot", "good.svg"]).ends_with(0);
    say(dir, &["analyze", &bad, "--plot", "bad.svg"]).ends_with(3);
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    for name in ["good.svg", "bad.svg"] {
        let svg = read(name);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"), "{svg}");
    }
    assert!(
        read("bad.svg").contains("witness at 24.0 ms"),
        "{}",
        read("bad.svg")
    );
    assert!(!read("good.svg").contains("witness at"));
    let said = say(dir, &["analyze", &bad, "--plot", "bad.svg"]).ends_with(3);
    assert!(
        said.out
            .contains("plot    bad.svg: Cell control (fp dm): deadline of log"),
        "{}",
        said.out
    );
    for place in [".", "absent/x.svg"] {
        let error = say(dir, &["analyze", &good, "--plot", place])
            .ends_with(2)
            .error();
        assert!(error.contains(place), "{error}");
    }
    // A set that cannot be drawn is analysed all the same.
    let text = SET
        .replace("\"fp\"", "\"global-edf\"\ncpus = 2")
        .replace("reservation", "# reservation");
    let global = file(dir, "global.toml", &text);
    let plain = say(dir, &["analyze", &global]).ends_with(0);
    let said = say(dir, &["analyze", &global, "--plot", "x.svg"]).ends_with(0);
    assert_eq!(said.out, plain.out);
    assert!(
        said.err.contains("no plot: no cell can be drawn"),
        "{}",
        said.err
    );
    assert!(!dir.join("x.svg").exists());
}

#[case]
fn a_refusal_is_explained_in_sentences_as_wide_as_the_terminal(dir: &Path) {
    for policy in ["\"fp\"", "\"edf\""] {
        let name = file(dir, "bad.toml", &late().replace("\"fp\"", policy));
        for widest in [80, 60] {
            is_explained(dir, &name, widest);
        }
        // Every kind of fix has its name in JSON.
        let found = json(dir, &["analyze", &name, "--explain", "--json"], 3);
        let fixes = found["cells"][0]["fixes"].as_array().unwrap();
        let kinds: Vec<&Value> = fixes.iter().map(|fix| &fix["change"]).collect();
        for kind in ["budget", "reservation_period", "deadline", "wcet", "move"] {
            assert!(kinds.contains(&&kind.into()), "{kind} is not in {kinds:?}");
        }
    }
}

fn is_explained(dir: &Path, name: &str, widest: usize) {
    let output = timecell()
        .current_dir(dir)
        .env("COLUMNS", widest.to_string())
        .args(["analyze", name, "--explain"])
        .output()
        .unwrap();
    let out = Said::from(output).ends_with(3).out;
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "why control: task log",
        "short",
        "of log",
        "fix budget +",
        "fix move",
    ] {
        assert!(flat.contains(part), "`{part}` is not in\n{out}");
    }
    let prose = [
        "cell ", "why ", "demand ", "fix ", "linux ", "verdict ", "room ",
    ];
    let mut seen = 0;
    for line in out
        .lines()
        .skip_while(|line| !line.starts_with("cell    control"))
    {
        assert!(line.chars().count() <= widest, "{widest}: {line}");
        seen += usize::from(prose.iter().any(|word| line.starts_with(word)));
    }
    assert!(seen >= 5, "{out}");
}
