//! `bench --program`: programs written in C, with the client's header and without it.

mod scenarios;
mod sources;
mod tasks;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use record::run::Run;
use record::summary::{Metric, RunSummary};

use crate::support::{Said, only_run, say};
use sources::{ENDLESS, LOOP, LOWER, PLAIN, REACH, STRICT, built};

fn summary(dir: &Path) -> RunSummary {
    let run = only_run(dir);
    serde_json::from_slice(&fs::read(run.join("summary.json")).unwrap()).unwrap()
}

#[case(Program("cc"), GroupsOfItsOwn(280))]
fn one_without_a_change_is_executed_in_every_cell(dir: &Path) {
    built(dir, "plain", PLAIN);
    let words = [
        "bench",
        "overhead",
        "--program",
        "./plain",
        "--engine",
        "bare,embedded",
    ];
    let words = [
        &words[..],
        &[
            "--rounds", "3", "--jobs", "21", "--period", "5ms", "--", "1000",
        ],
    ];
    let said = say(dir, &words.concat()).ends_with(0);
    assert!(
        said.out.contains("plain 1000 ends by itself after"),
        "{}",
        said.out
    );
    assert!(said.out.contains("each job an execution"), "{}", said.out);
    let run = Run::open(&only_run(dir)).unwrap();
    let program = run.experiment().unwrap().workload.program.unwrap();
    assert!(Path::new(program.path()).is_absolute() && !program.reports());
    let summary = summary(dir);
    assert!(summary.cells.len() >= 2);
    for cell in &summary.cells {
        assert_eq!(cell.executed + cell.skipped, 63, "{}", cell.label);
        assert_eq!(cell.faults, 0);
        let metric = |metric| {
            let found = cell.metrics.iter().find(|m| m.metric == metric);
            found.unwrap().summary.median_ns
        };
        // Starting a process takes longer than this on any machine, and its cpu time is its own.
        assert!(metric(Metric::ExecutionTime) > 50_000, "{}", cell.label);
        assert!(cell.cpu_time_per_activation_ns.unwrap() > 10_000.0);
        assert!(cell.trial == summary.baseline || !cell.in_turns.is_empty());
    }
}

/// One job in three takes longer than its period, and the releases meanwhile are skipped.
#[case(Program("cc"), GroupsOfItsOwn(280))]
fn one_that_reports_has_its_late_jobs_counted(dir: &Path) {
    built(dir, "loop", LOOP);
    let first = ["bench", "overhead", "--program", "./loop", "--engine"];
    let more = ["bare,embedded", "--rounds", "3", "--jobs", "100"];
    let late = ["--fail-if", "late > 0", "--deadline", "4ms", "--", "3"];
    say(dir, &[&first[..], &more, &late].concat()).ends_with(3);
    let experiment = Run::open(&only_run(dir)).unwrap().experiment().unwrap();
    assert_eq!(experiment.workload.deadline.unwrap().ns(), 4_000_000);
    for cell in &summary(dir).cells {
        assert!(cell.late.unwrap() >= 20, "{:?}", cell.late);
        assert!(
            cell.skipped >= 20 && cell.executed + cell.skipped == 300,
            "{}",
            cell.skipped
        );
    }
}

#[case(Program("cc"), GroupsOfItsOwn(280))]
fn what_cannot_be_measured_is_told(dir: &Path) {
    built(dir, "plain", PLAIN);
    built(dir, "loop", LOOP);
    fs::write(dir.join("script"), "#!/bin/sh\n").unwrap();
    let refused = |words: &str, code: i32, reason: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        let said = say(dir, &[&["bench"], words.as_slice()].concat()).ends_with(code);
        let all = format!("{}{}", said.out, said.err);
        assert!(all.contains(reason), "{words:?}: {all}");
    };
    refused(
        "overhead --program ./nope",
        2,
        "cannot find the program ./nope: No such file",
    );
    refused(
        "overhead --program ./script",
        2,
        "is not a 64-bit ELF program",
    );
    refused(
        "overhead --program ./plain -- 10 3",
        2,
        "it exits with status 3, saying: no such sensor",
    );
    refused(
        "taskset --program ./plain -- 10",
        2,
        "does not take this option",
    );
    refused("startup --program ./plain -- 10", 2, "--program");
    refused(
        "scale --program ./plain --reserve deadline -- 10",
        2,
        "a thread of SCHED_DEADLINE cannot start a program",
    );
    // The period follows from the program, so --period is not to blame: some 100 ms, which no trial has on any machine.
    refused(
        "device --program ./plain --dry-run -- 5000000",
        2,
        "error: --program: the trials of `device` have their own periods, 100us, 1ms, 10ms, and the program needs",
    );
    refused(
        "device --program ./plain --dry-run --period 10ms -- 10",
        0,
        "period 10ms",
    );
    // An experiment file starts nothing beforehand: an error occurs in the cell, and fails its trial.
    let file = |program: &str| {
        let text = format!(
            "schema = 1\nname = \"x\"\nrounds = 1\n[workload]\nkind = \"program\"\n{program}\njobs = 200\nperiod = \"2ms\"\n\
             [[trial]]\nname = \"a\"\ncells = [\"bare\"]\n"
        );
        fs::write(dir.join("x.toml"), text).unwrap();
    };
    file("program = [\"./plain\", \"10\", \"3\"]");
    refused(
        "x.toml",
        1,
        "its program ended with exit status 3, saying: no such sensor",
    );
    file("program = [\"./plain\", \"10\"]\nreports = true");
    refused(
        "x.toml",
        1,
        "its program reported no job through timecell's client",
    );
    file("program = [\"./loop\", \"0\", \"50\"]\nreports = true");
    refused("x.toml", 1, "its program ended after 50 jobs");
}

/// Held back at its first task, its first release is its own after the common one; those of a turn are 2 ms apart.
fn is_released_each_period(run: &Run, of_turn: u32) {
    let trial = run.trial(1).unwrap();
    let samples = run.samples(1, &trial.cells[0].id).unwrap().unwrap();
    assert!(samples.samples[0].release_ns >= samples.header.go_ns);
    for pair in samples.samples.windows(2) {
        if pair[0].index / of_turn != pair[1].index / of_turn {
            continue;
        }
        let steps = i64::from(pair[1].index - pair[0].index);
        let off = pair[1].release_ns - pair[0].release_ns - steps * 2_000_000;
        assert!(off.abs() <= 1_000_000, "{pair:?}");
    }
}

/// Cells of a round are stopped outside their turns, and jobs due then are neither executed nor skipped, even if the
/// program makes up for it, unless that is too much.
#[case(Program("cc"), GroupBudget(950))]
fn one_that_reports_takes_turns_with_itself(dir: &Path) {
    built(dir, "loop", LOOP);
    built(dir, "strict", STRICT);
    for words in [["./loop", "0"], ["./strict", "20"]] {
        let first = ["bench", "overhead", "--program", words[0], "--engine"];
        // With 140 jobs, more than half of the turns are left if the machine stalls for 300 ms.
        let more = [
            "bare,embedded",
            "--rounds",
            "2",
            "--jobs",
            "140",
            "--",
            words[1],
        ];
        let run = || say(dir, &[&first[..], &more].concat()).ends_with(0);
        let mut said = run();
        // A few tries show how much it makes up for: on a machine that stalls in most of them it is too much, and one that
        // stalls for long leaves out most jobs.
        let stalled = |said: &Said| {
            said.out.contains("whole rounds, no turns")
                || summary(dir).cells.iter().any(|cell| cell.executed <= 140)
        };
        for _ in 0..3 {
            if stalled(&said) {
                fs::remove_dir_all(dir.join("runs")).unwrap();
                said = run();
            }
        }
        let parts = [
            " reports its jobs: task control\n",
            "in turns of 7 jobs (14ms)",
            "sees    ",
        ];
        for told in parts {
            assert!(said.out.contains(told), "{told}: {}", said.out);
        }
        let run = Run::open(&only_run(dir)).unwrap();
        let experiment = run.experiment().unwrap();
        assert_eq!(experiment.workload.period.ns(), 2_000_000);
        let of_turn = experiment.turns.unwrap().jobs(experiment.workload.period);
        if words[0] == "./loop" {
            is_released_each_period(&run, of_turn);
        }
        // Trial, lap, first start, last end, jobs.
        let mut turns: Vec<(u32, u32, i64, i64, u32)> = Vec::new();
        for number in run.trial_numbers().unwrap() {
            let trial = run.trial(number).unwrap();
            assert!(trial.turns.is_some());
            let samples = run.samples(number, &trial.cells[0].id).unwrap().unwrap();
            for job in &samples.samples {
                let lap = job.index / of_turn;
                match turns
                    .last_mut()
                    .filter(|turn| (turn.0, turn.1) == (number, lap))
                {
                    Some(turn) => (turn.3, turn.4) = (job.end_ns, turn.4 + 1),
                    None => turns.push((number, lap, job.start_ns, job.end_ns, 1)),
                }
            }
        }
        turns.sort_by_key(|turn| turn.2);
        // A job that the machine delays may end in the next turn.
        let meet = turns.windows(2).filter(|two| two[1].2 < two[0].3).count();
        assert!(meet <= 1, "{words:?}: {turns:?}");
        let whole = turns.iter().filter(|turn| turn.4 == of_turn).count();
        assert!(whole * 3 > turns.len(), "{words:?}: {turns:?}");
        for cell in &summary(dir).cells {
            assert_eq!(cell.executed + cell.skipped, 280, "{}", cell.label);
            assert!(cell.executed > 140, "{words:?}: {}", cell.executed);
            assert!(cell.trial == "bare" || !cell.in_turns.is_empty());
            // Not the jobs by which it catches up: otherwise a job is in time unless the machine delays it.
            let wakeup = cell
                .metrics
                .iter()
                .find(|m| m.metric == Metric::WakeupLatency);
            let median = wakeup.unwrap().summary.median_ns;
            assert!(median < 1_000_000, "{words:?}: {median}");
        }
        fs::remove_dir_all(dir.join("runs")).unwrap();
    }
    // The deeds of a program outside its turns are in no page, so it reports them itself.
    let logs = tempfile::tempdir().unwrap();
    let first = ["bench", "overhead", "--program", "./strict", "--engine"];
    let more = ["bare", "--rounds", "2", "--jobs", "140", "--", "20"];
    let log = logs.path().to_str().unwrap();
    say(dir, &[&first[..], &more, &[log]].concat()).ends_with(0);
    fs::remove_dir_all(dir.join("runs")).unwrap();
    let mut begun: Vec<(i64, String)> = Vec::new();
    for file in fs::read_dir(logs.path()).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let jobs = text.lines().map(|line| line.parse().unwrap());
        begun.extend(jobs.map(|at: i64| (at, path.display().to_string())));
    }
    begun.sort();
    let changes = begun.windows(2).filter(|two| two[0].1 != two[1].1);
    let (changes, jobs) = (changes.count(), begun.len());
    assert!(jobs > 560 && changes * 4 < jobs, "{changes} of {jobs}");

    let first = [
        &first[..],
        &["bare,embedded", "--rounds", "2", "--jobs", "20"],
    ]
    .concat();
    // Of each 2 ms, with room to catch up beside all else that runs.
    let said = say(dir, &[&first[..], &["--", "500"]].concat()).ends_with(0);
    assert!(said.out.contains("whole rounds, no turns"), "{}", said.out);
    let run = Run::open(&only_run(dir)).unwrap();
    assert!(run.experiment().unwrap().turns.is_none());
    let decide = [&first[..], &["--decide", "5%", "--", "1500"]].concat();
    let said = say(dir, &decide).ends_with(2);
    assert!(
        said.err.contains("set the number of rounds with --rounds"),
        "{}",
        said.err
    );
    // A file that asks for turns anyway gets the reason why there is no figure.
    let file = "schema = 1\nname = \"x\"\nrounds = 1\n[turns]\n[workload]\nkind = \"program\"\nprogram = [\"./strict\", \"1500\"]\n\
                reports = true\nperiod = \"2ms\"\njobs = 21\n[[trial]]\nname = \"a\"\ncells = [\"bare\"]\n[[trial]]\nname = \"b\"\ncells = [\"bare\"]\n\
                [[trial]]\nname = \"c\"\ncells = [\"bare\"]\n";
    fs::write(dir.join("x.toml"), file).unwrap();
    let said = say(dir, &["bench", "x.toml"]).ends_with(1);
    let all = format!("{}{}", said.out, said.err);
    assert!(
        all.contains("did not catch up with its skipped releases"),
        "{all}"
    );
}

/// A program that works all the time has the class of its cell and is ended all the same.
#[case(Program("cc"), GroupsOfItsOwn(280))]
fn one_that_neither_ends_nor_reports_is_started_and_ended(dir: &Path) {
    built(dir, "endless", ENDLESS);
    let words = ["bench", "overhead", "--program", "./endless", "--engine"];
    let more = ["bare,embedded", "--rounds", "3"];
    let words = [&words[..], &more].concat();
    let said = say(dir, &words).ends_with(0);
    let seen = summary(dir);
    let run = Run::open(&only_run(dir)).unwrap();
    let samples = run.samples(1, &seen.cells[0].cell).unwrap().unwrap();
    fs::remove_dir_all(dir.join("runs")).unwrap();
    for told in [
        "neither ends within 10 s nor reports jobs",
        "x 3 rounds x 500ms of",
        "time to start of the program",
        "exit median",
    ] {
        assert!(said.out.contains(told), "{told}: {}", said.out);
    }
    assert_eq!(samples.header.period_ns, 500_000_000);
    for cell in &seen.cells {
        assert_eq!((cell.executed, cell.skipped, cell.late), (3, 0, None));
        let used = cell.cpu_per_second_ns.unwrap() / 1e9;
        assert!((0.2..1.01).contains(&used), "{}: {used}", cell.label);
        for metric in [Metric::StartTime, Metric::ExitTime] {
            let found = cell.metrics.iter().find(|m| m.metric == metric).unwrap();
            let range = 10_000..1_900_000_000;
            assert!(range.contains(&found.summary.median_ns), "{found:?}");
        }
        assert!(cell.against_baseline.is_some() || cell.trial == "bare");
    }
}

#[case(Program("cc"), GroupsOfItsOwn(280))]
fn one_that_does_not_end_when_asked_is_killed(dir: &Path) {
    built(dir, "endless", ENDLESS);
    let file = |how: &str| {
        let text = format!(
            "schema = 1\nname = \"x\"\nrounds = 1\n[workload]\nkind = \"program\"\nprogram = [\"./endless\", \"{how}\"]\n\
             endless = true\n[[trial]]\ncells = [\"bare\"]\n"
        );
        fs::write(dir.join("x.toml"), text).unwrap();
    };
    // A sleeping program uses nothing, and one that ignores the signal is killed after two seconds.
    file("deaf");
    let words = [
        "bench",
        "x.toml",
        "--duration",
        "100ms",
        "--fail-if",
        "exit.max > 2s",
    ];
    say(dir, &words).ends_with(3);
    let deaf = &summary(dir).cells[0];
    assert!(deaf.cpu_per_second_ns.unwrap() < 5e7);
    assert!(deaf.notes.iter().any(|note| note.contains("was killed")));
    let said = say(dir, &["bench", "x.toml", "--jobs", "5"]).ends_with(2);
    assert!(
        said.err.contains("neither ends nor reports its jobs"),
        "{}",
        said.err
    );
    file("leave");
    let said = say(dir, &["bench", "x.toml"]).ends_with(1);
    let told = "its program, declared endless, ended with exit status 4";
    assert!(
        format!("{}{}", said.out, said.err).contains(told),
        "{}",
        said.err
    );
}

/// A fast controller that reports its jobs beside a slow program that is executed: each is compared with its like.
#[case(Program("cc"), GroupsOfItsOwn(280))]
fn cells_of_a_trial_have_programs_and_periods_of_their_own(dir: &Path) {
    built(dir, "vision", PLAIN);
    built(dir, "loop", LOOP);
    let control = "name = \"control\", program = [\"./loop\", \"0\"], reports = true, period = \"2ms\", deadline = \"1500us\"";
    let vision = "name = \"vision\", program = [\"./vision\", \"20000\"], period = \"50ms\"";
    let file = |priority: &str, more: &str| {
        format!(
            "schema = 1\nname = \"x\"\nrounds = 3\n[workload]\nkind = \"program\"\nperiod = \"50ms\"\njobs = 8\n\
             [scheduling]\npriority = 40\n\
             [[trial]]\nname = \"plain\"\ncells = [{{ engine = \"bare\", {control}{priority} }}, {{ engine = \"bare\", {vision} }}]\n\
             [[trial]]\nname = \"mixed\"\ncells = [{{ engine = \"embedded\", {control}{priority} }}, {{ engine = \"bare\", {vision} }}{more}]\n"
        )
    };
    let write = |text: String| fs::write(dir.join("x.toml"), text).unwrap();
    write(file(
        ", priority = 41",
        ", { engine = \"bare\", steps = 1000, jobs = 5 }",
    ));
    let dry = say(dir, &["bench", "x.toml", "--dry-run"]).ends_with(0);
    assert!(dry.out.contains("    control  "), "{}", dry.out);
    let said = say(dir, &["bench", "x.toml"]).ends_with(0);
    let told = "loop 0 (jobs of its task control), period 2ms, deadline 1500us, 200 jobs, FIFO 41";
    assert!(said.out.contains(told), "{}", said.out);
    let page = fs::read_to_string(only_run(dir).join("report.html")).unwrap();
    assert!(page.contains(told));
    let run = Run::open(&only_run(dir)).unwrap();
    let summary = summary(dir);
    let cell = |label: &str| {
        let found = summary.cells.iter().find(|cell| cell.label == label);
        found.unwrap_or_else(|| panic!("{label}: {}", said.out))
    };
    for (label, planned, compared) in [
        ("plain/control", 600, false),
        ("plain/vision", 24, false),
        ("mixed/control", 600, true),
        ("mixed/vision", 24, true),
        ("mixed/3-bare", 15, false),
    ] {
        let cell = cell(label);
        assert_eq!(cell.executed + cell.skipped, planned, "{label}");
        assert_eq!(cell.against_baseline.is_some(), compared, "{label}");
    }
    // Compared with cells of the same work: the slow one takes much longer than the fast one, and only as long as its like.
    let ratio = |label| {
        let against = cell(label).against_baseline.as_ref().unwrap();
        against.ratio_of_medians.value
    };
    assert!(
        (0.3..3.0).contains(&ratio("mixed/vision")),
        "{}",
        ratio("mixed/vision")
    );
    if cell("mixed/control").real_time {
        assert_eq!(cell("mixed/control").class, "FIFO 41");
        assert_eq!(cell("mixed/vision").class, "FIFO 40");
    }
    // The run's copy of the experiment is read back unchanged.
    assert_eq!(run.experiment().unwrap().trials[1].own.len(), 3);

    fs::create_dir(dir.join("other")).unwrap();
    fs::copy(dir.join("loop"), dir.join("other/vision")).unwrap();
    write(file(
        "",
        ", { engine = \"bare\", program = [\"other/vision\"] }",
    ));
    let said = say(dir, &["bench", "x.toml"]).ends_with(2);
    assert!(
        said.err
            .contains("another program has the same file name as"),
        "{}",
        said.err
    );
}

/// Neither the binary that made the cell nor the one that runs the program is in it; a plain process starts as the latter.
#[case(Program("cc"), Root)]
fn no_program_reaches_a_binary_for_writing(dir: &Path) {
    built(dir, "reach", REACH);
    let measure = |engine: &str, words: &[&str]| {
        let first = ["bench", "overhead", "--program", "./reach", "--engine"];
        let more = [engine, "--rounds", "3", "--jobs", "5", "--period", "20ms"];
        let class = ["--class", "other"];
        say(dir, &[&first[..], &more, &class, words].concat())
    };
    let told = |said: &Said| format!("{}{}", said.out, said.err);
    let said = told(&measure("bare", &["--", "self"]));
    assert!(said.contains("reached /proc/self/exe"), "{said}");
    // The program in the cell reports: it looks at itself, its parent and the file.
    let said = told(&measure("embedded", &["--", "look"]));
    assert!(said.contains("it saw 4 binaries"), "{said}");
    for engine in ["embedded", "crun", "runc", "podman"] {
        let said = measure(engine, &[]);
        let not_there = said.code == Some(4) && engine != "embedded";
        assert!(
            not_there || said.code == Some(0),
            "{engine}: {}",
            told(&said)
        );
        assert!(
            !told(&said).contains("reached"),
            "{engine}: {}",
            told(&said)
        );
    }
}

/// The kernel takes a process apart for its parent, and waits for a thread that just ends and has a lower priority; where somebody has
/// looked at it in `/proc`, a parent of a real-time class on its cpu stood still for ever.
#[case(Program("cc"), Root, RealTime, GroupBudget(950))]
fn threads_of_lower_priorities_that_end_do_not_stop_it(dir: &Path) {
    let program = built(dir, "lower", LOWER);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looks = || {
            let mut looks = 0;
            while !ends.load(Relaxed) {
                looks += looks_at(&program);
            }
            looks
        };
        let looks = scope.spawn(looks);
        let words = ["bench", "overhead", "--program", "./lower", "--engine"];
        let more = ["bare", "--rounds", "3", "--jobs", "150", "--period", "8ms"];
        let said = say(dir, &[&words[..], &more].concat());
        ends.store(true, Relaxed);
        said.ends_with(0);
        assert!(looks.join().unwrap() > 100);
    });
}

/// Reads what `/proc` says of every thread of this program; how often there was one.
fn looks_at(program: &Path) -> usize {
    let below = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
    let runs_it =
        |process: &Path| fs::read_link(process.join("exe")).is_ok_and(|exe| exe == program);
    below(Path::new("/proc"))
        .map(|process| process.path())
        .filter(|process| runs_it(process))
        .flat_map(|process| below(&process.join("task")))
        .filter(|thread| fs::read(thread.path().join("stat")).is_ok())
        .count()
}
