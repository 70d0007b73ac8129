//! Where the sources of a mission's mounts lead: decided once, when the mission starts or is updated, and recorded, so
//! that nobody who can write to a directory on the way can lead them elsewhere before a cell is restarted.
//!
//! The path without links is kept, not which directory is there: one that was removed and recreated under the same path
//! is the one that the mission names, and nobody can put another one there by anything but a link unless they may write
//! to the directory around it, and then only one that they may write to anyway.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine::app::AppSpec;
use model::mission::MissionFile;

use super::spec;

/// Where sources lead, by their absolute paths.
pub(super) type Sources = BTreeMap<String, String>;

/// Those of these mission files; one that is known stays as it is.
pub(super) fn of<'f>(files: impl IntoIterator<Item = &'f MissionFile>, known: &Sources) -> Sources {
    let mounts = files.into_iter().flat_map(|file| {
        let cells = file.mission().cells.iter();
        cells.flat_map(move |cell| {
            let mounts = cell.rights.mounts.iter();
            mounts.map(move |mount| spec::host_path(file, &mount.source))
        })
    });
    let mut sources = Sources::new();
    for source in mounts {
        let Some(text) = source.to_str() else {
            continue;
        };
        if !sources.contains_key(text) {
            let leads_to = known.get(text).cloned();
            let leads_to = leads_to.unwrap_or_else(|| leads_to_now(&source));
            sources.insert(text.to_owned(), leads_to);
        }
    }
    sources
}

/// A path that leads nowhere yet has to exist itself when it is mounted.
fn leads_to_now(source: &Path) -> String {
    let found = source.canonicalize().unwrap_or_else(|_| source.to_owned());
    found.to_string_lossy().into_owned()
}

/// Has the engine refuse sources that lead elsewhere.
pub(super) fn hold(spec: &mut AppSpec, sources: &Sources) {
    for bind in &mut spec.binds {
        let known = bind.source.to_str().and_then(|source| sources.get(source));
        bind.leads_to = known.map(PathBuf::from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_known_stays_and_what_is_not_named_goes() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir(dir.join("one")).unwrap();
        fs::create_dir(dir.join("two")).unwrap();
        symlink("one", dir.join("link")).unwrap();
        let mission = |sources: &[&str]| {
            let mounts: Vec<String> = (sources.iter().enumerate())
                .map(|(at, source)| format!("{{ source = \"{source}\", target = \"/{at}\" }}"))
                .collect();
            let text = format!(
                "schema = 1\nname = \"m\"\n[[cell]]\nname = \"c\"\nimage = {{ rootfs = \"root\" }}\ncommand = [\"/c\"]\n\
                 class = \"other\"\nrights = {{ mounts = [{}] }}\n",
                mounts.join(", ")
            );
            let name = dir.join("m.toml");
            MissionFile::parse(name.to_str().unwrap(), &text).unwrap()
        };
        let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
        let first = of([&mission(&["link", "absent"])], &Sources::new());
        let expected = [("link", "one"), ("absent", "absent")];
        assert_eq!(first, expected.map(|(from, to)| (at(from), at(to))).into());
        fs::remove_file(dir.join("link")).unwrap();
        symlink("two", dir.join("link")).unwrap();
        let (before, after) = (mission(&["link"]), mission(&["two"]));
        let next = of([&before, &after], &first);
        let expected = [("link", "one"), ("two", "two")];
        assert_eq!(next, expected.map(|(from, to)| (at(from), at(to))).into());
        assert_eq!(of([&before], &Sources::new())[&at("link")], at("two"));
    }
}
