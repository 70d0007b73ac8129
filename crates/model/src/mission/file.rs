//! A mission file: its values, and where each stands.

use std::path::{Path, PathBuf};

use super::capability::allowed;
use super::machine::resolve;
use super::{Limits, Machine, Mission, SCHEMA, check, keys, read};
use crate::file::{self, Faults, Format, Lines, Place};
use crate::{EngineKind, InputError, InputErrors};

/// A mission as it stands in a file: its values, and the line of each of them, so that what is found wrong later, on the machine
/// or by admission, is told with its line as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissionFile {
    name: String,
    mission: Mission,
    lines: Lines,
}

impl MissionFile {
    /// Reads a mission file; `name` is what messages call it, usually its path.
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
    /// Every fault of the file that can be known without a machine, each with its line and what would be right. A text that
    /// is not TOML has only its faults as TOML.
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

    /// Whether a machine has what the mission names: cpus, images, devices, mounts, runs, and bounds that its reservations keep
    /// to.
    ///
    /// # Errors
    /// Every fault, each with its line and what would be right.
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

    /// The same with every cell a plain process, as no file can ask for it: what a user starts by hand is his own. It is not held
    /// against the machine again.
    #[must_use]
    pub fn of_processes(mut self) -> MissionFile {
        for cell in &mut self.mission.cells {
            cell.engine = EngineKind::Bare;
        }
        self
    }

    /// What messages call the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The line of a place, from 1; where the file does not have it, that of the nearest table around it.
    pub fn line(&self, place: &Place) -> usize {
        self.lines.nearest(place)
    }

    /// A fault at a place, for what only others can find.
    pub fn fault(
        &self,
        place: &Place,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> InputError {
        InputError::new(&self.name, what, fix).at(self.line(place))
    }

    /// A path of the mission as the machine knows it: a relative one counts from the directory of the file.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        resolve(&self.name, path)
    }
}

/// The file as its reader knows it.
pub(crate) const FORMAT: Format = Format {
    name: "mission",
    schema: SCHEMA,
    most_bytes: Limits::FILE_BYTES,
    top: &keys::TOP,
    narrower: |_, _, _| None,
};

/// The JSON Schema (draft 2020-12) of the mission file, for editors and for programs that write missions; a TOML file is held
/// against it as the JSON with the same keys and values.
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
        let mission = read::mission(top);
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
