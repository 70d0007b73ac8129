//! The user ids that cells get.

use super::Mission;
use crate::file::{Field, Kind, Node, Writer, table};

/// Neither root nor the id that means none.
const UID: Kind = Kind::Integer {
    least: 1,
    most: 4_294_967_294,
};

table! {
    /// A range of user ids for cells that name no user.
    pub struct Uids(Copy): "uids", "`uids`" {
        /// the lowest of them
        ///
        /// At least 1.
        lowest: u32 = UID, Required "2000000000";
        /// the highest of them
        ///
        /// At most 4,294,967,294.
        highest: u32 = UID, Required "2000065535";
    }
}

pub(super) fn read(top: &Node<'_>) -> Uids {
    Uids::get(top, "uids").unwrap_or_default()
}

pub(super) fn write(mission: &Mission, out: &mut Writer) {
    mission.uids.write("uids", out);
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
