//! Tests that the documentation has the tables of the mission file's keys.

use crate::file::Table;
use crate::file::reference::{assert_has_every_key, block, page};
use crate::grouped;
use crate::mission::{Limits, Mission, MissionFile};

#[test]
fn the_documentation_has_every_key() {
    let text = page("mission-file.md");
    assert_has_every_key(&text, Mission::SHAPE);
    assert!(text.contains(&grouped(Limits::FAULTS as i64)));
}

#[test]
fn the_documentation_shows_what_is_read_and_what_is_said() {
    let text = page("mission-file.md");
    let example = MissionFile::parse("example.toml", block(&text, "toml"));
    assert_eq!(example.map(|file| file.mission().cells.len()), Ok(2));
    let said = include_str!("everything.txt");
    let shown: Vec<&str> = block(&text, "text").lines().collect();
    assert!(shown.len() > 3);
    for line in shown {
        let fault = line.trim_start_matches("m.toml:");
        assert!(said.lines().any(|each| each == fault), "{line}");
    }
}
