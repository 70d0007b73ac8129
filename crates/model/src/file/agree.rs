//! Tests whether the reader and the JSON Schema of a kind of file reject the same damaged files.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use toml::{Table, Value};

use super::{Format, Kind, Shape, schema};

/// Parts of messages about formal faults, which a schema also reports.
const OF_FORM: [&str; 3] = [
    "unknown key `",
    " is of type ",
    "it must be a whole number of ",
];

/// Every document that differs from this one in a single value, missing or replaced; with the names of the table and the key.
fn spoilt(
    shape: &'static Shape,
    table: &Table,
    found: &mut BTreeSet<String>,
) -> Vec<(String, Table)> {
    let mut all = Vec::new();
    let with = |key: &str, value: Value| {
        let mut other = table.clone();
        other.insert(key.to_owned(), value);
        other
    };
    for (key, value) in table {
        let of = format!("{}.{key}", shape.name);
        let mut less = table.clone();
        less.remove(key);
        all.push((format!("without {of}"), less));
        for odd in [
            Value::Boolean(true),
            Value::Integer(-1 << 40),
            Value::Float(-1.5),
            Value::String("\u{1}odd".to_owned()),
            Value::Array(vec![Value::Array(Vec::new())]),
            Value::Table(Table::new()),
        ] {
            all.push((format!("odd {of}"), with(key, odd)));
        }
        let kind = &shape.key(key).expect("a declared key").kind;
        for inner in below(kind, value, found) {
            all.push((format!("in {of}"), with(key, inner)));
        }
        found.insert(of);
    }
    all.push((
        format!("more in {}", shape.name),
        with("not_a_key", Value::Integer(1)),
    ));
    all
}

/// The value with something damaged below it.
fn below(kind: &'static Kind, value: &Value, found: &mut BTreeSet<String>) -> Vec<Value> {
    match (kind, value) {
        (Kind::Any(kinds, _), value) => (kinds.iter())
            .flat_map(|kind| below(kind, value, found))
            .collect(),
        (Kind::Table(shape), Value::Table(table)) => (spoilt(shape, table, found).into_iter())
            .map(|(_, table)| Value::Table(table))
            .collect(),
        (Kind::Tables { .. } | Kind::List { .. }, Value::Array(items)) => {
            let mut all = Vec::new();
            for (at, item) in items.iter().enumerate() {
                let inner = match kind {
                    Kind::Tables { of, .. } => match item {
                        Value::Table(table) => (spoilt(of, table, found).into_iter())
                            .map(|(_, table)| Value::Table(table))
                            .collect(),
                        _ => Vec::new(),
                    },
                    Kind::List { of, .. } => below(of, item, found),
                    _ => Vec::new(),
                };
                for other in inner {
                    let mut items = items.clone();
                    items[at] = other;
                    all.push(Value::Array(items));
                }
            }
            all
        }
        _ => Vec::new(),
    }
}

/// Fails unless the texts are read and fit the schema, use every declared key, and every damaged variant that the schema
/// refuses is refused by the reader, and every one with a formal fault is refused by the schema.
pub(crate) fn assert_agree(
    format: &Format,
    texts: &[&str],
    read: impl Fn(&str) -> Result<(), String>,
) {
    let validator = jsonschema::validator_for(&schema(format)).expect("a schema");
    let fits = |table: &Table| -> Result<(), String> {
        let json: Json = serde_json::to_value(table).expect("JSON");
        validator
            .validate(&json)
            .map_err(|error| format!("{}: {error}", error.instance_path()))
    };
    let (mut found, mut refused) = (BTreeSet::new(), 0);
    for text in texts {
        let whole: Table = toml::from_str(text).expect("TOML");
        assert_eq!((read(text), fits(&whole)), (Ok(()), Ok(())), "{text}");
        for (what, table) in spoilt(format.top, &whole, &mut found) {
            let text = toml::to_string(&table).expect("TOML");
            match (read(&text), fits(&table)) {
                (Ok(()), Err(why)) => panic!("{what}: read, and the schema says {why}\n{text}"),
                (Err(faults), Ok(())) => assert!(
                    !OF_FORM.iter().any(|form| faults.contains(form)),
                    "{what}: the schema lets pass: {faults}\n{text}"
                ),
                (Err(_), Err(_)) => refused += 1,
                (Ok(()), Ok(())) => {}
            }
        }
    }
    assert!(refused > 100, "{refused}");
    for shape in format.top.all() {
        for key in shape.keys {
            let of = format!("{}.{}", shape.name, key.name);
            assert!(found.contains(&of), "no text says {of}");
        }
    }
}
