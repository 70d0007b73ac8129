//! `timecell analyze generate`.

use feasibility::generated;
use model::InputError;

use super::{policy, recipe};
use crate::cli::Generate;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Prints a random task set as a file of ours.
pub fn run(options: &Generate) -> Result<Ended, CommandError> {
    let recipe = recipe(&options.making, options.utilization, options.deadlines)?;
    let set = generated(&recipe, policy(options.policy))
        .map_err(|error| InputError::new("generate", error.to_string(), ""))?;
    out::print(&set.to_toml());
    Ok(Ended::Fine)
}
