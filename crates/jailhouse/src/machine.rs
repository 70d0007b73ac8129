//! The facts of the running machine that the checks need, from the text of Linux's files.

use crate::config::Architecture;
use crate::span::Span;

/// The machine that the cells are to run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Its processors.
    pub architecture: Architecture,
    /// Memory that Linux runs in: [`system_ram`].
    pub system_ram: Vec<Span>,
    /// Registers of devices that Linux uses, with its name for each: [`devices`].
    pub devices: Vec<(Span, String)>,
    /// Interrupts that Linux uses, with its name for each: [`interrupts`].
    pub interrupts: Vec<(u32, String)>,
    /// Cpus that the supervisor runs on.
    pub supervisor_cpus: Vec<u32>,
    /// Names of the cells that the driver lists, the root cell among them.
    pub cells: Vec<String>,
}

/// Why `/proc/iomem` does not say where Linux runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IomemError {
    /// All addresses are zero, as for everybody but root.
    #[error("/proc/iomem shows no addresses; read it as root")]
    Hidden,
    /// No such line.
    #[error("/proc/iomem has no line of System RAM that can be read")]
    None,
}

/// The lines of `/proc/iomem`: how far each is indented, its first and last address, and its name.
fn ranges(iomem: &str) -> Vec<(usize, u64, u64, &str)> {
    let ranges = iomem.lines().filter_map(|line| {
        let (range, name) = line.split_once(" : ")?;
        let (first, last) = range.trim_start().split_once('-')?;
        let address = |text| u64::from_str_radix(text, 16).ok();
        let (first, last) = (address(first)?, address(last)?);
        let depth = range.len() - range.trim_start().len();
        (first <= last).then_some((depth, first, last, name))
    });
    ranges.collect()
}

fn span(first: u64, last: u64) -> Span {
    Span::new(first, (last - first).saturating_add(1))
}

/// The memory that Linux runs in, from the text of `/proc/iomem`.
///
/// # Errors
/// [`IomemError`], since without it no region can be checked.
pub fn system_ram(iomem: &str) -> Result<Vec<Span>, IomemError> {
    let mut ram = ranges(iomem);
    ram.retain(|(.., name)| name.starts_with("System RAM"));
    if ram.is_empty() {
        return Err(IomemError::None);
    }
    if ram.iter().all(|(_, _, last, _)| *last == 0) {
        return Err(IomemError::Hidden);
    }
    let ram = ram.into_iter().map(|(_, first, last, _)| span(first, last));
    Ok(ram.collect())
}

/// Registers of devices that Linux uses, with its name for each, from the text of `/proc/iomem`: the ranges that have no
/// others in them, except memory and the windows of PCI.
pub fn devices(iomem: &str) -> Vec<(Span, String)> {
    let all = ranges(iomem);
    let ram = system_ram(iomem).unwrap_or_default();
    let used = all.iter().enumerate().filter(|(at, (depth, _, _, name))| {
        let is_last = all.get(at + 1).is_none_or(|next| next.0 <= *depth);
        let lower = name.to_ascii_lowercase();
        is_last
            && !["reserved", "pci bus", "jailhouse"]
                .iter()
                .any(|no| lower.starts_with(no))
    });
    let used = used.map(|(_, (_, first, last, name))| (span(*first, *last), (*name).to_owned()));
    used.filter(|(span, _)| !ram.iter().any(|ram| ram.overlaps(*span)))
        .collect()
}

/// The interrupts of the GIC that Linux uses, by the GIC's numbers, from the text of `/proc/interrupts`.
pub fn interrupts(interrupts: &str) -> Vec<(u32, String)> {
    let used = interrupts.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let chip = words.iter().position(|word| word.starts_with("GIC"))?;
        let number = words.get(chip + 1)?.parse().ok()?;
        // Behind the number, the way of triggering.
        let name = words.get(chip + 3..).filter(|name| !name.is_empty())?;
        Some((number, name.join(" ")))
    });
    used.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::PAGE;

    #[test]
    fn linux_says_where_it_runs_and_which_devices_it_uses() {
        let iomem = "00000000-2fffffff : System RAM\n  00210000-00feffff : Kernel code\n\
            40000000-4fffffff : PCI Bus 0000:00\n  40000000-40000fff : 0000:00:01.0\n\
            60000000-60000fff : reserved\nff010000-ff010fff : ff010000.serial\n  \
            ff010000-ff010fff : xuartps\n880000000-880000fff : System RAM\n";
        let ram = system_ram(iomem).unwrap();
        assert_eq!(
            ram,
            [Span::new(0, 0x3000_0000), Span::new(0x8_8000_0000, PAGE)]
        );
        let named = |at, name: &str| (Span::new(at, PAGE), name.to_owned());
        let used = [
            named(0x4000_0000, "0000:00:01.0"),
            named(0xff01_0000, "xuartps"),
        ];
        assert_eq!(devices(iomem), used);
        let hidden = "00000000-00000000 : System RAM\n00000000-00000000 : Kernel code\n";
        assert_eq!(system_ram(hidden), Err(IomemError::Hidden));
        assert_eq!(
            system_ram("\0 : \n-1-2 : System RAM"),
            Err(IomemError::None)
        );
        let text = "           CPU0       CPU1\n 11:       4471       2024     GICv2  30 Level     arch_timer\n \
             14:         12          0     GICv2  54 Level     xuartps\n 15:  0  0  gpio  3 Edge  key\n\
            IPI0:       104        111       Rescheduling interrupts\n 16:    0  0     GICv3  99 Edge\n";
        let names = [(30, "arch_timer".to_owned()), (54, "xuartps".to_owned())];
        assert_eq!(interrupts(text), names);
    }
}
