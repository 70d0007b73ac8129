//! Generates one large file of every kind that `timecell report` reads, as a stream or whole, to see how much memory it
//! takes:
//!
//! `cargo run -p timecell-record --example large_files -- DIR [MB]`, then for each file `/usr/bin/time -v timecell report FILE`.
//!
//! Each has 100 MB, or so many.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

type Done = Result<(), Box<dyn std::error::Error>>;

fn main() -> Done {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let dir = PathBuf::from(words.first().ok_or("name a directory")?);
    let megabytes: usize = words.get(1).map_or(Ok(100), |word| word.parse())?;
    let bytes = megabytes * 1_000_000;
    std::fs::create_dir_all(&dir)?;
    rows(&dir.join("verbose.txt"), bytes, "", |n, late| {
        format!("       0:{n:8}:{late:8}\n")
    })?;
    rows(&dir.join("distinct.txt"), bytes, "", |n, _| {
        format!("       0:{n:8}:{n:8}\n")
    })?;
    rows(
        &dir.join("rt-app.log"),
        bytes,
        "#idx     perf      run   period           start             end          rel_st      slack c_duration   c_period     wu_lat\n",
        |n, late| {
            let start = 11_764_352_676 + 5_000 * n;
            format!(
                "   0    38461 {run:8}     5011 {start:15} {end:15} {n:15} {slack:10}        500       5000 {late:10}\n",
                run = 500 + late,
                end = start + 5_011,
                slack = 4_500 - late as i64
            )
        },
    )?;
    rows(&dir.join("iterations.txt"), bytes, "", |n, late| {
        format!(
            "Iteration {n} - Execution Time: 0.{:06} ms\n",
            270_000 + late
        )
    })?;
    rows(&dir.join("hackbench.txt"), bytes, "", |_, late| {
        format!(
            "Running in process mode with 2 groups using 40 file descriptors each (== 80 tasks)\n\
                 Each sender will pass 100 messages of 100 bytes\nTime: 0.{late:03}\n"
        )
    })?;
    raw(&dir.join("samples.raw"), bytes)?;
    histogram(&dir.join("histogram.txt"), bytes)?;
    json(&dir.join("cyclictest.json"), bytes)?;
    hlog(&dir.join("latency.hlog"), bytes)?;
    rteval(&dir.join("rteval.xml"), bytes)
}

/// A latency of the n-th job as a machine has them: some thousand different ones, the large ones rare.
fn late(n: u64) -> u64 {
    let mixed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    match mixed % 1_000 {
        0 => 100 + mixed % 8_000,
        _ => 2 + mixed % 90,
    }
}

/// The written file, and its size.
struct Counted {
    file: BufWriter<File>,
    bytes: usize,
}

impl Counted {
    fn create(path: &Path) -> std::io::Result<Counted> {
        let file = BufWriter::new(File::create(path)?);
        Ok(Counted { file, bytes: 0 })
    }

    fn put(&mut self, text: &str) -> std::io::Result<()> {
        self.bytes += text.len();
        self.file.write_all(text.as_bytes())
    }

    fn end(mut self) -> Done {
        Ok(self.file.flush()?)
    }
}

/// A head and rows until the file is large enough.
fn rows(path: &Path, bytes: usize, head: &str, row: impl Fn(u64, u64) -> String) -> Done {
    let mut file = Counted::create(path)?;
    file.put(head)?;
    let mut n = 0;
    while file.bytes < bytes {
        file.put(&row(n, late(n)))?;
        n += 1;
    }
    file.end()
}

/// jitterdebugger's samples.
fn raw(path: &Path, bytes: usize) -> Done {
    let mut file = BufWriter::new(File::create(path)?);
    for n in 0..bytes as u64 / 28 {
        file.write_all(&0_u32.to_le_bytes())?;
        for word in [1_000 + n / 1_000, n % 1_000 * 1_000_000, late(n)] {
            file.write_all(&word.to_le_bytes())?;
        }
    }
    Ok(file.flush()?)
}

/// cyclictest's histogram of eight threads, a count in every bucket.
fn histogram(path: &Path, bytes: usize) -> Done {
    let mut file = Counted::create(path)?;
    file.put("# Histogram\n")?;
    let mut rows = 0_u64;
    while file.bytes < bytes {
        file.put(&format!("{rows} 1 1 1 1 1 1 1 1\n"))?;
        rows += 1;
    }
    for (key, value) in [
        ("Total", rows),
        ("Min Latencies", 0),
        ("Avg Latencies", rows / 2),
        ("Max Latencies", rows - 1),
        ("Histogram Overflows", 0),
    ] {
        file.put(&format!(
            "# {key}: {}\n",
            vec![value.to_string(); 8].join(" ")
        ))?;
    }
    file.end()
}

/// cyclictest's JSON of one thread, a count in every bucket.
fn json(path: &Path, bytes: usize) -> Done {
    let mut file = Counted::create(path)?;
    file.put("{\n  \"file_version\": 1,\n  \"cmdline:\": \"cyclictest -q -h 99999999\",\n  \"rt_test_version:\": \"2.40\",\n")?;
    file.put("  \"num_threads\": 1,\n  \"resolution_in_ns\": 0,\n  \"thread\": {\n    \"0\": {\n      \"histogram\": {\n")?;
    let mut rows = 0_u64;
    while file.bytes < bytes {
        let comma = if rows == 0 { "" } else { ",\n" };
        file.put(&format!("{comma}        \"{rows}\": 1"))?;
        rows += 1;
    }
    file.put(&format!(
        "\n      }},\n      \"cycles\": {rows},\n      \"min\": 0,\n      \"max\": {},\n      \"avg\": {}.00,\n      \"cpu\": 0,\n      \"node\": 0\n    }}\n  }}\n}}\n",
        rows - 1,
        rows / 2
    ))?;
    file.end()
}

/// An interval log: each minute a histogram of a thousand latencies, in ns.
fn hlog(path: &Path, bytes: usize) -> Done {
    let mut file = Counted::create(path)?;
    file.put("#[Histogram log format version 1.3]\n")?;
    let mut number = 0_u64;
    while file.bytes < bytes {
        let mut text = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let mut log = IntervalLogWriterBuilder::new().begin_log_with(&mut text, &mut serializer)?;
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3)?;
        for n in 0..1_000 {
            histogram.record(1_000 * late(1_000 * number + n) + n % 997)?;
        }
        let start = Duration::from_secs(60 * number);
        let tag = Tag::new("latency");
        log.write_histogram(&histogram, start, Duration::from_secs(60), tag)?;
        file.put(&String::from_utf8(text)?)?;
        number += 1;
    }
    file.end()
}

/// rteval's summary of as many cores as fit, each with a count in every bucket.
fn rteval(path: &Path, bytes: usize) -> Done {
    const BUCKETS: u64 = 3_500;
    let mut file = Counted::create(path)?;
    file.put("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rteval version=\"3.8\">\n<Measurements><Profile loads=\"1\" parallel=\"1\">\n")?;
    file.put("<cyclictest command_line=\"cyclictest -i100 -qmu -h 3500 -p95\">\n")?;
    let mut core = 0;
    loop {
        let mut text = format!(
            "<core id=\"{core}\" priority=\"95\"><statistics><samples>{BUCKETS}</samples><minimum unit=\"us\">0</minimum>\
             <maximum unit=\"us\">{last}</maximum><mean unit=\"us\">{mean}</mean></statistics><histogram nbuckets=\"{BUCKETS}\">\n",
            last = BUCKETS - 1,
            mean = (BUCKETS - 1) as f64 / 2.0
        );
        text.extend((0..BUCKETS).map(|n| format!("<bucket index=\"{n}\" value=\"1\"/>\n")));
        text.push_str("</histogram></core>\n");
        let end = "</cyclictest></Profile></Measurements>\n</rteval>\n";
        if file.bytes + text.len() + end.len() > bytes {
            file.put(end)?;
            return file.end();
        }
        file.put(&text)?;
        core += 1;
    }
}
