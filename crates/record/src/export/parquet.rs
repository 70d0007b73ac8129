use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::{ColumnPath, Type};

use super::{NUMBERS, each_cell, numbers};
use crate::RecordError;
use crate::run::Run;

const TEXTS: [&str; 3] = ["trial_name", "cell", "engine"];
const PLACES: [&str; 3] = ["trial", "round", "trial_failed"];

/// Writes the run as Parquet to `path`: a row group per cell and trial, Snappy, integers delta-encoded.
///
/// Returns the number of rows.
///
/// # Errors
/// When the run cannot be read or the file not written; a part-written file is removed.
pub fn write_parquet(run: &Run, path: &Path) -> Result<u64, RecordError> {
    let written = try_write(run, path);
    if written.is_err() {
        let _ = std::fs::remove_file(path);
    }
    written
}

fn try_write(run: &Run, path: &Path) -> Result<u64, RecordError> {
    let file = File::create(path).map_err(RecordError::io(path, "create"))?;
    let failed = |error: ParquetError| match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(error) => RecordError::io(path, "write")(*error),
            Err(other) => RecordError::malformed(path, other.to_string()),
        },
        other => RecordError::malformed(path, other.to_string()),
    };
    let schema = Arc::new(schema().map_err(failed)?);
    let mut writer =
        SerializedFileWriter::new(file, schema, Arc::new(properties())).map_err(failed)?;
    let rows = each_cell(run, |trial, cell, samples| {
        let count = samples.samples.len();
        let columns: Vec<[i64; 9]> = numbers(samples).collect();
        let mut write = || -> Result<(), ParquetError> {
            let mut group = writer.next_row_group()?;
            for place in [
                i64::from(trial.number),
                i64::from(trial.round),
                i64::from(trial.failure.is_some()),
            ] {
                integers(&mut group, &vec![place; count])?;
            }
            for text in [&trial.name, &cell.id, &cell.engine.to_string()] {
                let mut column = group.next_column()?.expect("the schema has this column");
                let values = vec![ByteArray::from(text.as_str()); count];
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&values, None, None)?;
                column.close()?;
            }
            for at in 0..NUMBERS.len() {
                let values: Vec<i64> = columns.iter().map(|row| row[at]).collect();
                integers(&mut group, &values)?;
            }
            group.close()?;
            Ok(())
        };
        write().map_err(failed)
    })?;
    writer.close().map_err(failed)?;
    Ok(rows)
}

fn integers(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[i64],
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has this column");
    column
        .typed::<Int64Type>()
        .write_batch(values, None, None)?;
    column.close()
}

fn schema() -> Result<Type, ParquetError> {
    let mut fields = Vec::new();
    let integer = |name: &str| {
        Type::primitive_type_builder(name, Physical::INT64)
            .with_repetition(Repetition::REQUIRED)
            .build()
    };
    for name in PLACES {
        fields.push(Arc::new(integer(name)?));
    }
    for name in TEXTS {
        let column = Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(Some(LogicalType::String))
            .build()?;
        fields.push(Arc::new(column));
    }
    for name in NUMBERS {
        fields.push(Arc::new(integer(name)?));
    }
    Type::group_type_builder("timecell_jobs")
        .with_fields(fields)
        .build()
}

fn properties() -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("timecell ", env!("CARGO_PKG_VERSION")).to_owned());
    for name in NUMBERS {
        let column = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}
