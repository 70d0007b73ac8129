//! `timecell update`: applies a changed file to a running mission.

use std::fmt::Write as _;

use model::mission::MissionFile;
use supervise::control::{Ask, Change, Say, Updated};

use super::control::{ask_for, locate, unexpected};
use crate::cli::Update;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Version of the JSON.
const SCHEMA: u32 = 1;

/// Asks the supervisor, and waits until the health window is over.
pub fn run(options: &Update) -> Result<Ended, CommandError> {
    let file = std::path::absolute(&options.mission).map_err(|source| CommandError::File {
        path: options.mission.clone(),
        doing: "find it",
        source,
    })?;
    let dir = match &options.dir {
        Some(dir) => locate(None, Some(dir))?,
        None => {
            let name = options.mission.display().to_string();
            let text = super::admit::mission_text(&options.mission)?;
            let name = MissionFile::parse(&name, &text)?.into_mission().name;
            locate(Some(&name), None)?
        }
    };
    let ask = Ask::Update {
        file,
        anew: options.anew.clone(),
        window_ns: options.window.ns(),
    };
    let updated = match ask_for(&dir, ask)? {
        Say::Updated(updated) => *updated,
        other => return Err(unexpected(&other).into()),
    };
    if options.json {
        let mut json = serde_json::to_value(&updated).unwrap_or_default();
        json["schema"] = SCHEMA.into();
        out::print(&format!("{json:#}"));
    } else {
        out::print(&text(&updated));
    }
    Ok(if updated.committed {
        Ended::Fine
    } else {
        Ended::Failed
    })
}

fn text(updated: &Updated) -> String {
    let mut text = String::new();
    let pid = |pid: Option<i32>| pid.map_or("does not run".to_owned(), |pid| format!("pid {pid}"));
    let mut untouched = 0;
    for cell in &updated.cells {
        let how = if cell.beside {
            ", beside the old version until it had proved itself"
        } else {
            ""
        };
        let what = match (cell.change, updated.committed) {
            (Change::Unchanged, _) => {
                untouched += 1;
                continue;
            }
            (Change::Added, true) => format!("added, {}", pid(cell.pid)),
            (Change::Changed, true) => format!("recreated, {}{how}", pid(cell.pid)),
            (Change::Removed, true) => "removed".to_owned(),
            (Change::Added, false) => "not added".to_owned(),
            (Change::Changed, false) if cell.beside => {
                format!("as before, {}, never interrupted", pid(cell.pid))
            }
            (Change::Changed | Change::Removed, false) => "as before".to_owned(),
        };
        let _ = writeln!(text, "{}: {what}", cell.cell);
    }
    let _ = writeln!(
        text,
        "{} untouched; admission took {}",
        match untouched {
            1 => "1 cell".to_owned(),
            count => format!("{count} cells"),
        },
        report::time(updated.admission_ns as f64)
    );
    let nothing_new = (updated.cells.iter()).all(|cell| cell.change == Change::Unchanged);
    match &updated.reason {
        Some(reason) if !updated.committed => {
            let _ = write!(text, "update {} was rolled back: {reason}", updated.update);
        }
        _ if nothing_new => {
            text.push_str("no cell is changed; --anew CELL recreates one anyway");
        }
        _ => {
            let _ = write!(text, "update {} is done", updated.update);
        }
    }
    text
}
