//! `timecell doctor --fix` and `--persist`: change settings that the doctor finds, now or permanently.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use host::fix::persist::{self, Piece};
use host::fix::undo::{Change, USUAL, noted};
use host::fix::{self, Applied, Fix};
use host::root::Root;
use host::writer;
use record::RecordError;
use record::output::Output;
use serde::Serialize;

use super::{alone, rows, taken};
use crate::cli::Doctor;
use crate::exit::{CommandError, Ended};
use crate::out;

/// A fix that is left to the user.
#[derive(Serialize)]
struct Left<'a> {
    id: &'a str,
    why: &'a str,
}

/// Applies the fixes for these cpus, prints the changes it would make, or writes the files that make it permanent.
pub(super) fn run(options: &Doctor, cpus: &[u32]) -> Result<Ended, CommandError> {
    let root = Root::live();
    let changes = options.fix && !options.dry_run;
    let alone = match changes {
        true => {
            fix::must_be_root()?;
            Some(alone::with(false)?)
        }
        false => None,
    };
    let fixes = taken::fixes(&root, cpus);
    let pieces = match &options.persist {
        Some(_) => {
            let program = std::env::current_exe().unwrap_or_else(|_| "timecell".into());
            let earlier = noted(&root, Path::new(USUAL)).changes;
            persist::pieces(&root, &fixes, &earlier, cpus, &program)
        }
        None => Vec::new(),
    };
    let dir = options.persist.as_ref().and_then(Option::as_deref);
    // Written first: if the directory is not writable, the machine stays as it is.
    let removed = match dir {
        Some(dir) => write(dir, &pieces)?,
        None => Vec::new(),
    };
    let applied = match changes {
        true => fix::apply(&root, &fixes, Path::new(USUAL))?,
        false => Applied::default(),
    };
    // Dropped before printing, which may wait for a reader.
    drop(alone);
    let open: Vec<Change> = fixes.iter().flat_map(Change::open_of).collect();
    let left: Vec<Left<'_>> = (fixes.iter())
        .flat_map(|fix| fix.left.iter().map(|why| Left { id: &fix.id, why }))
        .collect();
    if options.json {
        // A path need not be UTF-8, but JSON must be.
        let text = |path: &Path| path.display().to_string();
        let removed: Vec<String> = removed.iter().map(|path| text(path)).collect();
        let json = serde_json::json!({
            "schema": 1,
            "cpus": cpus,
            "dry_run": options.dry_run,
            "would_change": if changes { Vec::new() } else { open.clone() },
            "changed": applied.changed,
            "stayed": applied.stayed,
            "failed": applied.failed,
            "left": left,
            "undo": (!applied.changed.is_empty()).then_some(USUAL),
            "persist": pieces,
            "persist_dir": dir.map(text),
            "persist_removed": removed,
        });
        out::print(&format!("{json:#}"));
    } else {
        let mut text = String::new();
        if options.fix {
            text.push_str(&of_changes(&applied, &open, changes));
            let all = fixes.iter().flat_map(|fix: &Fix| {
                let left = fix.left.iter();
                left.map(|why| rows::line(&fix.id, &format!("left to you: {why}"), out::width()))
            });
            all.for_each(|line| text.push_str(&format!("{line}\n")));
            let _ = writeln!(text, "{}", verdict(&applied, &open, changes));
        }
        text.push_str(&of_pieces(&pieces, dir, options.persist.is_some()));
        for path in &removed {
            let name = out::name(&path.display().to_string());
            let line =
                format!("{name}: removed; an earlier call wrote it, and nothing needs it now");
            let _ = writeln!(text, "\n{}", textwrap::fill(&line, out::width()));
        }
        out::print(text.trim_end());
    }
    Ok(match applied.failed.is_empty() {
        true => Ended::Fine,
        false => Ended::Failed,
    })
}

fn of_changes(applied: &Applied, open: &[Change], changes: bool) -> String {
    let mut text = String::new();
    let shown = if changes { &applied.changed } else { open };
    for (id, row) in rows::changes(shown, false) {
        let _ = writeln!(text, "{}", rows::line(&id, &row, out::width()));
    }
    let stayed = (applied.stayed.iter()).map(|failed| {
        let says = format!("stays {}: {}", failed.change.was, failed.why);
        (&failed.change, says)
    });
    let failed = (applied.failed.iter()).map(|failed| {
        let is_changed = (applied.changed.iter()).any(|change| change.path == failed.change.path);
        let says = match is_changed {
            true => format!("failed: {}", failed.why),
            false => format!("failed, stays {}: {}", failed.change.was, failed.why),
        };
        (&failed.change, says)
    });
    for (id, row) in rows::alike(stayed).into_iter().chain(rows::alike(failed)) {
        let _ = writeln!(text, "{}", rows::line(&id, &row, out::width()));
    }
    text
}

fn verdict(applied: &Applied, open: &[Change], changes: bool) -> String {
    let files = |count: usize| match count {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    match (changes, applied.changed.len(), open.len()) {
        (_, _, 0) => "nothing is left to change without a reboot".to_owned(),
        (false, _, count) => format!(
            "nothing was changed; without --dry-run, {} would be",
            files(count)
        ),
        (true, 0, _) => "nothing was changed".to_owned(),
        (true, count, _) => format!(
            "{} changed until the next boot; undo with `timecell doctor --undo`, from {USUAL}",
            files(count)
        ),
    }
}

fn of_pieces(pieces: &[Piece], dir: Option<&Path>, asked: bool) -> String {
    if asked && pieces.is_empty() {
        return "nothing to install to make it permanent\n".to_owned();
    }
    let mut text = String::new();
    for piece in pieces {
        let name = match dir {
            Some(dir) => out::name(&dir.join(piece.name).display().to_string()),
            None => piece.name.to_owned(),
        };
        let head = textwrap::fill(&format!("{name}: {}", piece.how), out::width());
        let _ = writeln!(text, "\n{head}");
        if dir.is_none() {
            for line in piece.text.lines() {
                let _ = writeln!(text, "    {line}");
            }
        }
    }
    text
}

/// Writes the pieces into a directory, which is created if missing. Files of an earlier call are replaced, or removed if no longer
/// needed; returns the removed ones.
fn write(dir: &Path, pieces: &[Piece]) -> Result<Vec<PathBuf>, CommandError> {
    let failed = |path: &Path, doing, source| RecordError::Io {
        path: path.to_owned(),
        doing,
        source,
    };
    writer::create_dir_all(dir).map_err(|error| failed(dir, "write", error))?;
    for piece in pieces {
        let path = dir.join(piece.name);
        let mut file = Output::create(&path)?;
        file.write_all(piece.text.as_bytes())
            .map_err(|error| failed(&path, "write", error))?;
        file.finish()?;
    }
    let mut removed = Vec::new();
    for name in persist::NAMES {
        let path = dir.join(name);
        if pieces.iter().any(|piece| piece.name == name) {
            continue;
        }
        match writer::remove_file(&path) {
            Ok(()) => removed.push(path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&path, "remove", error).into()),
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_no_more_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let piece = |name: &'static str, text: &str| Piece {
            name,
            how: String::new(),
            text: text.to_owned(),
        };
        let [line, sysctl, unit] = persist::NAMES;
        let first = [piece(line, "a=1"), piece(sysctl, "b"), piece(unit, "c")];
        assert_eq!(
            write(dir.path(), &first).unwrap(),
            [""; 0].map(PathBuf::from)
        );
        std::fs::write(dir.path().join("other"), "").unwrap();
        let removed = write(dir.path(), &[piece(unit, "d")]).unwrap();
        assert_eq!(removed, [line, sysctl].map(|name| dir.path().join(name)));
        let there = |name: &str| dir.path().join(name).exists();
        assert!(!there(line) && !there(sysctl) && there("other"));
        assert_eq!(std::fs::read_to_string(dir.path().join(unit)).unwrap(), "d");
    }
}
