//! The runtime library's error messages: its returned errors often lack the cause, which it only reports as an event.
//! Everything below the level of an error is switched off where it arises.

use std::fmt;
use std::io::Write as _;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Prints errors to standard error.
pub(crate) struct Errors;

impl Errors {
    /// Lets the library's errors be heard from now on.
    pub(crate) fn listen() {
        // Fails only if somebody listens already.
        let _ = tracing::subscriber::set_global_default(Errors);
    }
}

impl Subscriber for Errors {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::ERROR)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        // The log may be on a full disk.
        let _ = writeln!(std::io::stderr(), "{}", line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// `message, key=value ...`
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let words = match field.name() {
            "message" => format!("{value:?}"),
            name => format!("{name}={value:?}"),
        };
        if !self.0.is_empty() {
            self.0.push_str(", ");
        }
        self.0.push_str(&words);
    }
}
