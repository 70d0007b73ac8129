use super::*;

/// A life with a violation, as an emulated ZCU102 printed it; the cell `other` prints without ending its line.
const RECORDED: &str = "Created cell \"beat\"\n\
    Page pool usage after cell creation: mem 71/994, remap 144/131072\n\
    Cell \"beat\" can be loaded\nStarted cell \"beat\"\n\
    Timer fired, jitter: 1663677 ns, min: 154483 ns, max: 50511645 ns\r\n\
    waiting: Unhandled data write at 0x60000000(8)\n\n\
    FATAL: unhandled trap (exception class 0x24)\nCell state before exception:\n \
    pc: 00000000000000d4   lr: 0000000000000000 spsr: 600003c5     EL1\n \
    sp: 0000000000000000  elr: 0000000000000000  esr: 24 1 1810046\n \
    x0: 0000000000000000   x1: 0000000012345678   x2: 0000000000000000\n\
    x29: 0000000000000000\n\
    Parking CPU 1 (Cell: \"beat\")\n\
    x0: 0000000000000007\n\
    <missed 74000 bytes of console log>\n\
    xxxx<missed 12 bytes of console log>\n\
    Closing cell \"beat\"\n$ ";

fn lines(text: &str, piece: usize) -> Vec<Line> {
    let mut splitter = Splitter::new(100_000);
    let mut lines = Vec::new();
    for bytes in text.as_bytes().chunks(piece) {
        lines.extend(splitter.take(bytes, 5));
    }
    lines.extend(splitter.end());
    lines
}

#[test]
fn lines_of_the_hypervisor_are_told_apart_from_those_of_cells() {
    let name = || "beat".to_owned();
    let all = lines(RECORDED, 7);
    let events: Vec<&Event> = (all.iter())
        .filter_map(|line| match line {
            Line::Hypervisor(event, _) if *event != Event::Fault => Some(event),
            _ => None,
        })
        .collect();
    let parked = Event::Parked {
        cpu: 1,
        cell: name(),
    };
    let expected = [
        &Event::Created(name()),
        &Event::Other,
        &Event::Loadable(name()),
        &Event::Started(name()),
        &parked,
        &Event::Closing(name()),
    ];
    assert_eq!(events, expected);
    let of_cells: Vec<&str> = (all.iter())
        .filter_map(|line| match line {
            Line::Cell(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let jitter = "Timer fired, jitter: 1663677 ns, min: 154483 ns, max: 50511645 ns";
    // Registers are registers only after a fault.
    let expected = [jitter, "waiting: ", "x0: 0000000000000007", "xxxx", "$ "];
    assert_eq!(of_cells, expected);
    let faults = all
        .iter()
        .filter(|line| matches!(line, Line::Hypervisor(Event::Fault, _)));
    assert_eq!(faults.count(), 7);
    assert!(all.contains(&Line::Missed(74_000)) && all.contains(&Line::Missed(12)));
    assert_eq!(all, lines(RECORDED, 1));
    assert_eq!(all, lines(RECORDED, RECORDED.len()));
}

#[test]
fn a_flood_is_bounded_and_told() {
    let mut splitter = Splitter::new(1_000);
    let flood = [b'x'; 4_096];
    let passed = |lines: &[Line]| -> usize {
        let size = lines.iter().map(|line| match line {
            Line::Cell(text) => text.len(),
            _ => 0,
        });
        size.sum()
    };
    let mut first = splitter.take(&flood, 10);
    first.extend(splitter.take(&flood, 20));
    assert_eq!(passed(&first), 3 * LONGEST);
    // The hypervisor's lines have room of their own.
    let stopped = splitter.take(b"\nParking CPU 2 (Cell: \"other\")\n", 30);
    assert!(matches!(
        &stopped[..],
        [Line::Hypervisor(Event::Parked { cpu: 2, .. }, _)]
    ));
    let later = splitter.take(b"alive\n", WINDOW_NS);
    let alive = Line::Cell("alive".to_owned());
    assert_eq!(
        later,
        [Line::Dropped(2 * 4_096 - 3 * LONGEST as u64), alive]
    );
    // As many lines of an imitated hypervisor as of anything.
    let imitated = "Closing cell \"a\"\n".repeat(500);
    let lines = splitter.take(imitated.as_bytes(), WINDOW_NS + 1);
    assert_eq!(lines.len(), 1_000 / 16);
    assert_eq!(splitter.end(), [Line::Dropped((500 - 1_000 / 16) * 16)]);
}

#[test]
fn text_that_only_resembles_lines_of_the_hypervisor_is_a_cells() {
    for text in [
        "Created cell \"beat",
        "Parking CPU one (Cell: \"beat\")",
        "<missed many bytes of console log>",
        "pc: 00000000000000d4",
        "[    1.0] Unhandled fault: external abort",
        "Cell \"beat\" can be",
    ] {
        assert_eq!(lines(text, 9), [Line::Cell(text.to_owned())]);
    }
    let escaped = lines("\u{1b}[2J\0\r\n", 9);
    assert_eq!(escaped, [Line::Cell("\u{fffd}[2J\u{fffd}".to_owned())]);
}

#[test]
fn the_hypervisors_begin_and_end_are_its_own_lines() {
    let recorded = "Initializing Jailhouse hypervisor v0.12 (324-ge57d1eff) on CPU 3\nCode location: 0x0000ffffc0200800\n\
        Page pool usage after early setup: mem 39/994, remap 0/131072\nInitializing processors:\n CPU 3... OK\n CPU 1... OK\n\
        Initializing unit: irqchip\nInitializing unit: PCI\nPage pool usage after late setup: mem 59/994, remap 5/131072\n\
        Activating hypervisor\nShutting down hypervisor\n Releasing CPU 1\n";
    let all = lines(recorded, 13);
    assert_eq!(all.len(), recorded.lines().count());
    let is_own = |line: &Line| matches!(line, Line::Hypervisor(Event::Other, _));
    assert!(all.iter().all(is_own), "{all:?}");
}

#[test]
fn a_cell_gets_its_own_lines() {
    let text = "Created cell \"fly\"\nCreated cell \"glide\"\nPage pool usage after cell creation: mem 7/9, remap 1/2\n\
        hello\nUnhandled data write at 0x60000000(8)\nParking CPU 2 (Cell: \"glide\")\n\
        Unhandled data read at 0x60000000(4)\nParking CPU 3 (Cell: \"fly\")\n<missed 12 bytes of console log>\n";
    let of = |name: &str, prints: bool| -> Vec<String> {
        let mut own = OfCell::new(name, prints);
        let lines = Splitter::new(4096).take(text.as_bytes(), 0);
        let lines = lines.into_iter().flat_map(|line| own.take(line));
        let texts = lines.map(|line| match line {
            Line::Hypervisor(_, text) | Line::Cell(text) => text,
            Line::Missed(bytes) | Line::Dropped(bytes) => bytes.to_string(),
        });
        texts.collect()
    };
    let pool = "Page pool usage after cell creation: mem 7/9, remap 1/2";
    let fly = [
        "Created cell \"fly\"",
        pool,
        "Unhandled data read at 0x60000000(4)",
        "Parking CPU 3 (Cell: \"fly\")",
        "12",
    ];
    assert_eq!(of("fly", false), fly);
    let glide = [
        "Created cell \"glide\"",
        pool,
        "hello",
        "Unhandled data write at 0x60000000(8)",
        "Parking CPU 2 (Cell: \"glide\")",
        "12",
    ];
    assert_eq!(of("glide", true), glide);
}
