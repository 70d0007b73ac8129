//! `analyze` as its user meets it: verdicts and exit codes, faults with their lines, files of other tools, mends that
//! mend, pictures.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Case, say, timecell};

pub const CASES: &[Case] = &[
    Case {
        name: "analyze::verdicts_and_their_exit_codes",
        needs: &[],
        run: verdicts,
    },
    Case {
        name: "analyze::bad_input_has_its_line",
        needs: &[],
        run: bad_input,
    },
    Case {
        name: "analyze::files_of_other_tools",
        needs: &[],
        run: imports,
    },
    Case {
        name: "analyze::every_mend_mends",
        needs: &[],
        run: mends,
    },
    Case {
        name: "analyze::a_latency_bound_counts_as_blocking",
        needs: &[],
        run: latency,
    },
    Case {
        name: "analyze::plots_are_svg",
        needs: &[],
        run: plots,
    },
    Case {
        name: "analyze::a_set_that_cannot_be_drawn_is_analysed_all_the_same",
        needs: &[],
        run: undrawn,
    },
    Case {
        name: "analyze::sentences_are_as_wide_as_the_terminal",
        needs: &[],
        run: narrow,
    },
    Case {
        name: "analyze::a_design_holds_what_it_promises",
        needs: &[],
        run: designs,
    },
    Case {
        name: "analyze::generated_sets_are_read_back",
        needs: &[],
        run: generated,
    },
    Case {
        name: "analyze::acceptance_curves",
        needs: &[],
        run: schedulability,
    },
];

const SET: &str = r#"schema = 1

[[cell]]
name = "control"
policy = "fp"
reservation = { budget = "2ms", period = "5ms" }

[[cell.task]]
name = "loop"
wcet = "1ms"
period = "20ms"

[[cell.task]]
name = "log"
wcet = "3ms"
period = "24ms"
"#;

/// Writes a file and gives its name.
fn file(dir: &Path, name: &str, text: &str) -> String {
    fs::write(dir.join(name), text).unwrap();
    name.to_owned()
}

/// The set with a log that runs too long.
fn late() -> String {
    SET.replace("\"3ms\"", "\"8ms\"")
}

fn json(dir: &Path, words: &[&str], code: i32) -> Value {
    let said = say(dir, words).ends_with(code);
    serde_json::from_str(&said.out).unwrap()
}

/// The words of the tasks agree with those of their cells, in the JSON and in the table.
fn words(dir: &Path, name: &str, code: i32) {
    let found = json(dir, &["analyze", name, "--json"], code);
    for cell in found["cells"].as_array().unwrap() {
        let tasks = cell["tasks"].as_array().unwrap();
        let are = |word: &str| tasks.iter().filter(|task| task["outcome"] == word).count();
        match cell["outcome"].as_str().unwrap() {
            "holds" => assert_eq!(are("holds"), tasks.len(), "{cell}"),
            "missed" => assert!(are("missed") > 0, "{cell}"),
            "undecided" => assert_eq!(are("missed"), 0, "{cell}"),
            other => panic!("no word: {other}"),
        }
        let table = say(dir, &["analyze", name]).ends_with(code).out;
        for task in tasks {
            let start = format!(" {} ", task["name"].as_str().unwrap());
            let row = table.lines().find(|line| line.contains(&start)).unwrap();
            assert!(row.ends_with(task["outcome"].as_str().unwrap()), "{row}");
            if !task["response_ns"].is_null() {
                assert_eq!(task["outcome"], "holds", "{task}");
            }
        }
    }
}

fn verdicts() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let good = file(dir, "good.toml", SET);
    let said = say(dir, &["analyze", &good]).ends_with(0);
    for part in [
        "response at most",
        "holds",
        "verdict every deadline holds",
        "2 ms every 5 ms",
    ] {
        assert!(said.out.contains(part), "`{part}` is not in\n{}", said.out);
    }
    let found = json(dir, &["analyze", &good, "--json"], 0);
    assert_eq!(found["schema"], 1);
    assert_eq!(found["outcome"], "holds");
    // sbf of 2 every 5 reaches 1 ms at 7 ms, and 4 ms at 13 ms.
    let tasks = &found["cells"][0]["tasks"];
    assert_eq!(tasks[0]["response_ns"], 7_000_000);
    assert_eq!(tasks[1]["response_ns"], 13_000_000);
    assert_eq!(tasks[1]["slack_ns"], 11_000_000);

    let bad = file(dir, "bad.toml", &late());
    let said = say(dir, &["analyze", &bad]).ends_with(3);
    assert!(
        said.out
            .contains("verdict a deadline can be missed in 1 cell"),
        "{}",
        said.out
    );
    assert_eq!(
        json(dir, &["analyze", &bad, "--json"], 3)["outcome"],
        "missed"
    );

    // A load of exactly the rate reserved, with periods that have no common multiple in range: no answer, and no yes.
    let full = SET
        .replace("\"fp\"", "\"edf\"")
        .replace(
            "\"2ms\", period = \"5ms\"",
            "\"200000000000000000ns\", period = \"400000000000000000ns\"",
        )
        .replace(
            "wcet = \"1ms\"\nperiod = \"20ms\"",
            "wcet = \"200000000000000001ns\"\nperiod = \"800000000000000004ns\"",
        )
        .replace(
            "wcet = \"3ms\"\nperiod = \"24ms\"",
            "wcet = \"200000000000000003ns\"\nperiod = \"800000000000000012ns\"",
        );
    let full = file(dir, "full.toml", &full);
    let said = say(dir, &["analyze", &full]).ends_with(1);
    assert!(
        said.out.contains("undecided: the times are too long"),
        "{}",
        said.out
    );
    assert!(said.out.contains("verdict undecided"), "{}", said.out);

    words(dir, &good, 0);
    words(dir, &bad, 3);
    words(dir, &full, 1);
    // Under EDF only the witness's task is sure to be late; in an overload on a whole cpu no task has a bound.
    for (name, reservation) in [
        (
            "late-edf.toml",
            "reservation = { budget = \"2ms\", period = \"5ms\" }\n",
        ),
        ("over-edf.toml", ""),
    ] {
        let text = late()
            .replace("\"fp\"", "\"edf\"")
            .replace(
                "reservation = { budget = \"2ms\", period = \"5ms\" }\n",
                reservation,
            )
            .replace(
                "\"1ms\"",
                if reservation.is_empty() {
                    "\"15ms\""
                } else {
                    "\"1ms\""
                },
            );
        words(dir, &file(dir, name, &text), 3);
    }
    assert_eq!(
        json(dir, &["analyze", &full, "--json"], 1)["outcome"],
        "undecided"
    );

    let crowd = format!(
        "schema = 1\ncpus = 1\n{}",
        SET.replace("schema = 1\n", "").replace(
            "budget = \"2ms\", period = \"5ms\"",
            "budget = \"3ms\", period = \"5ms\""
        )
    );
    let second = crowd
        .replace("schema = 1\ncpus = 1\n", "")
        .replace("\"control\"", "\"second\"");
    let crowd = file(dir, "crowd.toml", &format!("{crowd}{second}"));
    let said = say(dir, &["analyze", &crowd]).ends_with(3);
    assert!(said.out.contains("reserve more"), "{}", said.out);
}

fn bad_input() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let refused = |name: &str, text: &str, words: &[&str], parts: &[&str]| {
        let name = file(dir, name, text);
        let mut all = vec!["analyze", &name];
        all.extend(words);
        let error = say(dir, &all).ends_with(2).error();
        for part in parts {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
    };
    refused(
        "a.toml",
        &SET.replace("period = \"24ms\"", "peroid = \"24ms\""),
        &[],
        &["a.toml:16:", "did you mean `period`?"],
    );
    refused(
        "a.toml",
        &SET.replace("\"3ms\"", "\"-3ms\""),
        &[],
        &["a.toml:15:", "negative"],
    );
    refused(
        "a.toml",
        &SET.replace("\"3ms\"", "\"0ms\""),
        &[],
        &["a.toml:15:", "zero"],
    );
    refused(
        "a.toml",
        &SET.replace("\"3ms\"", "\"25ms\""),
        &[],
        &["a.toml:15:", "at most the deadline"],
    );
    refused(
        "a.toml",
        &SET.replace("\"2ms\"", "\"6ms\""),
        &[],
        &["a.toml:6:", "at most the period"],
    );
    refused("a.csv", "1,2,3\n", &[], &["a.csv:1:", "not with a header"]);
    refused(
        "a.csv",
        "name,wcet,period\n",
        &[],
        &["a.csv:1:", "`wcet_us`"],
    );
    refused(
        "a.csv",
        "name,wcet_us,period_us\na,1,2\nb,x,2\n",
        &[],
        &["a.csv:3:", "no decimal number"],
    );
    refused(
        "a.xml",
        "<taskset>\n<task period=\"3\"/></taskset>",
        &[],
        &["a.xml:2:", "no `wcet`"],
    );
    refused(
        "a.xml",
        "<system>\n<component scheduler=\"X\"><task p=\"3\" e=\"1\"/></component></system>",
        &[],
        &["a.xml:2:", "EDF, RM or DM"],
    );
    refused(
        "a.json",
        "{\"tasks\":\n{\"a\":{\"dl-runtime\":9,\n\"dl-period\":3}}}",
        &[],
        &["a.json:2:", "at most the deadline"],
    );
    refused("a.txt", SET, &[], &["a.txt", "--format"]);
    refused(
        "a.toml",
        SET,
        &["--plot", "absent/a.svg"],
        &["absent/a.svg"],
    );
    let error = say(dir, &["analyze", "absent.toml"]).ends_with(2).error();
    assert!(
        error.contains("absent.toml") && error.contains("No such file"),
        "{error}"
    );
    say(dir, &["analyze"]).ends_with(2);
    say(dir, &["analyze", "generate", "--tasks", "0"]).ends_with(2);
    say(dir, &["analyze", "generate", "--utilization", "-1"]).ends_with(2);
    say(
        dir,
        &[
            "analyze",
            "generate",
            "--shortest",
            "1s",
            "--longest",
            "1ms",
        ],
    )
    .ends_with(2);
    say(
        dir,
        &["analyze", "schedulability", "--utilizations", "1.0..0.5"],
    )
    .ends_with(2);
    say(dir, &["analyze", "design", "absent.toml"]).ends_with(2);
    for (words, parts) in [
        (
            "analyze generate --shortest 1s --longest 10ms",
            ["--shortest: 1s is longer", "--longest, 10ms"],
        ),
        (
            "analyze schedulability --shortest 1s --longest 10ms",
            ["--shortest: 1s is longer", "--longest, 10ms"],
        ),
        (
            "analyze generate --deadlines 2",
            ["--deadlines", "a part from 0 to 1"],
        ),
        (
            "analyze generate --deadlines -1",
            ["--deadlines", "a part from 0 to 1"],
        ),
        (
            "analyze a.toml --latency -5us",
            ["--latency", "is negative"],
        ),
        (
            "analyze design a.toml --latency -5us",
            ["--latency", "is negative"],
        ),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let said = say(dir, &words).ends_with(2);
        for part in parts {
            assert!(said.err.contains(part), "`{part}` is not in {}", said.err);
        }
    }
    refused(
        "cut.xml",
        "<system os_scheduler=\"EDF\"><component name=\"C\" scheduler=\"EDF\"/>",
        &[],
        &["cut.xml:1", "not XML"],
    );
}

fn imports() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // One set in every format: (1, 20), (3, 24) in ms, EDF on a cpu of its own.
    let schedcat = "<taskset><task id=\"1\" period=\"20000\" wcet=\"1000\"/><task id=\"2\" period=\"24000\" wcet=\"3000\"/></taskset>";
    let carts = "<system os_scheduler=\"EDF\"><component name=\"c\" scheduler=\"EDF\"><task name=\"a\" p=\"20\" d=\"20\" e=\"1\"/>\
        <task name=\"b\" p=\"24\" d=\"24\" e=\"3\"/></component></system>";
    let rt_app = "{ /* two */ \"tasks\": { \"a\": {\"dl-runtime\": 1000, \"dl-period\": 20000, \"run\": 5, \"run\": 6},\
        \"b\": {\"dl-runtime\": 3000, \"dl-period\": 24000},}}";
    let csv =
        "task_name,runtime_us,period_us,deadline_us\na,1000,20000,20000\nb,3000,24000,24000\n";
    let names = [
        (file(dir, "s.xml", schedcat), vec![]),
        (file(dir, "c.xml", carts), vec!["--unit", "ms"]),
        (file(dir, "r.json", rt_app), vec![]),
        (file(dir, "t.csv", csv), vec![]),
        (file(dir, "t.data", csv), vec!["--format", "csv"]),
    ];
    let mut answers = names.iter().map(|(name, more)| {
        let mut words = vec!["analyze", name, "--json"];
        words.extend(more);
        let found = json(dir, &words, 0);
        let tasks = found["cells"][0]["tasks"].as_array().unwrap().clone();
        let numbers = |task: &Value| {
            ["wcet_ns", "period_ns", "deadline_ns", "response_ns"].map(|key| task[key].as_u64())
        };
        tasks.iter().map(numbers).collect::<Vec<_>>()
    });
    let first = answers.next().unwrap();
    assert_eq!(
        first[1],
        [3_000_000, 24_000_000, 24_000_000, 4_000_000].map(Some)
    );
    for answer in answers {
        assert_eq!(answer, first);
    }
    let said = say(dir, &["analyze", "s.xml"]).ends_with(0);
    assert!(
        said.err.contains("microseconds are assumed") && said.err.contains("edf is assumed"),
        "{}",
        said.err
    );
    let said = say(dir, &["analyze", "s.xml", "--policy", "fp", "--unit", "us"]).ends_with(0);
    assert!(
        said.err.is_empty() && said.out.contains("fp dm"),
        "{}{}",
        said.err,
        said.out
    );
    let late = csv.replace("3000", "23500");
    file(dir, "late.csv", &late);
    say(dir, &["analyze", "late.csv"]).ends_with(3);
}

/// Applies each mend to the file as its user would, and asks again.
fn mends() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for policy in ["\"fp\"", "\"edf\""] {
        let text = late().replace("\"fp\"", policy);
        let name = file(dir, "late.toml", &text);
        let said = say(dir, &["analyze", &name, "--explain"]).ends_with(3);
        for part in [
            "why     control: task log",
            "short",
            "demand  ",
            "of log",
            "mend    budget +",
            "mend    move",
        ] {
            assert!(said.out.contains(part), "`{part}` is not in\n{}", said.out);
        }
        let found = json(dir, &["analyze", &name, "--explain", "--json"], 3);
        let witness = &found["cells"][0]["verdict"]["unschedulable"];
        assert!(
            witness["demand"].as_u64() > witness["supply"].as_u64(),
            "{witness}"
        );
        let mends = found["cells"][0]["mends"].as_array().unwrap();
        let mut kinds = Vec::new();
        for mend in mends {
            let kind = mend["change"].as_str().unwrap();
            kinds.push(kind);
            let to = format!("\"{}ns\"", mend["to_ns"]);
            let task = mend["task"].as_u64();
            let (name, wcet, period) = match task {
                Some(0) => ("loop", "\"1ms\"", "\"20ms\""),
                _ => ("log", "\"8ms\"", "\"24ms\""),
            };
            let changed = match kind {
                "budget" => text.replace("\"2ms\"", &to),
                "reservation_period" => text.replace("\"5ms\"", &to),
                "wcet" => text.replace(wcet, &to),
                "deadline" => text.replace(period, &format!("{period}\ndeadline = {to}")),
                "move" => text.replace(
                    &format!(
                        "[[cell.task]]\nname = \"{name}\"\nwcet = {wcet}\nperiod = {period}\n"
                    ),
                    "",
                ),
                other => panic!("unknown mend {other}"),
            };
            assert_ne!(changed, text, "{mend}");
            let mended = file(dir, "mended.toml", &changed);
            say(dir, &["analyze", &mended]).ends_with(0);
        }
        for kind in ["budget", "reservation_period", "deadline", "wcet", "move"] {
            assert!(kinds.contains(&kind), "{kind} is not in {kinds:?}");
        }
    }
}

fn latency() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let name = file(dir, "a.toml", SET);
    let found = json(dir, &["analyze", &name, "--json", "--latency", "500us"], 0);
    let task = &found["cells"][0]["tasks"][0];
    assert_eq!(
        (&task["blocking_ns"], &task["response_ns"]),
        (&500_000.into(), &7_500_000.into())
    );
    say(dir, &["analyze", &name, "--latency", "10ms"]).ends_with(3);
    say(dir, &["analyze", &name, "--latency", "10"]).ends_with(2);
}

fn plots() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
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

fn undrawn() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
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

fn narrow() {
    let dir = tempfile::tempdir().unwrap();
    let name = file(dir.path(), "bad.toml", &late());
    for (columns, widest) in [("80", 80), ("60", 60)] {
        let output = timecell()
            .current_dir(dir.path())
            .env("COLUMNS", columns)
            .args(["analyze", &name, "--explain"])
            .output()
            .unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        let prose = [
            "cell ", "why ", "demand ", "mend ", "linux ", "verdict ", "room ",
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

fn designs() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
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
    // What it prints as a file holds, on the cpus that it names.
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
    let said = say(dir, &["analyze", "design", &name, "--cpus", "1"]).ends_with(3);
    assert!(said.out.contains("no cpu has room"), "{}", said.out);
}

fn generated() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
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

fn schedulability() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
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
    // Deadlines before the periods are those of every test, and bounds of utilization are not for them.
    let drawn = [&words[..], &["--deadlines", "0.5", "--csv", "drawn.csv"]].concat();
    let said = say(dir, &drawn).ends_with(0);
    assert!(
        said.out.contains("DM, exact response times, D < T"),
        "{}",
        said.out
    );
    assert!(!said.out.contains("bound"), "{}", said.out);
    let head = fs::read_to_string(dir.join("drawn.csv")).unwrap();
    assert_eq!(
        head.lines().next().unwrap().matches("_undecided").count(),
        2,
        "{head}"
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
