//! timecell's own Parquet of jobs, read back. A row group holds one cell of one trial, so its names are those of its first
//! row. The format is read from its end: from a file, not from a pipe.

use std::fs::File;

use ::parquet::column::reader::ColumnReader;
use ::parquet::data_type::ByteArray;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use model::InputError;

use super::sense::{Head, Reader};
use super::timecell_csv::{COUNTED, Rows};
use super::{Measured, Options, Source, excerpt};

pub(super) const READER: Reader = Reader::new(
    "timecell-parquet",
    "What `export --parquet` writes",
    senses,
    read,
);

/// Number of values that are read at once.
const BATCH: usize = 8_192;

fn senses(head: &Head) -> bool {
    head.bytes.starts_with(b"PAR1")
}

fn read(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let Some(file) = source.take_file() else {
        let what = "Parquet is read from its end, so it cannot come from a pipe";
        return Err(InputError::new(name, what, "name the unpacked file"));
    };
    let bad = |error: ParquetError| {
        let what = format!("not Parquet of jobs: {}", excerpt(&error.to_string()));
        let fix = "timecell export --parquet writes such files; they may be cut short";
        InputError::new(&name, what, fix)
    };
    let reader = SerializedFileReader::new(file).map_err(bad)?;
    rows(&reader).map_err(bad).map(Rows::finish)
}

fn rows(reader: &SerializedFileReader<File>) -> Result<Rows, ParquetError> {
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let column = |wanted: &str| {
        schema
            .columns()
            .iter()
            .position(|column| column.name() == wanted)
    };
    let need = |wanted: &str| {
        column(wanted).ok_or_else(|| ParquetError::General(format!("no column {wanted}")))
    };
    let (trial, cell) = (need("trial_name")?, need("cell")?);
    let mut rows = Rows::default();
    for at in 0..reader.num_row_groups() {
        let group = reader.get_row_group(at)?;
        let count = group.metadata().num_rows();
        if count == 0 {
            continue;
        }
        if let Some(at) = column("trial_failed")
            && first_flag(group.as_ref(), at)?
        {
            rows.failed += u64::try_from(count).unwrap_or(0);
            continue;
        }
        let run = match column("run") {
            Some(at) => first_text(group.as_ref(), at)?,
            None => String::new(),
        };
        let key = (
            run,
            first_text(group.as_ref(), trial)?,
            first_text(group.as_ref(), cell)?,
        );
        for missed in ["missed_before", "missed_after"] {
            if let Some(at) = column(missed) {
                let mut sum = 0_i64;
                each_integer(group.as_ref(), at, |n| sum = sum.saturating_add(n.max(0)))?;
                rows.missed = rows.missed.saturating_add(sum);
            }
        }
        let tallies = rows
            .of(key, None)
            .ok_or_else(|| ParquetError::General("too many cells".to_owned()))?;
        for (tally, (name, _)) in tallies.iter_mut().zip(COUNTED) {
            each_integer(group.as_ref(), need(name)?, |ns| tally.add(ns))?;
        }
    }
    Ok(rows)
}

fn of_another_type() -> ParquetError {
    ParquetError::General("a column is of another type".to_owned())
}

fn each_integer(
    group: &dyn RowGroupReader,
    at: usize,
    mut take: impl FnMut(i64),
) -> Result<(), ParquetError> {
    let ColumnReader::Int64ColumnReader(mut column) = group.get_column_reader(at)? else {
        return Err(of_another_type());
    };
    let mut values: Vec<i64> = Vec::with_capacity(BATCH);
    loop {
        values.clear();
        let (records, ..) = column.read_records(BATCH, None, None, &mut values)?;
        values.iter().copied().for_each(&mut take);
        if records == 0 {
            return Ok(());
        }
    }
}

fn first_text(group: &dyn RowGroupReader, at: usize) -> Result<String, ParquetError> {
    let ColumnReader::ByteArrayColumnReader(mut column) = group.get_column_reader(at)? else {
        return Err(of_another_type());
    };
    let mut values: Vec<ByteArray> = Vec::new();
    column.read_records(1, None, None, &mut values)?;
    let first = values.first().ok_or_else(of_another_type)?;
    Ok(first.as_utf8()?.to_owned())
}

/// A boolean, or the 0 or 1 of earlier versions.
fn first_flag(group: &dyn RowGroupReader, at: usize) -> Result<bool, ParquetError> {
    match group.get_column_reader(at)? {
        ColumnReader::BoolColumnReader(mut column) => {
            let mut values: Vec<bool> = Vec::new();
            column.read_records(1, None, None, &mut values)?;
            Ok(values.first() == Some(&true))
        }
        ColumnReader::Int64ColumnReader(mut column) => {
            let mut values: Vec<i64> = Vec::new();
            column.read_records(1, None, None, &mut values)?;
            Ok(values.first() == Some(&1))
        }
        _ => Err(of_another_type()),
    }
}
