//! Cell and system configurations of Jailhouse as they are in files, revisions 12 to 14: packed and little-endian.
//!
//! A cell's layout is the same in all three, but for what tells them apart. A cell is written back byte by byte as it was read.

mod field;
mod parts;
mod system;
#[cfg(test)]
pub(crate) mod tests;

pub use parts::{Console, IrqChip, Memory, PciCap, PciDevice, Pio, cell, memory};
pub use system::{Gic, PciHost, System};

use field::{Field, layout};

/// Bytes of a name, without the zero behind it.
pub const LONGEST_NAME: usize = 31;

/// The processors that Jailhouse knows, by their number in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// 64-bit x86.
    X86 = 0,
    /// 32-bit ARM.
    Arm = 1,
    /// 64-bit ARM.
    Arm64 = 2,
}

/// The revision of a file. Jailhouse takes only files of its own revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// 12: version 0.12 of Jailhouse.
    Twelve,
    /// 13, from May 2020 on.
    Thirteen,
    /// 14, from January 2023 on; the file says the architecture.
    Fourteen(Architecture),
}

impl Format {
    /// The number of the revision.
    pub fn revision(self) -> u16 {
        match self {
            Format::Twelve => 12,
            Format::Thirteen => 13,
            Format::Fourteen(_) => 14,
        }
    }

    /// The architecture, where the file says it.
    pub fn architecture(self) -> Option<Architecture> {
        match self {
            Format::Fourteen(architecture) => Some(architecture),
            _ => None,
        }
    }

    fn read(begin: [u8; 8], kind: Kind) -> Result<Format, ReadError> {
        let [signature @ .., low, high] = begin;
        let revision = u16::from_le_bytes([low, high]);
        let is_old = signature == *kind.signature_until_13();
        if !is_old && signature[..5] != *kind.signature() {
            return Err(ReadError::Signature(kind));
        }
        match (is_old, revision) {
            (true, 12) => Ok(Format::Twelve),
            (true, 13) => Ok(Format::Thirteen),
            (false, 14) => {
                let known = [Architecture::X86, Architecture::Arm, Architecture::Arm64];
                let named = known.into_iter().find(|one| *one as u8 == signature[5]);
                let named = named.ok_or(ReadError::Architecture(signature[5]))?;
                Ok(Format::Fourteen(named))
            }
            _ => Err(ReadError::Revision(revision)),
        }
    }

    fn begin(self, kind: Kind) -> [u8; 8] {
        let mut begin = [0; 8];
        match self {
            Format::Fourteen(architecture) => {
                begin[..5].copy_from_slice(kind.signature());
                begin[5] = architecture as u8;
            }
            _ => begin[..6].copy_from_slice(kind.signature_until_13()),
        }
        begin[6..].copy_from_slice(&self.revision().to_le_bytes());
        begin
    }
}

/// The subject of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A cell.
    Cell,
    /// The machine and its root cell.
    System,
}

impl Kind {
    fn signature(self) -> &'static [u8; 5] {
        match self {
            Kind::Cell => b"JHCLL",
            Kind::System => b"JHSYS",
        }
    }

    fn signature_until_13(self) -> &'static [u8; 6] {
        match self {
            Kind::Cell => b"JHCELL",
            Kind::System => b"JHSYST",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Cell => "cell",
            Kind::System => "system",
        }
    }
}

/// Why bytes are no configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Fewer bytes than every configuration of its kind has.
    #[error("{bytes} bytes are too few for a {} configuration of Jailhouse", kind.name())]
    Short {
        /// The bytes.
        bytes: usize,
        /// The kind that was to be read.
        kind: Kind,
    },
    /// Other first bytes.
    #[error("the first bytes are not those of a {} configuration of Jailhouse", .0.name())]
    Signature(Kind),
    /// A revision that is not known, or the signature of another.
    #[error("revision {0} of Jailhouse's configuration is not known; 12 to 14 are")]
    Revision(u16),
    /// A number of no architecture.
    #[error("{0} is no architecture that Jailhouse has")]
    Architecture(u8),
    /// No text, not ended by a zero, or something behind that.
    #[error("the name of the cell is not at most 31 bytes of text and zeros behind it")]
    Name,
    /// More of something than the file has room for.
    #[error("{count} {parts} are announced, but only {left} bytes of the file are left for them")]
    Count {
        /// The parts, in the plural.
        parts: &'static str,
        /// How many of them.
        count: u32,
        /// Bytes behind all parts before.
        left: usize,
    },
}

/// A name of more than [`LONGEST_NAME`] bytes, or with a zero in it, which no file can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name {0:?} of the cell does not fit: 31 bytes do, without a zero among them")]
pub struct NameDoesNotFit(pub String);

layout! {
    /// The beginning of a cell's configuration.
    struct Description {
        begin: [u8; 8],
        name: [u8; 32],
        id: u32,
        flags: u32,
        cpu_set_size: u32,
        regions: u32,
        caches: u32,
        irqchips: u32,
        pio: u32,
        pci_devices: u32,
        pci_caps: u32,
        stream_ids: u32,
        vpci_irq_base: u32,
        reset_address: u64,
        message_timeout: u64,
        console: Console,
    }
}

/// A set of cpus, of the size that its file gives it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuSet(Vec<u8>);

impl CpuSet {
    /// The cpus, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let bytes = (0_u32..).step_by(8).zip(&self.0);
        bytes.flat_map(|(first, byte)| {
            (0..8)
                .filter(move |bit| byte >> bit & 1 == 1)
                .map(move |bit| first + bit)
        })
    }

    /// Whether this cpu is among them.
    pub fn has(&self, cpu: u32) -> bool {
        let byte = self.0.get(cpu as usize / 8);
        byte.is_some_and(|byte| byte >> (cpu % 8) & 1 == 1)
    }
}

impl FromIterator<u32> for CpuSet {
    /// A set as large as its highest cpu needs, one bit for each, in steps of 8 bytes.
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuSet {
        let mut bytes = vec![0; 8];
        for cpu in cpus {
            let at = cpu as usize / 8;
            if at >= bytes.len() {
                bytes.resize((at + 1).next_multiple_of(8), 0);
            }
            bytes[at] |= 1 << (cpu % 8);
        }
        CpuSet(bytes)
    }
}

/// The configuration of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The revision of its file.
    pub format: Format,
    /// Its name: at most [`LONGEST_NAME`] bytes fit.
    pub name: String,
    /// Its number, which the driver sets.
    pub id: u32,
    /// Bits of [`cell`].
    pub flags: u32,
    /// Its cpus.
    pub cpus: CpuSet,
    /// Its memory.
    pub memory: Vec<Memory>,
    /// Its parts of the cache, on x86, as they are in the file.
    pub caches: Vec<[u8; 12]>,
    /// Its interrupts.
    pub irqchips: Vec<IrqChip>,
    /// Its ports.
    pub pio: Vec<Pio>,
    /// Its PCI devices.
    pub pci_devices: Vec<PciDevice>,
    /// Capabilities of those.
    pub pci_caps: Vec<PciCap>,
    /// Numbers of its devices at the IOMMU.
    pub stream_ids: Vec<u32>,
    /// The first interrupt of devices that the hypervisor provides, counted as the controller does, less 32 on ARM.
    pub vpci_irq_base: u32,
    /// Where its first cpu begins, as the cell sees it.
    pub reset_address: u64,
    /// Turns of a loop that the hypervisor waits for the cell's answer, when the cell is not passive; 0 is for ever.
    pub message_timeout: u64,
    /// The console that programs in the cell find in their communication region.
    pub console: Console,
    /// Bytes behind the last part, which nobody reads; some of Jailhouse's own files have them.
    pub rest: Vec<u8>,
}

impl Cell {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ReadError`], for all bytes that [`Cell::to_bytes`] does not write. Never reads more than there is, whatever the
    /// counts say.
    pub fn read(bytes: &[u8]) -> Result<Cell, ReadError> {
        let begin = bytes.first_chunk().ok_or(ReadError::Short {
            bytes: bytes.len(),
            kind: Kind::Cell,
        })?;
        let format = Format::read(*begin, Kind::Cell)?;
        Cell::read_as(format, bytes, Kind::Cell)
    }

    /// Reads a cell whose revision is known, as that of a root cell is.
    fn read_as(format: Format, mut bytes: &[u8], kind: Kind) -> Result<Cell, ReadError> {
        let short = ReadError::Short {
            bytes: bytes.len(),
            kind,
        };
        let about = Description::take(&mut bytes).ok_or(short)?;
        let end = about.name.iter().position(|byte| *byte == 0);
        let (name, zeros) = about.name.split_at(end.ok_or(ReadError::Name)?);
        let name = str::from_utf8(name).map_err(|_| ReadError::Name)?;
        if zeros.iter().any(|byte| *byte != 0) {
            return Err(ReadError::Name);
        }
        let left = &mut bytes;
        Ok(Cell {
            format,
            name: name.to_owned(),
            id: about.id,
            flags: about.flags,
            cpus: CpuSet(all("bytes of cpus", about.cpu_set_size, left)?),
            memory: all("memory regions", about.regions, left)?,
            caches: all("cache regions", about.caches, left)?,
            irqchips: all("interrupt controllers", about.irqchips, left)?,
            pio: all("port regions", about.pio, left)?,
            pci_devices: all("PCI devices", about.pci_devices, left)?,
            pci_caps: all("PCI capabilities", about.pci_caps, left)?,
            stream_ids: all("stream ids", about.stream_ids, left)?,
            vpci_irq_base: about.vpci_irq_base,
            reset_address: about.reset_address,
            message_timeout: about.message_timeout,
            console: about.console,
            rest: left.to_vec(),
        })
    }

    /// The file.
    ///
    /// # Errors
    /// [`NameDoesNotFit`], which is also a [`Refusal`](crate::check::Refusal) of the checks.
    pub fn to_bytes(&self) -> Result<Vec<u8>, NameDoesNotFit> {
        if self.name.len() > LONGEST_NAME || self.name.contains('\0') {
            return Err(NameDoesNotFit(self.name.clone()));
        }
        let mut name = [0; 32];
        name[..self.name.len()].copy_from_slice(self.name.as_bytes());
        let count = |parts: usize| u32::try_from(parts).expect("far fewer parts fit into memory");
        let about = Description {
            begin: self.format.begin(Kind::Cell),
            name,
            id: self.id,
            flags: self.flags,
            cpu_set_size: count(self.cpus.0.len()),
            regions: count(self.memory.len()),
            caches: count(self.caches.len()),
            irqchips: count(self.irqchips.len()),
            pio: count(self.pio.len()),
            pci_devices: count(self.pci_devices.len()),
            pci_caps: count(self.pci_caps.len()),
            stream_ids: count(self.stream_ids.len()),
            vpci_irq_base: self.vpci_irq_base,
            reset_address: self.reset_address,
            message_timeout: self.message_timeout,
            console: self.console,
        };
        let mut bytes = Vec::new();
        about.put(&mut bytes);
        bytes.extend(&self.cpus.0);
        self.memory.iter().for_each(|part| part.put(&mut bytes));
        self.caches.iter().for_each(|part| part.put(&mut bytes));
        self.irqchips.iter().for_each(|part| part.put(&mut bytes));
        self.pio.iter().for_each(|part| part.put(&mut bytes));
        (self.pci_devices.iter()).for_each(|part| part.put(&mut bytes));
        self.pci_caps.iter().for_each(|part| part.put(&mut bytes));
        self.stream_ids.iter().for_each(|part| part.put(&mut bytes));
        bytes.extend(&self.rest);
        Ok(bytes)
    }
}

/// Takes as many parts as are announced, if there is room for them.
fn all<T: Field>(parts: &'static str, count: u32, left: &mut &[u8]) -> Result<Vec<T>, ReadError> {
    let does_not_fit = ReadError::Count {
        parts,
        count,
        left: left.len(),
    };
    if u64::from(count) * T::SIZE as u64 > left.len() as u64 {
        return Err(does_not_fit);
    }
    let all = (0..count).map(|_| T::take(left));
    all.collect::<Option<_>>().ok_or(does_not_fit)
}
