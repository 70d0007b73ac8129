//! The assumptions of bounds as text: in `timecell admit` as they are made, in `timecell ps --verbose` with how each stands.

use std::fmt::Write as _;

use supervise::assume::{Assumption, Standing};

/// The assumptions of bounds, each under the name of its task: those that all of them make first, and once.
pub(super) fn text(bounds: &[(String, Vec<Assumption>)]) -> String {
    let mut text = String::new();
    let Some((_, first)) = bounds.first() else {
        return text;
    };
    let is_common = |one: &Assumption| bounds.iter().all(|(_, all)| all.contains(one));
    let mut part = |title: &str, all: &mut dyn Iterator<Item = &Assumption>| {
        let _ = writeln!(text, "{title}");
        for one in all {
            let standing = match &one.standing {
                None => String::new(),
                Some(Standing::Holds) => ": holds".to_owned(),
                Some(Standing::NotChecked { why }) => format!(": NOT CHECKED, {why}"),
                Some(Standing::Deviates { found, .. }) => format!(": DEVIATES, {found}"),
            };
            let _ = writeln!(text, "    {:<11} {}{standing}", one.assumption, one.says);
        }
    };
    if bounds.len() > 1 {
        part("every task", &mut first.iter().filter(|one| is_common(one)));
    }
    for (task, all) in bounds {
        let is_own = |one: &&Assumption| bounds.len() == 1 || !is_common(one);
        part(task, &mut all.iter().filter(is_own));
    }
    text
}
