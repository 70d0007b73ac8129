//! `timecell doctor --undo`: puts the machine back as it was before `--fix`.

use std::fmt::Write as _;
use std::path::Path;

use host::fix::undo::{PutBack, USUAL, put_back};
use host::fix::{self, Failed};
use host::root::Root;
use model::InputError;

use super::{alone, rows};
use crate::exit::{CommandError, Ended};
use crate::out;

/// Puts back the values that this undo file records, or the usual one.
pub(super) fn run(file: Option<&Path>, json: bool) -> Result<Ended, CommandError> {
    let path = file.unwrap_or(Path::new(USUAL));
    fix::must_be_root()?;
    let _alone = alone::with(true)?;
    let done = match put_back(&Root::live(), path)? {
        Some(done) => done,
        None if file.is_some() => {
            let what = "there is no such file";
            let fix = format!("`timecell doctor --fix` records what it changes in {USUAL}");
            return Err(InputError::new(path.display().to_string(), what, fix).into());
        }
        None => PutBack::default(),
    };
    if json {
        let mut json = serde_json::json!(done);
        json["schema"] = 1.into();
        json["undo"] = path.display().to_string().into();
        out::print(&format!("{json:#}"));
    } else {
        out::print(&text(&done, path));
    }
    Ok(match done.failed.is_empty() {
        true => Ended::Fine,
        false => Ended::Failed,
    })
}

fn text(done: &PutBack, path: &Path) -> String {
    let name = out::name(&path.display().to_string());
    if done.other_boot {
        return format!(
            "the machine was rebooted after {name} was written, which reverted the changes: nothing to put back"
        );
    }
    let mut lines = rows::changes(&done.put_back, true);
    let has = (done.already.iter()).map(|change| (change, format!("is already {}", change.was)));
    lines.extend(rows::alike(has));
    let not = |failed: &Failed, word: &str| format!("{word}: {}", failed.why);
    let gone =
        (done.gone.iter()).map(|failed| (&failed.change, not(failed, "can no longer be put back")));
    lines.extend(rows::alike(gone));
    let absent = (done.absent.iter()).map(|failed| (&failed.change, not(failed, "absent for now")));
    lines.extend(rows::alike(absent));
    let failed = (done.failed.iter()).map(|failed| (&failed.change, not(failed, "failed")));
    lines.extend(rows::alike(failed));
    let mut text = String::new();
    for (id, row) in &lines {
        let _ = writeln!(text, "{}", rows::line(id, row, out::width()));
    }
    let end = match (
        done.failed.is_empty(),
        done.absent.is_empty(),
        done.gone.is_empty(),
    ) {
        _ if lines.is_empty() => {
            format!("nothing to put back: {name} records nothing that is still changed")
        }
        (false, true, _) => format!("what failed stays in {name}: try again"),
        (false, false, _) => format!(
            "what failed or is absent stays in {name}: try again; for what is absent, once it is there"
        ),
        (true, false, _) => {
            format!("what is absent stays in {name}: try again once it is there")
        }
        (true, true, false) => "the machine is as it was, as far as possible".to_owned(),
        (true, true, true) => "the machine is as it was".to_owned(),
    };
    text.push_str(&end);
    text
}

#[cfg(test)]
mod tests {
    use host::fix::undo::Change;

    use super::*;

    #[test]
    fn what_failed_and_what_is_absent_are_both_named() {
        let change: Change = serde_json::from_str(
            r#"{"id": "timer-migration", "path": "/proc/sys/kernel/timer_migration", "form": "plain", "was": "1", "set": "0"}"#,
        )
        .unwrap();
        let failed = || {
            vec![Failed {
                change: change.clone(),
                why: "it cannot be read".to_owned(),
            }]
        };
        let end = |done: PutBack| {
            let text = text(&done, Path::new(USUAL));
            text.lines().last().unwrap_or_default().to_owned()
        };
        let of = |is_failed: bool, is_absent: bool| {
            end(PutBack {
                failed: if is_failed { failed() } else { Vec::new() },
                absent: if is_absent { failed() } else { Vec::new() },
                ..PutBack::default()
            })
        };
        let both = of(true, true);
        assert!(both.contains("what failed") && both.contains("what is absent"));
        assert!(!of(true, false).contains("absent") && !of(false, true).contains("failed"));
    }
}
