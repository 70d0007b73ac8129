//! Configurations of Jailhouse and its console: no bytes panic their readers or the checks, a cell is written back as it
//! was read, and no more than was read is passed on.
#![no_main]

use jailhouse::check::{Asked, check};
use jailhouse::config::{Architecture, Cell, System};
use jailhouse::console::{LONGEST, Line, Splitter};
use jailhouse::machine::{Machine, devices, interrupts, system_ram};
use jailhouse::Span;
use libfuzzer_sys::fuzz_target;

const SYSTEM: &[u8] = include_bytes!("../../crates/jailhouse/src/config/recorded/zcu102.cell");
const CELL: &[u8] = include_bytes!("../../crates/jailhouse/src/config/recorded/beat.cell");

/// A good file with changes, three bytes each: a place and its new value. Random bytes alone would not get far.
fn damaged(good: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut damaged = good.to_vec();
    for change in changes.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % damaged.len();
        damaged[place] = change[2];
    }
    damaged
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let machine = Machine {
        architecture: Architecture::Arm64,
        system_ram: system_ram(&text).unwrap_or_default(),
        devices: devices(&text),
        interrupts: interrupts(&text),
        supervisor_cpus: vec![0],
        cells: vec![],
    };
    for [cell, system] in [[bytes, bytes], [&damaged(CELL, bytes), &damaged(SYSTEM, bytes)]] {
        let system = System::read(system, Architecture::X86);
        let Ok(cell) = Cell::read(cell) else { continue };
        let again = cell.to_bytes().expect("a name that was read");
        assert_eq!(Cell::read(&again).as_ref(), Ok(&cell));
        if let Ok(system) = system {
            let images = [Span::new(cell.reset_address, cell.message_timeout)];
            let asked = Asked { cell: &cell, images: &images, heartbeat: Some(cell.console.address) };
            check(&system, &[], &asked, &machine);
        }
    }
    let mut splitter = Splitter::new(10_000);
    let mut lines = splitter.take(bytes, 0);
    lines.extend(splitter.end());
    let size = |line: &Line| match line {
        Line::Cell(text) => text.chars().count(),
        _ => 0,
    };
    assert!(lines.iter().map(size).sum::<usize>() <= bytes.len());
    assert!(lines.iter().all(|line| size(line) <= LONGEST));
});
