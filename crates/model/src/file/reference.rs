//! The key tables of the documentation, generated from the declarations of the keys.

use super::fits::range;
use super::{Key, Kind, Need, Shape};
use crate::{Bytes, Duration, grouped};

/// The rows of a table's keys.
fn rows(shape: &Shape) -> String {
    let mut out =
        String::from("| key | type | range | default | meaning |\n|---|---|---|---|---|\n");
    for key in shape.keys {
        out.push_str(&row(shape, key));
    }
    out
}

fn row(shape: &Shape, key: &Key) -> String {
    let (kind, range) = kind(&key.kind);
    let default = match key.need {
        _ if shape.choice => "one of them".to_owned(),
        Need::Required(_) => "required".to_owned(),
        Need::Default("\"\"") => "empty".to_owned(),
        Need::Default("[]") => "none".to_owned(),
        Need::Default(default) => format!("`{default}`"),
        Need::Without(without) => without.to_owned(),
    };
    format!(
        "| `{}` | {kind} | {range} | {default} | {} |\n",
        key.name, key.doc
    )
}

fn kind(kind: &Kind) -> (String, String) {
    let text = |range: &str| ("text".to_owned(), range.to_owned());
    match kind {
        Kind::Text => text("any"),
        Kind::Word => text("any except NUL"),
        Kind::Name => text("1 to 64 letters, digits, `-`, `_`, a letter or digit first"),
        Kind::Part => text("1 to 64 letters, digits, `-`, `_`"),
        Kind::Label => text("1 to 64 characters"),
        Kind::Thread => text("1 to 15 bytes"),
        Kind::KernelWord => text("letters, digits and marks of ASCII, without blanks and quotes"),
        Kind::Reference => text("1 to 512 letters, digits and `._/:@+-`"),
        Kind::HostPath => text("path on the host"),
        Kind::CellPath => text("absolute path, without `..`"),
        Kind::Choice(names) => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            text(&names.join(", "))
        }
        Kind::Integer {
            least,
            most: i64::MAX,
        } => ("integer".to_owned(), format!("{least}")),
        Kind::Integer { least, most } if *most == i64::from(u32::MAX) => {
            ("integer".to_owned(), format!("{least} or more"))
        }
        Kind::Integer { least, most }
            if (*least, *most) == (i64::from(i32::MIN), i64::from(i32::MAX)) =>
        {
            ("integer".to_owned(), "any of 32 bits".to_owned())
        }
        Kind::Integer { least, most } => (
            "integer".to_owned(),
            format!("{} to {}", grouped(*least), grouped(*most)),
        ),
        Kind::Number { least, most } => ("number".to_owned(), format!("{least} to {most}")),
        Kind::Within { least_ns, most_ns } => ("duration".to_owned(), range(*least_ns, *most_ns)),
        Kind::Any(kinds, _) => {
            let (mut types, mut ranges): (Vec<String>, Vec<String>) =
                kinds.iter().map(self::kind).unzip();
            types.dedup();
            ranges.retain(|range| !range.is_empty());
            (types.join(" or "), ranges.join(" or "))
        }
        Kind::Boolean => ("boolean".to_owned(), String::new()),
        Kind::Time { least_ns } => (
            "duration".to_owned(),
            format!("{} to 36 years", Duration::from_ns(*least_ns)),
        ),
        Kind::Size { least } => (
            "size".to_owned(),
            format!("at least {}", Bytes::new(*least)),
        ),
        Kind::List {
            of,
            least,
            most,
            unique,
        } => {
            let (kind, range) = match of {
                Kind::Name => ("text".to_owned(), "names of cells".to_owned()),
                of => self::kind(of),
            };
            let least = if *least > 0 {
                format!("{least} to ")
            } else {
                "at most ".to_owned()
            };
            let each = if *unique { ", each once" } else { "" };
            let kinds: Vec<String> = (kind.split(" or "))
                .map(|kind| match kind.strip_prefix("list ") {
                    Some(of) => format!("lists {of}"),
                    // Already plural: within "list of texts or tables".
                    None if kind.ends_with('s') => kind.to_owned(),
                    None => format!("{kind}s"),
                })
                .collect();
            let range = match range.as_str() {
                "" => String::new(),
                range => format!("; {range}"),
            };
            (
                format!("list of {}", kinds.join(" or ")),
                format!("{least}{}{range}{each}", grouped(*most as i64)),
            )
        }
        Kind::Environment => ("table".to_owned(), "names to texts".to_owned()),
        Kind::Table(_) => ("table".to_owned(), "see below".to_owned()),
        Kind::Tables { most, .. } => (
            "tables".to_owned(),
            format!("1 to {}", grouped(*most as i64)),
        ),
    }
}

/// A page of the documentation.
pub(crate) fn page(name: &str) -> String {
    let page = format!("{}/../../docs/src/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(page).unwrap()
}

/// The text of the first block of this language.
pub(crate) fn block<'p>(page: &'p str, language: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

/// Fails unless a page has the rows of every key of a file.
pub(crate) fn assert_has_every_key(page: &str, top: &'static Shape) {
    let mut missing = String::new();
    for shape in top.all() {
        let rows = rows(shape);
        if !page.contains(&rows) {
            missing.push_str(&format!("\n{}: {}\n\n{rows}", shape.name, shape.doc));
        }
    }
    assert!(
        missing.is_empty(),
        "the page lacks these tables:\n{missing}"
    );
}
