//! The mounts: the lines of `/proc/PID/mountinfo` (proc_pid_mountinfo(5)).

use std::path::PathBuf;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount<'a> {
    /// The part of the file system seen at the point; "/" for all of it.
    pub root: String,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Type of the file system.
    pub kind: &'a str,
    /// Options of the file system, separated by commas.
    pub options: &'a str,
}

/// Those of a mountinfo, in the order of mounting: of several at one point the last is on top. Lines that are none are left out.
pub fn of(mountinfo: &str) -> impl DoubleEndedIterator<Item = Mount<'_>> {
    mountinfo.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let mut right = right.split(' ');
        Some(Mount {
            root: unescape(left.next()?),
            point: unescape(left.next()?).into(),
            kind: right.next()?,
            options: right.nth(1)?,
        })
    })
}

/// Undoes the octal escapes (`\040` for a space) of mountinfo.
fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = bytes
            .get(at + 1..at + 4)
            .filter(|_| bytes[at] == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_mount_points_are_read() {
        assert_eq!(unescape("/a\\040b\\"), "/a b\\");
        assert_eq!(unescape("/é\\777"), "/é\\777");
    }
}
