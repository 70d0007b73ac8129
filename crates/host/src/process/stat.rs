//! The line of `/proc/PID/stat` (proc_pid_stat(5)), its fields by their numbers there.

use crate::root::Root;
use std::str::FromStr;

/// Flag of the kernel's own threads (`PF_KTHREAD` of `include/linux/sched.h`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The kernel's report of a process or a thread in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    line: String,
    /// Where the name ends. It may hold anything, so the other fields are counted from its last parenthesis.
    name_end: usize,
}

impl Stat {
    /// Of the process, or of any thread by its id; `None` once it is gone.
    pub fn of(tid: i32) -> Option<Stat> {
        Stat::parse(first_line(&format!("/proc/{tid}/stat"))?)
    }

    /// Parses a line that was read elsewhere; `None` if it is malformed.
    pub fn parse(line: impl Into<String>) -> Option<Stat> {
        let line = line.into();
        let name_end = line.rfind(')')?;
        line[..name_end].contains('(').then_some(())?;
        Some(Stat { line, name_end })
    }

    /// Field 2: its name in the kernel.
    pub fn name(&self) -> &str {
        let before = &self.line[..self.name_end];
        before.split_once('(').map_or("", |(_, name)| name)
    }

    /// A field by its number, 3 or more; `None` where it is not there, or something else.
    pub fn field<T: FromStr>(&self, number: usize) -> Option<T> {
        let fields = &self.line[self.name_end + 1..];
        let mut fields = fields.split_ascii_whitespace();
        fields.nth(number.checked_sub(3)?)?.parse().ok()
    }

    /// Field 3: whether it has ended and waits to be reaped.
    pub fn has_ended(&self) -> bool {
        matches!(self.field(3), Some('Z' | 'X'))
    }

    /// Field 4: its parent.
    pub fn parent(&self) -> Option<i32> {
        self.field(4)
    }

    /// Field 9, of which it has one of these flags.
    pub fn has_flag(&self, flags: u64) -> bool {
        self.field::<u64>(9).is_some_and(|had| had & flags != 0)
    }

    /// Whether it is a thread of the kernel's own.
    pub fn is_kernels(&self) -> bool {
        self.has_flag(KERNEL_THREAD)
    }

    /// Field 22: when it was started, in clock ticks since boot.
    pub fn start_ticks(&self) -> Option<u64> {
        self.field(22)
    }
}

/// The text of a file of `/proc`, up to the end of its line, with any bytes of a program in it; `None` if it cannot be read.
pub(super) fn first_line(path: &str) -> Option<String> {
    let text = Root::live().read_bytes(path).ok()?;
    let line = text.strip_suffix(b"\n").unwrap_or(&text);
    Some(String::from_utf8_lossy(line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "12 (a) b) S 1 12 12 0 -1 4194304 9 0 0 0 3 4 0 0 20 0 1 0 777 4096 1";

    #[test]
    fn fields_stand_behind_any_name() {
        let stat = Stat::parse(LINE).unwrap();
        assert_eq!((stat.name(), stat.parent()), ("a) b", Some(1)));
        assert_eq!((stat.start_ticks(), stat.field(24)), (Some(777), Some(1)));
        assert_eq!((stat.field::<i32>(25), stat.field::<i32>(2)), (None, None));
        assert!(!stat.has_ended() && !stat.is_kernels() && stat.has_flag(4_194_304));
        assert!(Stat::parse(LINE.replace(" S ", " Z ")).unwrap().has_ended());
        assert_eq!(Stat::parse("12 (a)").unwrap().start_ticks(), None);
        assert_eq!(Stat::parse("12 a) S"), None);
    }

    proptest! {
        #[test]
        fn no_line_panics(line in any::<String>(), number in 0usize..60) {
            if let Some(stat) = Stat::parse(line) {
                let _ = (stat.name().len(), stat.field::<u64>(number), stat.has_ended());
            }
        }
    }
}
