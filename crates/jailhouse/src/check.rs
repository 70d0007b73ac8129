//! Everything that the driver of Jailhouse accepts and that then stops the machine, another cell, or Linux: found
//! before the driver is asked.

mod refusal;
#[cfg(test)]
mod tests;

pub use refusal::{Refusal, Region};

use std::collections::BTreeSet;

use crate::config::{Architecture, Cell, IrqChip, LONGEST_NAME, Memory, System, cell, memory};
use crate::machine::Machine;
use crate::span::{PAGE, Span};

/// A cell that is to be created.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Its configuration.
    pub cell: &'a Cell,
    /// The addresses, as the cell sees them, that its images are loaded to.
    pub images: &'a [Span],
    /// The page in which it counts its heartbeats: its address in the machine.
    pub heartbeat: Option<u64>,
}

/// Looks for reasons not to create a cell beside those that are there already, whose configurations are known.
///
/// An empty list says that no configuration of these kinds was found; the driver may still refuse it.
pub fn check(system: &System, there: &[Cell], asked: &Asked, machine: &Machine) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let mut look = |found: &mut dyn Iterator<Item = Refusal>| refusals.extend(found);
    look(&mut identity(system, there, asked.cell, machine).into_iter());
    look(&mut cpus(system, there, asked.cell, machine).into_iter());
    for (index, part) in asked.cell.memory.iter().enumerate() {
        look(&mut region(system, there, asked.cell, index, part, machine).into_iter());
    }
    look(&mut interrupts(system, there, asked.cell, machine).into_iter());
    look(&mut contents(system, asked).into_iter());
    refusals
}

/// Names, versions and flags.
fn identity(system: &System, there: &[Cell], new: &Cell, machine: &Machine) -> Vec<Refusal> {
    let mut found = Vec::new();
    let name = || new.name.clone();
    if new.name.is_empty() || new.name.len() > LONGEST_NAME {
        found.push(Refusal::NameLength(name()));
    } else if new.name.bytes().all(|byte| byte.is_ascii_digit()) {
        found.push(Refusal::NameOfDigits(name()));
    }
    if new.name.contains(|c: char| c.is_control() || c == '"') {
        found.push(Refusal::NameOfSigns(name()));
    }
    let known = there
        .iter()
        .map(|cell| &cell.name)
        .chain([&system.root.name]);
    let known: Vec<&String> = known.collect();
    if known.contains(&&new.name) || machine.cells.contains(&new.name) {
        found.push(Refusal::NameTaken(name()));
    }
    let unknown = machine
        .cells
        .iter()
        .filter(|name| !known.contains(name) && **name != new.name);
    found.extend(unknown.cloned().map(Refusal::UnknownCell));
    let (revision, expected) = (new.format.revision(), system.format.revision());
    if revision != expected {
        found.push(Refusal::Revision { revision, expected });
    }
    let own = new.format.architecture().unwrap_or(system.architecture);
    if own != system.architecture || system.architecture != machine.architecture {
        found.push(Refusal::Architecture {
            cell: own,
            system: system.architecture,
            machine: machine.architecture,
        });
    }
    if new.flags & cell::PASSIVE == 0 {
        found.push(Refusal::NotPassive);
        if new.message_timeout == 0 {
            found.push(Refusal::NoMessageTimeout);
        }
    }
    found
}

fn cpus(system: &System, there: &[Cell], new: &Cell, machine: &Machine) -> Vec<Refusal> {
    if new.cpus.iter().next().is_none() {
        return vec![Refusal::NoCpu];
    }
    let mut found = Vec::new();
    for cpu in new.cpus.iter() {
        if !system.root.cpus.has(cpu) {
            found.push(Refusal::CpuUnknown(cpu));
        }
        let others = there.iter().filter(|other| other.cpus.has(cpu));
        let name = |other: &Cell| other.name.clone();
        found.extend(others.map(|other| Refusal::CpuOfCell(cpu, name(other))));
        if machine.supervisor_cpus.contains(&cpu) {
            found.push(Refusal::CpuOfSupervisor(cpu));
        }
        if cpu == 0 && system.architecture == Architecture::X86 {
            found.push(Refusal::CpuZero);
        }
    }
    found
}

/// Whether the hypervisor provides the memory, or there is none: nothing of the machine is taken.
fn takes_nothing(region: &Memory) -> bool {
    region.has(memory::COMM) || region.size == 0
}

fn region(
    system: &System,
    there: &[Cell],
    new: &Cell,
    index: usize,
    part: &Memory,
    machine: &Machine,
) -> Vec<Refusal> {
    let mut found = Vec::new();
    let (span, before) = (part.span(), &new.memory[..index]);
    let index = (!part.has(memory::COMM)).then_some(index);
    let region = Region { index, span };
    // The hypervisor itself accesses registers that are a part of a page, and faults beyond that page.
    let is_registers = part.has(memory::IO) && !part.has(memory::LOADABLE);
    let is_part = is_registers && span.at % PAGE + span.size.min(PAGE) <= PAGE && span.size < PAGE;
    let is_whole = span.is_aligned() && part.virtual_at.is_multiple_of(PAGE);
    if !is_whole && !is_part {
        found.push(Refusal::NotAligned(region));
    }
    let twice = before
        .iter()
        .position(|other| part.virtual_span().overlaps(other.virtual_span()));
    if let Some(other) = twice {
        let span = part.virtual_span();
        found.push(Refusal::Twice(Region { index, span }, other));
    }
    if takes_nothing(part) {
        return found;
    }
    // What is the cell's own leaves the root cell, also where another region shares it.
    let half_shared = before.iter().position(|other| {
        !takes_nothing(other)
            && span.overlaps(other.span())
            && part.has(memory::SHARED) != other.has(memory::SHARED)
    });
    found.extend(half_shared.map(|other| Refusal::HalfShared(region, other)));
    // Nobody loads registers, and boards keep some from their root cell.
    let lends = |its: &&Memory| !(part.has(memory::LOADABLE) && its.has(memory::IO));
    let lent = system.root.memory.iter().filter(lends);
    if !is_registers && !span.is_covered(lent.map(Memory::span)) {
        found.push(Refusal::NotOfRoot(region));
    }
    if span.overlaps(system.hypervisor.span()) {
        found.push(Refusal::Hypervisor(region));
    }
    let registers = system.registers().into_iter();
    let kept = registers.filter(|(_, kept)| span.overlaps(*kept));
    found.extend(kept.map(|(name, _)| Refusal::Registers(region, name)));
    let mut ram = machine.system_ram.iter();
    if let Some(ram) = ram.find(|ram| span.overlaps(**ram)) {
        found.push(Refusal::SystemRam(region, *ram));
    }
    // The cell would take them from under their driver.
    let mut devices = machine.devices.iter();
    let taken = devices.find(|(used, _)| span.overlaps(*used) && !part.has(memory::SHARED));
    found.extend(taken.map(|(_, name)| Refusal::DeviceOfLinux(region, name.clone())));
    for other in there {
        let both_share = |its: &Memory| part.has(memory::SHARED) && its.has(memory::SHARED);
        let mut theirs = other.memory.iter().filter(|its| !takes_nothing(its));
        if theirs.any(|its| span.overlaps(its.span()) && !both_share(its)) {
            found.push(Refusal::OtherCell(region, other.name.clone()));
        }
    }
    found
}

fn interrupts(system: &System, there: &[Cell], new: &Cell, machine: &Machine) -> Vec<Refusal> {
    let all = |chips: &[IrqChip]| -> BTreeSet<(u64, u32)> {
        let pins = |chip: &IrqChip| {
            let address = chip.address;
            let pins: Vec<u32> = chip.interrupts().collect();
            pins.into_iter().map(move |pin| (address, pin))
        };
        chips.iter().flat_map(pins).collect()
    };
    let root = all(&system.root.irqchips);
    let mut found = Vec::new();
    for pin in all(&new.irqchips) {
        if !root.contains(&pin) {
            found.push(Refusal::InterruptNotOfRoot(pin.1));
        }
        let others = there
            .iter()
            .filter(|other| all(&other.irqchips).contains(&pin));
        found.extend(others.map(|other| Refusal::InterruptOfCell(pin.1, other.name.clone())));
        let mut used = machine.interrupts.iter();
        if let Some((_, user)) = used.find(|(number, _)| *number == pin.1) {
            found.push(Refusal::InterruptOfLinux(pin.1, user.clone()));
        }
    }
    found
}

/// Where the cell begins, its images, and its heartbeats.
fn contents(system: &System, asked: &Asked) -> Vec<Refusal> {
    let mut found = Vec::new();
    let regions = &asked.cell.memory;
    // The driver takes the first region as well.
    let at = |address: u64| {
        let here = Span::new(address, 1);
        let mut regions = regions.iter().enumerate();
        regions.find(|(_, region)| here.is_in(region.virtual_span()))
    };
    let loadable = |region: &Memory| region.has(memory::LOADABLE | memory::WRITE);
    let entry = asked.cell.reset_address;
    if at(entry).is_none_or(|(_, region)| !loadable(region)) {
        found.push(Refusal::Entry(entry));
    } else if !(asked.images.iter()).any(|image| Span::new(entry, 1).is_in(*image)) {
        found.push(Refusal::NoProgram(entry));
    }
    for image in asked.images.iter().filter(|image| image.size > 0) {
        match at(image.at) {
            Some((index, region)) if loadable(region) => {
                if !image.is_in(region.virtual_span()) {
                    let span = region.virtual_span();
                    let index = Some(index);
                    found.push(Refusal::ImageTooLong(*image, Region { index, span }));
                }
            }
            _ => found.push(Refusal::ImageNowhere(*image)),
        }
    }
    if let Some(page) = asked.heartbeat {
        let page = Span::new(page, PAGE);
        if !page.is_aligned() {
            found.push(Refusal::HeartbeatNotAligned(page.at));
        }
        let flags = memory::READ | memory::WRITE | memory::SHARED;
        let mut shared = regions
            .iter()
            .filter(|region| region.has(flags) && !takes_nothing(region));
        if !shared.any(|region| page.is_in(region.span())) {
            found.push(Refusal::HeartbeatNotShared(page.at));
        }
        let root = system
            .root
            .memory
            .iter()
            .filter(|region| region.has(memory::READ) && !region.has(memory::IO));
        if !page.is_covered(root.map(Memory::span)) {
            found.push(Refusal::HeartbeatNotOfRoot(page.at));
        }
    }
    found
}
