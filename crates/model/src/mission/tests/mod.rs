//! Tests of the mission file as a whole: reading, refusals with their messages, and properties of every mission.

mod everything;
mod examples;
mod faults;
mod full;
mod keys;
mod made;
mod on_machine;
mod properties;
mod reference;

use std::path::PathBuf;

use super::{Mission, MissionFile};

/// The least mission: one cell with a reservation.
const LEAST: &str = r#"schema = 1
name = "least"
[[cell]]
name = "control"
image = { rootfs = "root" }
command = ["/bin/control"]
reservation = { budget = "3ms", period = "10ms" }
"#;

fn parse(text: &str) -> Result<Mission, String> {
    MissionFile::parse("m.toml", text)
        .map(MissionFile::into_mission)
        .map_err(|errors| errors.to_string())
}

/// The faults of a text, one a line, without the file's name: `7: fault; fix`.
fn faults(text: &str) -> Vec<String> {
    let errors = parse(text).expect_err("must be refused");
    let lines = errors.lines();
    lines
        .map(|line| line.trim_start_matches("m.toml:").to_owned())
        .collect()
}

/// The missions that are shipped, by their file names.
fn shipped() -> Vec<(String, String)> {
    let directory: PathBuf = [
        env!("CARGO_MANIFEST_DIR"),
        "..",
        "..",
        "examples",
        "missions",
    ]
    .iter()
    .collect();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "toml"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// The text as the JSON that a schema is held against.
fn json(text: &str) -> serde_json::Value {
    let table: toml::Table = toml::from_str(text).unwrap();
    serde_json::to_value(table).unwrap()
}

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&super::schema()).unwrap()
}
