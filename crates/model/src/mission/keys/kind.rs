//! Types and ranges of values.

use std::path::{Component, Path};

use toml::de::DeValue;

use super::Shape;
use crate::parse::is_name;
use crate::reader::nearest;
use crate::value::{self, Wrong};
use crate::{Bytes, Duration, EngineKind};

/// The kind of a value: its type and range.
#[derive(Debug)]
pub(in super::super) enum Kind {
    /// Any text.
    Text,
    /// A text for a program: anything but NUL.
    Word,
    /// What may be part of a directory name.
    Name,
    /// 1 to 64 characters that a terminal can show.
    Label,
    /// The name of a thread.
    Thread,
    /// The name by which an engine knows an image.
    Reference,
    /// A path on the host.
    HostPath,
    /// An absolute path inside the cell.
    CellPath,
    /// One of these.
    Choice(&'static [&'static str]),
    /// A whole number.
    Integer { least: i64, most: i64 },
    /// `true` or `false`.
    Boolean,
    /// A time of at least so many ns, and at most as many as the analysis takes.
    Time { least_ns: i64 },
    /// An amount of memory of at least so many bytes.
    Size { least: u64 },
    /// A list of so many items.
    List {
        of: &'static Kind,
        least: usize,
        most: usize,
        unique: bool,
    },
    /// A table whose keys are the names of environment variables.
    Environment,
    /// A table.
    Table(&'static Shape),
    /// One or more tables under one key.
    Tables { of: &'static Shape, most: usize },
}

/// The longest path of Linux, NUL included (PATH_MAX).
const PATH_BYTES: usize = 4_096;

impl Kind {
    /// The table that it is or has as items.
    pub fn shape(&self) -> Option<&'static Shape> {
        match self {
            Kind::Table(shape) | Kind::Tables { of: shape, .. } => Some(shape),
            _ => None,
        }
    }

    /// What is wrong with a value that is neither a list nor a table; `label` is what messages call it, `key` what follows
    /// "unknown".
    pub fn fault(&self, label: &str, key: &str, found: &DeValue<'_>) -> Result<(), Wrong> {
        match self {
            Kind::Integer { least, most } => {
                value::integer(label, found, &(*least..=*most)).map(|_| ())
            }
            Kind::Boolean => value::boolean(label, found).map(|_| ()),
            Kind::Time { least_ns } => time(label, found, *least_ns),
            Kind::Size { least } => size(label, found, *least),
            Kind::Choice(names) => choice(value::text(label, found)?, key, names),
            Kind::Text
            | Kind::Word
            | Kind::Name
            | Kind::Label
            | Kind::Thread
            | Kind::Reference
            | Kind::HostPath
            | Kind::CellPath => match self.text_fault(value::text(label, found)?) {
                Some((what, mend)) => Err(Wrong::new(format!("{label} {what}"), mend)),
                None => Ok(()),
            },
            Kind::List { .. } | Kind::Environment | Kind::Table(_) | Kind::Tables { .. } => {
                Err(Wrong::of_type(label, found, self.wanted()))
            }
        }
    }

    /// What a list or table must be, for messages.
    pub fn wanted(&self) -> &'static str {
        match self {
            Kind::List { of, .. } => match of {
                Kind::Integer { .. } => "a list of numbers such as [1]",
                _ => "a list of texts such as [\"one\", \"two\"]",
            },
            Kind::Environment => "a table of texts such as { LEVEL = \"1\" }",
            Kind::Tables { .. } => "a list of tables",
            _ => "a table such as { key = \"value\" }",
        }
    }

    fn text_fault(&self, text: &str) -> Option<(String, &'static str)> {
        let fault = |what: &str, mend| Some((what.to_owned(), mend));
        match self {
            Kind::Word if text.contains('\0') => fault("has a NUL character", "remove it"),
            Kind::Name
                if !is_name(text) || !text.starts_with(|c: char| c.is_ascii_alphanumeric()) =>
            {
                Some((
                    format!(
                        "is `{}`, which cannot be part of a directory name",
                        text.escape_debug()
                    ),
                    "use 1 to 64 letters, digits, `-` and `_`, a letter or digit first",
                ))
            }
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
                    "is no name of a thread",
                    "use 1 to 15 bytes, as many as the kernel keeps of one",
                )
            }
            Kind::Reference if !is_reference(text) => fault(
                "is no name of an image",
                "write it as the engine lists it, such as \"localhost/camera:1.2\"",
            ),
            Kind::HostPath | Kind::CellPath
                if text.is_empty()
                    || text.len() >= PATH_BYTES
                    || text.chars().any(char::is_control) =>
            {
                fault("is no path", "use 1 to 4095 bytes")
            }
            Kind::CellPath if !is_plain(text) => fault(
                "is no absolute path inside the cell",
                "begin with `/`, without `.` and `..`",
            ),
            _ => None,
        }
    }
}

/// Whether a text is made as names, tags and digests of images are. None begins with `-`, which programs take for an option.
fn is_reference(text: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || "._/:@+-".contains(c);
    text.len() <= 512
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(part)
}

/// Whether a path is absolute and goes nowhere but down.
fn is_plain(text: &str) -> bool {
    let mut parts = Path::new(text).components();
    parts.next() == Some(Component::RootDir)
        && parts.all(|part| matches!(part, Component::Normal(_)))
        && !text.split('/').any(|part| part == ".")
}

fn time(label: &str, found: &DeValue<'_>, least_ns: i64) -> Result<(), Wrong> {
    let time = value::duration(label, found)?;
    if time.ns() < least_ns {
        return Err(Wrong::new(
            format!("{label} is {time}"),
            format!("it must be at least {}", Duration::from_ns(least_ns)),
        ));
    }
    if time.ns() > super::super::Limits::LONGEST_NS {
        return Err(Wrong::new(
            format!("{label} is {time}"),
            "it must be at most 36 years, the range of exact analysis",
        ));
    }
    Ok(())
}

fn size(label: &str, found: &DeValue<'_>, least: u64) -> Result<(), Wrong> {
    if let DeValue::Integer(number) = found {
        return Err(Wrong::new(
            format!("{label} has no unit"),
            format!(
                "write it as a text with a unit, such as \"{}MiB\"",
                number.as_str()
            ),
        ));
    }
    let size: Bytes = (found.as_str())
        .ok_or_else(|| Wrong::of_type(label, found, "an amount of memory such as \"64MiB\""))?
        .parse()
        .map_err(|error| Wrong::new(format!("{label}: {error}"), ""))?;
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
    let near = nearest(text, names)
        .map(|name| format!("did you mean `{name}`? "))
        .unwrap_or_default();
    let other: Option<EngineKind> = (text.parse().ok()).filter(|_| key == "engine");
    if let Some(why) = other.and_then(EngineKind::no_missions) {
        return Err(Wrong::new(
            format!("engine `{text}` {why}"),
            format!("it is one of {}", names.join(", ")),
        ));
    }
    let noun = match key {
        "do" => "action",
        "when" => "observation",
        key => key,
    };
    Err(Wrong::new(
        format!("unknown {noun} `{}`", text.escape_debug()),
        format!("{near}it is one of {}", names.join(", ")),
    ))
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
}
