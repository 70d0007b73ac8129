//! Refusals of the driver, by its error numbers.

use std::io;
use std::path::PathBuf;

/// One of the six requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Enable,
    Disable,
    Create,
    Load,
    Start,
    Destroy,
}

impl Request {
    pub(super) fn number(self) -> u32 {
        match self {
            Request::Enable => 0x4008_0000,
            Request::Disable => 0x0000_0001,
            Request::Create => 0x4010_0002,
            Request::Load => 0x4030_0003,
            Request::Start => 0x4028_0004,
            Request::Destroy => 0x4028_0005,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Request::Enable => "enable",
            Request::Disable => "disable",
            Request::Create => "create",
            Request::Load => "load",
            Request::Start => "start",
            Request::Destroy => "destroy",
        }
    }
}

/// Why a request was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The module is not loaded.
    #[error("there is no /dev/jailhouse: load the module of Jailhouse (insmod jailhouse.ko)")]
    NotLoaded,
    /// The device is root's.
    #[error("/dev/jailhouse may not be opened: Jailhouse needs root")]
    NotPermitted,
    /// The hypervisor does not run.
    #[error("Jailhouse is not enabled")]
    NotEnabled,
    /// The hypervisor runs already, or its memory is in use.
    #[error("Jailhouse runs already, or something else has the memory of its hypervisor")]
    Busy,
    /// The driver does not find the hypervisor.
    #[error("the driver finds no jailhouse.bin in /lib/firmware")]
    NoFirmware,
    /// The kernel keeps the processor's mode of hypervisors for itself, or was started without it.
    #[error(
        "the kernel was not started in the processor's mode of hypervisors, or keeps it for KVM (`kvm-arm.mode=none`)"
    )]
    NoHypervisorMode,
    /// The driver or the hypervisor refuses the system configuration.
    #[error(
        "the system configuration is refused: signature, revision or architecture are not the driver's, or its memory is not there"
    )]
    System,
    /// There is a cell of this name.
    #[error(
        "there is a cell `{0}` already, of another mission or of nobody; choose another name, or destroy that cell"
    )]
    Exists(String),
    /// There is no cell of this name.
    #[error("there is no cell `{0}`")]
    Unknown(String),
    /// A cpu of the configuration is not the root cell's.
    #[error("a cpu of cell `{0}` is another cell's, or not there")]
    Cpus(String),
    /// The configuration is refused.
    #[error(
        "the configuration of cell `{0}` is refused: signature or revision are not the driver's"
    )]
    Configuration(String),
    /// The configuration says that it is longer than the hypervisor takes.
    #[error("the configuration of cell `{0}` is too long for the hypervisor")]
    TooLong(String),
    /// The driver reports success, but there is no cell.
    #[error("cell `{0}` was not created: its configuration is for another architecture")]
    NotCreated(String),
    /// An image lies outside of the memory that is loaded, or the cell is the root cell.
    #[error("an image of cell `{0}` lies outside of its loadable memory")]
    Image(String),
    /// A cell that is asked before it is stopped denies it.
    #[error("cell `{0}`, or another one, denies it: it is not passive, and only a reset ends it")]
    Denied(String),
    /// Another error of the system.
    #[error("{request} of cell `{cell}`: {source}")]
    Other {
        /// The request.
        request: &'static str,
        /// The cell, empty for the hypervisor.
        cell: String,
        /// The system's error.
        source: io::Error,
    },
    /// A file of the driver cannot be read, or has another form.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl DriverError {
    /// The meaning of the error of a request about a cell; `runs`: the hypervisor does.
    pub(crate) fn of(request: Request, cell: &str, source: io::Error, runs: bool) -> DriverError {
        let name = cell.to_owned();
        let errno = source.raw_os_error().unwrap_or(0);
        match (request, errno) {
            (Request::Enable, libc::ENOENT) => DriverError::NoFirmware,
            (Request::Enable, libc::ENODEV) => DriverError::NoHypervisorMode,
            (Request::Enable, libc::EBUSY) => DriverError::Busy,
            (Request::Enable, libc::EINVAL) => DriverError::System,
            (_, libc::EINVAL) if !runs => DriverError::NotEnabled,
            (Request::Create, libc::EEXIST) => DriverError::Exists(name),
            (Request::Create, libc::EBUSY) => DriverError::Cpus(name),
            (Request::Create, libc::EINVAL) => DriverError::Configuration(name),
            (Request::Create, libc::E2BIG) => DriverError::TooLong(name),
            (Request::Load, libc::EINVAL) => DriverError::Image(name),
            (_, libc::ENOENT) => DriverError::Unknown(name),
            (_, libc::EPERM) => DriverError::Denied(name),
            _ => DriverError::Other {
                request: request.word(),
                cell: name,
                source,
            },
        }
    }
}
