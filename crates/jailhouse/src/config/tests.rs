use proptest::prelude::*;

use super::*;
use crate::partition::{Partition, PartitionMemory};
use crate::span::Span;

/// A cell as an emulated board took and ran it, and that board's system configuration.
const BEAT: &[u8] = include_bytes!("recorded/beat.cell");
const SYSTEM: &[u8] = include_bytes!("recorded/zcu102.cell");

/// The emulated ZCU102: four cpus, the hypervisor at 32 GiB, its memory for cells above that.
pub(crate) fn zcu102() -> System {
    System::read(SYSTEM, Architecture::Arm64).unwrap()
}

/// An inmate of 64 KiB that counts heartbeats.
pub(crate) fn beat() -> Partition {
    Partition {
        name: "beat".to_owned(),
        cpus: vec![3],
        memory: vec![PartitionMemory {
            span: Span::new(0x8_0060_0000, 0x1_0000),
            virtual_at: Some(0),
            flags: memory::READ | memory::WRITE | memory::EXECUTE | memory::LOADABLE,
        }],
        console: Some(Console {
            address: 0xff00_0000,
            kind: 4,
            flags: 3,
            ..Console::default()
        }),
        prints: true,
        heartbeat: Some(0x8_0040_0000),
        ..Partition::default()
    }
}

fn demo() -> Cell {
    let region = |at, size, flags| Memory {
        at,
        virtual_at: at,
        size,
        flags: flags | memory::READ,
    };
    let (write, shared) = (memory::WRITE, memory::SHARED);
    let private = memory::WRITE | memory::EXECUTE | memory::LOADABLE;
    Cell {
        format: Format::Fourteen(Architecture::Arm64),
        name: "inmate-demo".to_owned(),
        id: 0,
        flags: cell::PASSIVE,
        cpus: [1].into_iter().collect(),
        memory: vec![
            region(0x7faf_0000, 0x1000, shared),
            region(0x7faf_1000, 0x9000, shared | write),
            region(0x7faf_a000, 0x2000, shared),
            region(0x7faf_c000, 0x2000, shared | write),
            region(0x7faf_e000, 0x2000, shared),
            region(0x0900_0000, 0x1000, shared | write | memory::IO),
            Memory {
                virtual_at: 0,
                ..region(0x7fa0_0000, 0x1_0000, private)
            },
            Memory {
                virtual_at: 0x8000_0000,
                ..region(0, 0x1000, write | memory::COMM)
            },
        ],
        caches: vec![],
        irqchips: vec![IrqChip {
            address: 0x0800_0000,
            id: 0,
            pin_base: 32,
            pins: [0, 0, 0, 1 << (144 - 128)],
        }],
        pio: vec![],
        pci_devices: vec![PciDevice {
            kind: 3,
            domain: 1,
            bar_mask: [0xffff_f000, 0, 0, 0, 0, 0],
            shmem_dev_id: 1,
            shmem_peers: 3,
            ..PciDevice::default()
        }],
        pci_caps: vec![],
        stream_ids: vec![],
        vpci_irq_base: 112,
        reset_address: 0,
        message_timeout: 0,
        console: Console {
            address: 0x0900_0000,
            kind: 3,
            flags: 3,
            ..Console::default()
        },
        rest: vec![],
    }
}

#[test]
fn cells_are_the_bytes_that_a_board_has_taken() {
    assert_eq!(beat().cell(&zcu102()).to_bytes().unwrap(), BEAT);
    let read = Cell::read(BEAT).unwrap();
    assert_eq!(read.to_bytes().unwrap(), BEAT);
    assert_eq!(
        (&*read.name, read.cpus.iter().collect::<Vec<_>>()),
        ("beat", vec![3])
    );
}

#[test]
fn revisions_12_to_14_differ_in_the_first_eight_bytes() {
    let rest = &demo().to_bytes().unwrap()[8..];
    for (format, begin) in [
        (Format::Twelve, b"JHCELL\x0c\0"),
        (Format::Thirteen, b"JHCELL\x0d\0"),
        (Format::Fourteen(Architecture::X86), b"JHCLL\0\x0e\0"),
    ] {
        let cell = Cell { format, ..demo() };
        let bytes = cell.to_bytes().unwrap();
        assert_eq!((&bytes[..8], &bytes[8..]), (&begin[..], rest));
        assert_eq!(Cell::read(&bytes).unwrap(), cell);
    }
}

#[test]
fn a_system_configuration_names_the_addresses_that_no_cell_may_have() {
    let system = zcu102();
    assert_eq!(
        system.hypervisor.span(),
        Span::new(0x8_0000_0000, 0x40_0000)
    );
    assert_eq!(system.debug_console.address, 0xff00_0000);
    assert!(system.has_readable_console());
    let gic = system.gic.unwrap();
    let addresses = (gic.version, gic.maintenance, gic.gicd, gic.gicc, gic.gicv);
    assert_eq!(addresses, (2, 25, 0xf901_0000, 0xf902_f000, 0xf906_f000));
    assert_eq!((&*system.root.name, system.root.memory.len()), ("zcu", 4));
    assert!(system.root.cpus.iter().eq(0..4));
    assert!(system.root.irqchips[0].interrupts().eq(32..160));
    let kept = system.registers();
    assert!(kept.contains(&(
        "the GIC's interface of cells",
        Span::new(0xf906_f000, 0x2000)
    )));
    assert!(kept.contains(&("PCI's configuration space", Span::new(0xfc00_0000, 1 << 20))));
}

/// The same system as revisions 12 and 13 lay it out.
#[test]
fn older_system_configurations_have_their_fields_elsewhere() {
    let (head, rest) = SYSTEM.split_at(12 + 32 + 32 + 12);
    let (iommus, rest) = rest.split_at(224);
    let (gic, root) = rest.split_at(44);
    let thirteen = [b"JHSYST\x0d\0", &head[8..], iommus, gic, root].concat();
    let twelve = [
        b"JHSYST\x0c\0",
        &head[8..],
        &gic[..2],
        &gic[4..],
        iommus,
        root,
    ]
    .concat();
    for (bytes, format) in [(thirteen, Format::Thirteen), (twelve, Format::Twelve)] {
        let mut expected = zcu102();
        expected.format = format;
        expected.root.format = format;
        assert_eq!(System::read(&bytes, Architecture::Arm64).unwrap(), expected);
        assert!(
            System::read(&bytes, Architecture::X86)
                .unwrap()
                .gic
                .is_none()
        );
    }
}

#[test]
fn other_bytes_are_refused_in_one_sentence() {
    let said = |bytes: &[u8]| Cell::read(bytes).unwrap_err().to_string();
    for length in 0..BEAT.len() {
        assert!(!said(&BEAT[..length]).is_empty());
    }
    let short = "100 bytes are too few for a cell configuration of Jailhouse";
    assert_eq!(said(&BEAT[..100]), short);
    let with = |at: usize, new: &[u8]| {
        let mut bytes = BEAT.to_vec();
        bytes[at..at + new.len()].copy_from_slice(new);
        said(&bytes)
    };
    // The number of memory regions.
    let count = with(52, &4_000_000_u32.to_le_bytes());
    let expected =
        "4000000 memory regions are announced, but only 96 bytes of the file are left for them";
    assert_eq!(count, expected);
    let revision = "revision 11 of Jailhouse's configuration is not known; 12 to 14 are";
    assert_eq!(with(6, &[11]), revision);
    assert_eq!(with(5, &[3]), "3 is no architecture that Jailhouse has");
    let name = "the name of the cell is not at most 31 bytes of text and zeros behind it";
    for wrong in [&b"a\0b"[..], b"\xff\0", &[b'n'; 32]] {
        assert_eq!(with(8, wrong), name);
    }
    let system = "the first bytes are not those of a cell configuration of Jailhouse";
    assert_eq!(said(SYSTEM), system);
    let long = Cell {
        name: "n".repeat(32),
        ..demo()
    };
    assert!(long.to_bytes().is_err());
}

#[test]
fn sets_of_cpus_grow() {
    let set: CpuSet = [0, 64, 70].into_iter().collect();
    assert_eq!(
        (set.0.len(), set.iter().collect::<Vec<_>>()),
        (16, vec![0, 64, 70])
    );
    assert!(set.has(70) && !set.has(71) && !set.has(u32::MAX));
}

proptest! {
    /// Files are written back as they were read.
    #[test]
    fn all_that_is_read_is_written_back(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        small in prop::collection::vec((44_usize..84, 0_u8..3), 0..3),
        rest in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        for good in [&*demo().to_bytes().unwrap(), BEAT] {
            let mut bytes = [good, &rest].concat();
            for (at, new) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *new;
            }
            small.iter().for_each(|(at, new)| bytes[*at] = *new);
            if let Ok(cell) = Cell::read(&bytes) {
                prop_assert_eq!(cell.to_bytes().unwrap(), bytes);
            }
            let mut system = [SYSTEM, &rest].concat();
            changes.iter().for_each(|(at, new)| { let at = at.index(system.len()); system[at] = *new; });
            let _ = System::read(&system, Architecture::X86);
        }
    }
}
