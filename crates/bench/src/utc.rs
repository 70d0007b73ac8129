//! Times of the day as records and names of runs have them, in UTC.

/// Now, to the second; empty for a clock that tells no time.
pub(crate) fn utc_now() -> String {
    utc_before(0).unwrap_or_default()
}

/// UTC, so many ns ago; `None` for an instant that cannot have been.
pub(crate) fn utc_before(ns: i64) -> Option<String> {
    let then = time::OffsetDateTime::now_utc() - time::Duration::nanoseconds(ns);
    let format =
        time::macros::format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    (ns >= 0).then(|| then.format(&format).unwrap_or_default())
}

/// Now, as the name of a run begins.
pub(crate) fn stamp() -> String {
    let format = time::macros::format_description!("[year]-[month]-[day]T[hour][minute][second]");
    time::OffsetDateTime::now_utc()
        .format(&format)
        .unwrap_or_default()
}
