//! A running experiment seen from outside: its coordinator's note (`live.json`, once for each trial) and the readings of a watcher. A
//! watcher takes no lock, maps nothing and writes nothing, so the cells do not notice it.

mod cpu_time;
mod files;
mod note;
mod page;
mod tail;
mod watcher;

pub(crate) use note::write;
pub use note::{LIVE_SCHEMA, Live, LiveCell, LiveReservation};
pub use tail::Sums;
pub use watcher::{CellView, Seen, Standing, TrialView, Watcher};
