//! The checks against a model that knows no ranges: a machine of 64 pages, in which every quarter of a page says whose
//! it is.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::config::{CpuSet, Gic};

const BASE: u64 = 0x1000_0000;
const PAGES: u64 = 64;
const UNIT: u64 = PAGE / 4;
const SHARED_PAGE: u64 = 60;
const DEVICE_PAGE: u64 = 50;
const NAMES: [&str; 5] = ["beat", "a", "", "7", "x\u{7}"];

/// Decisions, drawn one after the other.
struct Draws<'a>(std::slice::Iter<'a, u8>);

impl Draws<'_> {
    /// 0 to `count` - 1.
    fn below(&mut self, count: u64) -> u64 {
        u64::from(*self.0.next().unwrap_or(&0)) % count
    }

    /// Rarely true: once in 16.
    fn seldom(&mut self) -> bool {
        self.below(16) == 15
    }

    fn pages(&mut self, from: u64, most: u64) -> Span {
        let at = from + self.below(PAGES - from);
        Span::new(BASE + at * PAGE, (1 + self.below(most)) * PAGE)
    }

    fn region(&mut self, from: u64) -> Memory {
        let mut span = self.pages(from, 6);
        if self.seldom() {
            span = Span::new(span.at + self.below(8) * UNIT, (1 + self.below(8)) * UNIT);
        }
        let access = memory::READ | memory::WRITE;
        let kinds = [
            PRIVATE,
            PRIVATE,
            access | memory::SHARED,
            access | memory::IO,
            memory::READ | memory::SHARED,
            access | memory::COMM,
            memory::LOADABLE | memory::IO | access,
        ];
        Memory {
            at: span.at,
            virtual_at: if self.seldom() {
                span.at + PAGE
            } else {
                span.at
            },
            size: if self.seldom() { 0 } else { span.size },
            flags: kinds[self.below(7) as usize],
        }
    }

    fn cpus(&mut self, all: u64) -> CpuSet {
        let number = 1 + self.below(2);
        let cpus = (0..number)
            .map(|_| self.below(all) as u32)
            .collect::<Vec<_>>();
        cpus.into_iter().filter(|_| !self.seldom()).collect()
    }

    fn chip(&mut self) -> IrqChip {
        IrqChip {
            address: BASE,
            pin_base: 32,
            pins: [1 << self.below(8), 0, 0, 0],
            ..IrqChip::default()
        }
    }

    fn world(&mut self) -> World {
        let mut world = World::new();
        let system = &mut world.system;
        if self.seldom() {
            system.architecture = Architecture::X86;
            system.format = Format::Thirteen;
        }
        let at = |page: u64| BASE + page * PAGE;
        let (hypervisor, gic) = (at(self.below(8)), at(8 + self.below(4)));
        system.hypervisor = Memory {
            at: hypervisor,
            size: 2 * PAGE,
            ..Memory::default()
        };
        system.gic = system.gic.map(|all| Gic {
            gicd: gic,
            gicc: 0,
            gich: 0,
            gicv: 0,
            ..all
        });
        system.pci.mmconfig = 0;
        system.root.cpus = (0..6).collect();
        system.root.irqchips[0].pins = [0x7f, 0, 0, 0];
        system.root.irqchips[0].address = BASE;
        // Most of the machine, with a hole.
        let hole = 16 + self.below(40);
        let root = |from: u64, to: u64| Memory {
            at: at(from),
            size: (to - from) * PAGE,
            flags: memory::READ | memory::WRITE,
            ..Memory::default()
        };
        system.root.memory = vec![root(hole + 1, PAGES), root(0, hole)];
        if self.seldom() {
            system.root.memory[0].flags = memory::WRITE;
        }
        if self.seldom() {
            system.root.memory[1].flags |= memory::IO;
        }
        world.machine = Machine {
            architecture: system.architecture,
            system_ram: (0..self.below(3)).map(|_| self.pages(12, 4)).collect(),
            devices: vec![(Span::new(at(DEVICE_PAGE), PAGE), "uart".to_owned())],
            interrupts: vec![(35, "uart".to_owned())],
            supervisor_cpus: vec![self.below(2) as u32],
            cells: vec!["zcu".to_owned()],
        };
        for name in ["a", "b"].into_iter().take(self.below(3) as usize) {
            let regions = 1 + self.below(2);
            let mut memory: Vec<Memory> = (0..regions).map(|_| self.region(12)).collect();
            memory.retain(|region| region.at % PAGE == 0);
            let other = Cell {
                name: name.to_owned(),
                cpus: self.cpus(6),
                memory,
                irqchips: vec![self.chip()],
                ..world.there[0].clone()
            };
            world.machine.cells.push(name.to_owned());
            world.there.push(other);
        }
        world.there.remove(0);
        if self.seldom() {
            world.machine.cells.push("strange".to_owned());
        }
        let own = |virtual_at, page, size, flags| Memory {
            at: at(page),
            virtual_at,
            size,
            flags,
        };
        let access = memory::READ | memory::WRITE;
        let mut memory = vec![
            own(0, 12 + self.below(48), 2 * PAGE, PRIVATE),
            own(at(SHARED_PAGE), SHARED_PAGE, PAGE, access | memory::SHARED),
        ];
        let lowest = if self.below(4) > 0 { 12 } else { 0 };
        memory.extend((0..self.below(3)).map(|_| self.region(lowest)));
        let cpus = if self.seldom() { 8 } else { 6 };
        let odd_name = if self.seldom() {
            self.below(5) as usize
        } else {
            0
        };
        world.cell = Cell {
            format: if self.seldom() {
                Format::Twelve
            } else {
                world.system.format
            },
            name: NAMES[odd_name].to_owned(),
            flags: u32::from(!self.seldom()),
            message_timeout: self.below(2),
            cpus: self.cpus(cpus),
            memory,
            irqchips: if self.below(2) == 0 {
                vec![]
            } else {
                vec![self.chip()]
            },
            reset_address: if self.seldom() { 4 * PAGE } else { 0 },
            ..world.cell
        };
        world.images = (0..1 + self.below(2))
            .map(|index| {
                let far = if self.seldom() {
                    at(self.below(PAGES))
                } else {
                    0
                };
                let much = if self.seldom() { 16 } else { 4 };
                let later = if index > 0 || self.seldom() { 4 } else { 1 };
                Span::new(far + self.below(later) * UNIT, self.below(much) * UNIT)
            })
            .collect();
        let page = if self.seldom() {
            self.below(PAGES)
        } else {
            SHARED_PAGE
        };
        let shift = if self.seldom() { UNIT } else { 0 };
        world.heartbeat = at(page) + shift;
        world
    }
}

/// The kinds of faults, unit by unit.
fn model(world: &World) -> BTreeSet<&'static str> {
    let mut wrong = BTreeSet::new();
    let (new, system, machine) = (&world.cell, &world.system, &world.machine);
    let x86 = system.architecture == Architecture::X86;
    let mut note = |is_wrong: bool, kind| {
        if is_wrong {
            wrong.insert(kind);
        }
    };
    note(new.name.is_empty(), "name length");
    note(new.name == "7", "name of digits");
    note(new.name == "x\u{7}", "name of signs");
    note(
        world.there.iter().any(|other| other.name == new.name),
        "name taken",
    );
    note(
        machine.cells.iter().any(|name| name == "strange"),
        "unknown cell",
    );
    note(
        new.format.revision() != system.format.revision(),
        "revision",
    );
    note(new.flags == 0, "not passive");
    note(new.flags == 0 && new.message_timeout == 0, "no timeout");

    let bits = |set: &CpuSet| {
        (0..64)
            .filter(|cpu| set.has(*cpu))
            .fold(0_u64, |all, cpu| all | 1 << cpu)
    };
    let cpus = bits(&new.cpus);
    let theirs = world
        .there
        .iter()
        .fold(0, |all, other| all | bits(&other.cpus));
    note(cpus == 0, "no cpu");
    note(cpus & !0x3f != 0, "cpu unknown");
    note(cpus & theirs != 0, "cpu of cell");
    note(
        cpus >> machine.supervisor_cpus[0] & 1 == 1,
        "cpu of supervisor",
    );
    note(x86 && cpus & 1 == 1, "cpu zero");

    let pins = |cell: &Cell| cell.irqchips.iter().fold(0, |all, chip| all | chip.pins[0]);
    note(pins(new) & !0x7f != 0, "interrupt not of root");
    note(
        world.there.iter().any(|other| pins(new) & pins(other) != 0),
        "interrupt of cell",
    );
    note(pins(new) & 1 << 3 != 0, "interrupt of linux");

    let inside = |unit: u64, at: u64, size: u64| unit >= at && unit - at < size;
    let units = |at: u64, size: u64| (0..size / UNIT).map(move |n| at + n * UNIT);
    let nothing = |region: &Memory| region.flags & memory::COMM != 0 || region.size == 0;
    let shares = |region: &Memory| region.flags & memory::SHARED != 0;
    let registers =
        |region: &Memory| region.flags & memory::IO != 0 && region.flags & memory::LOADABLE == 0;
    let of_root = |unit: u64, own: &Memory| {
        let lends =
            |root: &&Memory| root.flags & memory::IO == 0 || own.flags & memory::LOADABLE == 0;
        (system.root.memory.iter().filter(lends)).any(|region| inside(unit, region.at, region.size))
    };
    let mut shared: BTreeMap<u64, bool> = BTreeMap::new();
    let gic = system.gic.as_ref().unwrap().gicd;
    let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
    for (index, region) in new.memory.iter().enumerate() {
        let whole = [region.at, region.virtual_at, region.size]
            .iter()
            .all(|one| one % PAGE == 0);
        let pages: BTreeSet<u64> = units(region.at, region.size)
            .map(|unit| unit / PAGE)
            .collect();
        let part = registers(region) && region.size < PAGE && pages.len() <= 1;
        note(!whole && !part, "not aligned");
        for unit in units(region.virtual_at, region.size) {
            note(*seen.entry(unit).or_insert(index) != index, "twice");
        }
        if nothing(region) {
            continue;
        }
        for unit in units(region.at, region.size) {
            note(!of_root(unit, region) && !registers(region), "not of root");
            let is_shared = *shared.entry(unit).or_insert(shares(region));
            note(is_shared != shares(region), "half shared");
            note(inside(unit, system.hypervisor.at, 2 * PAGE), "hypervisor");
            note(inside(unit, gic, PAGE), "registers");
            note(
                machine
                    .system_ram
                    .iter()
                    .any(|ram| inside(unit, ram.at, ram.size)),
                "system ram",
            );
            let device = BASE + DEVICE_PAGE * PAGE;
            note(
                inside(unit, device, PAGE) && !shares(region),
                "device of linux",
            );
            let owners = world.there.iter().flat_map(|other| &other.memory);
            let mut owners =
                owners.filter(|other| !nothing(other) && inside(unit, other.at, other.size));
            note(
                owners.any(|other| !shares(other) || !shares(region)),
                "other cell",
            );
        }
    }

    let at = |unit: u64| {
        let mut regions = new.memory.iter();
        regions.find(|region| inside(unit, region.virtual_at, region.size))
    };
    let loadable =
        |region: Option<&Memory>| region.is_some_and(|region| region.flags & memory::LOADABLE != 0);
    let begins = loadable(at(new.reset_address));
    note(!begins, "entry");
    let has = |image: &Span| inside(new.reset_address, image.at, image.size);
    note(begins && !world.images.iter().any(has), "no program");
    for image in world.images.iter().filter(|image| image.size > 0) {
        let region = at(image.at);
        note(!loadable(region), "image nowhere");
        let leaves = |region: &Memory| {
            units(image.at, image.size).any(|unit| !inside(unit, region.virtual_at, region.size))
        };
        note(
            loadable(region) && region.is_some_and(leaves),
            "image too long",
        );
    }
    note(
        !world.heartbeat.is_multiple_of(PAGE),
        "heartbeat not aligned",
    );
    let beats = |region: &&Memory| region.flags & 0x83 == 0x83 && !nothing(region);
    let holds = |region: &Memory| {
        units(world.heartbeat, PAGE).all(|unit| inside(unit, region.at, region.size))
    };
    note(
        !new.memory.iter().filter(beats).any(holds),
        "heartbeat not shared",
    );
    let readable = |unit: u64| {
        let root = system.root.memory.iter();
        root.filter(|region| region.flags & (memory::READ | memory::IO) == memory::READ)
            .any(|region| inside(unit, region.at, region.size))
    };
    note(
        !units(world.heartbeat, PAGE).all(readable),
        "heartbeat not of root",
    );
    wrong
}

#[test]
fn ten_thousand_cells_are_refused_for_the_reasons_of_the_model_and_no_others() {
    let seen: RefCell<BTreeMap<&str, u32>> = RefCell::default();
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(10_000)
    });
    let draws = prop::collection::vec(any::<u8>(), 120);
    let result = runner.run(&draws, |draws| {
        let world = Draws(draws.iter()).world();
        let refusals = world.check();
        let found: BTreeSet<&str> = refusals.iter().map(kind).collect();
        prop_assert_eq!(&found, &model(&world), "{:?}", refusals);
        let mut seen = seen.borrow_mut();
        *seen
            .entry(if found.is_empty() {
                "accepted"
            } else {
                "refused"
            })
            .or_default() += 1;
        found
            .into_iter()
            .for_each(|kind| *seen.entry(kind).or_default() += 1);
        Ok(())
    });
    result.unwrap();
    let seen = seen.into_inner();
    assert!(seen["accepted"] > 500 && seen["refused"] > 500, "{seen:?}");
    // Of the kinds, that of three architectures has a test of its own only.
    assert_eq!(seen.len(), 2 + KINDS - 1, "{seen:?}");
    assert!(seen.values().all(|times| *times >= 20), "{seen:?}");
}
