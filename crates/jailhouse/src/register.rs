//! The cells that timecell has created, with their configurations, and whether it has enabled the hypervisor: files below
//! [`host::lock::PLACE`], which last until the reboot, as cells do. A process holds the register's lock while it creates or ends a cell.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::file::{at, gone};
use host::lock;

use crate::check::{Asked, check};
use crate::config::{Architecture, Cell, CpuSet, System};
use crate::inmate::{Began, Here, Inmate, InmateError};
use crate::machine::{Machine, devices, interrupts, system_ram};
use crate::{Driver, DriverError, Span};

/// How long another process may take to create or end a cell.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The file that processes lock. No mission has such a name, nor that of the next file: missions have directories beside them.
const LOCK: &str = ".lock";
/// The file with the system configuration with which timecell has enabled the hypervisor, while it runs because of that.
const SYSTEM: &str = ".system";
/// The processor of this machine.
pub const ARCHITECTURE: Architecture = match () {
    () if cfg!(target_arch = "x86_64") => Architecture::X86,
    () if cfg!(target_arch = "aarch64") => Architecture::Arm64,
    () => Architecture::Arm,
};

/// The register of a machine.
#[derive(Debug, Clone)]
pub struct Register {
    dir: PathBuf,
}

/// A cell that is to be created, or is there.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The mission that it is of.
    pub owner: &'a str,
    /// The bytes of the system configuration.
    pub system: &'a [u8],
    /// The cell with its program.
    pub inmate: &'a Inmate,
    /// The physical address of its heartbeat's page.
    pub heartbeat: Option<u64>,
}

/// Why a cell has not begun.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// It could stop the machine, for all these reasons.
    #[error("cell `{cell}` is not created: {}", refusals.join("; "))]
    Refused {
        /// The cell.
        cell: String,
        /// The reasons, each a sentence.
        refusals: Vec<String>,
    },
    /// The driver refuses it, or it does not begin.
    #[error(transparent)]
    Inmate(#[from] InmateError),
    /// A configuration, the register or a file of Linux cannot be read or written.
    #[error("{0}")]
    Unusable(String),
}

impl From<DriverError> for RegisterError {
    fn from(error: DriverError) -> RegisterError {
        RegisterError::Inmate(error.into())
    }
}

impl From<host::file::FileError> for RegisterError {
    fn from(error: host::file::FileError) -> RegisterError {
        RegisterError::Unusable(error.to_string())
    }
}

impl Default for Register {
    fn default() -> Register {
        Register {
            dir: Path::new(lock::PLACE).join("jailhouse"),
        }
    }
}

impl Register {
    /// Begins a cell: enables the hypervisor if it does not run, and creates the cell, or takes over the owner's cell of this name if it has
    /// the same configuration. Returns whether it was taken over, and how it began.
    ///
    /// # Errors
    /// [`RegisterError`]. If the cell could not begin, it stays for the next try.
    pub fn begin(
        &self,
        driver: &Driver,
        wanted: &Wanted<'_>,
        here: &mut Here<'_>,
    ) -> Result<(bool, Began), RegisterError> {
        let lock = self.lock()?;
        let runs = driver.is_enabled()?;
        if !runs {
            self.clear()?;
        }
        let Wanted { owner, inmate, .. } = wanted;
        let kept = self.file(owner, &inmate.name);
        let known = read(&kept);
        if driver.cell(&inmate.name)?.is_some() {
            match known {
                Ok(bytes) if bytes == inmate.cell => {
                    drop(lock);
                    return Ok((true, inmate.restart(here)?));
                }
                Ok(_) => driver.destroy(&inmate.name)?,
                Err(_) => return Err(DriverError::Exists(inmate.name.clone()).into()),
            }
        }
        gone(fs::remove_file(&kept)).map_err(at(&kept))?;
        self.check(driver, wanted)?;
        // A cell, or a hypervisor, without a file would be nobody's; a file without them is harmless.
        put(&kept, &inmate.cell)?;
        if !runs {
            put(&self.dir.join(SYSTEM), wanted.system)?;
            driver.enable(wanted.system)?;
        }
        if let Err(error) = driver.create(&inmate.name, &inmate.cell) {
            gone(fs::remove_file(&kept)).map_err(at(&kept))?;
            return Err(error.into());
        }
        drop(lock);
        Ok((false, inmate.run(here)?))
    }

    /// Ends a cell of an owner, and the hypervisor with the last one if timecell has enabled it.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn end(&self, owner: &str, cell: &str) -> Result<(), RegisterError> {
        let _lock = self.lock()?;
        let driver = Driver::open()?;
        self.destroy(&driver, owner, cell)?;
        self.disable(&driver)
    }

    /// The same for all cells of an owner; nothing is done where it has none.
    ///
    /// # Errors
    /// As [`Register::end`].
    pub fn end_all(&self, owner: &str) -> Result<(), RegisterError> {
        let dir = self.dir.join(owner);
        if !dir.exists() {
            return Ok(());
        }
        let _lock = self.lock()?;
        let driver = Driver::open()?;
        for (cell, _) in names(&dir)? {
            self.destroy(&driver, owner, &cell)?;
        }
        gone(fs::remove_dir(&dir)).map_err(at(&dir))?;
        self.disable(&driver)
    }

    /// The owners of cells.
    ///
    /// # Errors
    /// When the register cannot be read.
    pub fn owners(&self) -> Result<Vec<String>, RegisterError> {
        let all = names(&self.dir)?.into_iter().filter(|(_, is_dir)| *is_dir);
        Ok(all.map(|(name, _)| name).collect())
    }

    /// The cells that are there, but for an owner's: the configurations of those that are known, without their cpus, which the machine's ledger has, and
    /// the names of all. None where Jailhouse does not run.
    ///
    /// # Errors
    /// When the register or the driver's list cannot be read, or the hypervisor runs with a system configuration other than these bytes.
    pub fn beside(
        &self,
        owner: &str,
        system: &[u8],
    ) -> Result<(Vec<Cell>, Vec<String>), RegisterError> {
        let cells = match Driver::open() {
            Ok(driver) => driver.cells()?,
            Err(_) => Vec::new(),
        };
        let mut cells: Vec<String> = cells.into_iter().map(|cell| cell.name).collect();
        let enabled = read(&self.dir.join(SYSTEM)).ok();
        if !cells.is_empty() && is_other(enabled.as_deref(), cells.first(), system) {
            return Err(RegisterError::Unusable(OTHER_SYSTEM.to_owned()));
        }
        let own = names(&self.dir.join(owner))?;
        cells.retain(|name| own.iter().all(|(own, _)| own != name));
        let mut there = self.there(&cells)?;
        for cell in &mut there {
            cell.cpus = CpuSet::default();
        }
        Ok((there, cells))
    }

    fn destroy(&self, driver: &Driver, owner: &str, cell: &str) -> Result<(), RegisterError> {
        let kept = self.file(owner, cell);
        if !kept.exists() {
            return Ok(());
        }
        match driver.destroy(cell) {
            Ok(()) | Err(DriverError::Unknown(_) | DriverError::NotEnabled) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(gone(fs::remove_file(&kept)).map_err(at(&kept))?)
    }

    /// Ends the hypervisor if timecell has enabled it, and none but the root cell is left.
    fn disable(&self, driver: &Driver) -> Result<(), RegisterError> {
        let enabled = self.dir.join(SYSTEM);
        if !enabled.exists() || driver.cells()?.len() > 1 {
            return Ok(());
        }
        match driver.disable() {
            Ok(()) | Err(DriverError::NotEnabled) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(gone(fs::remove_file(&enabled)).map_err(at(&enabled))?)
    }

    /// Refuses a cell that would stop the machine.
    fn check(&self, driver: &Driver, wanted: &Wanted<'_>) -> Result<(), RegisterError> {
        let inmate = wanted.inmate;
        let cells: Vec<String> = driver.cells()?.into_iter().map(|cell| cell.name).collect();
        let refused = |refusals| RegisterError::Refused {
            cell: inmate.name.clone(),
            refusals,
        };
        let enabled = read(&self.dir.join(SYSTEM)).ok();
        if is_other(enabled.as_deref(), cells.first(), wanted.system) {
            return Err(refused(vec![OTHER_SYSTEM.to_owned()]));
        }
        let there = self.there(&cells)?;
        let own = host::sched::get_affinity(0).unwrap_or_default();
        let images: Vec<Span> = (inmate.images.iter())
            .map(|image| Span::new(image.address, image.bytes.len() as u64))
            .collect();
        let refusals = refusals(
            wanted.system,
            &inmate.cell,
            &images,
            wanted.heartbeat,
            (there, cells, own),
        )?;
        match refusals.is_empty() {
            true => Ok(()),
            false => Err(refused(refusals)),
        }
    }

    /// The configurations of those of the hypervisor's cells that are known.
    fn there(&self, names_there: &[String]) -> Result<Vec<Cell>, RegisterError> {
        let mut there = Vec::new();
        for (owner, is_dir) in names(&self.dir)? {
            if !is_dir {
                continue;
            }
            for (cell, _) in names(&self.dir.join(&owner))? {
                if names_there.contains(&cell) {
                    let path = self.file(&owner, &cell);
                    let bytes = read(&path).map_err(at(&path))?;
                    there.extend(Cell::read(&bytes).ok());
                }
            }
        }
        Ok(there)
    }

    /// Forgets all cells: the hypervisor that had them is gone.
    fn clear(&self) -> Result<(), RegisterError> {
        for (name, is_dir) in names(&self.dir)? {
            let path = self.dir.join(&name);
            match is_dir {
                true => fs::remove_dir_all(&path).map_err(at(&path))?,
                false if name == SYSTEM => gone(fs::remove_file(&path)).map_err(at(&path))?,
                false => {}
            }
        }
        Ok(())
    }

    fn lock(&self) -> Result<File, RegisterError> {
        Ok(lock::take(&self.dir, LOCK, PATIENCE).map_err(at(&self.dir.join(LOCK)))?)
    }

    fn file(&self, owner: &str, cell: &str) -> PathBuf {
        self.dir.join(owner).join(cell)
    }
}

/// A sentence: a cell cannot be checked by a system configuration that is not the hypervisor's.
const OTHER_SYSTEM: &str = "Jailhouse runs with another system configuration than the mission's, which would be checked in vain; \
     name that one in the mission, or end Jailhouse first";

/// Whether the hypervisor runs with another system configuration: timecell has enabled it with other bytes, or its root cell is called otherwise.
fn is_other(enabled: Option<&[u8]>, root: Option<&String>, system: &[u8]) -> bool {
    let name = || System::read(system, ARCHITECTURE).map(|system| system.root.name);
    enabled.is_some_and(|enabled| enabled != system)
        || root.is_some_and(|root| name().is_ok_and(|name| name != *root))
}

/// Why a cell is not to be created from this configuration on this machine, each a sentence: it would stop Linux, another cell, or itself. `there`: the
/// configurations of the hypervisor's other cells, the names of all of them, and the cpus that Linux must keep.
///
/// # Errors
/// When a configuration or a file of Linux cannot be read.
pub fn refusals(
    system: &[u8],
    cell: &[u8],
    images: &[Span],
    heartbeat: Option<u64>,
    there: (Vec<Cell>, Vec<String>, Vec<u32>),
) -> Result<Vec<String>, RegisterError> {
    let unusable = |what: &str, error: &dyn std::fmt::Display| {
        RegisterError::Unusable(format!("{what}: {error}"))
    };
    let system = System::read(system, ARCHITECTURE)
        .map_err(|error| unusable("the system configuration", &error))?;
    let cell = Cell::read(cell).map_err(|error| unusable("the cell's configuration", &error))?;
    let text = |path: &str| host::file::text(path).map_err(at(Path::new(path)));
    let iomem = text("/proc/iomem")?;
    let (there, cells, supervisor_cpus) = there;
    let machine = Machine {
        architecture: ARCHITECTURE,
        system_ram: system_ram(&iomem).map_err(|error| unusable("/proc/iomem", &error))?,
        devices: devices(&iomem),
        interrupts: interrupts(&text("/proc/interrupts")?),
        supervisor_cpus,
        cells,
    };
    let asked = Asked {
        cell: &cell,
        images,
        heartbeat,
    };
    let refusals = check(&system, &there, &asked, &machine);
    Ok(refusals.iter().map(ToString::to_string).collect())
}

/// The names in a directory that may be missing, each with whether it is a directory.
fn names(dir: &Path) -> Result<Vec<(String, bool)>, host::file::FileError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at(dir)(error)),
    };
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry.map_err(at(dir))?;
        let is_dir = entry.file_type().map_err(at(dir))?.is_dir();
        all.push((entry.file_name().to_string_lossy().into_owned(), is_dir));
    }
    all.sort();
    Ok(all)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    host::file::read(path)
}

/// Writes a file, or nothing under its name.
fn put(path: &Path, bytes: &[u8]) -> Result<(), host::file::FileError> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir).map_err(at(dir))?;
    let made = path.with_extension("made");
    fs::write(&made, bytes).map_err(at(&made))?;
    fs::rename(&made, path).map_err(at(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mission_takes_the_place_of_the_registers_own_files() {
        let dir = tempfile::tempdir().unwrap();
        let register = Register {
            dir: dir.path().join("jailhouse"),
        };
        for owner in ["lock", "enabled", "system"] {
            let _lock = register.lock().unwrap();
            put(&register.file(owner, "lock"), b"a cell").unwrap();
            put(&register.dir.join(SYSTEM), b"a system").unwrap();
        }
        assert_eq!(register.owners().unwrap(), ["enabled", "lock", "system"]);
        register.clear().unwrap();
        let left = names(&register.dir).unwrap();
        assert_eq!(left, [(LOCK.to_owned(), false)]);
    }

    #[test]
    fn a_system_configuration_that_is_not_the_hypervisors_checks_nothing() {
        let system = include_bytes!("config/recorded/zcu102.cell");
        let root = System::read(system, ARCHITECTURE).unwrap().root.name;
        let mut other = *system;
        *other.last_mut().unwrap() ^= 1;
        assert!(!is_other(None, None, system));
        assert!(!is_other(Some(system), Some(&root), system));
        assert!(is_other(Some(&other), Some(&root), system));
        assert!(is_other(None, Some(&"virt".to_owned()), system));
    }
}
