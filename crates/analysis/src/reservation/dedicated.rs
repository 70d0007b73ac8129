//! A dedicated cpu.

use serde::Serialize;

use crate::{Ns, Supply};

/// A dedicated cpu: every ns is supplied.
///
/// ```
/// use timecell_analysis::{Supply, reservation::Dedicated};
///
/// assert_eq!((Dedicated.sbf(7), Dedicated.inverse(7)), (7, Some(7)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Dedicated;

impl Supply for Dedicated {
    fn sbf(&self, t: Ns) -> Ns {
        t
    }

    fn inverse(&self, work: Ns) -> Option<Ns> {
        Some(work)
    }

    fn rate(&self) -> (Ns, Ns) {
        (1, 1)
    }

    fn cycle(&self) -> Option<Ns> {
        Some(1)
    }

    fn delay(&self) -> Option<Ns> {
        Some(0)
    }
}
