//! `timecell analyze generate`: prints a random task set.

use feasibility::generated;
use model::InputError;

use super::{policy, recipe};
use crate::cli::Generate;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Prints a random task set in timecell's own format.
pub fn run(options: &Generate) -> Result<Ended, CommandError> {
    let recipe = recipe(&options.making, options.utilization, options.deadlines)?;
    let set = generated(&recipe, policy(options.policy))
        .map_err(|error| InputError::new("generate", error.to_string(), ""))?;
    out::print(&set.to_toml());
    Ok(Ended::Fine)
}
