//! `timecell events`: past events of a mission from its journal, and live ones from its supervisor.

use std::collections::BTreeMap;
use std::path::Path;

use supervise::control::{Client, ControlError, Follow, Happening, Say, history};

use super::control::directory;
use crate::cli::Events;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Prints events.
pub fn run(options: &Events) -> Result<Ended, CommandError> {
    let dir = directory(&options.which)?;
    let mut teller = Teller {
        json: options.json,
        oldest_unix_ns: options
            .since
            .map(|since| (supervise::Stamp::now().wall_unix_ns).saturating_sub(since.ns())),
        last: None,
        starting: BTreeMap::new(),
    };
    if !options.follow {
        teller.catch_up(&dir)?;
        return Ok(Ended::Fine);
    }
    // Subscribe first, then read the journal, so that no event is lost in between.
    let mut client = match Client::connect(&dir) {
        Ok(client) => client,
        Err(error) => {
            if matches!(error, ControlError::NobodyListens { .. }) {
                teller.catch_up(&dir)?;
            }
            return Err(error.into());
        }
    };
    client.follow(&dir, &mut |say| {
        match say {
            Say::Subscribed { .. } | Say::Behind { .. } => teller.catch_up(&dir)?,
            Say::Happened(happening) => teller.tell(&happening),
            Say::Notice { text } => out::note(&text),
            _ => {}
        }
        Ok(if out::is_closed() {
            Follow::Enough
        } else {
            Follow::On
        })
    })?;
    Ok(Ended::Fine)
}

struct Teller {
    json: bool,
    oldest_unix_ns: Option<i64>,
    /// Sequence number of the last printed event.
    last: Option<u64>,
    /// Starts whose outcome has not been read yet, by cell: in text, one line reports both.
    starting: BTreeMap<String, Happening>,
}

impl Teller {
    fn catch_up(&mut self, dir: &Path) -> Result<(), ControlError> {
        for happening in history(dir)? {
            if Some(happening.sequence) <= self.last {
                continue;
            }
            match (happening.kind.as_str(), happening.cell.clone()) {
                ("cell_starting", Some(cell)) if !self.json => {
                    self.last = Some(happening.sequence);
                    self.starting.insert(cell, happening);
                }
                ("cell_started" | "cell_ended", Some(cell)) => {
                    self.starting.remove(&cell);
                    self.tell(&happening);
                }
                _ => self.tell(&happening),
            }
        }
        // Those that are still starting.
        for happening in std::mem::take(&mut self.starting).values() {
            self.print(happening);
        }
        Ok(())
    }

    /// Prints an event once, unless it is too old.
    fn tell(&mut self, happening: &Happening) {
        if Some(happening.sequence) <= self.last {
            return;
        }
        self.last = Some(happening.sequence);
        if self.json || !only_repeats(happening) {
            self.print(happening);
        }
    }

    fn print(&self, happening: &Happening) {
        let old = self.oldest_unix_ns;
        if old.is_some_and(|oldest| happening.at.wall_unix_ns < oldest) {
            return;
        }
        if self.json {
            out::print(&serde_json::to_string(happening).unwrap_or_default());
        } else {
            out::foreign(&format!("{}  {}", happening.at_utc, happening.text));
        }
    }
}

/// Whether a line would only repeat that a program has ended; the next line reports the restart.
fn only_repeats(happening: &Happening) -> bool {
    let incident = &happening.entry["incident"];
    let action = incident["action"]["action"].as_str().unwrap_or_default();
    incident["observed"]["what"] == "exit" && action.starts_with("restart")
}
