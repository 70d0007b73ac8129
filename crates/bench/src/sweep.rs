//! Cleans up after dead coordinators: finds them by their places, puts their measurements on record, and removes their remains.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::BenchError;
use crate::held;
use crate::load::remove_network;
use crate::place::{
    ISOLATION, LOAD_FILES, PREFIX, Place, base, list, read_owner, remove_tree, start_ticks, uid,
};
use crate::salvage::{Gone, salvage};

/// Makes the place of this process, after removing that of an earlier process with its pid.
///
/// # Errors
/// When shared memory is full or not writable.
pub(crate) fn new_place() -> Result<Place, BenchError> {
    sweep(&Place::usual(), Unsaved::Keep);
    Place::create()
}

/// The fate of samples that are not on record and cannot be written now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsaved {
    /// They stay where they are.
    Keep,
    /// They are removed.
    Discard,
}

/// The findings on one dead coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// The actions, for the user.
    pub sentences: Vec<String>,
    /// Whether nothing is left of it.
    pub whole: bool,
    /// The run that it measured.
    pub run: Option<PathBuf>,
}

/// Removes the remains of this user's dead coordinators: cells through their engines, rt cgroups, directories. Their measurements are
/// written to their runs first.
pub fn sweep_stale(unsaved: Unsaved) -> Vec<Swept> {
    let Ok(entries) = fs::read_dir(base()) else {
        return Vec::new();
    };
    let mine = format!("{PREFIX}{}-", uid());
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&mine))
        .filter_map(|entry| sweep(&entry.path(), unsaved))
        .collect()
}

fn sweep(dir: &Path, unsaved: Unsaved) -> Option<Swept> {
    // Anybody may make files in /dev/shm: only a real directory of our own is trusted.
    let meta = fs::symlink_metadata(dir).ok()?;
    if !meta.is_dir() || meta.uid() != uid() || meta.mode() & 0o022 != 0 {
        return None;
    }
    let owner = read_owner(dir);
    if let Some(owner) = &owner
        && start_ticks(owner.pid) == Some(owner.start_ticks)
    {
        return None;
    }
    if owner.is_none() && is_being_made(dir) {
        return None;
    }
    // Another process that removes the same would write the same trial.
    let lock = fs::File::open(dir).ok()?;
    lock.try_lock().ok()?;
    let mut problems = Vec::new();
    let trials = list(&dir.join("trials"));
    let work_dirs: Vec<PathBuf> = (trials.iter())
        .flat_map(|trial| list(&trial.join("cells")))
        .collect();
    let (_, left) = engine::sweep_many(&work_dirs);
    // For a crowd, the first ones are enough.
    problems.extend(left.iter().take(3).map(ToString::to_string));
    let cells = work_dirs.len();
    for file in list(dir) {
        let name = file.file_name().map(|name| name.to_string_lossy());
        if name.is_some_and(|name| name.starts_with(ISOLATION)) {
            problems.extend(host::isolate::put_back(&file));
        }
    }
    let group = owner.as_ref().and_then(|owner| owner.rt_group.as_deref());
    if let Some(name) = group
        && let Ok(root) = host::rtgroup::detect()
        && let Err(error) = host::rtgroup::remove_group_with_inner(&root.join(name))
    {
        problems.push(error.to_string());
    }
    let held = owner
        .as_ref()
        .and_then(|owner| owner.held_groups.as_deref());
    problems.extend(held.and_then(|name| remove_held_groups(name).err()));
    if let Some(elsewhere) = owner.as_ref().and_then(|owner| owner.rootfs.as_deref())
        && let Err(error) = remove_tree(elsewhere)
    {
        problems.push(error.to_string());
    }
    let network = owner.as_ref().and_then(|owner| owner.network.as_deref());
    problems.extend(network.and_then(|name| remove_network(name).err()));
    let load_files = owner.as_ref().and_then(|owner| owner.load_files.as_deref());
    problems.extend(load_files.and_then(|dir| remove_load_files(dir).err()));
    let who = owner.as_ref().map_or("an unknown process".to_owned(), |o| {
        format!("process {}", o.pid)
    });
    let run = owner.as_ref().and_then(|owner| owner.run.clone());
    let (mut sentences, mut saved) = (Vec::new(), true);
    if let (Some(owner), Some(run)) = (&owner, &run) {
        // Only now: no cell is left that still writes.
        match salvage(&Gone {
            place: dir,
            pid: owner.pid,
            run,
            unwritten: owner.unwritten.as_deref(),
        }) {
            Ok(said) => sentences.extend(said),
            Err(why) if unsaved == Unsaved::Keep => {
                sentences.push(why);
                saved = false;
            }
            Err(_) => sentences.push(format!("discarded unwritten measurements of {who}")),
        }
    }
    if problems.is_empty()
        && saved
        && let Err(error) = remove_tree(dir)
    {
        problems.push(error.to_string());
    }
    if !problems.is_empty() {
        sentences.push(format!(
            "could not remove everything that {who} left behind: {}",
            problems.join("; ")
        ));
    } else if saved {
        sentences.push(format!(
            "removed what {who} left behind: {}, {}",
            cells_in_words(cells),
            dir.display()
        ));
    }
    Some(Swept {
        sentences,
        whole: saved && problems.is_empty(),
        run,
    })
}

fn cells_in_words(count: usize) -> String {
    match count {
        1 => "1 cell".to_owned(),
        count => format!("{count} cells"),
    }
}

/// Whether the process in the name of a place without an owner is alive: it is about to name its owner.
fn is_being_made(dir: &Path) -> bool {
    pid_of(dir)
        .is_some_and(|pid| pid != std::process::id().cast_signed() && start_ticks(pid).is_some())
}

/// The process in the name of a place: behind the user, and before the number of a second place of the same process.
fn pid_of(dir: &Path) -> Option<i32> {
    let name = dir.file_name()?.to_str()?;
    let mut numbers = name.strip_prefix(PREFIX)?.split('-');
    numbers.nth(1)?.parse().ok()
}

/// Only groups of a coordinator: nothing else is ever noted.
fn remove_held_groups(name: &str) -> Result<(), String> {
    if !name.starts_with(PREFIX) || name.contains(['/', '\0']) {
        return Err(format!("`{name}` is not a group of timecell bench"));
    }
    held::remove_left(name)
}

/// Only a directory of that name: nothing else is ever noted.
fn remove_load_files(dir: &Path) -> Result<(), String> {
    if !dir.is_absolute() || !dir.ends_with(LOAD_FILES) {
        return Err(format!("{} is not a directory of loads", dir.display()));
    }
    remove_tree(dir).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::{OWNER, Owner};

    #[test]
    fn a_place_of_the_living_stays_and_one_of_the_dead_goes() {
        let place = Place::create().unwrap();
        let dead = base().join(format!("{PREFIX}{}-0", uid()));
        fs::create_dir_all(&dead).unwrap();
        let owner = Owner {
            pid: 1,
            start_ticks: u64::MAX,
            ..Owner::default()
        };
        fs::write(dead.join(OWNER), serde_json::to_vec(&owner).unwrap()).unwrap();
        let said = sweep_stale(Unsaved::Keep);
        assert!(
            (said.iter().flat_map(|swept| &swept.sentences)).any(|line| line.contains("process 1")),
            "{said:?}"
        );
        assert!(!dead.exists());
        assert!(place.dir().exists());
        let dir = place.dir().to_owned();
        drop(place);
        assert!(!dir.exists());
    }

    #[test]
    fn a_run_that_cannot_be_read_keeps_no_place_that_holds_nothing_for_it() {
        let runs = tempfile::tempdir().unwrap();
        let left = |number: u32| {
            let dir = base().join(format!("{PREFIX}{}-unread-{number}", uid()));
            fs::create_dir_all(&dir).unwrap();
            let owner = Owner {
                pid: 1,
                start_ticks: u64::MAX,
                run: Some(runs.path().to_owned()),
                ..Owner::default()
            };
            fs::write(dir.join(OWNER), serde_json::to_vec(&owner).unwrap()).unwrap();
            dir
        };
        let (study, experiment) = (left(1), left(2));
        let trial = experiment.join("trials/1");
        fs::create_dir_all(&trial).unwrap();
        fs::write(trial.join("begun.json"), "{}").unwrap();
        assert!(sweep(&study, Unsaved::Keep).unwrap().whole);
        assert!(!study.exists());
        assert!(!sweep(&experiment, Unsaved::Keep).unwrap().whole);
        assert!(experiment.exists());
        sweep(&experiment, Unsaved::Discard).unwrap();
        assert!(!experiment.exists());
    }

    #[test]
    fn the_process_is_told_by_the_name_of_its_place() {
        let of = |name: &str| pid_of(&Path::new("/dev/shm").join(name));
        assert_eq!(of("timecell-0-1234"), Some(1234));
        assert_eq!(of("timecell-1000-1234-2"), Some(1234));
        assert_eq!(
            [of("timecell-0-odd"), of("timecell-0"), of("x-0-1")],
            [None; 3]
        );
    }

    #[test]
    fn one_cell_is_no_cells() {
        let words = [0, 1, 2].map(cells_in_words);
        assert_eq!(words, ["0 cells", "1 cell", "2 cells"]);
    }

    #[test]
    fn a_place_that_others_may_write_is_not_trusted() {
        use std::os::unix::fs::PermissionsExt;
        let odd = base().join(format!("{PREFIX}{}-odd", uid()));
        fs::create_dir_all(&odd).unwrap();
        fs::set_permissions(&odd, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(sweep(&odd, Unsaved::Keep).is_none());
        assert!(odd.exists());
        fs::remove_dir_all(&odd).unwrap();
    }
}
