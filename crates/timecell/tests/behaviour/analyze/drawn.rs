//! The drawings of `analyze`: the picture of demand and supply, and sentences as wide as the terminal.

use std::fs;
use std::path::Path;

use crate::analyze::{SET, file, late};
use crate::support::{say, timecell};

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
}

#[case]
fn a_set_that_cannot_be_drawn_is_analysed_all_the_same(dir: &Path) {
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
fn sentences_are_as_wide_as_the_terminal(dir: &Path) {
    let name = file(dir, "bad.toml", &late());
    for (columns, widest) in [("80", 80), ("60", 60)] {
        let output = timecell()
            .current_dir(dir)
            .env("COLUMNS", columns)
            .args(["analyze", &name, "--explain"])
            .output()
            .unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        let prose = [
            "cell ", "why ", "demand ", "fix ", "linux ", "verdict ", "room ",
        ];
        let mut seen = 0;
        for line in out
            .lines()
            .skip_while(|line| !line.starts_with("cell    control"))
        {
            assert!(line.chars().count() <= widest, "{columns}: {line}");
            seen += usize::from(prose.iter().any(|word| line.starts_with(word)));
        }
        assert!(seen >= 5, "{out}");
    }
}
