//! `timecell` alone: the machine, and the first thing to do on it.

use std::path::Path;

use supervise::control::{ControlError, Place, find, places};

use super::{common, latest};

/// Names the machine, and the command to begin with.
pub fn step() -> String {
    let missions = places().map(|places| find(Place::Only, &places));
    let first = match missions {
        Some(Ok(_) | Err(ControlError::Several { .. })) => {
            "timecell ps --machine: a mission runs here"
        }
        _ if latest::newest(Path::new("runs")).is_ok() => {
            "timecell report latest: there are runs in this directory"
        }
        _ => "timecell doctor: says how to make this machine fitter for real time",
    };
    format!("\n{}first   {first}", common::host_line())
}
