//! `analyze design`, and random task sets: `generate` and `schedulability`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::analyze::{file, json};
use crate::support::say;

#[case]
fn a_design_holds_what_it_promises(dir: &Path) {
    let text = "schema = 1\n[[cell]]\nname = \"a\"\n[[cell.task]]\nname = \"t\"\nwcet = \"1720us\"\nperiod = \"90ms\"\n\
        [[cell.task]]\nname = \"u\"\nwcet = \"23266us\"\nperiod = \"164ms\"\n\
        [[cell]]\nname = \"b\"\npolicy = \"edf\"\n[[cell.task]]\nname = \"v\"\nwcet = \"85ms\"\nperiod = \"100ms\"\n";
    let name = file(dir, "d.toml", text);
    let said = say(
        dir,
        &["analyze", "design", &name, "--cpus", "2", "--grid", "500us"],
    )
    .ends_with(0);
    for part in ["2 ms", "11 ms", "placed", "cpu 0", "cpu 1"] {
        assert!(said.out.contains(part), "`{part}` is not in\n{}", said.out);
    }
    // The file that it prints holds, on the cpus that it names.
    let said = say(dir, &["analyze", "design", &name, "--cpus", "2", "--toml"]).ends_with(0);
    let designed = file(dir, "designed.toml", &said.out);
    say(dir, &["analyze", &designed]).ends_with(0);
    let found = json(
        dir,
        &["analyze", "design", &name, "--cpus", "2", "--json"],
        0,
    );
    let cell = &found["cells"][0];
    let (budget, period) = (
        cell["budget_ns"].as_u64().unwrap(),
        cell["period_ns"].as_u64().unwrap(),
    );
    let less = said.out.replacen(
        &model::Duration::from_ns(budget as i64).to_string(),
        &model::Duration::from_ns(budget as i64 - 1_000).to_string(),
        1,
    );
    assert_ne!(less, said.out);
    let less = file(dir, "less.toml", &less);
    say(dir, &["analyze", &less]).ends_with(3);
    assert!(period >= 10_000_000);
    // Deadlines shorter than the shortest period need nearly the whole cpu; a note says so.
    let fast = text.replace("1720us", "100us").replace("90ms", "5ms");
    let fast = file(dir, "fast.toml", &fast);
    let said = say(dir, &["analyze", "design", &fast, "--cpus", "2"]);
    assert!(
        said.err
            .contains("--shortest 1ms --step 1ms would give cell a"),
        "{}",
        said.err
    );
    let said = say(
        dir,
        &[
            "analyze",
            "design",
            &fast,
            "--cpus",
            "2",
            "--shortest",
            "1ms",
        ],
    )
    .ends_with(0);
    assert!(!said.err.contains("--shortest"), "{}", said.err);
    let said = say(dir, &["analyze", "design", &name, "--cpus", "1"]).ends_with(3);
    assert!(said.out.contains("no cpu has room"), "{}", said.out);
    its_period_is_the_one_that_is_asked_for(dir);
    it_fits_the_cpus_and_linux(dir);
    it_ends_if_no_period_is_beyond_the_overhead(dir);
}

fn its_period_is_the_one_that_is_asked_for(dir: &Path) {
    let csv = "task_name,runtime_us,period_us\na,1000,30000\nb,3000,44000\n";
    file(dir, "t.csv", csv);
    let words = ["analyze", "design", "t.csv", "--period"];
    for (asked, period_ns) in [("11ms", 11_000_000), ("3ms", 3_000_000)] {
        let found = json(dir, &[&words[..], &[asked, "--json"]].concat(), 0);
        assert_eq!(found["cells"][0]["period_ns"], period_ns, "{found}");
    }
    say(dir, &[&words[..], &["11ms", "--step", "1ms"]].concat()).ends_with(2);
    say(dir, &[&words[..], &["0ms"]].concat()).ends_with(2);
}

/// By decreasing bandwidth a, b, c; all of them fit on one cpu.
fn it_fits_the_cpus_and_linux(dir: &Path) {
    let cells = [("a", 50), ("b", 35), ("c", 5)].map(|(name, wcet)| {
        format!(
            "[[cell]]\nname = \"{name}\"\n[[cell.task]]\nname = \"t\"\nwcet = \"{wcet}ms\"\nperiod = \"100ms\"\n"
        )
    });
    let name = file(dir, "a.toml", &format!("schema = 1\n{}", cells.concat()));
    let words = ["analyze", "design", &name];
    let cpus = |fit: &str| -> Vec<u64> {
        let more = ["--cpus", "2", "--fit", fit, "--json"];
        let found = json(dir, &[&words[..], &more].concat(), 0);
        assert_eq!(found["linux"]["enforcer"], "deadline");
        let cells = found["cells"].as_array().unwrap();
        let cpus = cells.iter().map(|cell| cell["cpu"].as_u64().unwrap());
        cpus.collect()
    };
    assert_eq!(cpus("first"), cpus("best"));
    let worst = cpus("worst");
    assert_eq!(worst, [0, 1, 1]);
    assert_ne!(cpus("first"), worst);
    cpus("next");
    cpus("ovh");
    say(dir, &[&words[..], &["--fit", "last"]].concat()).ends_with(2);
    let shown = say(dir, &[&words[..], &["--enforcer", "hcbs"]].concat()).ends_with(0);
    assert!(shown.out.contains("cpu.rt.max"), "{}", shown.out);
    let help = say(dir, &["analyze", "design", "--help"]).ends_with(0).out;
    assert!(help.contains("reconstructed"), "{help}");
}

/// Periods up to the overhead leave no budget, however many there are.
fn it_ends_if_no_period_is_beyond_the_overhead(dir: &Path) {
    let longest_ns = 1_u64 << 60;
    let overhead = format!("{longest_ns}ns");
    for policy in ["fp", "edf"] {
        let set = format!(
            "schema = 1\n[[cell]]\nname = \"cell\"\npolicy = \"{policy}\"\n[[cell.task]]\nname = \"t\"\n\
             wcet = \"{}ns\"\nperiod = \"{overhead}\"\n",
            longest_ns / 4
        );
        let name = file(dir, "long.toml", &set);
        let said = say(dir, &["analyze", "design", &name, "--overhead", &overhead]).ends_with(3);
        let sentence = "no reservation with these periods suffices";
        assert!(said.out.contains(sentence), "{}", said.out);
    }
}

#[case]
fn generated_sets_are_read_back(dir: &Path) {
    let words = [
        "analyze",
        "generate",
        "--tasks",
        "10",
        "--utilization",
        "0.8",
        "--seed",
        "1",
    ];
    let said = say(dir, &words).ends_with(0);
    assert_eq!(
        say(dir, &words).ends_with(0).out,
        said.out,
        "one seed, one set"
    );
    let other = say(dir, &["analyze", "generate", "--seed", "2"]).ends_with(0);
    assert_ne!(other.out, said.out);
    let name = file(dir, "g.toml", &said.out);
    let found = json(dir, &["analyze", &name, "--json"], 0);
    let tasks = found["cells"][0]["tasks"].as_array().unwrap();
    let part =
        |task: &Value| task["wcet_ns"].as_f64().unwrap() / task["period_ns"].as_f64().unwrap();
    let total: f64 = tasks.iter().map(part).sum();
    assert_eq!(tasks.len(), 10);
    assert!((total - 0.8).abs() < 1e-5, "{total}");
    let edf = say(
        dir,
        &[
            "analyze",
            "generate",
            "--policy",
            "edf",
            "--deadlines",
            "0.5",
        ],
    )
    .ends_with(0);
    assert!(
        edf.out.contains("policy = \"edf\"") && edf.out.contains("deadline = "),
        "{}",
        edf.out
    );
}

#[case]
fn acceptance_curves(dir: &Path) {
    let words = [
        "analyze",
        "schedulability",
        "--utilizations",
        "0.5..0.95",
        "--points",
        "4",
        "--sets",
        "50",
        "--tasks",
        "5",
    ];
    let said = say(dir, &words).ends_with(0);
    for part in [
        "Liu-Layland",
        "hyperbolic",
        "exact response times",
        "QPA",
        "0.500   ",
        "50 sets of 5 tasks",
    ] {
        assert!(said.out.contains(part), "`{part}` is not in\n{}", said.out);
    }
    let svg = fs::read_to_string(dir.join("schedulability.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("hyperbolic"));
    let csv = fs::read_to_string(dir.join("schedulability.csv")).unwrap();
    assert_eq!(csv.lines().count(), 5);
    assert!(
        csv.lines()
            .nth(1)
            .unwrap()
            .starts_with("0.500000,50,50,0,50,0,50,0,"),
        "{csv}"
    );
    let mut words = words.to_vec();
    words.extend(["--threads", "1", "--csv", "one.csv"]);
    say(dir, &words).ends_with(0);
    assert_eq!(
        fs::read_to_string(dir.join("one.csv")).unwrap(),
        csv,
        "threads change nothing"
    );
}
