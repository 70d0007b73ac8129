//! The system configuration: the hypervisor's place, the addresses it keeps for itself, and the root cell. The user's file, read only.

use super::field::{Field, layout};
use super::{Architecture, Cell, Console, Format, Kind, Memory, ReadError};
use crate::span::{PAGE, Span};

/// The bit of [`System::flags`] that lets the root cell read the hypervisor's console.
const CONSOLE: u32 = 1;

layout! {
    /// The host bridge of PCI.
    pub struct PciHost {
        /// Its configuration space; 0 for none.
        pub mmconfig: u64,
        /// Its last bus.
        pub end_bus: u8,
        /// 1 where the hypervisor provides it.
        pub is_virtual: u8,
        /// The PCI domain.
        pub domain: u16,
    }
}

layout! {
    struct Iommu {
        kind: u32,
        base: u64,
        size: u32,
        more: [u32; 3],
    }
}

type Iommus = [Iommu; 8];

layout! {
    struct Head {
        begin: [u8; 8],
        flags: u32,
        hypervisor: Memory,
        debug_console: Console,
        pci: PciHost,
    }
}

layout! {
    /// The interrupt controller of an ARM machine.
    pub struct Gic {
        /// The interrupt by which it calls the hypervisor.
        pub maintenance: u8,
        /// 2 or 3.
        pub version: u8,
        /// The distributor.
        pub gicd: u64,
        /// The interface of the cpus, of version 2.
        pub gicc: u64,
        /// Its part for hypervisors.
        pub gich: u64,
        /// Its part for their guests.
        pub gicv: u64,
        /// The redistributors, of version 3.
        pub gicr: u64,
    }
}

/// A system configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    /// The revision of its file.
    pub format: Format,
    /// The architecture: the file's, or the machine's where its revision does not say it.
    pub architecture: Architecture,
    /// Bits: 0 for a console that the root cell can read.
    pub flags: u32,
    /// The hypervisor's own memory.
    pub hypervisor: Memory,
    /// The console on which the hypervisor prints.
    pub debug_console: Console,
    /// The host bridge of PCI.
    pub pci: PciHost,
    /// Registers of the units that translate for devices.
    pub iommus: Vec<Span>,
    /// The interrupt controller, on ARM.
    pub gic: Option<Gic>,
    /// The root cell, which Linux runs in.
    pub root: Cell,
}

impl System {
    /// Reads a file for a machine of this architecture, which revisions before 14 do not say.
    ///
    /// # Errors
    /// [`ReadError`]. Never reads more than there is, whatever the counts say.
    pub fn read(mut bytes: &[u8], machine: Architecture) -> Result<System, ReadError> {
        let short = ReadError::Short {
            bytes: bytes.len(),
            kind: Kind::System,
        };
        let begin = bytes.first_chunk().ok_or(short.clone())?;
        let format = Format::read(*begin, Kind::System)?;
        let architecture = format.architecture().unwrap_or(machine);
        let is_arm = architecture != Architecture::X86;
        let head = Head::take(&mut bytes).ok_or(short.clone())?;
        let platform = (|| match format {
            // A union: the part for ARM is the larger one.
            Format::Twelve if is_arm => {
                let gic = Gic::take(&mut bytes)?;
                Some((Some(gic), Iommus::take(&mut bytes)?))
            }
            Format::Twelve => {
                <[u8; 18]>::take(&mut bytes)?;
                let iommus = Iommus::take(&mut bytes)?;
                <[u8; 24]>::take(&mut bytes)?;
                Some((None, iommus))
            }
            Format::Thirteen | Format::Fourteen(_) => {
                let iommus = Iommus::take(&mut bytes)?;
                let [maintenance, version, _, _] = <[u8; 4]>::take(&mut bytes)?;
                let [gicd, gicc, gich, gicv, gicr] = <[u64; 5]>::take(&mut bytes)?;
                let gic = Gic {
                    maintenance,
                    version,
                    gicd,
                    gicc,
                    gich,
                    gicv,
                    gicr,
                };
                Some((is_arm.then_some(gic), iommus))
            }
        })();
        let (gic, iommus) = platform.ok_or(short)?;
        let iommus = iommus.iter().filter(|unit| unit.kind != 0);
        let iommus = iommus.map(|unit| Span::new(unit.base, unit.size.into()));
        Ok(System {
            format,
            architecture,
            flags: head.flags,
            hypervisor: head.hypervisor,
            debug_console: head.debug_console,
            pci: head.pci,
            iommus: iommus.collect(),
            gic,
            root: Cell::read_as(format, bytes, Kind::System)?,
        })
    }

    /// Whether the root cell can read the hypervisor's console.
    pub fn has_readable_console(&self) -> bool {
        self.flags & CONSOLE != 0
    }

    /// Registers that no cell may have: the hypervisor stands in for them, or relies on them.
    pub fn registers(&self) -> Vec<(&'static str, Span)> {
        let mut all = Vec::new();
        if let Some(gic) = &self.gic {
            let cpus = self
                .root
                .cpus
                .iter()
                .last()
                .map_or(1, |cpu| u64::from(cpu) + 1);
            let parts = match gic.version {
                2 => vec![
                    ("the GIC's distributor", gic.gicd, PAGE),
                    ("the GIC's interface of the cpus", gic.gicc, 2 * PAGE),
                    ("the GIC's interface of the hypervisor", gic.gich, 2 * PAGE),
                    ("the GIC's interface of cells", gic.gicv, 2 * PAGE),
                ],
                _ => vec![
                    ("the GIC's distributor", gic.gicd, 16 * PAGE),
                    ("the GIC's redistributors", gic.gicr, cpus * 32 * PAGE),
                ],
            };
            let parts = parts.into_iter().filter(|(_, at, _)| *at != 0);
            all.extend(parts.map(|(name, at, size)| (name, Span::new(at, size))));
        } else {
            all.push(("the local APIC", Span::new(0xfee0_0000, PAGE)));
            let chips = self.root.irqchips.iter();
            all.extend(chips.map(|chip| ("an I/O APIC", Span::new(chip.address, PAGE))));
        }
        if self.pci.mmconfig != 0 {
            let size = (u64::from(self.pci.end_bus) + 1) << 20;
            all.push((
                "PCI's configuration space",
                Span::new(self.pci.mmconfig, size),
            ));
        }
        all.extend(self.iommus.iter().map(|unit| ("an IOMMU", *unit)));
        all
    }
}
