//! `timecell export`.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use model::InputError;
use record::export::{write_csv, write_parquet};
use record::run::Run;

use crate::cli::Export;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Writes the samples of a run as one table.
pub fn run(options: &Export) -> Result<Ended, CommandError> {
    let run = Run::open(&options.run)?;
    let extension = if options.csv { "csv" } else { "parquet" };
    let path = options
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{}.{extension}", run.name())));
    if path == Path::new("-") {
        if options.parquet {
            return Err(InputError::new(
                "--output",
                "Parquet cannot be written to standard output",
                "name a file",
            )
            .into());
        }
        return match write_csv(&run, Path::new("standard output"), std::io::stdout().lock()) {
            // Whoever read had enough, as `head` does.
            Err(record::RecordError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::BrokenPipe =>
            {
                Ok(Ended::Fine)
            }
            written => Ok(written.map(|_| Ended::Fine)?),
        };
    }
    let rows = if options.parquet {
        write_parquet(&run, &path)?
    } else {
        csv_file(&run, &path)?
    };
    out::print(&format!("{rows} rows in {}", path.display()));
    Ok(Ended::Fine)
}

fn csv_file(run: &Run, path: &Path) -> Result<u64, CommandError> {
    let file = File::create(path).map_err(|source| CommandError::File {
        path: path.to_owned(),
        doing: "create the file",
        source,
    })?;
    let rows = write_csv(run, path, BufWriter::new(file));
    if rows.is_err() {
        let _ = std::fs::remove_file(path);
    }
    Ok(rows?)
}
