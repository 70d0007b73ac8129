//! Every key of the format is read, checked and described.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::full::FULL;
use super::{json, parse, validator};
use crate::file::{Kind, Need, Shape, Table as _};
use crate::mission::Mission;

/// Every key of every table of a document, with the tables' names.
fn said(shape: &'static Shape, table: &Table, found: &mut BTreeSet<(&'static str, String)>) {
    for (key, value) in table {
        found.insert((shape.name, key.clone()));
        match (&shape.key(key).unwrap().kind, value) {
            (Kind::Table(below), Value::Table(table)) => said(below, table, found),
            (Kind::Tables { of, .. }, Value::Array(items)) => {
                for item in items {
                    said(of, item.as_table().unwrap(), found);
                }
            }
            _ => {}
        }
    }
}

/// Every document that lacks one key of this one.
fn without_one(shape: &'static Shape, table: &Table) -> Vec<(String, Table)> {
    let mut all = Vec::new();
    for (key, value) in table {
        let mut less = table.clone();
        less.remove(key);
        all.push((format!("{}.{key}", shape.name), less));
        let mut with = |value: Value, of: String| {
            let mut other = table.clone();
            other.insert(key.clone(), value);
            all.push((of, other));
        };
        match (&shape.key(key).unwrap().kind, value) {
            (Kind::Table(below), Value::Table(inner)) => {
                for (of, less) in without_one(below, inner) {
                    with(Value::Table(less), of);
                }
            }
            (Kind::Tables { of: below, .. }, Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    for (of, less) in without_one(below, item.as_table().unwrap()) {
                        let mut items = items.clone();
                        items[at] = Value::Table(less);
                        with(Value::Array(items), of);
                    }
                }
            }
            _ => {}
        }
    }
    all
}

fn full() -> Table {
    toml::from_str(FULL).unwrap()
}

#[test]
fn the_full_mission_says_every_key_but_what_excludes_another() {
    let mut found = BTreeSet::new();
    said(Mission::SHAPE, &full(), &mut found);
    let declared: BTreeSet<(&str, String)> = (Mission::SHAPE.all().iter())
        .flat_map(|shape| {
            shape
                .keys
                .iter()
                .map(|key| (shape.name, key.name.to_owned()))
        })
        .collect();
    let lacking: Vec<_> = declared.difference(&found).collect();
    assert_eq!(lacking, [&("mission", "latency_run".to_owned())]);
    assert!(parse(FULL).is_ok(), "{:?}", parse(FULL));
    let run = FULL.replace("latency = \"100us\"", "latency_run = \"runs/x\"");
    assert_ne!(parse(&run).unwrap(), parse(FULL).unwrap());
}

#[test]
fn every_key_is_read() {
    let mission = parse(FULL).unwrap();
    let all = without_one(Mission::SHAPE, &full());
    assert!(all.len() > 100);
    for (key, less) in all {
        // It has one value, which is its default.
        let text = toml::to_string(&less).unwrap();
        if key == "modes.policy" {
            continue;
        }
        assert_ne!(parse(&text), Ok(mission.clone()), "{key} is not read");
    }
}

#[test]
fn the_schema_and_the_parser_know_the_same_keys() {
    let validator = validator();
    assert!(validator.is_valid(&json(FULL)));
    let whole = full();
    let mut tried = 0;
    for (of, less) in without_one(Mission::SHAPE, &whole) {
        let (table, key) = of.split_once('.').unwrap();
        let shape = Mission::SHAPE
            .all()
            .into_iter()
            .find(|s| s.name == table)
            .unwrap();
        let required = matches!(shape.key(key).unwrap().need, Need::Required(_)) || shape.choice;
        let valid = validator.is_valid(&serde_json::to_value(&less).unwrap());
        assert_eq!(valid, !required, "{of} left out");
        let errors = parse(&toml::to_string(&less).unwrap())
            .err()
            .unwrap_or_default();
        let missed = ["has no `KEY`", "is empty", "there is no [[KEY]]", ".KEY]];"]
            .iter()
            .any(|text| errors.contains(&text.replace("KEY", key)));
        if required {
            assert!(missed, "{of}: {errors}");
        }
        tried += 1;
    }
    assert!(tried > 100);
    for shape in Mission::SHAPE.all() {
        let odd = "not_a_key_of_any_table";
        let (stands, further) = spot(shape);
        let further = further.replace("KEY", &format!("{odd} = 1"));
        let text = FULL.replacen(stands, &further, 1);
        assert_ne!(text, FULL, "{}", shape.name);
        let errors = parse(&text).unwrap_err();
        assert!(
            errors.contains(&format!("unknown key `{odd}` in {}", shape.title)),
            "{errors}"
        );
        assert!(!validator.is_valid(&json(&text)), "{}", shape.name);
    }
}

/// A text of [`FULL`] that stands in a table, and that text with a place for a further key, `KEY`.
fn spot(shape: &Shape) -> (&'static str, &'static str) {
    match shape.name {
        "mission" => ("schema = 1\n", "schema = 1\nKEY\n"),
        "uids" => ("{ lowest =", "{ KEY, lowest ="),
        "supervisor" => ("supervisor = { class =", "supervisor = { KEY, class ="),
        "modes" => ("[modes]\n", "[modes]\nKEY\n"),
        "cell" => ("name = \"pilot\"\n", "name = \"pilot\"\nKEY\n"),
        "image" => ("{ rootfs =", "{ KEY, rootfs ="),
        "machine" => ("{ board =", "{ KEY, board ="),
        "helpers" => ("{ class = \"idle\"", "{ KEY, class = \"idle\""),
        "jailhouse" => ("[jailhouse]\n", "[jailhouse]\nKEY\n"),
        "partition" => ("[cell.partition]\n", "[cell.partition]\nKEY\n"),
        "partition_console" => (
            "[cell.partition.console]\n",
            "[cell.partition.console]\nKEY\n",
        ),
        "partition_memory" => (
            "[[cell.partition.memory]]\n",
            "[[cell.partition.memory]]\nKEY\n",
        ),
        "load" => (
            "[[cell.partition.load]]\n",
            "[[cell.partition.load]]\nKEY\n",
        ),
        "partition_device" => (
            "[[cell.partition.device]]\n",
            "[[cell.partition.device]]\nKEY\n",
        ),
        "priorities" => ("lowest = 80\n", "lowest = 80\nKEY\n"),
        "reservation" => ("[cell.reservation]\n", "[cell.reservation]\nKEY\n"),
        "task" => ("[[cell.task]]\n", "[[cell.task]]\nKEY\n"),
        "restart" => ("[cell.restart]\n", "[cell.restart]\nKEY\n"),
        "rule" => ("[[cell.health]]\n", "[[cell.health]]\nKEY\n"),
        "step" => ("{ after =", "{ KEY, after ="),
        "rights" => ("[cell.rights]\n", "[cell.rights]\nKEY\n"),
        "user" => ("{ uid =", "{ KEY, uid ="),
        "device" => ("{ path =", "{ KEY, path ="),
        "mount" => ("{ source =", "{ KEY, source ="),
        "tmpfs" => ("{ target =", "{ KEY, target ="),
        other => panic!("no spot in `{other}`"),
    }
}
