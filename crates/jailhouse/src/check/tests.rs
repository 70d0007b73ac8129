mod model;

use super::*;
use crate::config::Format;
use crate::config::tests::{beat, zcu102};
use crate::partition::Device;

const PRIVATE: u64 = memory::READ | memory::WRITE | memory::EXECUTE | memory::LOADABLE;

/// The name of each kind. A new one has to be added here, and the tests then want to see it.
fn kind(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NameLength(_) => "name length",
        Refusal::NameOfDigits(_) => "name of digits",
        Refusal::NameOfSigns(_) => "name of signs",
        Refusal::NameTaken(_) => "name taken",
        Refusal::UnknownCell(_) => "unknown cell",
        Refusal::Revision { .. } => "revision",
        Refusal::Architecture { .. } => "architecture",
        Refusal::NotPassive => "not passive",
        Refusal::NoMessageTimeout => "no timeout",
        Refusal::NoCpu => "no cpu",
        Refusal::CpuUnknown(_) => "cpu unknown",
        Refusal::CpuOfCell(..) => "cpu of cell",
        Refusal::CpuOfSupervisor(_) => "cpu of supervisor",
        Refusal::CpuZero => "cpu zero",
        Refusal::NotAligned(_) => "not aligned",
        Refusal::Twice(..) => "twice",
        Refusal::HalfShared(..) => "half shared",
        Refusal::NotOfRoot(_) => "not of root",
        Refusal::Hypervisor(_) => "hypervisor",
        Refusal::Registers(..) => "registers",
        Refusal::SystemRam(..) => "system ram",
        Refusal::DeviceOfLinux(..) => "device of linux",
        Refusal::OtherCell(..) => "other cell",
        Refusal::InterruptNotOfRoot(_) => "interrupt not of root",
        Refusal::InterruptOfCell(..) => "interrupt of cell",
        Refusal::InterruptOfLinux(..) => "interrupt of linux",
        Refusal::Entry(_) => "entry",
        Refusal::NoProgram(_) => "no program",
        Refusal::ImageNowhere(_) => "image nowhere",
        Refusal::ImageTooLong(..) => "image too long",
        Refusal::HeartbeatNotAligned(_) => "heartbeat not aligned",
        Refusal::HeartbeatNotShared(_) => "heartbeat not shared",
        Refusal::HeartbeatNotOfRoot(_) => "heartbeat not of root",
    }
}

const KINDS: usize = 33;

/// A cell that is in order, and its surroundings.
struct World {
    system: System,
    there: Vec<Cell>,
    cell: Cell,
    images: Vec<Span>,
    heartbeat: u64,
    machine: Machine,
}

impl World {
    fn new() -> World {
        let system = zcu102();
        let mut other = beat();
        (other.name, other.cpus) = ("other".to_owned(), vec![2]);
        other.memory[0].span.at = 0x8_0070_0000;
        other.devices = vec![Device {
            registers: Span::new(0xff02_0000, PAGE),
            interrupts: vec![49],
        }];
        let mut new = beat();
        new.devices = vec![Device {
            registers: Span::new(0xff03_0000, PAGE),
            interrupts: vec![50],
        }];
        World {
            there: vec![other.cell(&system)],
            cell: new.cell(&system),
            images: vec![Span::new(0, 432), Span::new(0x1000, 48)],
            heartbeat: 0x8_0040_0000,
            machine: Machine {
                architecture: Architecture::Arm64,
                system_ram: vec![Span::new(0, 0x3000_0000)],
                devices: vec![(Span::new(0xff01_0000, PAGE), "xuartps".to_owned())],
                interrupts: vec![(54, "xuartps".to_owned())],
                supervisor_cpus: vec![0],
                cells: vec!["zcu".to_owned(), "other".to_owned()],
            },
            system,
        }
    }

    fn check(&self) -> Vec<Refusal> {
        let asked = Asked {
            cell: &self.cell,
            images: &self.images,
            heartbeat: Some(self.heartbeat),
        };
        check(&self.system, &self.there, &asked, &self.machine)
    }

    /// A region of the cell that it has beside those that it needs.
    fn adds(&mut self, at: u64, size: u64, flags: u64) {
        self.cell.memory.push(Memory {
            at,
            virtual_at: at & !0xfff,
            size,
            flags,
        });
    }

    fn interrupt(&mut self, pin: u32) {
        self.cell.irqchips[0].pins[(pin - 32) as usize / 32] |= 1 << (pin % 32);
    }
}

/// Each kind by itself, and its sentence.
#[test]
fn each_kind_is_refused_in_one_sentence() {
    type Change = fn(&mut World);
    let shared = "another cell is called \"other\"; choose another name, or destroy that cell";
    let changes: [(Change, &str); KINDS + 6] = [
        (
            |world| world.cell.name = "n".repeat(32),
            "is not 1 to 31 bytes long; choose another",
        ),
        (
            |world| world.cell.name = "17".to_owned(),
            "the name \"17\" would be taken for a cell's number; begin it with a letter",
        ),
        (
            |world| world.cell.name = "a\"\n".to_owned(),
            "has control characters or quotes; use letters, digits and hyphens",
        ),
        (|world| world.cell.name = "other".to_owned(), shared),
        (
            |world| world.machine.cells.push("theirs".to_owned()),
            "cell \"theirs\" was created by somebody else, so its memory is unknown; destroy it first",
        ),
        (
            |world| world.cell.format = Format::Twelve,
            "the cell's revision is 12 and the system's is 14; use the system's",
        ),
        (
            |world| world.cell.format = Format::Fourteen(Architecture::X86),
            "the cell is for X86, the system configuration for Arm64, and the machine is Arm64; \
             all must be the same",
        ),
        (
            |world| {
                world.cell.flags = 0;
                world.cell.message_timeout = 1_000;
            },
            "the cell is not passive: it could deny its own end",
        ),
        // A cell that is not passive either.
        (
            |world| world.cell.flags = 0,
            "should it hang, so does the machine",
        ),
        (
            |world| world.cell.cpus = [].into_iter().collect(),
            "the cell has no cpu",
        ),
        (
            |world| world.cell.cpus = [4].into_iter().collect(),
            "cpu 4 is none of",
        ),
        (
            |world| world.cell.cpus = [2].into_iter().collect(),
            "cpu 2 is that of cell \"other\"",
        ),
        (
            |world| world.cell.cpus = [0].into_iter().collect(),
            "cpu 0 is the supervisor's",
        ),
        (
            |world| {
                world.system.architecture = Architecture::X86;
                world.system.gic = None;
                world.cell.format = Format::Twelve;
                world.system.format = Format::Twelve;
                world.machine.architecture = Architecture::X86;
                world.machine.supervisor_cpus = vec![1];
                world.cell.cpus = [0].into_iter().collect();
            },
            "cpu 0 cannot leave Linux on x86; choose another",
        ),
        (
            |world| world.adds(0x8_0080_0800, 0x1000, PRIVATE),
            "memory region 4 (0x800800800 to 0x8008017ff) does not consist of whole pages",
        ),
        // Registers at the edge of a page: the hypervisor would access the page behind, which it has not mapped.
        (
            |world| world.adds(0xff04_0ff8, 0x10, memory::READ | memory::IO),
            "does not consist of whole pages",
        ),
        (
            |world| world.cell.memory[2].virtual_at = 0xf000,
            "memory region 2 (0xf000 to 0xffff) is where the cell has its region 1, too",
        ),
        (
            |world| world.cell.memory[3].virtual_at = 0xf000,
            "the communication region (0xf000 to 0xffff) is where the cell has its region 1, too",
        ),
        // The heartbeat page as its own memory, which Linux would no longer have.
        (
            |world| {
                world.adds(0x8_0040_0000, 0x1000, memory::READ | memory::WRITE);
                world.cell.memory[4].virtual_at = 0x2_0000;
                world.there.clear();
                world.machine.cells.pop();
            },
            "memory region 4 (0x800400000 to 0x800400fff) has memory of the cell's region 0, too",
        ),
        // Devices of the root cell, into which an image would be loaded.
        (
            |world| world.adds(0xfe00_0000, 0x1000, PRIVATE),
            "memory region 4 (0xfe000000 to 0xfe000fff) is not in the root cell's memory",
        ),
        (
            |world| world.adds(0x8_8000_0000, 0x1000, PRIVATE),
            "memory region 4 (0x880000000 to 0x880000fff) is not in the root cell's memory",
        ),
        // Beyond the end of one of the root cell's regions.
        (
            |world| world.adds(0x8_7fff_f000, 0x2000, PRIVATE),
            "(0x87ffff000 to 0x880000fff) is not in the root cell's memory",
        ),
        (
            |world| {
                world.system.root.memory[0].at -= 0x1000;
                world.system.root.memory[0].size += 0x1000;
                world.adds(0x8_003f_f000, 0x1000, PRIVATE);
            },
            "memory region 4 (0x8003ff000 to 0x8003fffff) is the hypervisor's own memory",
        ),
        (
            |world| world.adds(0xf901_0000, 0x1000, memory::READ | memory::IO),
            "memory region 4 (0xf9010000 to 0xf9010fff) has registers of the GIC's distributor",
        ),
        (
            |world| world.adds(0x2fff_f000, 0x2000, PRIVATE),
            "memory region 4 (0x2ffff000 to 0x30000fff) is System RAM (0x0 to 0x2fffffff)",
        ),
        (
            |world| world.adds(0xff01_0000, 0x40, memory::READ | memory::IO),
            "memory region 4 (0xff010000 to 0xff01003f) has registers of xuartps, which Linux uses",
        ),
        (
            |world| world.cell.memory[1].at = 0x8_006f_1000,
            "memory region 1 (0x8006f1000 to 0x800700fff) is memory of cell \"other\"",
        ),
        // One of both does not share.
        (
            |world| world.adds(0x8_0070_0000, 0x1000, PRIVATE | memory::SHARED),
            "memory region 4 (0x800700000 to 0x800700fff) is memory of cell \"other\"",
        ),
        (
            |world| world.interrupt(48 + 1),
            "interrupt 49 is that of cell \"other\"",
        ),
        (
            |world| world.interrupt(54),
            "interrupt 54 is used by Linux (xuartps)",
        ),
        (
            |world| {
                world.system.root.irqchips[0].pins[3] = 0;
                world.interrupt(140);
            },
            "interrupt 140 is not among the root cell's",
        ),
        (
            |world| world.cell.reset_address = 0x1_0000,
            "the cell begins at 0x10000, where it has no loadable memory",
        ),
        (
            |world| world.images[0].size = 0,
            "the cell begins at 0x0, where no image has a byte",
        ),
        (
            |world| world.images.push(Span::new(0x8000_0000, 8)),
            "an image is for 0x80000000 to 0x80000007, where the cell has no loadable memory",
        ),
        (
            |world| world.images.push(Span::new(0xfff8, 9)),
            "an image is for 0xfff8 to 0x10000, which goes beyond memory region 1 (0x0 to 0xffff)",
        ),
        (
            |world| world.images.push(Span::new(u64::MAX, u64::MAX)),
            "an image is for 0xffffffffffffffff to 0x1fffffffffffffffd, where the cell has no",
        ),
        (
            |world| {
                world.cell.memory[0].size += PAGE;
                world.system.root.memory[0].size += PAGE;
                world.heartbeat += 8;
            },
            "the heartbeat page 0x800400008 is not a whole page",
        ),
        (
            |world| world.cell.memory[0].flags &= !memory::SHARED,
            "the heartbeat page 0x800400000 is in no memory that the cell may read and write",
        ),
        (
            |world| world.system.root.memory[0].flags = memory::WRITE,
            "the heartbeat page 0x800400000 is not memory that the root cell may read",
        ),
    ];
    let mut seen = BTreeSet::new();
    assert_eq!(World::new().check(), []);
    for (change, sentence) in changes {
        let mut world = World::new();
        change(&mut world);
        let refusals = world.check();
        let said: Vec<String> = refusals.iter().map(Refusal::to_string).collect();
        assert!(
            said.iter().any(|said| said.contains(sentence)),
            "{sentence}: {said:?}"
        );
        seen.extend(refusals.iter().map(kind));
        let expected = match sentence {
            "should it hang, so does the machine" => 2,
            // The other cell shares its page, and this one no longer does.
            "the heartbeat page 0x800400000 is in no memory that the cell may read and write" => 2,
            _ => 1,
        };
        assert_eq!(refusals.len(), expected, "{said:?}");
    }
    assert_eq!(seen.len(), KINDS, "{seen:?}");
}

#[test]
fn parts_of_pages_shared_memory_and_registers_that_linux_has_not_are_in_order() {
    let mut world = World::new();
    world.adds(0xfe21_5040, 0x40, memory::READ | memory::WRITE | memory::IO);
    let console = memory::READ | memory::WRITE | memory::IO | memory::SHARED;
    world.adds(0xff01_0000, 0x1000, console);
    world.adds(0x8_9000_0000, 0x1000, memory::READ | memory::IO);
    // Two regions of the root cell, one behind the other.
    world.system.root.memory[3].size = 0x20_0000;
    let next = Memory {
        at: 0x8_0080_0000,
        ..world.system.root.memory[3]
    };
    world.system.root.memory.insert(0, next);
    world.adds(0x8_007f_f000, 0x2000, PRIVATE);
    world.adds(0, 0, 0);
    assert_eq!(world.check(), []);
}
