//! Advice for a refused cell: given only when a change of that kind was found to suffice.

use super::fixes::{Edit, Fix, Fixes};
use super::{Admission, Outcome};

/// Advice for a refused cell, not yet tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    change: Change,
    /// A clause.
    text: String,
}

/// The change that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    /// One of this kind of the cell, or of the mission.
    Of(&'static str),
    /// Only the end of somebody else.
    End(String),
}

impl Advice {
    /// A change of the file of this kind.
    pub(super) fn of(kind: &'static str, text: impl Into<String>) -> Advice {
        Advice {
            change: Change::Of(kind),
            text: text.into(),
        }
    }

    /// Waiting until this one ends.
    pub(super) fn end(who: &str) -> Advice {
        Advice {
            change: Change::End(who.to_owned()),
            text: format!("wait until {who} has ended"),
        }
    }

    /// Whether this change, found to suffice, is the one advised for a cell.
    fn is_proved_by(&self, cell: &str, fix: &Fix) -> bool {
        match &self.change {
            Change::Of(kind) => {
                let of_cell = |edit: &Edit| edit.cell().is_none_or(|named| named == cell);
                fix.kind == *kind && fix.edits.iter().any(of_cell)
            }
            Change::End(who) => fix.edits == [Edit::End(who.clone())],
        }
    }
}

impl Admission {
    /// Gives each refused cell its advice, if a change of that kind is among those that were found to suffice.
    pub fn advise(&mut self, fixes: &Fixes) {
        for outcome in &mut self.cells {
            let Outcome::Refused(refused) = outcome else {
                continue;
            };
            let proved = |advice: &&Advice| {
                (fixes.found.iter()).any(|fix| advice.is_proved_by(&refused.cell, fix))
            };
            let texts: Vec<&str> = (refused.advice.iter())
                .filter(proved)
                .map(|advice| advice.text.as_str())
                .collect();
            refused.fix = (!texts.is_empty()).then(|| texts.join(", or "));
        }
    }
}
