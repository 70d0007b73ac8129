//! The parts of a configuration that have a fixed size, and the bits of their flags.

use super::field::layout;
use crate::span::Span;

/// Bits of [`Memory::flags`].
pub mod memory {
    /// The cell may read it.
    pub const READ: u64 = 1;
    /// The cell may write it.
    pub const WRITE: u64 = 2;
    /// The cell may execute it.
    pub const EXECUTE: u64 = 4;
    /// Devices of the cell may access it.
    pub const DMA: u64 = 8;
    /// Registers of a device.
    pub const IO: u64 = 0x10;
    /// The page by which cell and hypervisor talk; the hypervisor provides it.
    pub const COMM: u64 = 0x20;
    /// The root cell may write it between `load` and `start`.
    pub const LOADABLE: u64 = 0x40;
    /// The root cell keeps its access while the cell has it.
    pub const SHARED: u64 = 0x80;

    /// Accesses of 1, 2, 4 and 8 bytes, where registers are a part of a page.
    pub const IO_WIDTHS: u64 = 0xf << 16;

    /// The names of the bits.
    pub const NAMES: [(&str, u64); 8] = [
        ("read", READ),
        ("write", WRITE),
        ("execute", EXECUTE),
        ("dma", DMA),
        ("io", IO),
        ("comm", COMM),
        ("loadable", LOADABLE),
        ("shared", SHARED),
    ];
}

/// Bits of [`Cell::flags`](super::Cell::flags).
pub mod cell {
    /// The cell is not asked before it is shut down or changed.
    pub const PASSIVE: u32 = 1;
    /// The cell may print on the hypervisor's console.
    pub const CONSOLE_PERMITTED: u32 = 0x4000_0000;
    /// The cell is to print there.
    pub const CONSOLE_ACTIVE: u32 = 0x8000_0000;
}

layout! {
    /// A region of memory that a cell has.
    pub struct Memory {
        /// Where it is in the machine.
        pub at: u64,
        /// Where the cell sees it.
        pub virtual_at: u64,
        /// Bytes.
        pub size: u64,
        /// Bits of [`memory`].
        pub flags: u64,
    }
}

impl Memory {
    /// Whether it has all of these bits.
    pub fn has(&self, flags: u64) -> bool {
        self.flags & flags == flags
    }

    /// Its addresses in the machine. The communication region has none there: see [`memory::COMM`].
    pub fn span(&self) -> Span {
        Span::new(self.at, self.size)
    }

    /// Its addresses as the cell sees them.
    pub fn virtual_span(&self) -> Span {
        Span::new(self.virtual_at, self.size)
    }
}

layout! {
    /// A serial console.
    pub struct Console {
        /// Its registers, or its port.
        pub address: u64,
        /// Bytes of its registers.
        pub size: u32,
        /// Its kind: 2 for 8250, 3 for PL011, 4 for the Xilinx UART, and so on; 0 for none.
        pub kind: u16,
        /// Bit 0: registers in memory; bit 1: four bytes apart.
        pub flags: u16,
        /// The divider of its clock; 0 leaves it as it is.
        pub divider: u32,
        /// The number of its clock's gate.
        pub gate: u32,
        /// The address of its clock's register.
        pub clock: u64,
    }
}

layout! {
    /// Interrupts of an interrupt controller that a cell has.
    pub struct IrqChip {
        /// The controller: the address of the GIC's distributor, or of an I/O APIC.
        pub address: u64,
        /// Its number, for I/O APICs.
        pub id: u32,
        /// The interrupt of the first bit of `pins`.
        pub pin_base: u32,
        /// One bit for each interrupt.
        pub pins: [u32; 4],
    }
}

impl IrqChip {
    /// The interrupts of it that have their bit set, in ascending order.
    pub fn interrupts(&self) -> impl Iterator<Item = u32> {
        let IrqChip { pin_base, pins, .. } = *self;
        let set = (0..128_u32).filter(move |bit| pins[*bit as usize / 32] >> (bit % 32) & 1 == 1);
        set.filter_map(move |bit| pin_base.checked_add(bit))
    }
}

layout! {
    /// Ports that a cell has, on x86.
    pub struct Pio {
        /// The first.
        pub base: u16,
        /// How many.
        pub length: u16,
    }
}

layout! {
    /// A PCI device that a cell has, or one that the hypervisor provides.
    pub struct PciDevice {
        /// 1: device, 2: bridge, 3: shared memory that the hypervisor provides.
        pub kind: u8,
        /// The number of its IOMMU.
        pub iommu: u8,
        /// The PCI domain.
        pub domain: u16,
        /// Bus, device and function.
        pub bdf: u16,
        /// The bits of each base address register that are fixed.
        pub bar_mask: [u32; 6],
        /// The first of its capabilities in the cell's list.
        pub caps_start: u16,
        /// How many it has.
        pub num_caps: u16,
        /// Vectors of MSI.
        pub num_msi_vectors: u8,
        /// Bit 0: MSI has addresses of 64 bits; bit 1: it can be masked.
        pub msi_flags: u8,
        /// Vectors of MSI-X.
        pub num_msix_vectors: u16,
        /// Bytes of the table of MSI-X.
        pub msix_region_size: u16,
        /// The address of that table.
        pub msix_address: u64,
        /// The index of the first region of its shared memory.
        pub shmem_regions_start: u32,
        /// The number of this end of the shared memory.
        pub shmem_dev_id: u8,
        /// How many ends it has.
        pub shmem_peers: u8,
        /// The protocol that is spoken over it.
        pub shmem_protocol: u16,
    }
}

layout! {
    /// A capability of a PCI device.
    pub struct PciCap {
        /// Its kind.
        pub id: u16,
        /// Where it is in the device's configuration space.
        pub start: u16,
        /// Bytes.
        pub len: u16,
        /// Bit 0: the cell may write it.
        pub flags: u16,
    }
}
