//! Runs as Parquet: their jobs, or the table of a study.

use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::{
    Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical,
};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::{ColumnPath, Type};

use super::context::{COLUMNS, Context, Kind, Value};
use super::table::Table;
use super::{NUMBERS, each_cell, numbers, table_parquet};
use crate::RecordError;
use crate::output::Output;
use crate::run::Run;

/// Version of the columns; increased when one changes its name or meaning or is removed.
const TABLE_SCHEMA: &str = "3";

/// Writes the run as Parquet to `path`: a row group per cell and trial, Snappy, integers delta-encoded; of a study the rows that it has
/// as CSV.
/// The file's metadata name the run, the machine and the units under keys that begin with `timecell.`.
///
/// Returns the number of rows.
///
/// # Errors
/// When the run cannot be read or the file not written; no partial file remains.
pub fn write_parquet(run: &Run, path: &Path) -> Result<u64, RecordError> {
    if let Some(table) = Table::of(run.kind()?) {
        return table_parquet::write(run, path, table);
    }
    let file = Output::create(path)?;
    let failed = failed(path);
    let schema = Arc::new(schema().map_err(&failed)?);
    let context = Context::of(run)?;
    let properties = Arc::new(properties(metadata(run)?));
    let mut writer = SerializedFileWriter::new(file, schema, properties).map_err(&failed)?;
    let rows = each_cell(run, |trial, cell, samples| {
        let count = samples.samples.len();
        let columns: Vec<[i64; 9]> = numbers(samples).collect();
        let mut write = || -> Result<(), ParquetError> {
            let mut group = writer.next_row_group()?;
            for value in context.values(trial, cell) {
                constant(&mut group, &value, count)?;
            }
            for at in 0..NUMBERS.len() {
                let values: Vec<i64> = columns.iter().map(|row| row[at]).collect();
                integers(&mut group, &values)?;
            }
            group.close()?;
            Ok(())
        };
        write().map_err(&failed)
    })?;
    writer.into_inner().map_err(&failed)?.finish()?;
    Ok(rows)
}

/// The meaning of a writer's failure.
pub(super) fn failed(path: &Path) -> impl Fn(ParquetError) -> RecordError {
    let path = path.to_owned();
    move |error| match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(error) => RecordError::io(&path, "write")(*error),
            Err(other) => RecordError::malformed(&path, other.to_string()),
        },
        other => RecordError::malformed(&path, other.to_string()),
    }
}

fn integers(
    group: &mut SerializedRowGroupWriter<'_, Output>,
    values: &[i64],
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has this column");
    column
        .typed::<Int64Type>()
        .write_batch(values, None, None)?;
    column.close()
}

/// A column in which all rows of a cell have the same value.
fn constant(
    group: &mut SerializedRowGroupWriter<'_, Output>,
    value: &Value,
    count: usize,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has this column");
    match value {
        Value::Integer(number) => {
            let column = column.typed::<Int64Type>();
            column.write_batch(&vec![*number; count], None, None)?;
        }
        Value::Flag(flag) => {
            let column = column.typed::<BoolType>();
            column.write_batch(&vec![*flag; count], None, None)?;
        }
        Value::Text(text) => {
            let values = vec![ByteArray::from(text.as_str()); count];
            let column = column.typed::<ByteArrayType>();
            column.write_batch(&values, None, None)?;
        }
        // An instant may be absent: the levels say which ones are present.
        Value::Instant(ns) => {
            let values: Vec<i64> = ns.iter().flat_map(|ns| vec![*ns; count]).collect();
            let levels = vec![i16::from(ns.is_some()); count];
            let column = column.typed::<Int64Type>();
            column.write_batch(&values, Some(&levels), None)?;
        }
    }
    column.close()
}

fn schema() -> Result<Type, ParquetError> {
    let mut fields = Vec::new();
    let required = Repetition::REQUIRED;
    let shared = COLUMNS.iter().map(|column| (column.name, column.kind));
    for (name, kind) in shared.chain(NUMBERS.map(|name| (name, Kind::Integer))) {
        let (physical, repetition, logical) = match kind {
            Kind::Integer => (Physical::INT64, required, None),
            Kind::Flag => (Physical::BOOLEAN, required, None),
            Kind::Text => (Physical::BYTE_ARRAY, required, Some(LogicalType::String)),
            Kind::Instant => {
                let utc = LogicalType::timestamp(true, TimeUnit::NANOS);
                (Physical::INT64, Repetition::OPTIONAL, Some(utc))
            }
        };
        let column = Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()?;
        fields.push(Arc::new(column));
    }
    Type::group_type_builder("timecell_jobs")
        .with_fields(fields)
        .build()
}

/// Metadata for readers of the table as a whole.
pub(super) fn metadata(run: &Run) -> Result<Vec<KeyValue>, RecordError> {
    let machine = run.provenance()?;
    let manifest = run.manifest()?;
    let unknown = || "unknown".to_owned();
    let units = "columns ending in _ns: nanoseconds (release_ns, start_ns and end_ns on \
                 CLOCK_MONOTONIC of the host); started: wall clock, UTC; others: counts, \
                 numbers and names";
    let known = [
        ("schema", TABLE_SCHEMA.to_owned()),
        ("run", run.name()),
        ("run_started", manifest.started),
        ("version", manifest.timecell_version),
        ("experiment", what(run)?),
        ("host", machine.hostname.clone().unwrap_or_else(unknown)),
        (
            "kernel",
            machine.kernel_release.clone().unwrap_or_else(unknown),
        ),
        ("machine", machine.one_line()),
        ("units", units.to_owned()),
    ];
    let pair = |(key, value)| KeyValue::new(format!("timecell.{key}"), value);
    Ok(known.into_iter().map(pair).collect())
}

/// The name of the experiment, or the kind of a run without one.
fn what(run: &Run) -> Result<String, RecordError> {
    match Table::of(run.kind()?) {
        None => Ok(run.experiment()?.name),
        Some(table) => Ok(table.of.to_owned()),
    }
}

fn properties(metadata: Vec<KeyValue>) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(metadata))
        .set_created_by(concat!("timecell ", env!("CARGO_PKG_VERSION")).to_owned());
    for name in NUMBERS {
        let column = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}
