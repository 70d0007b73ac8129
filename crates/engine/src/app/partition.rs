//! A cell that is a partition beside Linux: in Linux, it is the process that keeps it, a bare cell whose program is timecell.

use std::path::{Path, PathBuf};

use jailhouse::config::{Cell, Console, System, memory};
use jailhouse::driver::{MOST_IMAGE_BYTES, MOST_SYSTEM_BYTES};
use jailhouse::partition::{Device, Partition, PartitionMemory};
use jailhouse::register::{self, ARCHITECTURE, Register};
use jailhouse::{PAGE, Span};
use model::EngineKind;
use model::mission::{ConsoleKind, MemoryKind};

use super::{AppSpec, Ids, Image};
use crate::EngineError;
use crate::error::Result;
use crate::made;

/// The capabilities of a keeper: to map the memory in which the heartbeat is, and to see in /proc/iomem where Linux runs.
const CAPABILITIES: [&str; 2] = ["CAP_SYS_RAWIO", "CAP_SYS_ADMIN"];

/// A cell of engine `jailhouse` as the cell in which its keeper runs; `owner` is its mission, `name` its name there and for the hypervisor,
/// `system` the file of the system configuration.
///
/// # Errors
/// If the system configuration cannot be read, or the cell has no configuration.
pub fn partition(
    spec: AppSpec,
    (owner, name): (&str, &str),
    asked: &model::mission::Partition,
    system: &Path,
) -> Result<AppSpec, EngineError> {
    let made = around(&spec, (owner, name), asked, system);
    made.map_err(|cause| made::error(&spec, "make the partition", cause))
}

fn around(
    spec: &AppSpec,
    (owner, name): (&str, &str),
    asked: &model::mission::Partition,
    system: &Path,
) -> Result<AppSpec> {
    let cell = configuration(name, asked, system)?;
    let Some(inmate) = spec.image.path() else {
        return Err("the program of a partition is a file".into());
    };
    let mut around = AppSpec {
        engine: EngineKind::Bare,
        image: Image::Binary(std::fs::read_link("/proc/self/exe")?),
        ids: Some(Ids { uid: 0, gid: 0 }),
        hostname: None,
        ..spec.clone()
    };
    around.grants.capabilities = CAPABILITIES.map(str::to_owned).into();
    let heartbeat = asked.heartbeat.map_or("-".to_owned(), |at| at.to_string());
    let words = ["probe", "partition", owner, name];
    around.args = words.map(str::to_owned).into();
    around.args.push(system.display().to_string());
    around
        .args
        .push(cell.iter().map(|byte| format!("{byte:02x}")).collect());
    around.args.push(heartbeat);
    around.args.push(asked.boot_time.ns().to_string());
    let loads = asked.load.iter().map(|load| (load.file.as_path(), load.at));
    for (file, at) in [(inmate, asked.entry)].into_iter().chain(loads) {
        around.args.push(file.display().to_string());
        around.args.push(at.to_string());
    }
    Ok(around)
}

/// Why this machine has no such partition beside others of its mission and the cells of others, each a sentence; `owner` is the mission, `files` are its
/// images with their addresses.
pub fn refuses_partition(
    (owner, name): (&str, &str),
    asked: &model::mission::Partition,
    system: &Path,
    files: &[(PathBuf, u64)],
    beside: &[(&str, &model::mission::Partition)],
) -> Vec<String> {
    let found = || {
        let cell = configuration(name, asked, system)?;
        let mut images = Vec::new();
        for (file, at) in files {
            let opened = host::given_file::regular(file, MOST_IMAGE_BYTES);
            let about = opened.and_then(|file| file.metadata());
            let about = about.map_err(|error| format!("{}: {error}", file.display()))?;
            images.push(Span::new(*at, about.len()));
        }
        let bytes = system_bytes(system)?;
        let (mut there, cells) = Register::default()
            .beside(owner, &bytes)
            .map_err(|error| error.to_string())?;
        for (name, other) in beside {
            // The mission's file says more of a cpu that is given twice.
            let other = model::mission::Partition {
                cpus: Vec::new(),
                ..(*other).clone()
            };
            let other = Cell::read(&configuration(name, &other, system)?);
            there.push(other.map_err(|error| error.to_string())?);
        }
        let heartbeat = asked.heartbeat.map(page_of);
        Ok(register::refusals(
            &bytes,
            &cell,
            &images,
            heartbeat,
            (there, cells, Vec::new()),
        )
        .map_err(|error| error.to_string())?)
    };
    let found: Result<Vec<String>> = found();
    found.unwrap_or_else(|error| vec![error.to_string()])
}

/// The page of an address.
fn page_of(address: u64) -> u64 {
    address / PAGE * PAGE
}

fn system_bytes(file: &Path) -> Result<Vec<u8>> {
    let bytes = host::given_file::bytes(file, MOST_SYSTEM_BYTES);
    Ok(bytes.map_err(|error| format!("{}: {error}", file.display()))?)
}

/// The bytes of the configuration of a cell.
fn configuration(name: &str, asked: &model::mission::Partition, system: &Path) -> Result<Vec<u8>> {
    let system = System::read(&system_bytes(system)?, ARCHITECTURE)
        .map_err(|error| format!("{}: {error}", system.display()))?;
    let region = |region: &model::mission::PartitionMemory| PartitionMemory {
        span: Span::new(region.at, region.size.bytes()),
        virtual_at: region.seen_at,
        flags: match region.kind {
            MemoryKind::Own => {
                memory::READ | memory::WRITE | memory::EXECUTE | memory::DMA | memory::LOADABLE
            }
            MemoryKind::Shared => memory::READ | memory::WRITE | memory::SHARED,
        },
    };
    let device = |device: &model::mission::PartitionDevice| Device {
        registers: Span::new(device.at, device.size.bytes()),
        interrupts: device.interrupts.clone(),
    };
    let console = asked.console.as_ref().map(|line| {
        let shared = if line.shared { memory::SHARED } else { 0 };
        let registers = PartitionMemory {
            span: Span::new(page_of(line.at), PAGE),
            virtual_at: None,
            flags: memory::READ | memory::WRITE | memory::IO | shared,
        };
        let console = Console {
            address: line.at,
            size: PAGE as u32,
            kind: match line.kind {
                ConsoleKind::Uart8250 => 2,
                ConsoleKind::Pl011 => 3,
                ConsoleKind::XuartPs => 4,
                ConsoleKind::Mvebu => 5,
                ConsoleKind::Hscif => 6,
                ConsoleKind::Scifa => 7,
                ConsoleKind::Imx => 8,
                ConsoleKind::ImxLpuart => 9,
                ConsoleKind::Scif => 10,
            },
            flags: 3,
            ..Console::default()
        };
        (registers, console)
    });
    let registers = console.iter().map(|(registers, _)| *registers);
    let partition = Partition {
        name: name.to_owned(),
        cpus: asked.cpus.clone(),
        memory: asked.memory.iter().map(region).chain(registers).collect(),
        entry: asked.entry,
        console: console.map(|(_, console)| console),
        prints: asked.prints,
        heartbeat: asked.heartbeat.map(page_of),
        devices: asked.device.iter().map(device).collect(),
        interrupts: asked.interrupts.clone(),
    };
    Ok(partition
        .cell(&system)
        .to_bytes()
        .map_err(|error| error.to_string())?)
}
