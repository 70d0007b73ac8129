//! What the group at the top of cgroup v2 reserves for all groups with real-time budgets: nothing by itself, so whoever makes groups
//! has to have it reserve enough, and gives that back afterwards. All missions of a machine share it; a note says what each has
//! reserved there, and what it was before the first of them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::hcbs::{self, HcbsError};
use host::root::Root;
use host::rtgroup::Budget;
use host::versioned;
use serde::{Deserialize, Serialize};

use crate::enforce::EnforceError;
use crate::{lock, names};

/// The version of the note.
const SCHEMA: u32 = 1;
/// How long one waits for others that change it.
const PATIENCE: Duration = Duration::from_secs(10);
/// The period in which what is reserved is counted, us: what all others are converted to.
const PERIOD_US: u64 = 1_000_000;

/// What is noted of what the group at the top reserves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    schema: u32,
    /// What it reserved before the first mission asked for more, or somebody else wrote since.
    before: Budget,
    /// What was written to it last.
    written: Budget,
    /// What somebody was about to write, who may have been killed before or after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meant: Option<Budget>,
    /// Of each mission, for each place of a cell, us in every second.
    missions: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Note {
    /// What this mission reserves, us in every second; 0 if it is not there.
    pub(crate) fn of_mission(&self, mission: &str) -> u64 {
        let places = self.missions.get(mission).into_iter().flatten();
        places.map(|(_, us)| *us).fold(0, u64::saturating_add)
    }

    /// Every mission that reserves something.
    pub(crate) fn missions(&self) -> impl Iterator<Item = &str> {
        self.missions.keys().map(String::as_str)
    }

    /// What the group at the top reserves beside these groups once this mission reserves nothing, us in every second.
    pub(crate) fn reserved_without(&self, mission: &str, shares: &[(String, u64)]) -> u64 {
        let mut rest = self.clone();
        rest.missions.remove(mission);
        let own = names::cells_of(mission);
        let others = shares.iter().filter(|(group, _)| !group.starts_with(&own));
        let others: Vec<(String, u64)> = others.cloned().collect();
        (rest.before.per_second_us()).max(rest.needed_us(&others))
    }

    /// What the group at the top has to reserve beside these groups: of a place whose group is there with another budget, the larger
    /// one.
    fn needed_us(&self, shares: &[(String, u64)]) -> u64 {
        let mut all: BTreeMap<String, u64> = shares.iter().cloned().collect();
        for (mission, places) in &self.missions {
            for (place, us) in places {
                let group = all.entry(names::cell_id(mission, place)).or_default();
                *group = (*group).max(*us);
            }
        }
        all.values().copied().fold(0, u64::saturating_add)
    }
}

/// The group at the top, and where the note is.
#[derive(Debug, Clone)]
pub(crate) struct Top {
    root: Root,
    path: PathBuf,
    dir: PathBuf,
}

impl Top {
    /// That of this machine.
    ///
    /// # Errors
    /// When its kernel has no such budgets.
    pub(crate) fn of_this_machine() -> Result<Top, HcbsError> {
        Top::at(Root::live(), Path::new(lock::PLACE))
    }

    fn at(root: Root, dir: &Path) -> Result<Top, HcbsError> {
        Ok(Top {
            path: hcbs::detect_at(&root)?,
            root,
            dir: dir.to_owned(),
        })
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// The directory of the group.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The group around a cell's own.
    pub(crate) fn group(&self, mission: &str, place: &str) -> PathBuf {
        self.path.join(names::cell_id(mission, place))
    }

    /// The groups of this mission that are there with budgets.
    pub(crate) fn groups(&self, mission: &str) -> Vec<PathBuf> {
        let own = names::cells_of(mission);
        let shares = hcbs::shares_in(&self.root, &self.path).into_iter();
        let groups = shares.filter(|(group, _)| group.starts_with(&own));
        groups.map(|(group, _)| self.path.join(group)).collect()
    }

    /// What is noted; `None`: no mission reserves anything.
    ///
    /// # Errors
    /// When the note cannot be read or understood: another version of timecell wrote it, for instance.
    pub(crate) fn note(&self) -> Result<Option<Note>, EnforceError> {
        let file = self.file();
        let why =
            |why: &dyn std::fmt::Display| EnforceError::Kept(format!("{}: {why}", file.display()));
        match fs::read(&file) {
            Ok(bytes) => (versioned::parse(&bytes, SCHEMA).map(Some)).map_err(|error| why(&error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(why(&error)),
        }
    }

    /// Whether this mission reserves something.
    ///
    /// # Errors
    /// As [`Top::note`].
    pub(crate) fn has(&self, mission: &str) -> Result<bool, EnforceError> {
        Ok((self.note()?).is_some_and(|note| note.of_mission(mission) > 0))
    }

    fn file(&self) -> PathBuf {
        self.dir.join("hcbs.json")
    }

    /// Changes what a mission reserves for its places and has the group at the top reserve what all need, no less than what it did before
    /// any mission, whoever wrote that. Where the kernel refuses more, nothing has changed.
    ///
    /// # Errors
    /// What the kernel or the system says.
    pub(crate) fn change(
        &self,
        mission: &str,
        change: impl FnOnce(&mut BTreeMap<String, u64>),
    ) -> Result<(), EnforceError> {
        self.change_by(mission, change, &|wanted| {
            hcbs::reserve(&self.root, &self.path, wanted)
        })
    }

    fn change_by(
        &self,
        mission: &str,
        change: impl FnOnce(&mut BTreeMap<String, u64>),
        reserve: &dyn Fn(Budget) -> Result<(), HcbsError>,
    ) -> Result<(), EnforceError> {
        let kept =
            |error: io::Error| EnforceError::Kept(format!("{}: {error}", self.file().display()));
        let _alone = lock::take(&self.dir, "hcbs.lock", PATIENCE).map_err(kept)?;
        let now = hcbs::reserved(&self.root, &self.path)?;
        let known = self.note()?;
        let mut note = known.clone().unwrap_or(Note {
            schema: SCHEMA,
            before: now,
            written: now,
            meant: None,
            missions: BTreeMap::new(),
        });
        if now != note.written && note.meant != Some(now) {
            note.before = now;
        }
        let shares = hcbs::shares_in(&self.root, &self.path);
        let places = note.missions.entry(mission.to_owned()).or_default();
        let had = places.clone();
        change(places);
        // A group that is not gone yet has its budget, so the place stays noted for whoever asks again.
        for (place, _) in had {
            let group = names::cell_id(mission, &place);
            if let Some((_, us)) = shares.iter().find(|(name, us)| *name == group && *us > 0) {
                places.entry(place).or_insert(*us);
            }
        }
        if places.is_empty() {
            note.missions.remove(mission);
        }
        let needed_us = note.needed_us(&shares);
        let wanted = match note.before.per_second_us() >= needed_us {
            true => note.before,
            false => Budget {
                runtime_us: i64::try_from(needed_us).unwrap_or(i64::MAX),
                period_us: PERIOD_US,
            },
        };
        (note.written, note.meant) = (now, Some(wanted));
        // Whoever is killed in between leaves a note by which the rest can be put in order: what the group at the top reserves then is what
        // it did, or what it is about to. Nobody's room goes before it is given back, or is used before it is there.
        let more = wanted.per_second_us() > now.per_second_us();
        let between = match (&known, more) {
            (Some(known), false) => Note {
                missions: known.missions.clone(),
                ..note.clone()
            },
            _ => note.clone(),
        };
        if wanted != now {
            self.write(&between).map_err(kept)?;
            if let Err(error) = reserve(wanted) {
                self.write_or_remove(known.as_ref()).map_err(kept)?;
                return Err(error.into());
            }
        }
        (note.written, note.meant) = (wanted, None);
        let note = Some(&note).filter(|note| !note.missions.is_empty());
        self.write_or_remove(note).map_err(kept)
    }

    fn write_or_remove(&self, note: Option<&Note>) -> io::Result<()> {
        match note {
            Some(note) => self.write(note),
            None => match fs::remove_file(self.file()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        }
    }

    fn write(&self, note: &Note) -> io::Result<()> {
        let new = self.dir.join("hcbs.json.new");
        host::ground::replace(&new, &serde_json::to_vec(note)?)?;
        fs::rename(new, self.file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of plain files, which take everything.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new(top: &str) -> Machine {
            let machine = Machine(tempfile::tempdir().unwrap());
            let root = Root::at(machine.0.path());
            for (file, text) in [
                (
                    "/proc/self/mountinfo",
                    "41 31 0:38 / /c rw - cgroup2 cgroup2 rw\n",
                ),
                ("/c/cpu.rt.max", top),
            ] {
                let path = root.path(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            machine
        }

        fn top(&self) -> Top {
            Top::at(Root::at(self.0.path()), &self.0.path().join("run")).unwrap()
        }

        fn reserves(&self) -> String {
            fs::read_to_string(self.0.path().join("c/cpu.rt.max")).unwrap()
        }

        fn group(&self, name: &str, text: &str) {
            let dir = self.0.path().join("c").join(name);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("cpu.rt.max"), text).unwrap();
        }

        fn has(&self, mission: &str, places: &[(&str, u64)]) {
            let places = places.iter().map(|(place, us)| ((*place).to_owned(), *us));
            let places: BTreeMap<String, u64> = places.collect();
            self.top().change(mission, |all| *all = places).unwrap();
        }

        fn is_noted(&self) -> bool {
            self.0.path().join("run/hcbs.json").exists()
        }
    }

    #[test]
    fn missions_have_it_reserve_what_they_need_together_and_give_it_back() {
        let machine = Machine::new("0 1000000");
        machine.has("a", &[("x", 300_000), ("y", 50_000)]);
        assert_eq!(machine.reserves(), "350000 1000000");
        machine.has("b", &[("x", 100_000)]);
        assert_eq!(machine.reserves(), "450000 1000000");
        let note = machine.top().note().unwrap().unwrap();
        assert_eq!(note.of_mission("a"), 350_000);
        let groups = [
            ("timecell-cell-a.x".to_owned(), 300_000),
            ("theirs".to_owned(), 20_000),
        ];
        assert_eq!(note.reserved_without("a", &groups), 120_000);
        assert_eq!(note.reserved_without("c", &groups), 470_000);
        machine.has("a", &[("y", 50_000)]);
        assert_eq!(machine.reserves(), "150000 1000000");
        machine.has("a", &[]);
        assert_eq!(machine.reserves(), "100000 1000000");
        machine.has("b", &[]);
        assert_eq!(machine.reserves(), "0 1000000");
        assert!(!machine.is_noted());
        // Who has nothing changes nothing.
        machine.has("a", &[]);
        assert!(!machine.is_noted());
    }

    #[test]
    fn what_was_there_before_is_kept_with_the_groups_of_others() {
        let machine = Machine::new("50000 100000");
        machine.group("theirs", "40000 100000");
        machine.has("a", &[("x", 100_000)]);
        // Half of every cpu was reserved, and suffices.
        assert_eq!(machine.reserves(), "50000 100000");
        machine.has("a", &[("x", 200_000)]);
        assert_eq!(machine.reserves(), "600000 1000000");
        // They have taken more meanwhile, which is not taken from them.
        machine.group("theirs", "55000 100000");
        machine.has("a", &[]);
        assert_eq!(machine.reserves(), "550000 1000000");
    }

    #[test]
    fn what_somebody_else_has_written_since_is_what_stays() {
        let machine = Machine::new("0 1000000");
        machine.has("a", &[("x", 300_000)]);
        fs::write(machine.0.path().join("c/cpu.rt.max"), "800000 1000000").unwrap();
        machine.has("a", &[("x", 200_000)]);
        assert_eq!(machine.reserves(), "800000 1000000");
        machine.has("a", &[]);
        assert_eq!(machine.reserves(), "800000 1000000");
    }

    #[test]
    fn a_group_that_is_there_is_never_cut_off() {
        let machine = Machine::new("0 1000000");
        machine.has("a", &[("x", 300_000)]);
        machine.group("timecell-cell-a.x", "30000 100000");
        assert_eq!(machine.top().groups("a").len(), 1);
        // It is to have less once it is started anew, and has what it has until then.
        machine.has("a", &[("x", 100_000)]);
        assert_eq!(machine.reserves(), "300000 1000000");
        machine.has("a", &[]);
        assert_eq!(machine.reserves(), "300000 1000000");
        // Whoever asks again once it is gone gets it all back.
        assert!(machine.is_noted());
        fs::remove_dir_all(machine.0.path().join("c/timecell-cell-a.x")).unwrap();
        machine.has("a", &[]);
        assert_eq!(machine.reserves(), "0 1000000");
        assert!(!machine.is_noted());
    }

    #[test]
    fn whoever_is_killed_between_note_and_group_loses_nothing() {
        let machine = Machine::new("0 1000000");
        machine.has("a", &[("x", 300_000)]);
        // As if it had been killed before it wrote to the group.
        fs::write(machine.0.path().join("c/cpu.rt.max"), "0 1000000").unwrap();
        machine.has("a", &[("x", 300_000)]);
        assert_eq!(machine.reserves(), "300000 1000000");
        machine.has("a", &[]);
        assert_eq!(machine.reserves(), "0 1000000");
    }

    /// Whoever is killed before or after the group is written, while another mission has its part.
    #[test]
    fn what_one_of_two_was_killed_at_is_not_taken_for_what_was_there_before() {
        for (had, has) in [(&[][..], &[("y", 100_000)][..]), (&[("y", 100_000)], &[])] {
            for is_written in [false, true] {
                let machine = Machine::new("0 1000000");
                machine.has("a", &[("x", 300_000)]);
                machine.has("b", had);
                let killed = std::panic::catch_unwind(|| {
                    let places = has.iter().map(|(place, us)| ((*place).to_owned(), *us));
                    let places: BTreeMap<String, u64> = places.collect();
                    machine
                        .top()
                        .change_by("b", |all| *all = places, &|wanted| {
                            if is_written {
                                hcbs::reserve(machine.top().root(), machine.top().path(), wanted)?;
                            }
                            panic!("killed");
                        })
                });
                assert!(killed.is_err());
                machine.has("b", &[]);
                assert_eq!(machine.reserves(), "300000 1000000");
                machine.has("a", &[]);
                assert_eq!(machine.reserves(), "0 1000000");
                assert!(!machine.is_noted());
            }
        }
    }

    #[test]
    fn a_note_of_another_version_is_left_alone() {
        let machine = Machine::new("0 1000000");
        machine.has("a", &[("x", 300_000)]);
        let file = machine.0.path().join("run/hcbs.json");
        let newer = r#"{"schema":2}"#;
        fs::write(&file, newer).unwrap();
        let error = machine.top().change("a", BTreeMap::clear).unwrap_err();
        assert!(error.to_string().contains("it has version 2"), "{error}");
        assert_eq!(fs::read_to_string(file).unwrap(), newer);
        assert_eq!(machine.reserves(), "300000 1000000");
    }

    #[test]
    fn where_more_is_refused_nothing_has_changed() {
        let machine = Machine::new("0 1000000");
        let top = machine.top();
        let one = |all: &mut BTreeMap<String, u64>| {
            all.insert("x".to_owned(), 900_000);
        };
        let refuse = |asked: Budget| {
            // Whoever is killed just now leaves a note.
            assert_eq!(top.note().unwrap().unwrap().meant, Some(asked));
            Err(HcbsError::Top {
                asked_us: asked.per_second_us(),
                has_us: 0,
                busy: true,
            })
        };
        assert!(top.change_by("b", one, &refuse).is_err());
        assert!(!machine.is_noted());
        machine.has("a", &[("x", 300_000)]);
        let noted = top.note().unwrap();
        let error = top.change_by("b", one, &refuse).unwrap_err().to_string();
        assert!(error.contains("1200.000 ms of every second"), "{error}");
        assert_eq!(top.note().unwrap(), noted);
        assert_eq!(machine.reserves(), "300000 1000000");
    }
}
