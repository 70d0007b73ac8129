//! timecell's own task sets, TOML.

use model::InputErrors;
use model::taskset::TaskSet;

use super::{Imported, Options, Reader, Takes};
use crate::import::source::cut;

pub(super) const READER: Reader = Reader {
    name: "toml",
    files: "timecell's own",
    endings: &["toml"],
    // Only its name distinguishes it from a mission or an experiment.
    looks_like: |_| false,
    whose: " of timecell",
    takes: Takes {
        unit: false,
        policy: false,
    },
    read,
};

/// A last line without an end is accepted, as people write such files, unless its number may have lost digits; times are
/// quoted, so they are known to be complete.
fn read(name: &str, text: &str, _: Options) -> Result<Imported, InputErrors> {
    let last = text.rsplit('\n').next().unwrap_or_default();
    if last.ends_with(|c: char| c.is_ascii_digit()) && !last.contains('#') {
        return Err(cut(text.lines().count()).into());
    }
    TaskSet::parse(name, text).map(|set| Imported::of(set, Vec::new()))
}
