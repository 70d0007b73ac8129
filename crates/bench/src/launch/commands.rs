//! Launching by a program that does everything in one call.

use std::path::PathBuf;
use std::process::Command;

use super::{Launched, Launcher, Stage, timed, told};

/// A program that does everything in one call, such as `podman run --rm`.
pub(crate) struct Commands {
    /// Makes the call, once for each launch.
    pub make: Box<dyn Fn() -> Result<Command, String>>,
    /// Where its words go.
    pub log: PathBuf,
}

impl Launcher for Commands {
    fn launch(&mut self, stage: &Stage, _: u32) -> Result<Launched, String> {
        stage.life.reset();
        let mut command = (self.make)()?;
        let (asked, gone) = timed(&mut command, &self.log)?;
        told(stage, asked, gone)
    }
}
