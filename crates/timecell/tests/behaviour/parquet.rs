//! Exported Parquet, decoded by the parquet crate alone: columns, types, units and values, with several runs
//! in one file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::Field;
use record::run::Run;

use crate::support::{experiment, say};

/// The columns, in their order, as documented in docs/src/run-formats.md.
const COLUMNS: [(&str, Kind); 22] = [
    ("run", Kind::Text),
    ("host", Kind::Text),
    ("trial", Kind::Integer),
    ("round", Kind::Integer),
    ("trial_failed", Kind::Flag),
    ("trial_name", Kind::Text),
    ("started", Kind::Instant),
    ("cell", Kind::Text),
    ("engine", Kind::Text),
    ("class", Kind::Text),
    ("cpu", Kind::Integer),
    ("load", Kind::Text),
    ("period_ns", Kind::Integer),
    ("job", Kind::Integer),
    ("skipped_before", Kind::Integer),
    ("release_ns", Kind::Integer),
    ("start_ns", Kind::Integer),
    ("end_ns", Kind::Integer),
    ("wakeup_latency_ns", Kind::Integer),
    ("execution_time_ns", Kind::Integer),
    ("response_time_ns", Kind::Integer),
    ("skipped_after", Kind::Integer),
];

#[derive(Clone, Copy)]
enum Kind {
    Integer,
    Flag,
    Text,
    Instant,
}

fn open(file: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(file).unwrap()).unwrap()
}

/// Writes a study as Parquet: it has the columns and the rows that it has as CSV.
pub fn has_the_rows_of(dir: &Path, run: &str, csv: &str) {
    let words = ["export", "--parquet", run, "-o", "study.parquet"];
    say(dir, &words).ends_with(0);
    let reader = open(&dir.join("study.parquet"));
    let text = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Long(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    // No text that is compared has a comma in it: the others stand in quotes.
    for (row, line) in reader.get_row_iter(None).unwrap().zip(lines.by_ref()) {
        let row = row.unwrap();
        let names: Vec<&String> = row.get_column_iter().map(|(name, _)| name).collect();
        assert_eq!(names, head);
        if !line.contains('"') {
            let values: Vec<String> = row
                .get_column_iter()
                .map(|(_, value)| text(value))
                .collect();
            assert_eq!(values.join(","), line);
        }
    }
    let rows = reader.metadata().file_metadata().num_rows();
    assert_eq!(rows as usize + 1, csv.lines().count());
    let refused = say(dir, &["report", "study.parquet"]).ends_with(2).error();
    assert!(refused.contains("study.parquet"), "{refused}");
}

#[case]
fn runs_put_together_hold_every_job_with_its_units(dir: &Path) {
    let (mut runs, mut files): (Vec<PathBuf>, Vec<PathBuf>) = Default::default();
    for jobs in [20, 30] {
        let file = experiment(dir, &["bare"], jobs);
        // Both in one directory, which gives runs of the same second different names.
        let bench = ["bench", &file, "--class", "other", "--out", "runs"];
        say(dir, &bench).ends_with(0);
        let run = newest(&dir.join("runs"), &runs);
        let parquet = format!("{jobs}.parquet");
        let export = ["export", run.to_str().unwrap(), "--parquet", "-o", &parquet];
        say(dir, &export).ends_with(0);
        files.push(dir.join(parquet));
        runs.push(run);
    }
    for file in &files {
        columns(&open(file));
    }
    let both = dir.join("both.parquet");
    put_together(&files, &both);
    let reader = open(&both);
    columns(&reader);
    let mut rows = reader.get_row_iter(None).unwrap();
    for run in &runs {
        holds(&Run::open(run).unwrap(), &mut rows);
    }
    assert!(rows.next().is_none());
    // It is for other programs.
    let said = say(dir, &["report", "both.parquet", "--json"]).ends_with(2);
    assert!(said.err.contains("`timecell report RUN` on its run"));
}

/// The one run in a directory that is not among the known ones.
fn newest(dir: &Path, known: &[PathBuf]) -> PathBuf {
    let mut runs = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|run| !known.contains(run));
    let run = runs.next().expect("a run");
    assert!(runs.next().is_none());
    run
}

/// Names, types and the units in the metadata.
fn columns(reader: &SerializedFileReader<File>) {
    let about = reader.metadata().file_metadata();
    let columns = about.schema_descr().columns();
    assert_eq!(columns.len(), COLUMNS.len());
    for (column, (name, kind)) in columns.iter().zip(COLUMNS) {
        assert_eq!(column.name(), name);
        let (physical, logical) = match kind {
            Kind::Integer => (Physical::INT64, None),
            Kind::Flag => (Physical::BOOLEAN, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Instant => (
                Physical::INT64,
                Some(LogicalType::timestamp(true, TimeUnit::NANOS)),
            ),
        };
        assert_eq!(column.physical_type(), physical, "{name}");
        assert_eq!(column.logical_type_ref(), logical.as_ref(), "{name}");
        let repetition = match kind {
            Kind::Instant => Repetition::OPTIONAL,
            _ => Repetition::REQUIRED,
        };
        let info = column.self_type().get_basic_info();
        assert_eq!(info.repetition(), repetition, "{name}");
    }
    let of = |key: &str| {
        let pairs = about.key_value_metadata().expect("metadata");
        let key = format!("timecell.{key}");
        let pair = pairs.iter().find(|pair| pair.key == key);
        pair.and_then(|pair| pair.value.clone()).expect(&key)
    };
    assert_eq!(of("schema"), "3");
    assert_eq!(of("experiment"), "small");
    assert_eq!(of("version"), env!("CARGO_PKG_VERSION"));
    let units = of("units");
    for part in ["_ns: nanoseconds", "CLOCK_MONOTONIC", "UTC"] {
        assert!(units.contains(part), "{units}");
    }
    for key in ["run", "run_started", "host", "kernel", "machine"] {
        assert!(!of(key).is_empty(), "{key}");
    }
}

/// Row groups of several files in one, with their bytes unchanged.
fn put_together(files: &[PathBuf], into: &Path) {
    let first = open(&files[0]);
    let about = first.metadata().file_metadata();
    let schema = Arc::new(about.schema().clone());
    let properties = parquet::file::properties::WriterProperties::builder()
        .set_key_value_metadata(about.key_value_metadata().cloned())
        .build();
    let mut writer =
        SerializedFileWriter::new(File::create(into).unwrap(), schema, Arc::new(properties))
            .unwrap();
    for file in files {
        let reader = open(file);
        let bytes = File::open(file).unwrap();
        for group in reader.metadata().row_groups() {
            let mut to = writer.next_row_group().unwrap();
            for column in group.columns() {
                let close = ColumnCloseResult {
                    bytes_written: column.compressed_size().try_into().unwrap(),
                    rows_written: group.num_rows().try_into().unwrap(),
                    metadata: column.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                to.append_column(&bytes, close).unwrap();
            }
            to.close().unwrap();
        }
    }
    writer.close().unwrap();
}

/// The next rows are the jobs of this run, as in its raw samples.
fn holds(run: &Run, rows: &mut parquet::record::reader::RowIter<'_>) {
    let period_ns = run.experiment().unwrap().workload.period.ns();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for number in run.trial_numbers().unwrap() {
        let trial = run.trial(number).unwrap();
        for cell in &trial.cells {
            let samples = run.samples(number, &cell.id).unwrap().unwrap().samples;
            assert!(!samples.is_empty());
            for sample in samples {
                let row = rows.next().expect("a row").unwrap();
                let of = |name: &str| {
                    let mut columns = row.get_column_iter();
                    columns.find(|column| column.0 == name).expect(name).1
                };
                let text = |name: &str, value: &str| {
                    assert_eq!(of(name), &Field::Str(value.to_owned()), "{name}");
                };
                text("run", &run.name());
                text("trial_name", &trial.name);
                text("cell", &cell.id);
                text("engine", "bare");
                text("load", "idle");
                text("host", host.trim());
                let class = cell.class_got.as_ref().unwrap_or(&cell.class_wanted);
                text("class", class);
                let started = trial.go_unix_ns.expect("the trial was released");
                assert_eq!(of("started"), &Field::Long(started), "started");
                assert_eq!(of("trial_failed"), &Field::Bool(false));
                for (name, value) in [
                    ("trial", i64::from(number)),
                    ("round", i64::from(trial.round)),
                    ("cpu", i64::from(cell.cpu)),
                    ("period_ns", period_ns),
                    ("job", i64::from(sample.index)),
                    ("skipped_before", i64::from(sample.skipped)),
                    ("release_ns", sample.release_ns),
                    ("start_ns", sample.start_ns),
                    ("end_ns", sample.end_ns),
                    ("wakeup_latency_ns", sample.start_ns - sample.release_ns),
                    ("execution_time_ns", sample.end_ns - sample.start_ns),
                    ("response_time_ns", sample.end_ns - sample.release_ns),
                ] {
                    assert_eq!(of(name), &Field::Long(value), "{name}");
                }
            }
        }
    }
}
