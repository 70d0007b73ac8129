//! A mission file: its values, and the place of each.

use std::path::{Path, PathBuf};

use super::capability::allowed;
use super::machine::resolve;
use super::{Limits, Machine, Mission, SCHEMA, check};
use crate::file::{self, Faults, Format, Lines, Place, Table};
use crate::{EngineKind, InputError, InputErrors};

/// A mission read from a file: its values and the line of each, so that faults found later, on the machine or by admission, are
/// also reported with their line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissionFile {
    name: String,
    mission: Mission,
    lines: Lines,
}

impl MissionFile {
    /// Reads a mission file; `name` is its name in messages, usually its path.
    ///
    /// ```
    /// use timecell_model::mission::MissionFile;
    ///
    /// let text = r#"
    ///     schema = 1
    ///     name = "demo"
    ///     [[cell]]
    ///     name = "control"
    ///     image = { binary = "control" }
    ///     reservation = { budget = "20ms", period = "10ms" }
    ///     needs = ["camera"]
    /// "#;
    /// let faults = MissionFile::parse("demo.toml", text).unwrap_err();
    /// assert_eq!(faults.iter().count(), 2);
    /// assert!(faults.to_string().starts_with("demo.toml:7: the budget of 20ms exceeds"));
    /// ```
    ///
    /// # Errors
    /// Every fault of the file that can be found without a machine, each with its line and how to fix it. A text that is
    /// not TOML has only its faults as TOML.
    pub fn parse(name: &str, text: &str) -> Result<MissionFile, InputErrors> {
        parse(name, text, None)
    }

    /// The same on a machine.
    ///
    /// # Errors
    /// Those of [`MissionFile::parse`] together with those of [`MissionFile::check`].
    pub fn parse_on(
        name: &str,
        text: &str,
        machine: &dyn Machine,
    ) -> Result<MissionFile, InputErrors> {
        parse(name, text, Some(machine))
    }

    /// Checks whether a machine has the things that the mission names: cpus, images, devices, mounts, runs; and whether its reservations
    /// keep to the machine's bounds.
    ///
    /// # Errors
    /// Every fault, each with its line and how to fix it.
    pub fn check(&self, machine: &dyn Machine) -> Result<(), InputErrors> {
        let mut faults = Faults::new(&self.name, &self.lines);
        check::on_machine::check(&self.name, &self.mission, machine, &mut faults);
        faults.into_errors().map_or(Ok(()), Err)
    }

    /// The mission.
    pub fn mission(&self) -> &Mission {
        &self.mission
    }

    /// The mission alone, without its lines.
    pub fn into_mission(self) -> Mission {
        self.mission
    }

    /// The same with every cell a plain process, which no file can request: programs started by hand are trusted. It is not
    /// checked against the machine again.
    #[must_use]
    pub fn of_processes(mut self) -> MissionFile {
        for cell in &mut self.mission.cells {
            cell.engine = EngineKind::Bare;
        }
        self
    }

    /// The file's name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The line of a place, from 1; if the file does not have it, that of the nearest enclosing table.
    pub fn line(&self, place: &Place) -> usize {
        self.lines.nearest(place)
    }

    /// A fault at a place, for faults found outside this crate.
    pub fn fault(
        &self,
        place: &Place,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> InputError {
        InputError::new(&self.name, what, fix).at(self.line(place))
    }

    /// A path of the mission on the machine: relative ones start at the directory of the file.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        resolve(&self.name, path)
    }
}

/// The file as its reader knows it.
pub(crate) const FORMAT: Format = Format {
    name: "mission",
    schema: SCHEMA,
    most_bytes: Limits::FILE_BYTES,
    top: Mission::SHAPE,
    narrower: |_, _, _| None,
};

/// The JSON Schema (draft 2020-12) of the mission file, for editors and for programs that write missions; a TOML file is
/// validated as the JSON with the same keys and values.
///
/// ```
/// let schema = timecell_model::mission::schema();
/// assert_eq!(schema["properties"]["cell"]["items"]["$ref"], "#/$defs/cell");
/// ```
pub fn schema() -> serde_json::Value {
    let mut schema = file::schema(&FORMAT);
    let capabilities = &mut schema["$defs"]["rights"]["properties"]["capabilities"];
    capabilities["items"] = serde_json::json!({ "enum": allowed().collect::<Vec<String>>() });
    schema
}

fn parse(
    name: &str,
    text: &str,
    machine: Option<&dyn Machine>,
) -> Result<MissionFile, InputErrors> {
    let (mission, lines) = file::read(&FORMAT, name, text, |top, faults| {
        let mut mission = Mission::of(top);
        let dir = Path::new(name).parent().unwrap_or(Path::new(""));
        for cell in &mut mission.cells {
            cell.machine = cell.machine.beside(dir);
        }
        check::mission(&mission, faults);
        if let Some(machine) = machine {
            check::on_machine::check(name, &mission, machine, faults);
        }
        mission
    })?;
    Ok(MissionFile {
        name: name.to_owned(),
        mission,
        lines,
    })
}
