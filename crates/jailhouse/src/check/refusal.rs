//! The reasons, one sentence each: the fault, and the way out.

use std::fmt;

use crate::config::Architecture;
use crate::span::Span;

/// A memory region of the cell that is to be created. Prints as its number, from 0, and its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Its place in the cell's list, from 0; `None`: it is the communication region, which no mission names.
    pub index: Option<usize>,
    /// Its addresses: in the machine, or as the cell sees them where the refusal is about those.
    pub span: Span,
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "memory region {index} ({})", self.span),
            None => write!(f, "the communication region ({})", self.span),
        }
    }
}

/// Why a cell is not created. Prints as one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No name, or one of more than 31 bytes.
    #[error("the name {0:?} is not 1 to 31 bytes long; choose another")]
    NameLength(String),
    /// A name that looks like a cell's number.
    #[error("the name {0:?} would be taken for a cell's number; begin it with a letter")]
    NameOfDigits(String),
    /// A name that makes lines of the console ambiguous.
    #[error("the name {0:?} has control characters or quotes; use letters, digits and hyphens")]
    NameOfSigns(String),
    /// A name that another cell has.
    #[error("another cell is called {0:?}; choose another name, or destroy that cell")]
    NameTaken(String),
    /// A cell that is there, whose memory nobody knows.
    #[error("cell {0:?} was created by somebody else, so its memory is unknown; destroy it first")]
    UnknownCell(String),
    /// Another revision than the system's.
    #[error("the cell's revision is {revision} and the system's is {expected}; use the system's")]
    Revision {
        /// The cell's.
        revision: u16,
        /// The system's.
        expected: u16,
    },
    /// Three architectures that are not one.
    #[error(
        "the cell is for {cell:?}, the system configuration for {system:?}, and the machine is {machine:?}; \
         all must be the same"
    )]
    Architecture {
        /// The cell's.
        cell: Architecture,
        /// The system configuration's.
        system: Architecture,
        /// The machine's.
        machine: Architecture,
    },
    /// The cell would be asked before each change of any cell.
    #[error(
        "the cell is not passive: it could deny its own end and the creation of any other cell; set the flag"
    )]
    NotPassive,
    /// The hypervisor would wait for its answer for ever.
    #[error(
        "the cell is asked before it is shut down, without a time limit: should it hang, so does the machine; \
         make it passive, or give it a message timeout"
    )]
    NoMessageTimeout,
    /// No cpu.
    #[error("the cell has no cpu; give it at least one")]
    NoCpu,
    /// A cpu that the root cell does not have.
    #[error("cpu {0} is none of the system configuration's; choose one of the root cell's")]
    CpuUnknown(u32),
    /// A cpu that another cell has.
    #[error("cpu {0} is that of cell {1:?}; choose another, or destroy that cell")]
    CpuOfCell(u32, String),
    /// A cpu that the supervisor runs on.
    #[error("cpu {0} is the supervisor's, which it would take away; choose another")]
    CpuOfSupervisor(u32),
    /// Cpu 0, on x86.
    #[error("cpu 0 cannot leave Linux on x86; choose another")]
    CpuZero,
    /// Not whole pages.
    #[error(
        "{0} does not consist of whole pages; let it begin and end at multiples of 4096; registers may also be a \
         part of one page"
    )]
    NotAligned(Region),
    /// Two regions at one address of the cell.
    #[error("{0} is where the cell has its region {1}, too; give them addresses of their own")]
    Twice(Region, usize),
    /// Memory of the cell that is shared and its own.
    #[error(
        "{0} has memory of the cell's region {1}, too, and one of both is shared, so that Linux stops when it reads \
         there; give them memory of their own"
    )]
    HalfShared(Region, usize),
    /// Memory that the root cell cannot lend, or has as registers of devices.
    #[error(
        "{0} is not in the root cell's memory, and Linux stops when it loads something there; choose an address in a region of \
         the system configuration's root cell, or add one there"
    )]
    NotOfRoot(Region),
    /// The hypervisor's memory.
    #[error("{0} is the hypervisor's own memory; choose another address")]
    Hypervisor(Region),
    /// Registers that the hypervisor needs.
    #[error("{0} has registers of {1}, by which every cell can be stopped; leave them out")]
    Registers(Region, &'static str),
    /// Linux's memory.
    #[error(
        "{0} is System RAM ({1}), which Linux runs in; choose an address outside of it, or keep Linux out of it \
         by mem= at its start"
    )]
    SystemRam(Region, Span),
    /// A device that Linux uses.
    #[error(
        "{0} has registers of {1}, which Linux uses, and Linux stops when it looks for them; unbind that driver, or \
         mark the region as shared"
    )]
    DeviceOfLinux(Region, String),
    /// Another cell's memory.
    #[error(
        "{0} is memory of cell {1:?}, which would be overwritten; choose another address, or mark it as shared \
         in both"
    )]
    OtherCell(Region, String),
    /// An interrupt that the root cell cannot lend.
    #[error("interrupt {0} is not among the root cell's; add it to the system configuration")]
    InterruptNotOfRoot(u32),
    /// An interrupt that another cell has.
    #[error("interrupt {0} is that of cell {1:?}; choose another, or destroy that cell")]
    InterruptOfCell(u32, String),
    /// An interrupt that Linux uses.
    #[error("interrupt {0} is used by Linux ({1}); unbind that driver, or choose another device")]
    InterruptOfLinux(u32, String),
    /// The first instruction is nowhere.
    #[error("the cell begins at {0:#x}, where it has no loadable memory; load its image there")]
    Entry(u64),
    /// The first instruction is whatever was in the memory before.
    #[error("the cell begins at {0:#x}, where no image has a byte; load its program there")]
    NoProgram(u64),
    /// An image that is loaded nowhere.
    #[error("an image is for {0}, where the cell has no loadable memory; add a region or move it")]
    ImageNowhere(Span),
    /// An image that is longer than its region.
    #[error("an image is for {0}, which goes beyond {1}; make that larger")]
    ImageTooLong(Span, Region),
    /// Heartbeats that nobody can map.
    #[error("the heartbeat page {0:#x} is not a whole page; choose a multiple of 4096")]
    HeartbeatNotAligned(u64),
    /// Heartbeats that nobody sees.
    #[error(
        "the heartbeat page {0:#x} is in no memory that the cell may read and write and shares with the root \
         cell; add such a region"
    )]
    HeartbeatNotShared(u64),
    /// Heartbeats that stop their reader.
    #[error(
        "the heartbeat page {0:#x} is not memory that the root cell may read, so that looking at it stops Linux; \
         choose one in a region of the system configuration's root cell"
    )]
    HeartbeatNotOfRoot(u64),
}
