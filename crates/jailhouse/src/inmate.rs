//! The start of a cell's program: loaded, and started until it gives its first sign of life.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::driver::{CellStatus, Driver, DriverError, Image, State};
use crate::heartbeat::Heartbeat;

/// How often a start is tried until the first heartbeat comes.
pub const STARTS: u32 = 5;
/// A start right behind a load can be lost: a cpu that has not noticed the first takes the second for a part of it.
const SETTLE: Duration = Duration::from_millis(20);
/// How often the first heartbeat is looked for.
const LOOK: Duration = Duration::from_millis(2);

/// The parts of its machine that an inmate needs: the driver, its heartbeat and a clock.
pub trait Calls {
    /// As [`Driver::cell`].
    ///
    /// # Errors
    /// As there.
    fn cell(&mut self, name: &str) -> Result<Option<CellStatus>, DriverError>;
    /// As [`Driver::load`].
    ///
    /// # Errors
    /// As there.
    fn load(&mut self, name: &str, images: &[Image]) -> Result<(), DriverError>;
    /// As [`Driver::start`].
    ///
    /// # Errors
    /// As there.
    fn start(&mut self, name: &str) -> Result<(), DriverError>;
    /// The inmate's heartbeat, if it has one.
    fn beats(&mut self) -> Option<u64>;
    /// Time since some instant.
    fn now(&mut self) -> Duration;
    /// Waits this long.
    fn wait(&mut self, time: Duration);
    /// Whether the cell is to end, so that its first heartbeat is not waited for.
    fn is_to_end(&mut self) -> bool;
}

/// This machine.
#[derive(Debug)]
pub struct Here<'d> {
    /// Its driver.
    pub driver: &'d Driver,
    /// The inmate's heartbeat.
    pub heartbeat: Option<Heartbeat>,
    ends: &'d AtomicBool,
    began: Instant,
}

impl<'d> Here<'d> {
    /// The machine of this driver, with the heartbeat of the inmate that is meant; `ends`: it is to end.
    pub fn new(driver: &'d Driver, heartbeat: Option<Heartbeat>, ends: &'d AtomicBool) -> Here<'d> {
        Here {
            driver,
            heartbeat,
            ends,
            began: Instant::now(),
        }
    }
}

impl Calls for Here<'_> {
    fn cell(&mut self, name: &str) -> Result<Option<CellStatus>, DriverError> {
        self.driver.cell(name)
    }

    fn load(&mut self, name: &str, images: &[Image]) -> Result<(), DriverError> {
        self.driver.load(name, images)
    }

    fn start(&mut self, name: &str) -> Result<(), DriverError> {
        self.driver.start(name)
    }

    fn beats(&mut self) -> Option<u64> {
        self.heartbeat.as_ref().map(Heartbeat::read)
    }

    fn now(&mut self) -> Duration {
        self.began.elapsed()
    }

    fn wait(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn is_to_end(&mut self) -> bool {
        self.ends.load(Relaxed)
    }
}

/// A cell with its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inmate {
    /// The name of the cell, as in its configuration: 1 to 31 bytes.
    pub name: String,
    /// Its configuration, checked before: the driver refuses nothing that would stop the machine.
    pub cell: Vec<u8>,
    /// The images of its program.
    pub images: Vec<Image>,
    /// The longest wait for the first heartbeat of a start.
    pub boot_time: Duration,
}

/// How an inmate has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Began {
    /// Starts of which no heartbeat came.
    pub lost_starts: u32,
    /// Time from the last start to the first heartbeat; `None`: it has no heartbeat.
    pub first_beat: Option<Duration>,
}

/// Why an inmate has not begun.
#[derive(Debug, thiserror::Error)]
pub enum InmateError {
    /// A request was refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// Its program accessed something that is not its own before its first heartbeat.
    #[error(
        "cell `{0}` failed before its first heartbeat: it accessed something that is not its own"
    )]
    Failed(String),
    /// It was to end before that.
    #[error("cell `{0}` was ended before its first heartbeat")]
    Ended(String),
    /// None of several starts was followed by a heartbeat.
    #[error("cell `{0}` gave no heartbeat within {1:?} of any of {STARTS} starts")]
    Silent(String, Duration),
}

impl Inmate {
    /// Stops the cell, which was created before from the same configuration, and runs its program anew.
    ///
    /// # Errors
    /// [`InmateError`].
    pub fn restart(&self, machine: &mut impl Calls) -> Result<Began, InmateError> {
        machine.load(&self.name, &[])?;
        self.run(machine)
    }

    /// Loads the program of the cell, which was created, and starts it until its first heartbeat.
    ///
    /// # Errors
    /// [`InmateError`]; the cell stays.
    pub fn run(&self, machine: &mut impl Calls) -> Result<Began, InmateError> {
        for lost_starts in 0..STARTS {
            // Each time, since a program that has begun without a heartbeat has used its memory.
            machine.load(&self.name, &self.images)?;
            machine.wait(SETTLE);
            let before = machine.beats();
            machine.start(&self.name)?;
            let started = machine.now();
            if before.is_none() {
                return Ok(Began {
                    lost_starts,
                    first_beat: None,
                });
            }
            loop {
                let since = machine.now() - started;
                if machine.beats() != before {
                    return Ok(Began {
                        lost_starts,
                        first_beat: Some(since),
                    });
                }
                if machine.is_to_end() {
                    return Err(InmateError::Ended(self.name.clone()));
                }
                if since >= self.boot_time {
                    break;
                }
                machine.wait(LOOK.min(self.boot_time));
            }
            let cell = machine.cell(&self.name)?;
            if cell.is_some_and(|cell| cell.state == State::Failed) {
                return Err(InmateError::Failed(self.name.clone()));
            }
        }
        Err(InmateError::Silent(self.name.clone(), self.boot_time))
    }
}

#[cfg(test)]
mod tests;
