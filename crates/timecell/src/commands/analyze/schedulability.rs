//! `timecell analyze schedulability`: draws the share of random task sets that each test accepts.

use feasibility::{Sweep, acceptance_csv, acceptance_table, sweep};
use model::InputError;
use report::demand::acceptance_svg;

use super::{recipe, write};
use crate::cli::Schedulability;
use crate::exit::{CommandError, Ended};
use crate::out;
use crate::progress::Counting;

/// Counts accepted sets on all cpus, prints a table, and draws the curves.
pub fn run(options: &Schedulability) -> Result<Ended, CommandError> {
    let (from, to) = options.utilizations;
    let last = f64::from(options.points - 1);
    let threads = options.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        |threads| threads as usize,
    );
    let plan = Sweep {
        utilizations: (0..options.points)
            .map(|point| from + (to - from) * f64::from(point) / last)
            .collect(),
        sets: options.sets,
        recipe: recipe(&options.making, to, options.deadlines)?,
        threads,
    };
    let counting = Counting::new(options.points.into(), "points");
    let swept = sweep(&plan, |done| counting.at(done as u64));
    counting.done();
    let acceptance =
        swept.map_err(|error| InputError::new("schedulability", error.to_string(), ""))?;
    write(&options.plot, &acceptance_svg(&acceptance))?;
    write(&options.csv, &acceptance_csv(&acceptance))?;
    let style = report::Style {
        colour: out::colour(),
        width: out::width(),
    };
    out::print(&acceptance_table(&acceptance, style));
    out::print(&format!("plot    {}", options.plot.display()));
    out::print(&format!("numbers {}", options.csv.display()));
    Ok(Ended::Fine)
}
