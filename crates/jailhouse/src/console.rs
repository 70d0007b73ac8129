//! The hypervisor's console as its driver gives it: lines of the hypervisor told apart from those of cells, within bounds.
//!
//! Everything on it is mere text: a cell that may print there can imitate the hypervisor, and a flood of it pushes out
//! everything else. The state of a cell comes from the driver, never from here.

#[cfg(test)]
mod tests;

/// Bytes of the longest line; a longer one is cut into several.
pub const LONGEST: usize = 256;

/// Lines of a fault, of which there are about twenty, that are held back until its cell is said.
const MOST_FAULT_LINES: usize = 64;

/// The time over which bytes are counted: one second.
const WINDOW_NS: u64 = 1_000_000_000;

/// Something read on the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line of the hypervisor, or one that looks like it.
    Hypervisor(Event, String),
    /// A line of a cell; the console does not say which cell's. Never empty, without control characters.
    Cell(String),
    /// Bytes that the driver has lost.
    Missed(u64),
    /// Bytes of a flood that were left out here.
    Dropped(u64),
}

/// A report of the hypervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// This cell was created.
    Created(String),
    /// This cell's memory can be written by the root cell.
    Loadable(String),
    /// This cell was started.
    Started(String),
    /// This cell is being destroyed.
    Closing(String),
    /// A cpu of this cell was stopped after a fault.
    Parked {
        /// The cpu.
        cpu: u32,
        /// The cell.
        cell: String,
    },
    /// A line about a fault: its kind, or registers.
    Fault,
    /// Anything else.
    Other,
}

impl Event {
    /// The cell that it is about, if it says so.
    fn cell(&self) -> Option<&str> {
        match self {
            Event::Created(cell) | Event::Loadable(cell) | Event::Started(cell) => Some(cell),
            Event::Closing(cell) | Event::Parked { cell, .. } => Some(cell),
            Event::Fault | Event::Other => None,
        }
    }
}

/// Keeps those lines that are about one cell, or may be.
#[derive(Debug)]
pub struct OfCell {
    name: String,
    prints: bool,
    /// Lines about a fault, whose cell is said behind them.
    fault: Vec<Line>,
}

impl OfCell {
    /// The lines of the cell of this name; `prints`: it may print on this console.
    pub fn new(name: &str, prints: bool) -> OfCell {
        OfCell {
            name: name.to_owned(),
            prints,
            fault: Vec::new(),
        }
    }

    /// Of a further line, and those that were held back: those to be passed on. Lines of other cells that print are told apart only from a cell that may
    /// not. What was lost is passed on to all.
    pub fn take(&mut self, line: Line) -> Vec<Line> {
        match &line {
            Line::Hypervisor(Event::Fault, _) if self.fault.len() < MOST_FAULT_LINES => {
                self.fault.push(line);
                Vec::new()
            }
            Line::Hypervisor(event, _) => {
                let mut lines = std::mem::take(&mut self.fault);
                lines.push(line.clone());
                let is_others = event.cell().is_some_and(|cell| cell != self.name);
                if is_others { Vec::new() } else { lines }
            }
            Line::Cell(_) if !self.prints => Vec::new(),
            _ => vec![line],
        }
    }
}

/// Divides the bytes of the console into lines.
#[derive(Debug)]
pub struct Splitter {
    /// Bytes of the hypervisor's lines, and of cells' lines, that are passed on in a second.
    most: usize,
    /// The line that has not ended.
    line: Vec<u8>,
    /// Whether the lines of a fault are coming.
    in_fault: bool,
    window: u64,
    of_hypervisor: usize,
    of_cells: usize,
    dropped: u64,
}

impl Splitter {
    /// Passes on at most `bytes_per_second` of the hypervisor's lines, and as many of the cells'.
    pub fn new(bytes_per_second: usize) -> Splitter {
        Splitter {
            most: bytes_per_second,
            line: Vec::new(),
            in_fault: false,
            window: 0,
            of_hypervisor: 0,
            of_cells: 0,
            dropped: 0,
        }
    }

    /// The lines that end with these bytes, which were read at `now_ns` of any clock that does not go back.
    pub fn take(&mut self, bytes: &[u8], now_ns: u64) -> Vec<Line> {
        let mut lines = Vec::new();
        let window = now_ns / WINDOW_NS;
        if window != self.window {
            (self.window, self.of_hypervisor, self.of_cells) = (window, 0, 0);
            lines.extend(self.told());
        }
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
            }
            if *byte == b'\n' || self.line.len() == LONGEST {
                self.line_ends(&mut lines);
            }
        }
        lines
    }

    /// The line that has not ended, and the bytes left out, once nothing more is to come.
    pub fn end(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        self.line_ends(&mut lines);
        lines.extend(self.told());
        lines
    }

    fn told(&mut self) -> Option<Line> {
        let dropped = std::mem::take(&mut self.dropped);
        (dropped > 0).then_some(Line::Dropped(dropped))
    }

    fn line_ends(&mut self, lines: &mut Vec<Line>) {
        let text = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        let text = text
            .trim_end_matches('\r')
            .replace(char::is_control, "\u{fffd}");
        // A cell prints letter by letter: lines of others begin in the middle of its own.
        let starts = text.char_indices().map(|(at, _)| at);
        let found =
            starts.filter_map(|at| Some((at, recognized(&text[at..], self.in_fault && at == 0)?)));
        let (own, line) = match { found }.next() {
            Some((at, line)) => (&text[..at], Some(line)),
            None => (&*text, None),
        };
        if !own.is_empty() {
            self.pass(Line::Cell(own.to_owned()), own.len(), lines);
        }
        match line {
            Some(Line::Hypervisor(event, said)) => {
                self.in_fault = match event {
                    Event::Fault => true,
                    Event::Other => self.in_fault,
                    _ => false,
                };
                let size = said.len();
                self.pass(Line::Hypervisor(event, said), size, lines);
            }
            Some(Line::Missed(bytes)) => {
                let size = text.len() - own.len();
                self.pass(Line::Missed(bytes), size, lines);
            }
            _ => {}
        }
    }

    fn pass(&mut self, line: Line, size: usize, lines: &mut Vec<Line>) {
        let used = match line {
            Line::Cell(_) => &mut self.of_cells,
            _ => &mut self.of_hypervisor,
        };
        if *used + size > self.most {
            self.dropped += size as u64;
        } else {
            *used += size;
            lines.push(line);
        }
    }
}

/// The hypervisor's or the driver's line, if the text is one to its end.
fn recognized(text: &str, in_fault: bool) -> Option<Line> {
    let missed = text.strip_prefix("<missed ");
    let missed = missed.and_then(|rest| rest.strip_suffix(" bytes of console log>"));
    if let Some(bytes) = missed.and_then(|bytes| bytes.parse().ok()) {
        return Some(Line::Missed(bytes));
    }
    Some(Line::Hypervisor(event(text, in_fault)?, text.to_owned()))
}

fn event(text: &str, in_fault: bool) -> Option<Event> {
    let quoted = |before: &str, behind: &str| {
        let name = text.strip_prefix(before)?.strip_suffix(behind)?;
        Some(name.to_owned())
    };
    type Named = (&'static str, &'static str, fn(String) -> Event);
    const NAMED: [Named; 4] = [
        ("Created cell \"", "\"", Event::Created),
        ("Cell \"", "\" can be loaded", Event::Loadable),
        ("Started cell \"", "\"", Event::Started),
        ("Closing cell \"", "\"", Event::Closing),
    ];
    let found = NAMED
        .iter()
        .find_map(|(before, behind, event)| Some(event(quoted(before, behind)?)));
    found.or_else(|| parked(text)).or_else(|| {
        const FAULTS: [&str; 10] = [
            "FATAL: unhandled trap ",
            "FATAL: forbidden access ",
            "FATAL: instruction abort at ",
            "FATAL: Invalid ",
            "FATAL: Unhandled ",
            "FATAL: Unsupported MSI",
            "Unhandled data ",
            "Unhandled SMC ",
            "Unhandled HYP ",
            "Cell state before exception:",
        ];
        const OTHERS: [&str; 13] = [
            "Page pool usage after ",
            "Adding virtual PCI device ",
            "Adding PCI device ",
            "Removing PCI device ",
            "Timeout expired while waiting for reply from target cell",
            "WARNING: Failed to re-assign ",
            // As it begins and ends.
            "Initializing Jailhouse hypervisor ",
            "Code location: ",
            "Initializing processors:",
            "Initializing unit: ",
            "Activating hypervisor",
            "Shutting down hypervisor",
            " Releasing CPU ",
        ];
        let begins = |all: &[&str]| all.iter().any(|begin| text.starts_with(begin));
        if begins(&FAULTS) || in_fault && is_registers(text) {
            return Some(Event::Fault);
        }
        let is_ready = text.starts_with(" CPU ") && text.ends_with("... OK");
        (begins(&OTHERS) || is_ready).then_some(Event::Other)
    })
}

/// `Parking CPU 1 (Cell: "name")`; after a fault of the hypervisor itself it is `Stopping`.
fn parked(text: &str) -> Option<Event> {
    let rest = text.strip_prefix("Parking CPU ");
    let rest = rest.or_else(|| text.strip_prefix("Stopping CPU "))?;
    let (cpu, rest) = rest.split_once(" (Cell: \"")?;
    Some(Event::Parked {
        cpu: cpu.parse().ok()?,
        cell: rest.strip_suffix("\")")?.to_owned(),
    })
}

/// Whether the line begins with the name of a register and its value: `x0: 00...`, `RIP: 0x...`, `r0=0x...`.
fn is_registers(text: &str) -> bool {
    let Some((name, rest)) = text.trim_start().split_once([':', '=']) else {
        return false;
    };
    let value = rest.split_whitespace().next().unwrap_or_default();
    let value = value.strip_prefix("0x").unwrap_or(value);
    name.len() <= 5
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && value.len() >= 2
        && value.bytes().all(|byte| byte.is_ascii_hexdigit())
}
