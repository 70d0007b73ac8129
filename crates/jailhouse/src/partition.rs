//! A cell as a mission describes it, and the configuration that follows.

use crate::config::{
    Architecture, Cell, Console, IrqChip, Memory, System, cell as cell_flags, memory,
};
use crate::span::{PAGE, Span};

/// A memory region of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionMemory {
    /// Where it is in the machine.
    pub span: Span,
    /// Where the cell sees it; `None` for the same place.
    pub virtual_at: Option<u64>,
    /// Bits of [`memory`].
    pub flags: u64,
}

/// Registers of a device that the cell gets for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The registers.
    pub registers: Span,
    /// Its interrupts, as the controller counts them: on a GIC, shared ones begin at 32.
    pub interrupts: Vec<u32>,
}

/// A cell of a mission that is a cell of Jailhouse.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partition {
    /// Its name: 1 to 31 bytes, not only digits.
    pub name: String,
    /// Its cpus.
    pub cpus: Vec<u32>,
    /// Its memory, beside that which follows from the other fields.
    pub memory: Vec<PartitionMemory>,
    /// The address, as the cell sees it, of its first instruction.
    pub entry: u64,
    /// The console that its programs are told of. Its registers are a region of `memory`, shared where others print, too.
    pub console: Option<Console>,
    /// Whether it may print on the hypervisor's console by hypercalls.
    pub prints: bool,
    /// The page in which it counts heartbeats, which it sees at the same address.
    pub heartbeat: Option<u64>,
    /// Its devices.
    pub devices: Vec<Device>,
    /// Further interrupts.
    pub interrupts: Vec<u32>,
}

impl Partition {
    /// The configuration for the machine of `system`: passive, the heartbeat page first, the communication region last.
    pub fn cell(&self, system: &System) -> Cell {
        let region = |span: Span, virtual_at: u64, flags: u64| Memory {
            at: span.at,
            virtual_at,
            size: span.size,
            flags,
        };
        let same = |span: Span, flags: u64| region(span, span.at, flags);
        let access = memory::READ | memory::WRITE;
        let beats = self
            .heartbeat
            .map(|page| same(Span::new(page, PAGE), access | memory::SHARED));
        let own = self.memory.iter().map(|own| {
            let virtual_at = own.virtual_at.unwrap_or(own.span.at);
            region(own.span, virtual_at, own.flags)
        });
        let devices = self.devices.iter().map(|device| {
            let registers = device.registers;
            let is_part = !registers.is_aligned();
            let widths = if is_part { memory::IO_WIDTHS } else { 0 };
            same(registers, access | memory::IO | widths)
        });
        let talks_at = match system.architecture {
            Architecture::X86 => 0x10_0000,
            Architecture::Arm | Architecture::Arm64 => 0x8000_0000,
        };
        let talk = region(Span::new(0, PAGE), talks_at, access | memory::COMM);
        let interrupts = self.devices.iter().flat_map(|device| &device.interrupts);
        let prints = if self.prints {
            cell_flags::CONSOLE_PERMITTED
        } else {
            0
        };
        Cell {
            format: system.format,
            name: self.name.clone(),
            id: 0,
            flags: cell_flags::PASSIVE | prints,
            cpus: self.cpus.iter().copied().collect(),
            memory: beats
                .into_iter()
                .chain(own)
                .chain(devices)
                .chain([talk])
                .collect(),
            caches: Vec::new(),
            irqchips: chips(interrupts.chain(&self.interrupts), system),
            pio: Vec::new(),
            pci_devices: Vec::new(),
            pci_caps: Vec::new(),
            stream_ids: Vec::new(),
            vpci_irq_base: 0,
            reset_address: self.entry,
            message_timeout: 0,
            console: self.console.unwrap_or_default(),
            rest: Vec::new(),
        }
    }
}

/// The interrupts, by the controllers of the root cell that have them; others by the first one, for the checks to find.
fn chips<'a>(interrupts: impl Iterator<Item = &'a u32>, system: &System) -> Vec<IrqChip> {
    let roots = &system.root.irqchips;
    let mut chips: Vec<IrqChip> = Vec::new();
    for interrupt in interrupts {
        let has = |chip: &&IrqChip| chip.interrupts().any(|pin| pin == *interrupt);
        let chip = roots.iter().find(has).map_or_else(
            || IrqChip {
                pin_base: interrupt & !127,
                ..roots.first().copied().unwrap_or_default()
            },
            |root| *root,
        );
        let chip = IrqChip {
            pins: [0; 4],
            ..chip
        };
        let is_same = |one: &IrqChip| {
            IrqChip {
                pins: [0; 4],
                ..*one
            } == chip
        };
        let at = chips.iter().position(is_same).unwrap_or_else(|| {
            chips.push(chip);
            chips.len() - 1
        });
        let bit = interrupt - chip.pin_base;
        chips[at].pins[bit as usize / 32] |= 1 << (bit % 32);
    }
    chips
}
