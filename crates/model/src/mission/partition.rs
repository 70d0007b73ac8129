//! Cells beside Linux, which Jailhouse gives cpus, memory and devices of their own.

use std::path::PathBuf;

use super::keys::CPUS;
use crate::file::{Kind, table, tables};
use crate::{Bytes, Duration};

/// A page, of which the memory of a partition is a multiple, bytes.
const PAGE: u64 = 4096;

const START: Kind = Kind::Time {
    least_ns: 1_000_000,
};

const INTERRUPTS: Kind = Kind::List {
    of: &Kind::Integer {
        least: 0,
        most: 1_019,
    },
    least: 0,
    most: 1_020,
    unique: true,
};

table! {
    /// The hypervisor under a mission that has cells of engine `jailhouse`.
    pub struct Jailhouse: "jailhouse", "[jailhouse]" {
        /// the board's system configuration, as compiled for this version of Jailhouse; it is used to enable Jailhouse, and to check every cell
        system: PathBuf, Required "\"board.cell\"";
    }
}

table! {
    /// The partition of the machine that a cell of engine `jailhouse` is.
    pub struct Partition: "partition", "[cell.partition]" {
        /// its cpus, which leave Linux while it is there
        cpus: Vec<u32> = CPUS, Required "[3]";
        /// its memory
        memory: Vec<PartitionMemory> = tables::<PartitionMemory>(64), Required "some with `at` and `size`";
        /// address, as it sees its memory, to which the image's `inmate` is loaded and at which it starts
        entry: u64, Default "0";
        /// further files that are loaded before it starts
        load: Vec<Load> = tables::<Load>(16), Without "none";
        /// its devices
        device: Vec<PartitionDevice> = tables::<PartitionDevice>(64), Without "none";
        /// the serial line of its console, of which its program is told
        console: Option<PartitionConsole>, Without "none";
        /// further interrupts
        interrupts: Vec<u32> = INTERRUPTS, Without "none";
        /// physical address, a multiple of 8, of a number of 64 bits that it changes as long as it lives; its page is shared with Linux
        heartbeat: Option<u64>, Without "it is taken to run as soon as it is started";
        /// longest wait for its first heartbeat, after which it is loaded and started again, five times
        boot_time: Duration = START, Default "\"1s\"";
        /// whether it may print on the hypervisor's console
        prints: bool, Default "false";
    }
}

table! {
    /// A region of a partition's memory.
    pub struct PartitionMemory: "partition_memory", "[[cell.partition.memory]]" {
        /// its physical address, a multiple of 4096; outside of the memory that Linux uses
        at: u64, Required "0x80000000";
        /// its size, a multiple of 4KiB
        size: Bytes = Kind::Size { least: PAGE }, Required "\"64KiB\"";
        /// the address at which the partition sees it
        seen_at: Option<u64>, Without "`at`";
        /// whose it is
        kind: MemoryKind, Default "\"own\"";
    }
}

choice! {
    /// Whose a region of memory is.
    pub enum MemoryKind {
        /// The partition's alone; images are loaded into it.
        Own = "own",
        /// Also Linux's, which must have it in its system configuration.
        Shared = "shared",
    }
}

table! {
    /// A file that is loaded into a partition's memory.
    pub struct Load: "load", "[[cell.partition.load]]" {
        /// the file
        file: PathBuf, Required "\"board.dtb\"";
        /// address of its first byte, as the partition sees its memory
        at: u64, Required "0x1000";
    }
}

table! {
    /// A device that a partition has for itself.
    pub struct PartitionDevice: "partition_device", "[[cell.partition.device]]" {
        /// physical address of its registers
        at: u64, Required "0xff010000";
        /// size of its registers
        size: Bytes = Kind::Size { least: 1 }, Default "\"4KiB\"";
        /// its interrupts, as the controller counts them: on a GIC, the first shared one is 32
        interrupts: Vec<u32> = INTERRUPTS, Without "none";
    }
}

table! {
    /// The serial line of a partition's console.
    pub struct PartitionConsole: "partition_console", "[cell.partition.console]" {
        /// physical address of its registers, of which it gets the page
        at: u64, Required "0xff010000";
        /// its kind, as Jailhouse calls it
        kind: ConsoleKind, Required "\"pl011\"";
        /// whether Linux, or the hypervisor, keeps it as well
        shared: bool, Default "false";
    }
}

choice! {
    /// The kinds of serial lines that the programs of Jailhouse print on, with registers in memory, four bytes apart.
    pub enum ConsoleKind {
        /// Compatible to that of the PC.
        Uart8250 = "8250",
        /// ARM's.
        Pl011 = "pl011",
        /// That of the Zynq.
        XuartPs = "xuartps",
        /// Marvell's.
        Mvebu = "mvebu",
        /// Renesas', with a fast clock.
        Hscif = "hscif",
        /// Renesas', with a larger buffer.
        Scifa = "scifa",
        /// NXP's.
        Imx = "imx",
        /// NXP's, of little power.
        ImxLpuart = "imx-lpuart",
        /// Renesas'.
        Scif = "scif",
    }
}

impl Partition {
    /// Longest name of its cell, bytes.
    pub const NAME_BYTES: usize = 31;
}
