//! The table of a study as Parquet: the columns that it has as CSV, with their types.

use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;

use super::context::{WHERE, place_of};
use super::parquet::{failed, metadata};
use super::table::{Column, Table};
use crate::RecordError;
use crate::output::Output;
use crate::run::Run;

/// Rows of a group: a few MB of text.
const GROUP: usize = 1 << 16;

/// Writes the table of a study as Parquet to `path`: text columns are required, numbers may be null.
///
/// Returns the number of rows.
///
/// # Errors
/// When the run cannot be read or the file not written; nothing of it stays.
pub(super) fn write(run: &Run, path: &Path, table: &Table) -> Result<u64, RecordError> {
    let columns: Vec<Column> = (WHERE.into_iter().map(Column::Text))
        .chain(table.columns.iter().copied())
        .collect();
    let file = Output::create(path)?;
    let failed = failed(path);
    let schema = Arc::new(schema(&columns).map_err(&failed)?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(metadata(run)?))
        .set_created_by(concat!("timecell ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut writer =
        SerializedFileWriter::new(file, schema, Arc::new(properties)).map_err(&failed)?;
    let place = place_of(run)?;
    let (mut rows, mut count) = (Vec::new(), 0);
    (table.rows)(run, &mut |row| {
        count += 1;
        rows.push([&place[..], row].concat());
        if rows.len() < GROUP {
            return Ok(());
        }
        let written = group(&mut writer, &columns, &rows);
        rows.clear();
        written.map_err(&failed)
    })?;
    if !rows.is_empty() {
        group(&mut writer, &columns, &rows).map_err(&failed)?;
    }
    writer.into_inner().map_err(&failed)?.finish()?;
    Ok(count)
}

fn group(
    writer: &mut SerializedFileWriter<Output>,
    columns: &[Column],
    rows: &[Vec<String>],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for (at, column) in columns.iter().enumerate() {
        let texts = rows.iter().map(|row| row[at].as_str());
        let mut writer = group.next_column()?.expect("the schema has this column");
        // Which numbers are there.
        let levels: Vec<i16> = texts
            .clone()
            .map(|text| (!text.is_empty()).into())
            .collect();
        match column {
            Column::Text(_) => {
                let values: Vec<ByteArray> = texts.map(ByteArray::from).collect();
                (writer.typed::<ByteArrayType>()).write_batch(&values, None, None)?;
            }
            Column::Integer(name) => {
                let values: Vec<i64> = numbers(name, texts)?;
                (writer.typed::<Int64Type>()).write_batch(&values, Some(&levels), None)?;
            }
            Column::Real(name) => {
                let values: Vec<f64> = numbers(name, texts)?;
                (writer.typed::<DoubleType>()).write_batch(&values, Some(&levels), None)?;
            }
        }
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

/// The numbers that are there.
fn numbers<'t, T: std::str::FromStr>(
    name: &str,
    texts: impl Iterator<Item = &'t str>,
) -> Result<Vec<T>, ParquetError> {
    let there = texts.filter(|text| !text.is_empty());
    there
        .map(|text| {
            let wrong = |_| ParquetError::General(format!("{name}: `{text}` is no such number"));
            text.parse().map_err(wrong)
        })
        .collect()
}

fn schema(columns: &[Column]) -> Result<Type, ParquetError> {
    let mut fields = Vec::new();
    for column in columns {
        let (physical, repetition, logical) = match column {
            Column::Text(_) => (
                Physical::BYTE_ARRAY,
                Repetition::REQUIRED,
                Some(LogicalType::String),
            ),
            Column::Integer(_) => (Physical::INT64, Repetition::OPTIONAL, None),
            Column::Real(_) => (Physical::DOUBLE, Repetition::OPTIONAL, None),
        };
        let field = Type::primitive_type_builder(column.name(), physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()?;
        fields.push(Arc::new(field));
    }
    Type::group_type_builder("timecell_rows")
        .with_fields(fields)
        .build()
}
