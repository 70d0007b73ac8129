//! Instants on both clocks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// An instant on both clocks: one that never jumps, and one that means something to people and to other machines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// CLOCK_MONOTONIC of the boot that it was taken in, in ns.
    pub monotonic_ns: i64,
    /// CLOCK_REALTIME, in ns since 1970-01-01T00:00:00Z.
    pub wall_unix_ns: i64,
}

impl Stamp {
    /// This instant.
    pub fn now() -> Stamp {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        Stamp {
            monotonic_ns: timecell_client::now_ns(),
            wall_unix_ns: wall.map_or(0, |wall| i64::try_from(wall.as_nanos()).unwrap_or(i64::MAX)),
        }
    }

    /// The wall clock as RFC 3339 in UTC, to the millisecond: `2026-11-21T21:05:03.123Z`.
    pub fn utc(&self) -> String {
        let since = Duration::from_nanos(u64::try_from(self.wall_unix_ns).unwrap_or(0));
        humantime::format_rfc3339_millis(UNIX_EPOCH + since).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_is_written_as_people_read_it() {
        let at = |wall_unix_ns| Stamp {
            monotonic_ns: 0,
            wall_unix_ns,
        };
        assert_eq!(
            at(1_795_295_103_123_999_999).utc(),
            "2026-11-21T21:05:03.123Z"
        );
        assert_eq!(at(-1).utc(), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(i64::MAX).utc(), "2262-04-11T23:47:16.854Z");
    }
}
