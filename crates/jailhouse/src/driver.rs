//! The driver of Jailhouse: six requests on `/dev/jailhouse`, the state of cells in sysfs, and the hypervisor's console.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

mod cells;
mod error;
mod request;

pub use cells::{CellStatus, State};
pub use error::DriverError;
pub(crate) use error::Request;

/// The driver's device.
pub const DEVICE: &str = "/dev/jailhouse";
/// The driver's directory in sysfs.
const SYSFS: &str = "/sys/devices/jailhouse";
/// The most bytes of one image.
pub const MOST_IMAGE_BYTES: u64 = 512 << 20;
/// The most bytes of a system configuration.
pub const MOST_SYSTEM_BYTES: u64 = 1 << 20;

/// Bytes that are copied into the memory of a cell before it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The address of the first one, as the cell sees its memory.
    pub address: u64,
}

impl Image {
    /// The contents of a regular file of at most [`MOST_IMAGE_BYTES`].
    ///
    /// # Errors
    /// When it is something else or has more, or on an error of the system.
    pub fn read(file: &Path, address: u64) -> io::Result<Image> {
        let bytes = host::given_file::bytes(file, MOST_IMAGE_BYTES)?;
        Ok(Image { bytes, address })
    }
}

/// The driver of this machine, open.
#[derive(Debug)]
pub struct Driver {
    device: File,
    sysfs: PathBuf,
}

impl Driver {
    /// Opens the driver's device, which is root's.
    ///
    /// # Errors
    /// [`DriverError::NotLoaded`] without the module, [`DriverError::NotPermitted`], or another error of the system.
    pub fn open() -> Result<Driver, DriverError> {
        Ok(Driver {
            device: device(0)?,
            sysfs: SYSFS.into(),
        })
    }

    /// Whether the hypervisor runs.
    ///
    /// # Errors
    /// [`DriverError::Unreadable`].
    pub fn is_enabled(&self) -> Result<bool, DriverError> {
        cells::is_enabled(&self.sysfs)
    }

    /// Starts the hypervisor under the running Linux, with the bytes of a system configuration.
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn enable(&self, system: &[u8]) -> Result<(), DriverError> {
        self.call(Request::Enable, "", system.as_ptr())
    }

    /// Ends all cells but the root cell, and the hypervisor.
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn disable(&self) -> Result<(), DriverError> {
        self.call(Request::Disable, "", std::ptr::null())
    }

    /// Creates the cell of this name from the bytes of its configuration, and looks that it is there: the driver reports a cell of another
    /// architecture as created. Its cpus leave Linux.
    ///
    /// # Errors
    /// The driver's refusal, or [`DriverError::NotCreated`].
    pub fn create(&self, name: &str, cell: &[u8]) -> Result<(), DriverError> {
        let words = request::create(cell.as_ptr() as u64, cell.len());
        self.call(Request::Create, name, words.as_ptr())?;
        match self.cell(name)? {
            Some(_) => Ok(()),
            None => Err(DriverError::NotCreated(name.to_owned())),
        }
    }

    /// Stops a cell and copies images into its memory; with none of them, this is its shutdown.
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn load(&self, name: &str, images: &[Image]) -> Result<(), DriverError> {
        self.call(Request::Load, name, request::images(name, images).as_ptr())
    }

    /// Starts a cell at its entry, also one that runs. That it has returned does not mean that the cell has begun.
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn start(&self, name: &str) -> Result<(), DriverError> {
        self.call(Request::Start, name, request::cell(name).as_ptr())
    }

    /// Ends a cell; its cpus and its memory return to Linux.
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn destroy(&self, name: &str) -> Result<(), DriverError> {
        self.call(Request::Destroy, name, request::cell(name).as_ptr())
    }

    /// All cells by their numbers, the root cell (0) first; none while the hypervisor does not run.
    ///
    /// # Errors
    /// [`DriverError::Unreadable`].
    pub fn cells(&self) -> Result<Vec<CellStatus>, DriverError> {
        cells::all(&self.sysfs)
    }

    /// The state of the cell of this number; `None`: it is gone.
    ///
    /// # Errors
    /// [`DriverError::Unreadable`].
    pub fn state(&self, id: u32) -> Result<Option<State>, DriverError> {
        cells::state(&self.sysfs, id)
    }

    /// The cell of this name, if it is there.
    ///
    /// # Errors
    /// [`DriverError::Unreadable`].
    pub fn cell(&self, name: &str) -> Result<Option<CellStatus>, DriverError> {
        Ok((self.cells()?.into_iter()).find(|cell| cell.name == name))
    }

    fn call(&self, request: Request, cell: &str, argument: *const u8) -> Result<(), DriverError> {
        self.ask(request, argument).map_err(|refused| {
            // While the hypervisor does not run, all but the first are EINVAL.
            let runs = self.is_enabled().unwrap_or(true);
            DriverError::of(request, cell, refused, runs)
        })
    }

    fn ask(&self, request: Request, argument: *const u8) -> io::Result<()> {
        let number = request.number() as _;
        // SAFETY: the argument is of the form that this request reads: nothing, a configuration that is as long as it says, or a structure of
        // `request`, whose addresses are of bytes that outlive the call. The driver writes to none of them.
        match unsafe { libc::ioctl(self.device.as_raw_fd(), number, argument) } {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn device(flags: i32) -> Result<File, DriverError> {
    let opened = File::options()
        .read(true)
        .custom_flags(flags | libc::O_CLOEXEC)
        .open(DEVICE);
    opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => DriverError::NotLoaded,
        io::ErrorKind::PermissionDenied => DriverError::NotPermitted,
        _ => DriverError::Unreadable {
            path: DEVICE.into(),
            source: error,
        },
    })
}

/// The hypervisor's console, with the lines that it and its cells print from now on. The hypervisor has it only if its system configuration says so.
#[derive(Debug)]
pub struct Console(File);

impl Console {
    /// Opens the console and passes over all that was printed before.
    ///
    /// # Errors
    /// As [`Driver::open`].
    pub fn open() -> Result<Console, DriverError> {
        let mut console = Console(device(libc::O_NONBLOCK)?);
        let mut passed = [0; 4096];
        // Its ring has less than 64 KiB; a flood is not waited for.
        for _ in 0..64 {
            if console.read(&mut passed) == 0 {
                break;
            }
        }
        Ok(console)
    }

    /// Reads the text printed since, at most as many bytes as there is room for, and returns how many. It never waits. Where the ring was overrun, the
    /// driver says `<missed N bytes of console log>`. Without a hypervisor there is nothing.
    pub fn read(&mut self, into: &mut [u8]) -> usize {
        self.0.read(into).unwrap_or(0)
    }
}

#[cfg(test)]
pub(crate) mod answers;
#[cfg(test)]
mod tests;
