//! Values of a task-set file.

use std::collections::HashSet;

use super::super::Fault;
use super::super::fault::TOO_LONG;
use crate::reader::{Table, nearest};
use crate::{Duration, DurationError, InputError};

pub(super) fn faulty(table: &Table<'_>, fault: Fault) -> InputError {
    table.fault(fault.key, fault.what, fault.mend)
}

pub(super) fn choice<T: Copy>(
    table: &Table<'_>,
    key: &str,
    choices: &[(&str, T)],
) -> Result<Option<T>, InputError> {
    let Some(text) = table.text(key)? else {
        return Ok(None);
    };
    if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
        return Ok(Some(*value));
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let near = nearest(text, &names)
        .map(|name| format!("did you mean `{name}`? "))
        .unwrap_or_default();
    Err(table.fault(
        key,
        format!("unknown {key} `{text}`"),
        format!("{near}it is one of {}", names.join(", ")),
    ))
}

/// A time of the analysis, whose range is narrower than that of other durations.
pub(super) fn time(table: &Table<'_>, key: &'static str) -> Result<Option<Duration>, InputError> {
    let found = table.text(key).ok().flatten().map(str::parse::<Duration>);
    if let Some(Err(DurationError::TooLong(text))) = found {
        return Err(table.fault(key, format!("`{key}` is {text}"), TOO_LONG));
    }
    table.duration(key)
}

/// A name that tables can show: not empty, not long, nothing that a terminal obeys.
pub(super) fn name(
    table: &Table<'_>,
    taken: &mut HashSet<String>,
    kind: &str,
) -> Result<String, InputError> {
    let name = table
        .text("name")?
        .ok_or_else(|| table.missing("name", &format!("\"my-{kind}\"")))?;
    if name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
        return Err(table.fault(
            "name",
            format!("this is no name for a {kind}"),
            "use 1 to 64 characters",
        ));
    }
    if !taken.insert(name.to_owned()) {
        return Err(table.fault(
            "name",
            format!("there are two {kind}s named `{name}`"),
            "give each its own name",
        ));
    }
    Ok(name.to_owned())
}
