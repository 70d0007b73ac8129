//! The JSON Schema of a kind of file.

use serde_json::{Map, Value, json};

use super::{Format, Key, Kind, Need, Shape};

/// The JSON Schema (draft 2020-12) of a kind of file, for editors and for programs that write such files; a TOML file is
/// validated as the JSON with the same keys and values. It follows the declarations that the parser uses. Rules that a schema
/// cannot express (whether names exist, numbers fit together, a machine has the named things) only the parser checks.
pub(crate) fn schema(format: &Format) -> Value {
    let top = format.top;
    let mut root = table(top);
    root.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    root.insert(
        "title".to_owned(),
        json!(format!("timecell {}", format.name)),
    );
    let below = top.all().into_iter().skip(1);
    let definitions: Map<String, Value> = below
        .map(|shape| (shape.name.to_owned(), Value::Object(table(shape))))
        .collect();
    root.insert("$defs".to_owned(), Value::Object(definitions));
    root["properties"]["schema"]["maximum"] = json!(format.schema);
    Value::Object(root)
}

fn table(shape: &Shape) -> Map<String, Value> {
    let properties: Map<String, Value> = (shape.keys.iter())
        .map(|key| (key.name.to_owned(), property(key)))
        .collect();
    let required = shape.keys.iter();
    let required: Vec<&str> = required
        .filter(|key| matches!(key.need, Need::Required(_)))
        .map(|key| key.name)
        .collect();
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("description".to_owned(), json!(shape.doc));
    object.insert("properties".to_owned(), Value::Object(properties));
    object.insert("additionalProperties".to_owned(), json!(false));
    if !required.is_empty() {
        object.insert("required".to_owned(), json!(required));
    }
    if shape.choice {
        object.insert("minProperties".to_owned(), json!(1));
        object.insert("maxProperties".to_owned(), json!(1));
    }
    object
}

fn property(key: &Key) -> Value {
    let mut value = kind(&key.kind);
    value["description"] = json!(key.doc);
    if let Need::Default(default) = key.need {
        // A declared default is JSON; a test reads each of them.
        value["default"] = serde_json::from_str(default).unwrap_or(Value::Null);
    }
    value
}

fn kind(kind: &Kind) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Word => json!({ "type": "string", "pattern": "^[^\\u0000]*$" }),
        Kind::Name => json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" }),
        Kind::Part => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" }),
        Kind::Label => json!({ "type": "string", "minLength": 1, "maxLength": 64 }),
        Kind::Thread => json!({ "type": "string", "minLength": 1, "maxLength": 15 }),
        Kind::KernelWord => json!({ "type": "string", "pattern": "^(?!--$)[!#-~]+$" }),
        Kind::Reference => {
            json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,511}$" })
        }
        Kind::HostPath => json!({ "type": "string", "minLength": 1, "maxLength": 4095 }),
        Kind::CellPath => {
            json!({ "type": "string", "minLength": 1, "maxLength": 4095, "pattern": "^/" })
        }
        Kind::Choice(names) => json!({ "enum": names }),
        Kind::Integer { least, most } => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Number { least, most } => {
            json!({ "type": "number", "minimum": least, "maximum": most })
        }
        Kind::Any(kinds, _) => json!({ "anyOf": kinds.iter().map(self::kind).collect::<Vec<_>>() }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Time { .. } | Kind::Within { .. } => {
            json!({ "type": "string", "pattern": number_with("ns|us|\u{b5}s|\u{3bc}s|ms|s|min|h") })
        }
        Kind::Size { .. } => {
            json!({ "type": "string", "pattern": number_with("B|KiB|MiB|GiB|kB|MB|GB") })
        }
        Kind::List {
            of,
            least,
            most,
            unique,
        } => json!({
            "type": "array",
            "items": self::kind(of),
            "minItems": least,
            "maxItems": most,
            "uniqueItems": unique,
        }),
        Kind::Environment => json!({
            "type": "object",
            "propertyNames": { "pattern": "^[^=\\u0000]+$" },
            "additionalProperties": self::kind(&Kind::Word),
        }),
        Kind::Table(shape) => json!({ "$ref": reference(shape) }),
        Kind::Tables { of, most } => json!({
            "type": "array",
            "items": { "$ref": reference(of) },
            "minItems": 1,
            "maxItems": most,
        }),
    }
}

fn reference(shape: &Shape) -> String {
    format!("#/$defs/{}", shape.name)
}

/// A number, optionally with a fraction, and a unit.
fn number_with(units: &str) -> String {
    format!("^\\s*[0-9_]+(\\.[0-9_]+)?\\s*({units})\\s*$")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_defined_once_and_every_default_is_json() {
        let experiment = crate::experiment::FORMAT;
        let board = crate::board::FORMAT;
        for format in [
            crate::mission::FORMAT,
            crate::taskset::FORMAT,
            experiment,
            board,
        ] {
            let shapes = format.top.all();
            let mut names: Vec<&str> = shapes.iter().map(|shape| shape.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), shapes.len());
            let defaults = shapes.iter().flat_map(|shape| shape.keys);
            for key in defaults {
                if let Need::Default(default) = key.need {
                    let value: Value = serde_json::from_str(default).expect(key.name);
                    assert!(!value.is_null(), "{}", key.name);
                }
            }
            let defined = schema(&format)["$defs"].as_object().map(Map::len);
            assert_eq!(defined, Some(shapes.len() - 1));
        }
    }
}
