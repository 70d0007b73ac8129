//! Import and export: files of real programs are drawn, and those programs read the exported files.

use std::fs;
use std::io::{BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;

use host::sched::bandwidth;

use crate::support::{Said, eventually, experiment, only_run, say, timecell};

/// A file of a real tool, from the tests of crate `record`.
fn data(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/data");
    dir.join(name).to_string_lossy().into_owned()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

/// A histogram of 20 MB in which 8 threads have 7 million different values between them.
#[case]
fn a_long_file_of_many_values_takes_little_memory(dir: &Path) {
    let mut file = BufWriter::new(fs::File::create(dir.join("h.txt")).unwrap());
    let (mut rows, mut length) = (0_u64, 0);
    writeln!(file, "# Histogram").unwrap();
    while length < 20_000_000 {
        let row = format!("{rows} 1 1 1 1 1 1 1 1\n");
        file.write_all(row.as_bytes()).unwrap();
        length += row.len();
        rows += 1;
    }
    for (key, value) in [
        ("Total", rows),
        ("Min Latencies", 0),
        ("Avg Latencies", rows / 2),
        ("Max Latencies", rows - 1),
        ("Histogram Overflows", 0),
    ] {
        let values = vec![value.to_string(); 8].join(" ");
        writeln!(file, "# {key}: {values}").unwrap();
    }
    drop(file.into_inner().unwrap());
    let (said, page) = drawn_in_little_memory(dir, "h.txt");
    assert!(said.contains("thread 7"), "{said}");
    assert!(page.contains("up to 0.1 % of a value wide"));
    // As a tree it would take ten times as much memory.
    let core = |cpu: u32| {
        let mut text = format!(
            "<core id=\"{cpu}\"><statistics><samples>3500</samples></statistics><histogram>\n"
        );
        text.extend((0..3_500).map(|us| format!("<bucket index=\"{us}\" value=\"1\"/>\n")));
        text + "</histogram></core>\n"
    };
    let cores: String = (0..100).map(core).collect();
    let summary =
        format!("<rteval version=\"3.8\">\n<cyclictest>\n{cores}</cyclictest>\n</rteval>\n");
    assert!(summary.len() > 10_000_000);
    fs::write(dir.join("summary.xml"), summary).unwrap();
    let (said, _) = drawn_in_little_memory(dir, "summary.xml");
    assert!(said.contains("cpu 99"), "{said}");
}

/// The output of `report FILE`, and the page.
fn drawn_in_little_memory(dir: &Path, file: &str) -> (String, String) {
    const MOST_KB: u64 = 64_000_000 / 1_024;
    let page = dir.join("measured.html");
    let _ = fs::remove_file(&page);
    // It blocks on a full pipe after it has written the page, and so can be asked for its peak memory: the peak that wait4 reports for a child
    // includes the memory of the process that started it.
    let (reader, mut full) = std::io::pipe().unwrap();
    // SAFETY: fcntl of an open descriptor, without an argument.
    let room = unsafe { libc::fcntl(full.as_raw_fd(), libc::F_GETPIPE_SZ) };
    full.write_all(&vec![b' '; room.unsigned_abs() as usize])
        .unwrap();
    let mut child = timecell()
        .current_dir(dir)
        .args(["report", file])
        .stdout(full)
        .spawn()
        .unwrap();
    eventually("the page is written", || page.exists());
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: u64 = peak
        .and_then(|kb| kb.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap();
    let said = std::io::read_to_string(reader).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(peak < MOST_KB, "{file}: {peak} kB");
    (said, fs::read_to_string(page).unwrap())
}

#[case]
fn an_export_is_written_over_only_when_forced(dir: &Path) {
    let file = experiment(dir, &["bare"], 3);
    say(dir, &["bench", &file, "--class", "other"]).ends_with(0);
    let export = ["export", "latest", "--parquet", "-o", "jobs.parquet"];
    say(dir, &export).ends_with(0);
    let file = dir.join("jobs.parquet");
    fs::write(&file, "mine").unwrap();
    let refused = say(dir, &export).ends_with(2);
    assert!(refused.error().contains("--force"), "{}", refused.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    say(dir, &[&export[..], &["--force"]].concat()).ends_with(0);
    assert_ne!(fs::read(&file).unwrap(), b"mine");

    // All other formats of the same run, of a task set, and of a run of histograms, which is written into a directory.
    let tasks = "schema = 1\n[[cell]]\nname = \"c\"\npolicy = \"fp\"\n[[cell.task]]\nname = \"a\"\nwcet = \"1ms\"\n\
        period = \"10ms\"\n";
    fs::write(dir.join("t.toml"), tasks).unwrap();
    for (of, form) in [
        ("latest", "--csv"),
        ("latest", "--cyclictest-json"),
        ("latest", "--cyclictest-hist"),
        ("t.toml", "--rt-app"),
    ] {
        kept(dir, &["export", of, form, "-o", "taken"], "taken");
    }
    // So is a page, except by the next one.
    let file = data("cyclictest-2.40.json");
    for of in [&["latest"][..], &["latest", "latest"], &[&*file]] {
        let report = [&["report"], of, &["-o", "taken"]].concat();
        kept(dir, &report, "taken");
        let again = say(dir, &report).ends_with(0);
        assert!(
            again.out.contains("report  taken (replaced)"),
            "{}",
            again.out
        );
    }
    let page = only_run(dir).join("report.html");
    kept(dir, &["report", "latest"], &page.display().to_string());
    let file = experiment(dir, &["bare"], 3);
    let words = ["bench", &file, "--class", "other", "--histogram"];
    say(dir, &words).ends_with(0);
    kept(dir, &["export", "latest", "--csv", "-o", "taken"], "taken");
    let logs = dir.join("logs");
    fs::create_dir(&logs).unwrap();
    let export = ["export", "latest", "--hdr", "-o", "logs"];
    say(dir, &export).ends_with(0);
    let names: Vec<_> = fs::read_dir(&logs).unwrap().flatten().collect();
    let log = names.first().expect("an interval log").file_name();
    let log = format!("logs/{}", log.to_string_lossy());
    kept(dir, &export, &log);
}

/// An export leaves an existing file alone, says how to overwrite it, and does so when told.
fn kept(dir: &Path, export: &[&str], file: &str) {
    let path = dir.join(file);
    fs::write(&path, "mine").unwrap();
    let refused = say(dir, export).ends_with(2);
    assert!(refused.error().contains("--force"), "{}", refused.err);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine", "{export:?}");
    say(dir, &[export, &["--force"]].concat()).ends_with(0);
    assert_ne!(fs::read(&path).unwrap(), b"mine", "{export:?}");
}

/// The output of another tool is piped into `report -` without a file.
#[case]
fn standard_input_is_drawn(dir: &Path) {
    let with = |words: &[&str], input: &str| -> Said {
        let mut command = timecell();
        command.current_dir(dir).args(words);
        command.stdin(fs::File::open(data(input)).unwrap());
        command.output().unwrap().into()
    };
    let said = with(&["report", "-"], "rtla-timerlat-hist.txt").ends_with(0);
    assert!(said.out.contains("Timer latency"), "{}", said.out);
    let page = fs::read_to_string(dir.join("measured.html")).unwrap();
    assert!(page.contains("standard input"));
    let said = with(&["report", "-", "-o", "b.html"], "cyclictest-2.40.json").ends_with(0);
    assert!(said.out.contains("Wake-up latency") && dir.join("b.html").is_file());
    let said = with(&["report", "-"], "../../Cargo.toml").ends_with(2);
    assert!(said.error().contains("standard input"), "{}", said.err);
    // A refusal leaves no page.
    fs::remove_file(dir.join("measured.html")).unwrap();
    fs::write(dir.join("other.txt"), "hello\n").unwrap();
    for (option, value, part) in [
        ("--format", "hackbench", "there is no line `Time:`"),
        ("--format", "no", "possible values"),
        (
            "--against",
            "published",
            "applies only to the report of one run",
        ),
    ] {
        let said = say(dir, &["report", "other.txt", option, value]).ends_with(2);
        assert!(said.err.contains(part), "{option}: {}", said.err);
        assert!(!dir.join("measured.html").exists());
    }
    // So is a task set, whose name does not reveal the format.
    let table = "name,wcet_us,period_us\na,1000,9000\nb,10000,60000\n";
    let tasks = dir.join("t.csv");
    fs::write(&tasks, table).unwrap();
    let tasks = tasks.to_string_lossy();
    let said = with(&["analyze", "-", "--format", "csv", "--json"], &tasks).ends_with(0);
    assert_eq!(json(&said.out)["file"], "standard input");
    let said = with(&["analyze", "-"], &tasks).ends_with(2);
    assert!(said.error().contains("add --format"), "{}", said.err);
    fs::write(&*tasks, &table[..table.len() - 2]).unwrap();
    let said = with(&["analyze", &tasks], &tasks).ends_with(2);
    assert!(said.error().contains("t.csv:3: cut short"), "{}", said.err);
}

#[case]
fn files_of_real_tools_are_drawn(dir: &Path) {
    let files = [
        data("cyclictest-2.40.json"),
        data("rtla-timerlat-hist.txt"),
        data("rt-app-1.0.log"),
        data("jitterdebugger-0.3.1.raw"),
    ];
    let mut words = vec!["report"];
    words.extend(files.iter().map(String::as_str));
    let said = say(dir, &words).ends_with(0);
    for part in [
        "Wake-up latency",
        "Timer latency",
        "Execution time",
        "444 of 256.0 us or more",
    ] {
        assert!(said.out.contains(part), "{part}\n{}", said.out);
    }
    let page = fs::read_to_string(dir.join("measured.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("Not measured by timecell."));
    // The p99 of both threads is 16 to 44 us, as far as it is known.
    for (condition, code) in [
        ("latency.max > 1h", 0),
        ("latency.p99 > 20us", 1),
        ("latency.max > 1ns", 3),
        ("late > 0", 4),
    ] {
        let words = ["report", &files[0], "--fail-if", condition];
        say(dir, &words).ends_with(code);
    }
}

#[case(RealTime, Program("cyclictest"))]
fn what_cyclictest_writes_now_is_read(dir: &Path) {
    let text = Command::new("cyclictest")
        .args([
            "-q",
            "-m",
            "-p",
            "80",
            "-t",
            "1",
            "-i",
            "500",
            "-l",
            "400",
            "-h",
            "30",
            "--json=c.json",
        ])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(text.status.success());
    fs::write(dir.join("c.txt"), &text.stdout).unwrap();
    let said = say(dir, &["report", "c.json", "c.txt", "--json"]).ends_with(0);
    let files = json(&said.out);
    let of = |file: usize| files["files"][file]["distributions"][0].clone();
    let (a, b) = (of(0), of(1));
    // However this machine behaves, all 400 values are in the histogram or counted beyond it, equally in both formats.
    let over = a["overflow"]["count"].as_u64().unwrap_or(0);
    assert_eq!(a["counted"].as_u64().unwrap() + over, 400);
    for key in ["counted", "overflow", "max_ns", "min_ns", "quantiles"] {
        assert_eq!(a[key], b[key], "{key}");
    }
}

// Its threads of SCHED_DEADLINE are in no ledger: each would withdraw the bounds of a mission beside it.
#[case(Root, RealTime, DeadlineBudget, Alone, Program("rt-app"))]
fn rt_app_runs_what_is_exported_and_its_logs_are_drawn(dir: &Path) {
    let tasks = "schema = 1\n[[cell]]\nname = \"c\"\npolicy = \"edf\"\n[[cell.task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n\
        jitter = \"1us\"\n[[cell.task]]\nname = \"b\"\nwcet = \"2ms\"\nperiod = \"40ms\"\ndeadline = \"20ms\"\n";
    fs::write(dir.join("t.toml"), tasks).unwrap();
    let said = say(
        dir,
        &[
            "export",
            "t.toml",
            "--rt-app",
            "--seconds",
            "1",
            "-o",
            "t.json",
        ],
    )
    .ends_with(0);
    assert!(said.err.contains("release jitter"), "{}", said.err);
    // Our own importer reads the same tasks, and the real rt-app runs them.
    let said = say(dir, &["analyze", "t.json", "--json"]).ends_with(0);
    assert_eq!(
        json(&said.out)["cells"][0]["tasks"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    // rt-app does not wait if the kernel has lost count of the bandwidth, and does not make it recount.
    let (asker, asked) = bandwidth::Asker::new(|| {
        let as_much = host::sched::Class::Deadline {
            runtime_ns: 2_000_000,
            deadline_ns: 10_000_000,
            period_ns: 10_000_000,
        };
        bandwidth::set_class_when_free(0, &as_much, bandwidth::GIVEN_BACK)
    })
    .unwrap();
    asked.unwrap();
    drop(asker);
    let ran = Command::new("rt-app")
        .arg("t.json")
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let said = say(
        dir,
        &["report", "rt-app-a-0.log", "rt-app-b-1.log", "--json"],
    )
    .ends_with(0);
    let files = json(&said.out);
    for file in 0..2 {
        let counted = files["files"][file]["distributions"][0]["counted"].as_u64();
        assert!(counted.unwrap() > 5, "{counted:?}");
        assert!(
            files["files"][file]["command"]
                .as_str()
                .unwrap()
                .contains("SCHED_DEADLINE")
        );
    }
}
