//! `timecell export`: writes a run or a task set in the formats of other tools.

use std::io::Write;
use std::path::{Path, PathBuf};

use model::InputError;
use record::RecordError;
use record::export::{
    Exported, FIGURES, Form, write_csv, write_cyclictest, write_hdr, write_parquet, write_rows,
    write_rt_app,
};
use record::output::Output;
use record::run::{Run, write_atomically};
use study::{Ask, Kind};

use crate::cli::Export;
use crate::commands::analyze;
use crate::commands::common::{must, unused};
use crate::exit::{CommandError, Ended};
use crate::out;

/// Writes a run or a task set in the format of another tool.
pub fn run(options: &Export) -> Result<Ended, CommandError> {
    if options.rt_app {
        let (name, set) = analyze::task_set(&options.run)?;
        let exported = write_rt_app(&set, &name, options.seconds)?;
        let stem = options.run.file_stem().unwrap_or_default();
        let stem = format!("{}-rt-app.json", stem.to_string_lossy());
        return text(&exported, &stem, options);
    }
    let run = Run::open(&options.run)?;
    // A damaged run is exported all the same: it may be all that there will ever be.
    let damage = if run.has_no_experiment() {
        Vec::new()
    } else {
        run.damage()?
    };
    for lost in &damage {
        out::note(&format!("failed: {lost}"));
    }
    match jobs(&run, options)? {
        Ended::Fine if !damage.is_empty() => Ok(Ended::Failed),
        ended => Ok(ended),
    }
}

/// Writes the contents of a run.
fn jobs(run: &Run, options: &Export) -> Result<Ended, CommandError> {
    let ask = match options {
        Export { hdr: true, .. } => Ask::Hdr,
        Export { parquet: true, .. } => Ask::Parquet,
        Export {
            statistics: true, ..
        } => Ask::Statistics,
        Export { csv: true, .. } => Ask::Csv,
        _ => Ask::Cyclictest,
    };
    must(Kind::of(run)?, ask, run.name())?;
    if options.hdr {
        return hdr(run, options);
    }
    if options.parquet && record::export::keeps_histograms(run)? {
        return Err(InputError::new(
            options.run.display().to_string(),
            "the run kept histograms, so its jobs cannot be written one by one",
            "use --csv for a row per interval, or --hdr for the histograms",
        )
        .into());
    }
    if options.cyclictest_json || options.cyclictest_hist {
        let (form, ending) = if options.cyclictest_json {
            (Form::Json, "cyclictest.json")
        } else {
            (Form::Histogram, "cyclictest.txt")
        };
        let exported = write_cyclictest(run, form, options.buckets)?;
        return text(&exported, &format!("{}-{ending}", run.name()), options);
    }
    table(run, options)
}

/// Writes a text, and notes on standard error the data that it could not hold.
fn text(exported: &Exported, default: &str, options: &Export) -> Result<Ended, CommandError> {
    for note in &exported.notes {
        out::note(&format!("note    {note}"));
    }
    let path = options.output.as_deref().unwrap_or(Path::new(default));
    if path == Path::new("-") {
        out::print(&exported.text);
    } else {
        unused(path, options.force)?;
        write_atomically(path, exported.text.as_bytes())?;
        out::print(&format!("written {}", path.display()));
    }
    Ok(Ended::Fine)
}

fn table(run: &Run, options: &Export) -> Result<Ended, CommandError> {
    let extension = match options {
        Export { csv: true, .. } => "csv",
        Export {
            statistics: true, ..
        } => "statistics.csv",
        _ => "parquet",
    };
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
        let path = Path::new("standard output");
        return match write(run, options, path, &mut std::io::stdout().lock()) {
            // The reader had enough, as `head` has.
            Err(RecordError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::BrokenPipe =>
            {
                Ok(Ended::Fine)
            }
            written => Ok(written.map(|_| Ended::Fine)?),
        };
    }
    unused(&path, options.force)?;
    let rows = if options.parquet {
        write_parquet(run, &path)?
    } else {
        let mut file = Output::create(&path)?;
        let rows = write(run, options, &path, &mut file)?;
        file.finish()?;
        rows
    };
    out::print(&format!("{rows} rows in {}", path.display()));
    Ok(Ended::Fine)
}

/// Writes the interval logs, a file for each trial, cell and metric.
fn hdr(run: &Run, options: &Export) -> Result<Ended, CommandError> {
    if !record::export::keeps_histograms(run)? {
        return Err(InputError::new(
            options.run.display().to_string(),
            "the run kept samples, not histograms",
            "use --csv or --parquet, or measure with --histogram",
        )
        .into());
    }
    let dir = options
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{}-hdr", run.name())));
    unused(&dir, options.force)?;
    host::writer::create_dir_all(&dir).map_err(|source| CommandError::File {
        path: dir.clone(),
        doing: "create the directory",
        source,
    })?;
    let files = write_hdr(run, &dir)?;
    out::print(&format!("{files} interval logs in {}", dir.display()));
    Ok(Ended::Fine)
}

/// Writes a text table: jobs or figures.
fn write(
    run: &Run,
    options: &Export,
    path: &Path,
    out: &mut dyn Write,
) -> Result<u64, RecordError> {
    if !options.statistics {
        return write_csv(run, path, out);
    }
    let rows = report::studied(run)?.readings().rows();
    write_rows(run, path, out, &FIGURES, rows)
}
