//! The user ids that cells get.

/// User and group ids, one of which each cell gets that names no user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uids {
    /// The lowest, at least 1.
    pub lowest: u32,
    /// The highest, at most 4,294,967,294.
    pub highest: u32,
}

impl Default for Uids {
    /// In a range that is assigned neither by distributions or systemd nor by `useradd` for user namespaces ("Users, Groups,
    /// UIDs and GIDs on systemd Systems").
    fn default() -> Uids {
        Uids {
            lowest: 2_000_000_000,
            highest: 2_000_065_535,
        }
    }
}
