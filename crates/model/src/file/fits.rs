//! Whether a value fits the declared kind of its key.

use std::path::{Component, Path};

use toml::de::DeValue;

use super::value::{self, Wrong};
use super::{Kind, LONGEST_NS, is_name, unknown};
use crate::{Bytes, Duration, DurationError, EngineKind};

/// The longest path of Linux, NUL included (PATH_MAX).
const PATH_BYTES: usize = 4_096;

impl Kind {
    /// Whether a value is of its type, in its range or not.
    pub fn takes(&self, found: &DeValue<'_>) -> bool {
        match self {
            Kind::Integer { .. } => found.as_integer().is_some(),
            Kind::Number { .. } => found.as_float().is_some() || found.as_integer().is_some(),
            Kind::Boolean => found.as_bool().is_some(),
            Kind::List { .. } | Kind::Tables { .. } => found.as_array().is_some(),
            Kind::Environment | Kind::Table(_) => found.as_table().is_some(),
            Kind::Any(kinds, _) => kinds.iter().any(|kind| kind.takes(found)),
            _ => found.as_str().is_some(),
        }
    }

    /// The fault of a value that is neither a list nor a table; `label` names it in messages, `key` follows
    /// "unknown".
    pub fn fault(&self, label: &str, key: &str, found: &DeValue<'_>) -> Result<(), Wrong> {
        match self {
            Kind::Integer { least, most } => {
                value::integer(label, found, &(*least..=*most)).map(|_| ())
            }
            Kind::Boolean => value::boolean(label, found).map(|_| ()),
            Kind::Number { least, most } => number(label, found, *least, *most),
            Kind::Time { least_ns } => time(label, found, *least_ns, LONGEST_NS),
            Kind::Within { least_ns, most_ns } => time(label, found, *least_ns, *most_ns),
            Kind::Size { least } => size(label, found, *least),
            Kind::Choice(names) => choice(value::text(label, found)?, key, names),
            Kind::Text
            | Kind::Word
            | Kind::Name
            | Kind::Part
            | Kind::Label
            | Kind::Thread
            | Kind::KernelWord
            | Kind::Reference
            | Kind::HostPath
            | Kind::CellPath => match self.text_fault(value::text(label, found)?) {
                Some((what, fix)) => Err(Wrong::new(format!("{label} {what}"), fix)),
                None => Ok(()),
            },
            _ => Err(Wrong::of_type(label, found, &self.wanted())),
        }
    }

    /// The values allowed, for messages.
    fn wanted(&self) -> String {
        let wanted = match self {
            Kind::List { of, .. } => match of {
                Kind::Integer { .. } => "a list of numbers such as [1]",
                Kind::Time { .. } | Kind::Within { .. } => "a list of durations such as [\"1ms\"]",
                Kind::Boolean => "a list such as [false, true]",
                Kind::Choice(names) => return format!("a list such as [\"{}\"]", names[0]),
                Kind::List { of: inner, .. } => {
                    let inner = Kind::List {
                        of: inner,
                        least: 0,
                        most: 0,
                        unique: false,
                    }
                    .wanted();
                    let (_, example) = inner.split_once('[').unwrap_or_default();
                    return format!("a list of lists such as [[{example}]");
                }
                Kind::Any(_, wanted) => return format!("a list whose items are each {wanted}"),
                _ => "a list of texts such as [\"one\", \"two\"]",
            },
            Kind::Environment => "a table of texts such as { LEVEL = \"1\" }",
            Kind::Tables { .. } => "a list of tables",
            Kind::Any(_, wanted) => wanted,
            _ => "a table such as { key = \"value\" }",
        };
        wanted.to_owned()
    }

    /// Whether a name begins with a character that is allowed only inside a name.
    fn is_badly_begun(&self, name: &str) -> bool {
        matches!(self, Kind::Name) && !name.starts_with(|c: char| c.is_ascii_alphanumeric())
    }

    fn text_fault(&self, text: &str) -> Option<(String, &'static str)> {
        let fault = |what: &str, fix| Some((what.to_owned(), fix));
        match self {
            Kind::Word if text.contains('\0') => fault("contains a NUL character", "remove it"),
            Kind::Name | Kind::Part if !is_name(text) || self.is_badly_begun(text) => Some((
                format!(
                    "is `{}`, which cannot be part of a directory name",
                    text.escape_debug()
                ),
                match self {
                    Kind::Part => "use 1 to 64 letters, digits, `-` and `_`",
                    _ => "use 1 to 64 letters, digits, `-` and `_`, a letter or digit first",
                },
            )),
            Kind::Label
                if text.is_empty()
                    || text.chars().count() > 64
                    || text.chars().any(char::is_control) =>
            {
                fault("cannot be shown in tables", "use 1 to 64 characters")
            }
            Kind::Thread
                if text.is_empty() || text.len() > 15 || text.chars().any(char::is_control) =>
            {
                fault(
                    "is not a thread name",
                    "use 1 to 15 bytes, the kernel's limit",
                )
            }
            // `--` ends the kernel's words, and quotes would hide the blanks behind them.
            Kind::KernelWord
                if ["", "--"].contains(&text)
                    || !text.chars().all(|c| c.is_ascii_graphic() && c != '"') =>
            {
                fault(
                    "is no word of the kernel's command line",
                    "use letters, digits and marks of ASCII, without blanks and quotes",
                )
            }
            Kind::Reference if !is_reference(text) => fault(
                "is not an image name",
                "write it as the engine lists it, such as \"localhost/camera:1.2\"",
            ),
            Kind::HostPath | Kind::CellPath
                if text.is_empty()
                    || text.len() >= PATH_BYTES
                    || text.chars().any(char::is_control) =>
            {
                fault("is not a path", "use 1 to 4095 bytes")
            }
            Kind::CellPath if !is_plain(text) => fault(
                "is not an absolute path inside the cell",
                "begin with `/`, without `.` and `..`",
            ),
            _ => None,
        }
    }
}

/// Whether a text has the form of image names, tags and digests. None begins with `-`, which programs take for an option.
fn is_reference(text: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || "._/:@+-".contains(c);
    text.len() <= 512
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(part)
}

/// Whether a path is absolute and has no `.` or `..`.
fn is_plain(text: &str) -> bool {
    let mut parts = Path::new(text).components();
    parts.next() == Some(Component::RootDir)
        && parts.all(|part| matches!(part, Component::Normal(_)))
        && !text.split('/').any(|part| part == ".")
}

fn time(label: &str, found: &DeValue<'_>, least_ns: i64, most_ns: i64) -> Result<(), Wrong> {
    const TOO_LONG: &str = "it must be at most 36 years, the range of exact analysis";
    if let Some(Err(DurationError::TooLong(time))) = found.as_str().map(str::parse::<Duration>) {
        return Err(Wrong::new(format!("{label} is {time}"), TOO_LONG));
    }
    let time = value::duration(label, found)?;
    let range = match most_ns {
        _ if (least_ns..=most_ns).contains(&time.ns()) => return Ok(()),
        LONGEST_NS if time.ns() > most_ns => TOO_LONG.to_owned(),
        LONGEST_NS => format!("it must be at least {}", Duration::from_ns(least_ns)),
        _ => format!("it must be {}", range(least_ns, most_ns)),
    };
    Err(Wrong::new(format!("{label} is {time}"), range))
}

/// `10us to 1h`.
pub(super) fn range(least_ns: i64, most_ns: i64) -> String {
    const HOUR_NS: i64 = 3_600_000_000_000;
    let time = |ns: i64| match ns % HOUR_NS {
        0 if ns > 0 => format!("{}h", ns / HOUR_NS),
        _ => Duration::from_ns(ns).to_string(),
    };
    format!("{} to {}", time(least_ns), time(most_ns))
}

fn number(label: &str, found: &DeValue<'_>, least: f64, most: f64) -> Result<(), Wrong> {
    let wanted = format!("a number of {least:?} to {most:?}");
    match value::number(found) {
        None => Err(Wrong::of_type(label, found, &wanted)),
        Some(number) if (least..=most).contains(&number) => Ok(()),
        Some(number) => Err(Wrong::new(
            format!("{label} is {number}"),
            format!("it must be {wanted}"),
        )),
    }
}

fn size(label: &str, found: &DeValue<'_>, least: u64) -> Result<(), Wrong> {
    let size = value::bytes(label, found)?;
    if size.bytes() < least {
        return Err(Wrong::new(
            format!("{label} is {size}"),
            format!("it must be at least {}", Bytes::new(least)),
        ));
    }
    Ok(())
}

fn choice(text: &str, key: &str, names: &[&str]) -> Result<(), Wrong> {
    if names.contains(&text) {
        return Ok(());
    }
    // Others lack engines for other reasons.
    let of_missions = (EngineKind::OF_MISSIONS.iter()).map(|engine| engine.name());
    let is_of_missions = key == "engine" && of_missions.eq(names.iter().copied());
    let other: Option<EngineKind> = (text.parse().ok()).filter(|_| is_of_missions);
    if let Some(why) = other.and_then(EngineKind::no_missions) {
        return Err(Wrong::new(
            format!("engine `{text}` {why}"),
            format!("it is one of {}", names.join(", ")),
        ));
    }
    let (noun, all) = match key {
        "do" => ("action", "it is one of"),
        "when" => ("observation", "it is one of"),
        "cells" | "engines" => ("engine", "the engines are"),
        "load" | "loads" => ("load", "the loads are"),
        "counters" => ("kind of counters", "it is true, false or one of"),
        key => (key, "it is one of"),
    };
    let (what, fix) = unknown(noun, text, all, names);
    Err(Wrong::new(what, fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paths_are_absolute_and_go_down() {
        for (path, plain) in [
            ("/", true),
            ("/tmp", true),
            ("/var/lib/", true),
            ("tmp", false),
            ("/a/../b", false),
            ("/a/./b", false),
            ("", false),
        ] {
            assert_eq!(is_plain(path), plain, "{path}");
        }
    }

    #[test]
    fn only_missions_say_why_an_engine_makes_no_cells_of_theirs() {
        let of_missions: Vec<&str> = EngineKind::OF_MISSIONS.iter().map(|e| e.name()).collect();
        let wrong = choice("docker", "engine", &of_missions).unwrap_err();
        assert!(
            wrong
                .what
                .starts_with("engine `docker` makes no cells of missions")
        );
        let load = "schema = 1\nname = \"x\"\nworkload = { kind = \"timer\" }\n[[trial]]\ncells = [\"bare\"]\n\
                    load = { kind = \"cpu\", in = \"cell\", engine = \"docker\" }\n";
        let faults = crate::Experiment::parse("x.toml", load).unwrap_err();
        let expected = "x.toml:6: unknown engine `docker`; it is one of embedded, crun, runc, qemu";
        assert_eq!(faults.to_string(), expected);
    }
}
