//! The JSON Schema of the mission file.

use serde_json::{Map, Value, json};

use super::SCHEMA;
use super::capability::allowed;
use super::keys::{Key, Kind, Need, Shape, TOP};

/// The JSON Schema (draft 2020-12) of the mission file, for editors and for programs that write missions; a TOML file is held
/// against it as the JSON with the same keys and values. It follows the declarations that the parser reads by. What a schema
/// cannot say (whether names exist, numbers go together, a machine has what is named) only the parser checks.
///
/// ```
/// let schema = timecell_model::mission::schema();
/// assert_eq!(schema["properties"]["cell"]["items"]["$ref"], "#/$defs/cell");
/// ```
pub fn schema() -> Value {
    let mut root = table(&TOP);
    root.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    root.insert("title".to_owned(), json!("timecell mission"));
    let below = TOP.all().into_iter().skip(1);
    let definitions: Map<String, Value> = below
        .map(|shape| (shape.name.to_owned(), Value::Object(table(shape))))
        .collect();
    root.insert("$defs".to_owned(), Value::Object(definitions));
    if let Some(version) = root
        .get_mut("properties")
        .and_then(|properties| properties.get_mut("schema"))
    {
        version["maximum"] = json!(SCHEMA);
    }
    Value::Object(root)
}

fn table(shape: &Shape) -> Map<String, Value> {
    let properties: Map<String, Value> = (shape.keys.iter())
        .map(|key| (key.name.to_owned(), property(shape, key)))
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

fn property(shape: &Shape, key: &Key) -> Value {
    let mut value = kind(&key.kind);
    if shape.name == "rights" && key.name == "capabilities" {
        value["items"] = json!({ "enum": allowed().collect::<Vec<String>>() });
    }
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
        Kind::Label => json!({ "type": "string", "minLength": 1, "maxLength": 64 }),
        Kind::Thread => json!({ "type": "string", "minLength": 1, "maxLength": 15 }),
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
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Time { .. } => {
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

/// A number, with a fraction if wanted, and a unit.
fn number_with(units: &str) -> String {
    format!("^\\s*[0-9_]+(\\.[0-9_]+)?\\s*({units})\\s*$")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_defined_once_and_every_default_is_json() {
        let shapes = TOP.all();
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
        assert_eq!(
            schema()["$defs"].as_object().map(Map::len),
            Some(shapes.len() - 1)
        );
    }
}
