//! Common parts of several commands: place and owner of a run, the line about the machine, the style of the terminal.

use std::io::Read as _;
use std::path::Path;

use bench::Settings;
use host::handover::{self, Owner};
use host::provenance::Provenance;
use host::{foreign_file, writer};
use model::{InputError, Requirement};
use record::NotMeasured;
use record::run::{Run, write_atomically};
use study::{Ask, Kind};

use crate::exit::{CommandError, Ended};
use crate::out;

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The place of a run, the version that made it, and the run that it resumes, if any.
pub fn settings(out: &Path, resume: Option<&Run>) -> Settings {
    Settings {
        out: out.to_owned(),
        version: VERSION.to_owned(),
        resume: resume.cloned(),
        only_check: false,
    }
}

/// Gives measurements made under sudo to the user who called it, so that they can study and delete it: the run, and
/// the directory around it if that is new.
pub fn give_to_sudo_user(run: &Path, around: Option<&Path>) {
    let id = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|id| id.parse::<u32>().ok())
    };
    let root = rustix::process::geteuid().is_root();
    if let (true, Some(uid), Some(gid)) = (root, id("SUDO_UID"), id("SUDO_GID")) {
        let owner = Owner { uid, gid };
        // In a directory of the user's, everything was written as that user.
        if host::writer::of(run).is_none() {
            let _ = handover::give_tree(run, owner);
            if let Some(around) = around {
                let _ = handover::give_one(around, owner);
            }
        }
    }
}

/// The cpus that `--cpus` names; empty without the option.
pub fn cpus(list: Option<&str>) -> Result<Vec<u32>, InputError> {
    let cpus = match list {
        None => Vec::new(),
        Some(text) => host::cpus::parse_list(text)
            .map_err(|error| InputError::new("--cpus", error.to_string(), ""))?,
    };
    if list.is_some() && cpus.is_empty() {
        return Err(InputError::new(
            "--cpus",
            "the list is empty",
            "write a list such as 1 or 2-3",
        ));
    }
    Ok(cpus)
}

/// The line about the machine, with its line break.
pub fn host_line() -> String {
    let machine = Provenance::collect(VERSION);
    let warnings = match machine.warnings() {
        0 => String::new(),
        1 => "   1 finding, see timecell doctor".to_owned(),
        n => format!("   {n} findings, see timecell doctor"),
    };
    format!("host    {}{warnings}\n", machine.one_line())
}

/// The measurements that will not be made and why, one per line; `width` is the number of columns for names.
pub fn not_measured(all: &[NotMeasured], width: usize) -> String {
    let line = |missing: &NotMeasured| {
        let fix = in_parentheses(&missing.fix);
        let NotMeasured { trial, reason, .. } = missing;
        format!("  {trial:<width$}  will not be measured: {reason}{fix}\n")
    };
    all.iter().map(line).collect()
}

/// The requirements, met and unmet, with a heading.
pub fn requirements(all: &[Requirement]) -> String {
    let mut text = String::from("\nrequirements\n");
    for requirement in all {
        let state = if requirement.met { "met" } else { "unmet" };
        let fix = in_parentheses(requirement.fix.as_deref().unwrap_or_default());
        text.push_str(&format!(
            "  {state:<8}{}: {}{fix}\n",
            requirement.what, requirement.reason
        ));
    }
    text
}

/// The text in parentheses, unless it is empty.
fn in_parentheses(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(" ({text})")
    }
}

/// Refuses an option that a kind of run cannot serve.
pub fn must(kind: Kind, ask: Ask, place: impl Into<String>) -> Result<(), InputError> {
    kind.must(ask)
        .map_err(|[what, fix]| InputError::new(place, what, fix))
}

/// How reading these runs ends: as failed if one has lost recorded data.
pub fn whole(runs: &[&Run]) -> Result<Ended, CommandError> {
    for run in runs {
        if !run.damage()?.is_empty() {
            return Ok(Ended::Failed);
        }
    }
    Ok(Ended::Fine)
}

/// Colour and width of the terminal.
pub fn style() -> report::Style {
    report::Style {
        colour: out::colour(),
        width: out::width(),
    }
}

/// Whether something that can be lost is there: a file, or a directory that holds something.
fn is_taken(path: &Path) -> bool {
    match std::fs::metadata(path) {
        Ok(there) if there.is_dir() => {
            std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
        }
        // Devices and pipes have nothing to lose.
        Ok(there) => there.is_file(),
        // A dangling link may be anybody's.
        Err(_) => std::fs::symlink_metadata(path).is_ok(),
    }
}

/// Refuses an existing file or a non-empty directory, unless `force` is given.
pub fn unused(path: &Path, force: bool) -> Result<(), InputError> {
    if is_taken(path) && !force {
        let what = "it already exists";
        let fix = "name another with --output, or overwrite it with --force";
        return Err(InputError::new(path.display().to_string(), what, fix));
    }
    Ok(())
}

/// Whether a file is a page of ours.
pub fn is_ours(path: &Path) -> std::io::Result<bool> {
    let mut begin = Vec::new();
    let file = foreign_file::open(path)?;
    file.take(512).read_to_end(&mut begin)?;
    Ok(report::is_page(&begin))
}

/// Writes a page; anything there that is no page of ours is replaced only by `force`. Returns the line about it.
pub fn write_page(path: &Path, page: &str, force: bool) -> Result<String, CommandError> {
    let is_taken = is_taken(path);
    let may = force || (is_taken && writer::below(path, || is_ours(path)).unwrap_or(false));
    unused(path, may)?;
    write_atomically(path, page.as_bytes())?;
    let replaced = if is_taken { " (replaced)" } else { "" };
    Ok(format!("report  {}{replaced}", path.display()))
}

/// Writes SVG files into a directory; the line below each says whether times of an emulated machine are in it.
pub fn write_figures(
    figures: &[(String, String)],
    dir: &Path,
    emulated: bool,
) -> Result<usize, CommandError> {
    host::writer::create_dir_all(dir).map_err(|source| CommandError::File {
        path: dir.to_owned(),
        doing: "create the directory",
        source,
    })?;
    const END: &str = "</text></svg>";
    let told = format!("; {}{END}", host::virt::NOT_REPRESENTATIVE);
    for (name, svg) in figures {
        let cut = svg.strip_suffix(END).filter(|_| emulated);
        let svg = cut.map_or_else(|| svg.clone(), |rest| rest.to_owned() + &told);
        write_atomically(&dir.join(name), svg.as_bytes())?;
    }
    Ok(figures.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_page_of_ours_is_replaced_unasked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.html");
        let ours = report::measured_html(&[], report::Extras::default());
        let line = format!("report  {}", path.display());
        assert_eq!(write_page(&path, &ours, false).unwrap(), line);
        let replaced = format!("{line} (replaced)");
        assert_eq!(write_page(&path, &ours, false).unwrap(), replaced);
        for foreign in ["", "<!DOCTYPE html><title>mine - timecell</title>"] {
            std::fs::write(&path, foreign).unwrap();
            let refused = write_page(&path, &ours, false).unwrap_err().to_string();
            assert!(
                refused.ends_with("or overwrite it with --force"),
                "{refused}"
            );
            assert_eq!(std::fs::read_to_string(&path).unwrap(), foreign);
        }
        assert_eq!(write_page(&path, &ours, true).unwrap(), replaced);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), ours);
        // Neither through a link that leads nowhere, nor in the place of a directory.
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert!(write_page(&link, &ours, false).is_err());
        assert!(write_page(dir.path(), &ours, false).is_err());
        // Standard output and the like have nothing to lose.
        assert_eq!(unused(Path::new("/dev/null"), false), Ok(()));
    }
}
