//! The importers on files of the real tools (tests/data), on older variants, and on damaged ones.

use super::*;
use proptest::prelude::*;

/// Every file of a real tool, and its format.
const FILES: [(&str, &str, &[u8]); 15] = {
    macro_rules! file {
        ($name:literal, $format:literal) => {
            (
                $name,
                $format,
                include_bytes!(concat!("../../../tests/data/", $name)),
            )
        };
    }
    [
        file!("cyclictest-2.40.json", "cyclictest-json"),
        file!("cyclictest-2.40-no-histogram.json", "cyclictest-json"),
        file!("cyclictest-2.40-histogram.txt", "cyclictest-hist"),
        file!("cyclictest-2.40-histofall.txt", "cyclictest-hist"),
        file!("cyclictest-2.40-overflow.txt", "cyclictest-hist"),
        file!("cyclictest-2.40-summary.txt", "cyclictest-hist"),
        file!("oslat-2.40.json", "oslat-json"),
        file!("hackbench-2.40.txt", "hackbench"),
        file!("jitterdebugger-0.3.1.json", "jitterdebugger-json"),
        file!("jitterdebugger-0.3.1.raw", "jitterdebugger-raw"),
        file!("rt-app-1.0.log", "rt-app-log"),
        file!("rtla-timerlat-hist.txt", "rtla-hist"),
        file!("rtla-timerlat-hist-over.txt", "rtla-hist"),
        file!("rtla-timerlat-hist-ns.txt", "rtla-hist"),
        file!("rtla-osnoise-hist.txt", "rtla-hist"),
    ]
};

fn real(name: &str) -> Measured {
    let (_, _, bytes) = FILES.iter().find(|file| file.0 == name).expect("a file");
    import(None, name, bytes, Options::default()).expect(name)
}

fn read(text: &str) -> Result<Measured, String> {
    import(None, "f", text.as_bytes(), Options::default()).map_err(|error| error.to_string())
}

#[test]
fn every_real_file_is_sensed_by_its_content_and_read() {
    for (name, format, bytes) in FILES {
        let read = import(None, name, bytes, Options::default()).expect(name);
        assert_eq!(read.format, Format::named(format), "{name}");
        assert!(!read.distributions.is_empty(), "{name}");
    }
}

#[test]
fn what_cyclictest_wrote_with_n_is_read_in_nanoseconds_where_the_caller_says_so() {
    let name = "cyclictest-2.40-histogram.txt";
    let (_, _, bytes) = FILES.iter().find(|file| file.0 == name).expect("a file");
    let unit = Some(Unit::Ns);
    let ns = import(None, name, bytes, Options { unit }).unwrap();
    let us = real(name);
    let of = |read: &Measured| read.distributions[0].said.max_ns.expect("a maximum");
    assert_eq!(of(&ns) * 1_000, of(&us));
    assert!(ns.notes.iter().all(|note| !note.contains("microseconds")));
    assert!(us.notes.iter().any(|note| note.contains("--unit ns")));
    let (name, _, bytes) = FILES[0];
    let refused = import(None, name, bytes, Options { unit }).unwrap_err();
    assert!(
        refused.to_string().contains("states its unit itself"),
        "{refused}"
    );
}

/// The histogram, the overflows and the count of cycles agree in JSON and in text of the same call.
#[test]
fn cyclictest_says_the_same_in_json_and_in_text() {
    let (json, text) = (
        real("cyclictest-2.40.json"),
        real("cyclictest-2.40-histogram.txt"),
    );
    assert_eq!(json.version.as_deref(), Some("2.40"));
    assert_eq!(json.tool, "cyclictest");
    assert!(json.command.expect("a command").ends_with("-h 400"));
    for (a, b) in json.distributions.iter().zip(&text.distributions) {
        assert_eq!(a.counts, b.counts);
        assert_eq!(a.overflow, b.overflow);
        let expected = Overflow {
            count: Some(3),
            at_least_ns: 400_000,
        };
        assert_eq!(a.overflow, Some(expected));
        assert_eq!((a.max_ns(), a.min_ns()), (b.max_ns(), b.min_ns()));
        assert_eq!(a.total(), a.said.cycles);
    }
    let first = &json.distributions[0];
    assert_eq!(
        (first.total(), first.max_ns()),
        (Some(2_000), Some(3_973_000))
    );
    // 5 + 50 + 67 + 49 + 62 + 123 + 250 + 339 values below 11 us, 413 in its bucket: the 1,000th is there.
    assert_eq!(first.quantile(0.5), Reach::At(11_000));
    assert_eq!(first.quantile(0.999), Reach::Above(400_000));
}

#[test]
fn the_extra_column_of_histofall_is_no_thread() {
    let read = real("cyclictest-2.40-histofall.txt");
    assert_eq!(read.distributions.len(), 2);
    let [a, b] = &read.distributions[..] else {
        panic!()
    };
    assert_eq!((a.counted(), b.counted()), (1_997, 1_995));
    assert_eq!((a.total(), b.total()), (Some(2_000), Some(2_000)));
    assert_eq!((a.max_ns(), b.max_ns()), (Some(1_088_000), Some(891_000)));
}

#[test]
fn without_a_histogram_the_figures_of_the_tool_remain() {
    for name in [
        "cyclictest-2.40-no-histogram.json",
        "cyclictest-2.40-summary.txt",
    ] {
        let read = real(name);
        let first = &read.distributions[0];
        assert!(
            first.counts.is_empty() && first.max_ns().is_some(),
            "{name}"
        );
        assert_eq!(first.quantile(0.5), Reach::Unknown, "{name}");
        assert!(
            read.notes.iter().any(|note| note.contains("no histogram")),
            "{name}"
        );
    }
    let summary = real("cyclictest-2.40-summary.txt");
    let said = summary.distributions[1].said;
    assert_eq!(
        (said.cycles, said.min_ns, said.max_ns),
        (Some(344), Some(5_000), Some(20_000))
    );
}

/// `cyclictest -N -h 400` on a machine that never wakes up within 400 ns.
#[test]
fn a_histogram_in_which_no_value_lies_bounds_quantiles_from_below() {
    let file = |limit: &str| {
        format!(
            "{{\"cmdline:\": \"cyclictest -q -N {limit} -t 1\", \"rt_test_version:\": \"2.40\", \"num_threads\": 1, \
             \"resolution_in_ns\": 1, \"thread\": {{\"0\": {{\"histogram\": {{ }}, \"cycles\": 1000, \"min\": 12631, \
             \"max\": 911263, \"avg\": 60000.0, \"cpu\": 1}}}}}}"
        )
    };
    let none = |measured: &Measured| measured.notes.iter().any(|n| n.contains("no histogram"));
    let beyond = read(&file("-h 400")).expect("a file of cyclictest");
    let quantile = beyond.distributions[0].quantile(0.5);
    assert_eq!(quantile, Reach::Above(400));
    assert!(!none(&beyond), "{:?}", beyond.notes);
    assert!(none(&read(&file("-m")).expect("a file of cyclictest")));
}

/// Newer versions leave empty rows out and print no total; `-q` may be missing, and lines of the run come first.
#[test]
fn variants_of_the_text() {
    let text = "# /dev/cpu_dma_latency set to 0us\npolicy: fifo: loadavg: 0.1 0.2\n\
        T: 0 (1) P:80 I:1000 C: 1 Min: 3 Act: 3 Avg: 3 Max: 3\n# Histogram\n000003 000001\t000004\n000090 000001\t000000\n\
        # Min Latencies: 00003 00003\n# Avg Latencies: 00046 00003\n# Max Latencies: 00090 00150\n\
        # Histogram Overflows: 00000 00001\n# Histogram Overflow at cycle number:\n# Thread 0:\n# Thread 1: 00004 # 00002 others\n";
    let read = read(text).expect("a newer file");
    assert_eq!(read.distributions[0].counts, [(3_000, 1), (90_000, 1)]);
    assert_eq!(read.distributions[0].overflow, None);
    let over = Overflow {
        count: Some(1),
        at_least_ns: 91_000,
    };
    assert_eq!(read.distributions[1].overflow, Some(over));
    assert_eq!(read.distributions[1].quantile(0.9), Reach::Above(91_000));
}

#[test]
fn a_command_line_that_breaks_the_json_is_read_all_the_same() {
    let whole = std::str::from_utf8(FILES[0].2).expect("text");
    for command in [
        "cyclictest --json=a\\\"b\\q.json -h 400",
        "cyclictest \"quoted\" -h 400",
        "cyclictest a\nb -h 400",
    ] {
        let at = whole.find("cyclictest -q").expect("the command line");
        let end = at + whole[at..].find("\",").expect("its end");
        let read = read(&format!("{}{command}{}", &whole[..at], &whole[end..])).expect(command);
        assert!(read.command.expect("a command").contains("-h 400"));
        assert_eq!(read.distributions.len(), 2);
    }
}

#[test]
fn oslat_counts_what_is_too_long_in_its_last_bucket() {
    let read = real("oslat-2.40.json");
    let d = &read.distributions[0];
    assert_eq!(
        d.overflow,
        Some(Overflow {
            count: Some(57),
            at_least_ns: 32_000
        })
    );
    assert_eq!((d.max_ns(), d.cpu), (Some(71_977_000), Some(1)));
    assert_eq!(d.quantile(0.999_999), Reach::Above(32_000));
}

#[test]
fn rtla_rows_overflows_and_counts_agree() {
    for name in [
        "rtla-timerlat-hist.txt",
        "rtla-timerlat-hist-over.txt",
        "rtla-timerlat-hist-ns.txt",
        "rtla-osnoise-hist.txt",
    ] {
        let read = real(name);
        for d in &read.distributions {
            assert_eq!(d.total(), d.said.cycles, "{name} {}", d.name);
            assert!(d.overflow.is_some(), "{name} {}", d.name);
        }
    }
    let over = real("rtla-timerlat-hist-over.txt");
    assert_eq!(over.distributions[0].quantile(0.5), Reach::Above(20_000));
    let ns = real("rtla-timerlat-hist-ns.txt");
    assert_eq!(
        (
            ns.distributions[0].resolution_ns,
            ns.distributions[0].min_ns()
        ),
        (1_000, Some(22_186))
    );
}

#[test]
fn the_blocks_and_dashes_of_newer_rtla() {
    let text = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:01\n\
        Index   IRQ-000   Thr-000   Usr-000\n0  1 0 0\n1 0 1 0\nover:  0 0 0\ncount: 1 1 0\nmin: 0 1 -\navg: 0.25 1.50 -\nmax: 0 1 -\n\
        ALL:        IRQ       Thr       Usr\ncount:        1 1 0\n";
    let read = read(text).expect("a newer file");
    assert_eq!(read.distributions.len(), 3);
    assert_eq!(read.distributions[0].said.mean_ns, Some(250.0));
    assert_eq!(read.distributions[2].max_ns(), None);
}

#[test]
fn jitterdebugger_json_and_raw() {
    let json = real("jitterdebugger-0.3.1.json");
    assert_eq!(json.distributions[0].total(), Some(300));
    let raw = real("jitterdebugger-0.3.1.raw");
    let samples: u64 = raw.distributions.iter().map(Distribution::counted).sum();
    assert_eq!(samples, 200);
    assert!(raw.notes[0].contains("microseconds are assumed"));
    // Values dropped beyond the histogram show in its maximum only.
    let text = std::str::from_utf8(FILES[8].2)
        .expect("text")
        .replace("\"max\": 18,", "\"max\": 4000,");
    let cut = read(&text).expect("a file");
    assert_eq!(
        cut.distributions[0].overflow,
        Some(Overflow {
            count: None,
            at_least_ns: 19_000
        })
    );
    assert_eq!(cut.distributions[0].quantile(0.5), Reach::Unknown);
    let ns = Options {
        unit: Some(Unit::Ns),
    };
    let fine = import(None, "f", FILES[9].2, ns).expect("the same in ns");
    assert_eq!(
        fine.distributions[0].max_ns().map(|ns| ns * 1_000),
        raw.distributions[0].max_ns()
    );
}

#[test]
fn rt_app_hackbench_and_iterations() {
    let log = real("rt-app-1.0.log");
    let names: Vec<&str> = log.distributions.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["run", "wu_lat", "slack"]);
    assert!(
        log.distributions[0]
            .counts
            .iter()
            .any(|pair| pair.0 == 534_000)
    );
    assert!(
        log.distributions[2]
            .counts
            .iter()
            .any(|pair| pair.0 == -25_087_000)
    );
    assert!(log.notes.iter().any(|note| note.contains("wu_lat is 0 in")));
    assert_eq!(real("hackbench-2.40.txt").distributions[0].counted(), 2);

    let text = "Iteration 0 - Execution Time: 0.836 ms\nhead\nIteration 1 - Execution Time: 0.624 ms\n\
        Iteration 4 - Execution Time: 0.300 ms\nIteration 0 - Execution Time: 1.5 ms\n";
    let log = read(text).expect("a log");
    assert_eq!(log.distributions.len(), 2);
    assert_eq!(
        log.distributions[0].counts,
        [(300_000, 1), (624_000, 1), (836_000, 1)]
    );
    assert_eq!(log.distributions[0].resolution_ns, 1_000);
    assert_eq!(
        log.notes[0],
        "run 1, 2 iterations are missing, as their numbers show"
    );
    assert_eq!(
        log.notes[1],
        "lines of others are ignored: 1, the first is line 2"
    );
}

#[test]
fn damaged_files_are_refused_with_one_sentence() {
    let json = std::str::from_utf8(FILES[0].2).expect("text");
    let histogram = std::str::from_utf8(FILES[2].2).expect("text");
    let rtla = std::str::from_utf8(FILES[11].2).expect("text");
    let lines = |text: &str, n: usize| text.lines().take(n).collect::<Vec<_>>().join("\n") + "\n";
    for (text, part) in [
        (String::new(), "f: the file is empty"),
        (" \n".to_owned(), "f: the file is empty"),
        (
            lines(json, 40).trim_end().to_owned(),
            "f:40: cut short: the JSON ends here",
        ),
        (
            lines(histogram, 100),
            "f:100: cut short: `# Min Latencies:` does not follow",
        ),
        (lines(histogram, 100) + "0000", "f:101: `0000` is not a row"),
        (lines(rtla, 2), "cut short: no line `Index ...`"),
        (
            lines(rtla, 20) + "33   1 2",
            "f:21: 2 values in a table of 4 columns",
        ),
        ("hello".to_owned(), "f: not a file that can be drawn"),
        ("{\"tasks\": {}}".to_owned(), "timecell analyze"),
        ("{\"a\": 1}".to_owned(), "JSON of an unknown tool"),
        (
            "run,host,scenario,subject,part,share_of,unit,round,order,value,vcpus,memory_bytes\na,b,startup".to_owned(),
            "f: timecell does not read back its own table of single measurements; use `timecell report RUN`",
        ),
        (
            "run,host,trial,round,utilisation,set,load,attacker,enforcer,cell,task,wcet_ns,period_ns,job,skipped_before,\
             release_ns,start_ns,end_ns,skipped_after\r\n"
                .to_owned(),
            "its own table of a study of isolation",
        ),
        (
            // As it was before tables of several runs could be told apart.
            "trial,round,enforcer,budget_ns,period_ns,stretch,stretch_begin_ns,stretch_end_ns,gap_begin_ns,gap_end_ns\n"
                .to_owned(),
            "its own table of a study of supply",
        ),
        (
            "run,host,trial,round,period_ns,job,skipped_before,release_ns,start_ns,end_ns,wakeup_latency_ns,execution_time_ns,\
             response_time_ns,skipped_after,instructions\n1,2\n".to_owned(),
            "its own table of jobs",
        ),
        (
            "run,host,interval,start_ns,end_ns,closed_utc,executed,skipped,lost,metric,min_ns,median_ns,p99_ns,max_ns\n1,2\n".to_owned(),
            "its own table of intervals",
        ),
        ("PAR1\u{15}\0".to_owned(), "it is Parquet; if timecell exported it, use `timecell report RUN`"),
        (
            "Iteration 3 - Execution Ti\nIteration 4 - Execution Time: 1 ms".to_owned(),
            "f:1: the line is cut short",
        ),
        (
            "Iteration 3 - Execution Time: 1 h".to_owned(),
            "f:1: the unit is `h`",
        ),
        (
            "Running in process mode with 2 groups\n".to_owned(),
            "cut short: there is no line `Time:`",
        ),
        (
            "#idx run wu_lat\n0 5".to_owned(),
            "f:2: cut short: 2 values, but the header names 3 columns",
        ),
    ] {
        let error = read(&text).expect_err(&text);
        assert!(error.contains(part), "{error}\nwanted: {part}");
        assert!(!error.contains('\n'), "{error}");
    }
    let raw = &FILES[9].2[..100];
    let error = import(None, "f", raw, Options::default())
        .expect_err("cut")
        .to_string();
    assert!(
        error.starts_with("f: cut short: record 4 has 16 of 28 bytes"),
        "{error}"
    );
    let error = import(None, "f", &[0; 280], Options::default())
        .expect_err("zeros")
        .to_string();
    assert!(error.contains("binary"), "{error}");
}

proptest! {
    /// A file cut off anywhere, or with any byte changed, is read or refused in one line, under any format.
    #[test]
    fn no_damage_panics(file in 0usize..15, cut in 0.0f64..1.0, at in 0.0f64..1.0, byte: u8, forced in 0usize..30) {
        let (name, _, bytes) = FILES[file];
        let mut bytes = bytes[..(bytes.len() as f64 * cut) as usize].to_vec();
        if !bytes.is_empty() {
            let at = (bytes.len() as f64 * at) as usize;
            bytes[at] = byte;
        }
        let format = Format::all().nth(forced);
        match import(format, name, &bytes, Options::default()) {
            Ok(read) => {
                for d in read.distributions {
                    prop_assert!(d.counts.windows(2).all(|pair| pair[0].0 < pair[1].0));
                    prop_assert!(d.ccdf().all(|point| (0.0..=1.0).contains(&point.1)));
                    let _ = (d.quantile(0.99), d.mean_ns(), d.max_ns());
                }
            }
            Err(error) => {
                let error = error.to_string();
                prop_assert!(error.starts_with(name) && !error.contains('\n'), "{}", error);
            }
        }
    }
}
