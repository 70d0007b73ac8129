//! Files as people of the field have them (tests/data/field): with prefixes and additions of logs, rows or footers alone, text after a table, two
//! runs in one, and tools beside rt-tests. A line for each, with the reading that it must have or the fault.

use super::*;

/// The required reading: figures in ns of the named series.
enum Wanted {
    /// Format, series, count of values, smallest, mean and largest value, median.
    Read(
        &'static str,
        &'static str,
        u64,
        Option<i64>,
        Option<i64>,
        Option<i64>,
        Option<i64>,
    ),
    Refused(&'static str),
}
use Wanted::{Read, Refused};

macro_rules! cases {
    ($($file:literal => $wanted:expr,)*) => {
        [$(($file, include_str!(concat!("../../../tests/data/field/", $file)), $wanted)),*]
    };
}

const HIST: &str = "cyclictest-hist";
const T0: &str = "thread 0";
const US: i64 = 1_000;

fn us(value: i64) -> Option<i64> {
    Some(value * US)
}

#[test]
fn files_of_the_field_are_read_or_refused_for_their_true_cause() {
    let whole = || Read(HIST, T0, 92_001, us(2), us(3), us(15), us(3));
    let logged = || Read(HIST, T0, 100, us(1), us(1), us(2), us(2));
    let cases = cases! {
        "ct-smp.txt" => whole(),
        "ct-smp-nohistline.txt" => whole(),
        "ct-trail2.txt" => whole(),
        "ct-trail3.txt" => whole(),
        "ct-fence.txt" => whole(),
        "ct-compose.txt" => logged(),
        "ct-cri.txt" => logged(),
        "ct-journal.txt" => logged(),
        "ct-ts.txt" => Read(HIST, T0, 61_204, us(2), us(6), us(31), None),
        "ct-tee.txt" => Read(HIST, T0, 200, us(3), us(5), us(22), None),
        "ct-rows-only.txt" => Read(HIST, "thread 1", 93_003, us(2), None, us(5), us(3)),
        "ct-summary-only.txt" => Read(HIST, T0, 297_214, us(5), us(23), us(81), None),
        "ct-osc.txt" => Read("cyclictest-verbose", T0, 0, None, None, us(12), None),
        "cyclicdeadline.txt" => Read("cyclicdeadline", T0, 1_204, us(2), us(6), us(31), None),
        "oslat-prompt.txt" => Read("oslat-text", "cpu 1", 1_011, us(1), Some(1_001), us(7), us(1)),
        "oslat-v017.txt" => Read("oslat-text", "cpu 2", 2_020, us(1), Some(1_002), us(2), us(1)),
        "rtapp-trail.log" => Read("rt-app-log", "run", 3, us(2_006), None, us(11_093), us(2_012)),
        "rtla-nosummary.txt" => Read("rtla-hist", "irq, cpu 1", 1_000, Some(199), None, Some(399), Some(199)),
        "osadl-cyclictest.json" => Read("osadl-json", "cpu 0", 100_000, us(2), None, us(4), us(3)),
        "osadl2.json" => Read("osadl-json", "cpu 1", 100_000, us(2), None, us(4), us(3)),
        "hwlat.txt" => Read("hwlatdetect", "samples", 3, us(17), None, us(18), us(17)),
        "hwlat-report.txt" => Read("hwlatdetect", "samples", 2, us(17), None, us(18), us(17)),
        "hwlat.json" => Refused("it is JSON of `hwlatdetect`, which timecell does not read"),
        "stressng-cyclic.txt" => Read(
            "stress-ng-cyclic", "samples", 10_000, Some(2_603), Some(3_826), Some(2_073_993), Some(3_020)
        ),
        "xeno-latency.txt" => Read("xenomai-latency", "samples", 0, Some(4_374), Some(6_187), Some(49_833), None),
        "latmus-hist.txt" => Read("latmus-hist", "samples", 9_999, Some(2_179), Some(4_042), Some(6_997), us(4)),
        "rteval.txt" => Read("rteval-text", "all cpus", 1_200_000, us(3), Some(5_100), us(26), us(5)),
        "timerlat-trace.txt" => Read("timerlat-trace", "thread, cpu 1", 1, Some(9_820), None, Some(9_820), Some(9_820)),
        "schbench.txt" => Read("schbench", "wake-ups", 30_212, us(1), None, us(10_224), us(7)),
        "perftest.csv" => Read(
            "performance-test", "messages", 2_000, Some(28_800), Some(46_120), Some(220_400), None
        ),
        "ct-two2.txt" => Refused("f:2: its thread is another, so a second run begins: put each into its own file"),
        "jd-two.txt" => Refused("f:6: a second run begins"),
        "rtla-top-two.txt" => Refused("f:10: its figures change while its cycles stand still, so a second run begins"),
    };
    for (file, text, wanted) in cases {
        let read = import(None, "f", text.as_bytes(), Options::default());
        match (wanted, read) {
            (Refused(part), Err(error)) => {
                assert!(error.to_string().contains(part), "{file}: {error}");
            }
            (Read(format, name, count, min, mean, max, median), Ok(read)) => {
                assert_eq!(read.format, Format::named(format), "{file}");
                let d = read.distributions.iter().find(|d| d.name == name);
                let d = d.unwrap_or_else(|| panic!("{file}: no {name}"));
                let values = d.counted().max(d.said.cycles.unwrap_or(0));
                assert_eq!(values, count, "{file}");
                let at = match d.quantile(0.5) {
                    Reach::At(ns) => Some(ns),
                    _ => None,
                };
                let said = d.said.mean_ns.map(|ns| ns.round() as i64);
                assert_eq!(
                    (d.min_ns(), said, d.max_ns(), at),
                    (min, mean, max, median),
                    "{file}"
                );
            }
            (_, read) => panic!("{file}: {read:?}"),
        }
    }
}

#[test]
fn additions_of_logs_and_people_change_no_figure() {
    let bases = [
        (
            "cyclictest",
            include_str!("../../../tests/data/field/ct-smp.txt"),
        ),
        (
            "rows",
            include_str!("../../../tests/data/field/ct-rows-only.txt"),
        ),
        ("verbose", "0: 0: 5\n0: 1: 7\n0: 2: 6\n"),
        (
            "rt-app",
            include_str!("../../../tests/data/field/rtapp-trail.log"),
        ),
        (
            "rtla",
            include_str!("../../../tests/data/field/rtla-nosummary.txt"),
        ),
        (
            "oslat",
            include_str!("../../../tests/data/field/oslat-v017.txt"),
        ),
        (
            "latmus",
            include_str!("../../../tests/data/field/latmus-hist.txt"),
        ),
        (
            "schbench",
            include_str!("../../../tests/data/field/schbench.txt"),
        ),
    ];
    let prefixes = [
        "2026-11-23T05:38:26.123456789Z stdout F ",
        "rt-test-1  | 2026-11-23T05:38:26Z ",
        "Nov 23 05:38:26 host run[123]: ",
        "2026-11-23T05:38:26+0000 host run[123]: ",
        "1763956706.123456 ",
        "2026-11-23T05:38:26.123456Z 01O ",
        "[pod/rt-0/run] ",
        "rt-7d9fc-x2x4b cyclictest ",
        "[rt-test]    | ",
        "Nov 23 05:38:26.123456 host run[123]: ",
        "Sun 2026-11-23 05:38:26 UTC host run[123]: ",
        "00:00:05 ",
        "5.123456 ",
        "> ",
        "\x1b[32m2026-11-23 05:38:26 \x1b[0m",
    ];
    let logged = "{\"log\":\"2026-11-23T05:38:26Z stdout F ";
    let ends = [
        "Done.\n",
        "```\n",
        "user@host:~$ \n",
        "\n2 runs were made: see also run 2.\n",
        "\nreal\t0m10.123s\nuser\t0m0.010s\n",
    ];
    for (name, base) in bases {
        let figures = |text: &str| {
            let read = import(None, "f", text.as_bytes(), Options::default());
            read.map_err(|error| error.to_string())
                .map(|read| read.distributions)
        };
        let whole = figures(base);
        assert!(whole.is_ok(), "{name}: {whole:?}");
        let each = |begin: &str, end: &str| -> String {
            base.lines()
                .map(|line| format!("{begin}{line}{end}\n"))
                .collect()
        };
        for prefix in prefixes {
            assert_eq!(figures(&each(prefix, "")), whole, "{name}: {prefix}");
        }
        let entries = each(logged, "\\n\",\"stream\":\"stdout\"}").replace('\t', "\\t");
        assert_eq!(figures(&entries), whole, "{name}: docker");
        for end in ends {
            assert_eq!(figures(&format!("{base}{end}")), whole, "{name}: {end}");
        }
    }
}

#[test]
fn an_incomplete_table_and_a_second_run_are_not_read_as_one() {
    let twice = |text: &str| text.repeat(2);
    let lines =
        |text: &str, count: usize| -> String { text.split_inclusive('\n').take(count).collect() };
    let latmus = include_str!("../../../tests/data/field/latmus-hist.txt");
    let trace = include_str!("../../../tests/data/field/timerlat-trace.txt");
    let cases = [
        (
            twice(include_str!("../../../tests/data/field/ct-rows-only.txt")),
            "f:7: the rows begin again",
        ),
        (
            twice(include_str!("../../../tests/data/field/hwlat-report.txt")),
            "f:3: its clock goes back",
        ),
        (twice(trace), "f:25: the activations begin again"),
        (lines(latmus, 15), "cut short: no line `# max latency:`"),
        (
            lines(latmus, 20),
            "cut short: the rows hold 8999 of 9999 values",
        ),
        (
            lines(include_str!("../../../tests/data/field/ct-smp.txt"), 10),
            "cut short: `# Max Latencies:`",
        ),
    ];
    for (text, part) in cases {
        let error = import(None, "f", text.as_bytes(), Options::default()).expect_err(part);
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}

const STATUS: &str =
    "T: 0 ( 1234) P:80 I:1000 C:   1000 Min:      3 Act:    5 Avg:    4 Max:      19\n";

#[test]
fn what_a_file_does_not_hold_as_a_whole_is_refused_for_its_true_cause() {
    let whole = include_str!("../../../tests/data/field/ct-smp.txt");
    let oslat = include_str!("../../../tests/data/field/oslat-v017.txt");
    let schbench = include_str!("../../../tests/data/field/schbench.txt");
    let pair = |id: u32, cycles: u32, max: u32| {
        format!(
            "#0: ID{id}, P80, CPU1, I1000; #1: ID2, P80, CPU0, TO 0, Cycles {cycles}\n#1 -> #0, Min 8, Cur 15, Avg 23, Max {max}\n"
        )
    };
    let median = "stress-ng: info:  [2436] cyclic:   50.00%:       3020 ns\n";
    let cases = [
        // Cut within its last line, which has no number yet.
        (
            format!("{STATUS}T: 0 ( 1234) P:80 I:1000 C:   2000"),
            "f:2: cut short or damaged",
        ),
        (
            format!(
                "{}# Histogram Overf",
                whole.split("# Histogram Ov").next().unwrap()
            ),
            "cut short: the last line",
        ),
        // Two tools.
        (
            format!("{whole}{oslat}"),
            "the output of another tool begins (cyclictest-hist)",
        ),
        (
            format!("{schbench}{whole}"),
            "f:12: the output of another tool begins (cyclictest-hist)",
        ),
        // A second run whose figures could be later ones of the first.
        (
            format!("{schbench}{}", schbench.replace("30212", "30300")),
            "f:11: a second run begins",
        ),
        (
            pair(1, 200, 191) + &pair(11, 300, 195),
            "f:4: its thread is another, so a second run begins",
        ),
        (
            format!(
                "{whole}{}",
                STATUS
                    .replace("Min:      3", "Min:      2")
                    .replace("19\n", "90\n")
            ),
            "f:18: a second run begins",
        ),
        (
            median.repeat(2),
            "f:2: the percentile `50.00` occurs twice, so a second run begins",
        ),
        // Nanoseconds, as no interval is shorter than its mean latency.
        (
            STATUS.replace("Avg:    4 Max:      19", "Avg: 3100 Max:   15000"),
            "f:1: its mean exceeds its interval: if -N was used, say --unit ns, else --unit us",
        ),
        (
            "1763956706 1763956707\n".to_owned(),
            "its format is unknown",
        ),
        (
            STATUS.replace("19\n", "1,9\n"),
            "f:1: `1,9` is not a number",
        ),
    ];
    for (text, part) in cases {
        let error = import(None, "f", text.as_bytes(), Options::default()).expect_err(part);
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}

#[test]
fn what_a_file_says_of_itself_is_heeded() {
    let read = |text: &str| {
        let read = import(None, "f", text.as_bytes(), Options::default());
        read.unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    // The unit of a command line after a prompt, and in a typescript.
    let rows = include_str!("../../../tests/data/field/ct-rows-only.txt");
    for begin in [
        "$ sudo cyclictest -q -mNp80 -h 400\n",
        "Script started on 2026-11-23 [COMMAND=\"cyclictest --nsecs -h 400\" TERM=\"xterm\"]\n",
    ] {
        assert_eq!(
            read(&format!("{begin}{rows}")).distributions[1].max_ns(),
            Some(5)
        );
    }
    // A log whose first lines were lost begins with another thread.
    let thread_1 = STATUS.replace("T: 0 ( 1234)", "T: 1 ( 1235)");
    let late = "# Histogram\n000003 000001\t000000\n000029 000000\t000001\n# Min Latencies: 00003 00029\n\
        # Avg Latencies: 00003 00029\n# Max Latencies: 00003 00029\n# Histogram Overflows: 00000 00000\n";
    let late = read(&format!("{thread_1}{STATUS}{late}"));
    assert_eq!(
        (
            late.distributions[0].name.as_str(),
            late.distributions[0].max_ns()
        ),
        ("thread 0", us(3))
    );
    // Events that the kernel lost, a report of fewer cpus than it sums up, values that -v did not print.
    let trace = include_str!("../../../tests/data/field/timerlat-trace.txt");
    let report = include_str!("../../../tests/data/field/rteval.txt");
    for text in [
        format!("{trace}CPU:1 [LOST 42 EVENTS]\n"),
        format!(
            "{report}\nCPU core 0  Priority: 95\nStatistics:\nSamples: 600000\nMean: 5.1us\nMin: 3us\nMax: 26us\n"
        ),
        "0: 0: 5\n0: 4: 6\n".to_owned(),
        "Iteration 0 - Execution Time: 1.5 ms\nIteration 2 - Execution Time: 1.5 ms\n".to_owned(),
    ] {
        assert!(read(&text).incomplete.is_some(), "{text}");
    }
    // Seconds without a message have no latency.
    let none = include_str!("../../../tests/data/field/perftest.csv").to_owned()
        + "3.0,  1.0,  0,  1000,  1000,  1.0,  0,  1.79769e+308,  0.0000,  nan,  nan\n";
    assert_eq!(read(&none).distributions[0].said.cycles, Some(2_000));
    // The tenth day follows the ninth.
    let day = |day: u32, cycles: u32| {
        format!(
            "  {day:2} 00:00:12   |  IRQ Timer Latency (us)  |  Thread Timer Latency (us)\n  0 #{cycles}  |  1  0  1  10 |  10  1  1  59\n"
        )
    };
    assert_eq!(
        read(&(day(9, 100) + &day(10, 200))).distributions[1]
            .said
            .cycles,
        Some(200)
    );
    // The last digit of a time in us is a tenth of one.
    let log = read("Iteration 1 - Execution Time: 275.5 us\n");
    assert_eq!(log.distributions[0].resolution_ns, 100);
    // A load beside the measurement.
    let beside = read(&format!(
        "Running in process mode with 10 groups\nTime: 0.5\n{STATUS}Time: 0.6\n"
    ));
    assert_eq!(
        (beside.tool.as_str(), beside.distributions[0].max_ns()),
        ("cyclictest", us(19))
    );
}

/// Memory is bounded by a file's content, with any repetition.
#[test]
fn a_hostile_file_is_refused_before_it_fills_the_memory() {
    let refused = |text: String, part: &str| {
        let error = import(None, "f", text.as_bytes(), Options::default()).expect_err(part);
        assert!(error.to_string().contains(part), "{error}");
    };
    refused(
        "Iteration 1 - Execution Time: 1 ms\n".repeat(70_000),
        "more than 65,536 series",
    );
    let cores = "[1],".repeat(70_000);
    refused(
        format!(
            "{{\"format\":{{\"name\":\"RT Dataset\"}},\"latency\":{{\"cores\":[{cores}[1]]}}}}"
        ),
        "more than 65,536 cores",
    );
    let cores: String = (0..70_000)
        .map(|at| format!("<core id=\"{at}\"><histogram/></core>"))
        .collect();
    refused(
        format!("<rteval version=\"3\"><cyclictest>{cores}</cyclictest></rteval>\n"),
        "more than 65,536 cores",
    );
    let notes = "# Histogram\n".to_owned()
        + &"# Break value: 5\n".repeat(5_000)
        + "# Min Latencies: 1\n# Max Latencies: 1\n";
    let read = import(None, "f", notes.as_bytes(), Options::default()).expect("a histogram");
    assert!(read.notes.len() < 1_100, "{}", read.notes.len());
}
