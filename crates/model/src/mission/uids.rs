//! The user ids that cells get.

/// User ids, and group ids of the same numbers, that cells without a user of their own get one each of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uids {
    /// The lowest, at least 1.
    pub lowest: u32,
    /// The highest, at most 4,294,967,294.
    pub highest: u32,
}

impl Default for Uids {
    /// In a range that neither distributions nor systemd, nor `useradd` for the namespaces of users, give away ("Users, Groups,
    /// UIDs and GIDs on systemd Systems").
    fn default() -> Uids {
        Uids {
            lowest: 2_000_000_000,
            highest: 2_000_065_535,
        }
    }
}
