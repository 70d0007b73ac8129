//! Files that could be misread: cut within a number, contradicting themselves, from tools with similar output,
//! compressed, encoded, empty, or several in one.

use std::io::Write;

use super::*;

fn read(text: &str) -> Result<Measured, String> {
    read_bytes(text.as_bytes())
}

fn read_bytes(bytes: &[u8]) -> Result<Measured, String> {
    import(None, "f", bytes, Options::default()).map_err(|error| error.to_string())
}

fn refused(text: &str, part: &str) {
    let error = read(text).expect_err(text);
    assert!(error.contains(part), "{error}\nwanted: {part}");
    assert!(!error.contains('\n') && error.len() < 500, "{error}");
}

const HISTOGRAM: &str = "# Histogram\n000011 000003\t000000\n000012 000236\t000002\n# Total: 000000239 000000002\n\
    # Min Latencies: 00011 00012\n# Avg Latencies: 00012 00012\n# Max Latencies: 00012 00012\n# Histogram Overflows: 00000 00000\n";

const RTLA: &str = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:02\n\
    Index   IRQ-001   Thr-001\n0   990  944\n10    9   55\n20    1    1\nover:   0   0\ncount:   1000  1000\nmin:  0  3\navg:  0  6\nmax:  23  20\n";

/// A file of rt-tests by this command, with these threads.
fn rt_tests(command: &str, rest: &str) -> String {
    format!(
        "{{\"file_version\": 1, \"cmdline:\": \"{command} --json=x\", \"rt_test_version:\": \"2.40\", \"return_code\": 0,\
         \"sysinfo\": {{\"sysname\": \"Linux\"}}{rest}}}"
    )
}

fn cyclictest(thread: &str) -> String {
    let thread = format!(
        ", \"num_threads\": 1, \"resolution_in_ns\": 0, \"thread\": {{\"0\": {{{thread}}}}}"
    );
    rt_tests("cyclictest -q -h 50", &thread)
}

#[test]
fn a_file_cut_within_its_last_number_is_refused() {
    for whole in [
        HISTOGRAM,
        RTLA,
        "Running in process mode with 2 groups\nTime: 0.244\n",
        "Iteration 0 - Execution Time: 0.200 ms\n",
        "T: 0 ( 1) P:80 I:1000 C: 5 Min: 3 Act: 3 Avg: 14 Max: 39\n",
        "       0:       0:      15\n       0:       1:      22\n",
    ] {
        read(whole).expect(whole);
        let cut = &whole[..whole.len() - 2];
        let error = read(cut).expect_err(cut);
        assert!(error.starts_with("f:"), "{error}");
        let crlf = whole.replace('\n', "\r\n");
        assert_eq!(read(&crlf), read(whole), "lines may end in CR LF");
    }
}

#[test]
fn a_summary_of_rtla_that_ends_before_its_maximum_is_refused() {
    let line = |start: &str| RTLA.find(start).expect(start);
    for start in ["min:", "avg:", "max:"] {
        refused(
            &RTLA[..line(start)],
            "cut short: the summary ends before its line `max:`",
        );
    }
    // As with --no-summary.
    let without = read(&RTLA[..line("count:")]).expect("the histogram is whole");
    assert!(
        without
            .notes
            .iter()
            .any(|note| note.contains("--no-summary"))
    );
    let two = format!("{}{RTLA}", &RTLA[..line("max:")]);
    refused(&two, "run 1, cut short");
}

#[test]
fn task_sets_are_recognised() {
    let table = "name,wcet_us,period_us\na,1,9\n";
    for (text, tool) in [
        (
            "<?xml version='1.0'?>\n<taskset><task/></taskset>",
            " of SchedCAT",
        ),
        (
            "<!-- a -->\n<testpoint><taskset/></testpoint>",
            " of SchedCAT",
        ),
        ("<system os_scheduler=\"EDF\"></system>", " of CARTS"),
        (
            "/* Task set of timecell */\n{ \"tasks\" : {} }",
            " of rt-app",
        ),
        ("{ \"global\": {}, // last\n\"tasks\" : {} }", " of rt-app"),
        (table, ", a table"),
    ] {
        refused(
            text,
            &format!("it is a task set{tool}, which `timecell analyze` reads"),
        );
    }
    refused("<rteval2/>", "format is unknown");
    refused("name,max_us\na,3\n", "format is unknown");
}

#[test]
fn figures_that_cannot_be_true_together_are_refused() {
    let good = "\"histogram\": {\"5\": 60, \"7\": 40}, \"cycles\": 100, \"min\": 5, \"max\": 7, \"avg\": 5.8";
    assert_eq!(
        read(&cyclictest(good)).unwrap().distributions[0].total(),
        Some(100)
    );
    for (was, is, part) in [
        (": 60", ": 110", "150 values, but 100 were counted"),
        (
            ": 60",
            ": 18446744073709551615",
            "higher counts than any tool can reach",
        ),
        (
            "\"min\": 5",
            "\"min\": 8",
            "the minimum of 8000 ns exceeds the maximum of 7000 ns",
        ),
        (
            "\"min\": 5",
            "\"min\": 6",
            "the histogram begins at 5000 ns",
        ),
        ("\"avg\": 5.8", "\"avg\": 500.5", "is not between"),
        ("\"max\": 7", "\"max\": 6", "holds values of 7000 ns"),
    ] {
        refused(&cyclictest(&good.replace(was, is)), part);
    }
    refused(
        &HISTOGRAM.replace("000236", "000237"),
        "`# Total:` says 239",
    );
    refused(
        &HISTOGRAM.replace("Max Latencies: 00012", "Max Latencies: 00003"),
        "exceeds the maximum of 3000 ns",
    );
    refused(
        &RTLA.replace("990", "991"),
        "hold 1001 values, but 1000 were counted",
    );
}

#[test]
fn tools_of_rt_tests_are_read_as_what_they_are() {
    let pair = ", \"num_threads\": 1, \"thread\": {\"0\": {\"sender\": {\"cpu\": 1, \"samples\": 300}, \
        \"receiver\": {\"cpu\": 0, \"min\": 2, \"avg\": 4.53, \"max\": 61}}}";
    for (tool, quantity) in [
        ("ptsematest", "mutex"),
        ("pmqtest", "POSIX message"),
        ("svsematest", "System V semaphore"),
        ("/usr/bin/sigwaittest", "sigwait"),
    ] {
        let read = read(&rt_tests(&format!("{tool} -t1"), pair)).expect(tool);
        let d = &read.distributions[0];
        assert!(
            d.quantity.contains(quantity) && tool.ends_with(&read.tool),
            "{}",
            d.quantity
        );
        let said = (d.said.min_ns, d.said.max_ns, d.said.cycles, d.cpu);
        assert_eq!(said, (Some(2_000), Some(61_000), Some(300), Some(0)));
        assert_eq!(d.said.mean_ns, Some(4_530.0));
    }
    let threads = ", \"num_threads\": 1, \"thread\": {\"0\": {\"cycles\": 500, \"min\": 7, \"max\": 122, \"avg\": 10.4, \"cpu\": 1}}";
    let signals = read(&rt_tests("signaltest", threads)).unwrap();
    assert!(signals.distributions[0].quantity.contains("signal"));
    let tasks = ", \"num_threads\": 1, \"thread\": {\"0\": {\"prio\": 2, \"min\": 28, \"avg\": 8040, \"max\": 20057, \"total\": 40200}}";
    let tasks = read(&rt_tests("rt-migrate-test -c", tasks)).unwrap();
    assert_eq!(tasks.distributions[0].name, "task 0, priority 2");
    assert_eq!(tasks.distributions[0].max_ns(), Some(20_057_000));
    refused(&rt_tests("ssdd --iters=200", ""), "ssdd counts forks");
    refused(&rt_tests("newtest", pair), "JSON of `newtest`");
    // Said to be cyclictest's, it is still no empty table.
    let forced = rt_tests("pmqtest", pair);
    let format = Format::named("cyclictest-json");
    let error = import(format, "f", forced.as_bytes(), Options::default()).unwrap_err();
    assert!(error.to_string().contains("no measured value"), "{error}");
}

#[test]
fn status_lines_tell_the_tools_apart() {
    let of = |text: &str| {
        let read = read(text).expect(text);
        let d = &read.distributions[0];
        (read.tool.clone(), d.quantity.clone(), d.max_ns())
    };
    let (tool, quantity, _) =
        of("T: 0 (23786) P:80 C:    500 Min:      7 Act:   10 Avg:   10 Max:     122\n");
    assert_eq!(tool, "signaltest");
    assert!(quantity.contains("signal"));
    let (tool, quantity, max) =
        of("T: 0 (30921) A: 1 C:        14 Min:     34673 Avg:42205.36 Max:     52229 \u{1b}[K\n");
    assert_eq!(
        (tool.as_str(), quantity.as_str(), max),
        ("jitterdebugger", "wake-up latency", Some(52_229_000))
    );
    let (tool, _, max) = of(
        "#0: ID1, P80, CPU1, I1000; #1: ID2, P80, CPU0, TO 0, Cycles 200\n#1 -> #0, Min    8, Cur   15, Avg   23, Max  191\n",
    );
    assert!(tool.contains("pairs") && max == Some(191_000));
}

#[test]
fn nothing_above_the_threshold_is_a_result_and_wide_buckets_stand_at_their_upper_edge() {
    let head = "# RTLA osnoise histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:05\nIndex\n";
    for rest in [
        "over: 0\ncount: 0\nmin: 0\navg: 0\nmax: 0\n",
        "over:\ncount:\nmin:\navg:\nmax:\n",
    ] {
        let read = read(&format!("{head}{rest}")).expect(rest);
        assert_eq!(read.distributions[0].said.cycles, Some(0));
        assert!(
            read.notes
                .iter()
                .any(|note| note.contains("no noise above the tool's threshold"))
        );
        assert_eq!(read.distributions[0].kept_above_ns, Some(5_000));
    }
    let wide = read(RTLA).unwrap();
    // The tool's largest value bounds the highest bucket; it is 23 in one column, 20 in the other.
    assert_eq!(
        wide.distributions[0].counts,
        [(9_000, 990), (19_000, 9), (23_000, 1)]
    );
    assert_eq!(wide.distributions[0].quantile(0.5), Reach::At(9_000));
    assert_eq!(wide.distributions[1].counts[2], (20_000, 1));
    assert_eq!(wide.distributions[0].resolution_ns, 10_000);
    // One row leaves the width open: the largest value tells how far it reaches at least.
    let one = RTLA
        .replace("10    9   55\n20    1    1\n", "")
        .replace("990  944", "1000 1000");
    let one = read(&one).unwrap();
    assert_eq!(one.distributions[0].counts, [(23_000, 1_000)]);
}

#[test]
fn no_table_of_several_is_dropped() {
    let second = RTLA.replace("-001", "-000").replace("23  20", "24  21");
    let both = read(&format!("{RTLA}ALL:  IRQ  Thr\ncount: 1000 1000\n{second}")).unwrap();
    let names: Vec<&str> = both.distributions.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(
        (names.len(), names[0], names[3]),
        (4, "run 1, irq, cpu 1", "run 2, thread, cpu 0")
    );
    assert_eq!(both.distributions[2].max_ns(), Some(24_000));
    refused(
        &format!("{HISTOGRAM}{HISTOGRAM}"),
        "a second histogram begins",
    );
    let status = "T: 0 ( 1) P:80 I:1000 C: 500 Min: 3 Act: 3 Avg: 14 Max: 39\n";
    refused(
        &format!("{status}# /dev/cpu_dma_latency set to 0us\n{status}"),
        "a second run begins",
    );
    refused(
        &format!("{status}{}", status.replace("500", "40")),
        "a second run begins",
    );
}

#[test]
fn a_footer_without_rows_keeps_its_figures() {
    let text = "# Histogram\n# Total: 000000000\n# Min Latencies: 12294\n# Avg Latencies: 17669\n# Max Latencies: 32031\n";
    for rest in ["# Histogram Overflows: 00200\n", ""] {
        let read = read(&format!("{text}{rest}")).expect("a footer");
        let d = &read.distributions[0];
        assert_eq!(
            (d.min_ns(), d.max_ns(), d.mean_ns()),
            (Some(12_294_000), Some(32_031_000), Some(17_669_000.0))
        );
    }
}

#[test]
fn what_is_packed_is_unpacked_and_what_is_encoded_is_named() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(RTLA.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(read_bytes(&packed), read(RTLA));
    let cut = read_bytes(&packed[..packed.len() - 12]).unwrap_err();
    assert!(cut.contains("cut short"), "{cut}");
    let marked = read(&format!("\u{feff}{RTLA}")).unwrap();
    assert!(marked.notes[0].contains("byte order mark"));
    assert_eq!(marked.distributions, read(RTLA).unwrap().distributions);
    for mark in [&b"\xff\xfe"[..], b""] {
        let mut wide = mark.to_vec();
        wide.extend(RTLA.encode_utf16().flat_map(u16::to_le_bytes));
        let error = read_bytes(&wide).unwrap_err();
        assert!(
            error.contains("UTF-16") && error.contains("iconv"),
            "{error}"
        );
    }
    assert!(
        read_bytes(b"\x28\xb5\x2f\xfd123")
            .unwrap_err()
            .contains("zstd")
    );
    // Lines that end in a lone CR, as old editors write them.
    let returns =
        "Iteration 0 - Execution Time: 0.200 ms\rIteration 1 - Execution Time: 0.201 ms\r";
    assert_eq!(read(returns).unwrap().distributions[0].counted(), 2);
}

#[test]
fn an_error_never_echoes_a_file() {
    let long = "x\u{1b}[2J".repeat(50_000);
    for text in [
        format!("# Histogram\n{long}\n"),
        format!("# RTLA timerlat histogram\nIndex {long}\n"),
        format!("Iteration 1 - Execution Time: 3 {long}\n"),
        cyclictest(&format!("\"cycles\": \"{}\"", "y".repeat(100_000))),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.len() < 600, "{} characters", error.len());
        assert!(!error.contains('\u{1b}'), "{error}");
    }
}

#[test]
fn verbose_cyclictest_and_oslat_in_text() {
    let values = "# /dev/cpu_dma_latency set to 0us\nThread 0 Interval: 1500\n       0:       0:      15\n       0:       1:      22\n       1:       0:      18\n\
        T: 0 (25070) P:80 I:1000 C:      2 Min:     15 Act:   22 Avg:   18 Max:      22\n";
    let read_values = read(values).unwrap();
    assert_eq!(read_values.format, Format::named("cyclictest-verbose"));
    assert_eq!(
        read_values.distributions[0].counts,
        [(15_000, 1), (22_000, 1)]
    );
    let lost = read(&values.replace("0:       1:", "0:       4:")).unwrap();
    assert!(
        lost.notes
            .iter()
            .any(|note| note.contains("3 values are missing")),
        "{:?}",
        lost.notes
    );
    let oslat = "oslat V 2.40\n        Core:\t 0 1\nCounter Freq:\t 2445 2445 (Mhz)\n    001 (us):\t 15 16\n    002 (us):\t 0 25\n\
            005 (us):\t 700 0 (including overflows)\n     Minimum:\t 1 1 (us)\n     Average:\t 1.033 1.031 (us)\n     Maximum:\t 21388 2 (us)\n";
    let read_oslat = read(oslat).unwrap();
    let [a, b] = &read_oslat.distributions[..] else {
        panic!()
    };
    let over = Overflow {
        count: Some(700),
        at_least_ns: 5_000,
    };
    assert_eq!((a.overflow, a.max_ns()), (Some(over), Some(21_388_000)));
    assert_eq!((b.overflow, b.counted(), b.cpu), (None, 41, Some(1)));
    refused(&oslat.replace("Maximum", "Maxi"), "cut short");
}

#[test]
fn tables_of_rtla_top_are_read_and_the_last_one_counts() {
    let table = |count: u32, max: u32| {
        format!(
            "                                     Timer Latency\n  0 00:00:12   |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)\n\
             CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max\n  \
             0 #{count}     |        1         0         1        10 |       10         1         1        {max}\n"
        )
    };
    let top = read(&format!("{}{}", table(12_600, 59), table(12_634, 70))).unwrap();
    assert_eq!(
        (top.tool.as_str(), top.distributions.len()),
        ("rtla timerlat top", 2)
    );
    let said = top.distributions[1].said;
    assert_eq!((said.max_ns, said.cycles), (Some(70_000), Some(12_634)));
    refused(
        &table(12_600, 59).replace("        1        59", "        1"),
        "f:4: cut short or damaged: `0 #12600",
    );
    let noise = "                                          Operating System Noise\nduration:   0 00:01:00 | time is in us\n\
        CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI\n  \
        0 #59         59000000         1018    99.99827         190           48           3           0\n";
    let noise = read(noise).unwrap();
    assert_eq!(noise.tool, "rtla osnoise top");
    assert_eq!(noise.distributions[0].max_ns(), Some(48_000));
}

#[test]
fn an_interval_log_of_hdr_histogram_is_added_up() {
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::V2DeflateSerializer;
    use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
    use std::time::Duration;

    // Two digits, where timecell's own have three.
    let mut histogram = Histogram::<u64>::new(2).unwrap();
    histogram.record_n(1_000, 60).unwrap();
    histogram.record(50_000).unwrap();
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .begin_log_with(&mut text, &mut serializer)
        .unwrap();
    for second in 0..2 {
        let start = Duration::from_secs(second);
        log.write_histogram(&histogram, start, Duration::from_secs(1), None)
            .unwrap();
    }
    let mut whole = b"#[Histogram log format version 1.3]\n".to_vec();
    whole.extend(text);
    let read_log = read_bytes(&whole).unwrap();
    let d = &read_log.distributions[0];
    assert_eq!(
        (d.name.as_str(), d.counted(), d.counts.len()),
        ("values", 122, 2)
    );
    assert!(d.counts[0].0 >= 1_000 && d.counts[1].0 >= 50_000 && d.counts[1].0 < 51_000);
    let text = String::from_utf8(whole).unwrap();
    refused(&text[..text.len() - 40], "histogram");
    assert_eq!(
        (d.quantity.as_str(), read_log.notes.len()),
        ("recorded value", 2)
    );
    // timecell's own name the metric, and are in nanoseconds.
    let ours = format!("#timecell-metric execution_time\n{text}");
    let read_ours = read_bytes(ours.as_bytes()).unwrap();
    assert_eq!(read_ours.distributions[0].quantity, "execution time");
    assert_eq!(
        (read_ours.tool.as_str(), read_ours.notes.len()),
        ("timecell", 1)
    );
    refused(
        &format!("{ours}#timecell-metric wakeup_latency\n"),
        "another metric",
    );
}
