//! Timestamps in UTC, as in records and names of runs.

use std::time::SystemTime;

/// Now, to the second; empty if it cannot be formatted.
pub(crate) fn utc_now() -> String {
    utc_before(0).unwrap_or_default()
}

/// UTC, `ns` ago; `None` if `ns` is negative or the time cannot be formatted.
pub(crate) fn utc_before(ns: i64) -> Option<String> {
    let then = time::OffsetDateTime::now_utc() - time::Duration::nanoseconds(ns);
    (ns >= 0).then(|| text(then))
}

/// UTC of this instant, to the second.
pub(crate) fn utc_of(instant: SystemTime) -> String {
    text(instant.into())
}

fn text(instant: time::OffsetDateTime) -> String {
    let format =
        time::macros::format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    instant.format(&format).unwrap_or_default()
}

/// Now, as the name of a run begins.
pub(crate) fn stamp() -> String {
    let format = time::macros::format_description!("[year]-[month]-[day]T[hour][minute][second]");
    time::OffsetDateTime::now_utc()
        .format(&format)
        .unwrap_or_default()
}
