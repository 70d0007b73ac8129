//! Which question `timecell analyze` is asked.

use super::{check, design, generate, schedulability};
use crate::cli::{Analyze, AnalyzeCommand};
use crate::exit::{CommandError, Ended};

/// Answers the question that was asked.
pub fn run(options: &Analyze) -> Result<Ended, CommandError> {
    match &options.command {
        None => check::run(&options.check),
        Some(AnalyzeCommand::Design(options)) => design::run(options),
        Some(AnalyzeCommand::Generate(options)) => generate::run(options),
        Some(AnalyzeCommand::Schedulability(options)) => schedulability::run(options),
    }
}
