//! Generated texts: completions and man pages from the definition of the command line, schemas of files, and the client's
//! header.

use std::path::Path;

use clap::CommandFactory;
use host::writer;

use crate::cli::{Cli, Completions, FileKind, Man};
use crate::exit::{CommandError, Ended};
use crate::out;

/// Prints a completion script.
pub fn completions(options: &Completions) -> Result<Ended, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "timecell", &mut script);
    out::print(&String::from_utf8_lossy(&script));
    Ok(Ended::Fine)
}

/// Prints the JSON Schema of a kind of file.
pub fn schema(of: FileKind) -> Result<Ended, CommandError> {
    let schema = match of {
        FileKind::Experiment => model::Experiment::schema(),
        FileKind::Taskset => model::taskset::TaskSet::schema(),
        FileKind::Mission => model::mission::schema(),
    };
    out::print(&format!("{schema:#}"));
    Ok(Ended::Fine)
}

/// Prints the header that C programs include to use the client, in the version that this binary speaks.
pub fn header() -> Result<Ended, CommandError> {
    out::print(timecell_client::C_HEADER.trim_end());
    Ok(Ended::Fine)
}

/// Writes one man page for timecell and one for each subcommand.
pub fn man(options: &Man) -> Result<Ended, CommandError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CommandError::File {
            path,
            doing: "write the man pages",
            source,
        }
    };
    writer::create_dir_all(&options.dir)
        .and_then(|()| {
            writer::below(&options.dir, || {
                clap_mangen::generate_to(Cli::command(), &options.dir)
            })
        })
        .map_err(failed(&options.dir))?;
    out::print(&format!("man pages are in {}", options.dir.display()));
    Ok(Ended::Fine)
}
