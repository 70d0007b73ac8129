//! The reservation of the group at the top of cgroup v2 for all groups with real-time budgets: nothing by default, so makers of groups
//! must have it reserve enough and give that back afterwards. All missions and measurements of a machine share it; a note records each
//! reservation there, and the value before the first of them. The beginning of a group's name tells its owner.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{HcbsError, detect_at, earlier, limit_us, ordinary_us, reserve, reserved, shares_in};
use crate::root::Root;
use crate::rtgroup::Budget;
use crate::{lock, versioned};

/// The prefix of the names of the groups of all missions' cells.
pub const CELLS_PREFIX: &str = "timecell-cell-";
/// The version of the note.
const SCHEMA: u32 = 2;
/// How long one waits for others that change it.
const PATIENCE: Duration = Duration::from_secs(10);
/// The period in which reservations are counted, us: all others are converted to it.
const PERIOD_US: u64 = 1_000_000;

/// The note of the reservations in the group at the top.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    schema: u32,
    /// Its budget before the first owner asked for more, or the one that somebody else wrote since.
    before: Budget,
    /// The budget written to it last.
    written: Budget,
    /// The budget that a process was about to write, which may have been killed before or after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meant: Option<Budget>,
    /// Of each owner, by the prefix of its groups' names: for each group, us in every second.
    owners: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Note {
    /// The note in a file, also in one of the version before.
    fn parse(bytes: &[u8]) -> Result<Note, versioned::Unusable> {
        match versioned::parse::<earlier::Note>(bytes, earlier::SCHEMA) {
            Ok(note) => Ok(Note {
                schema: SCHEMA,
                before: note.before,
                written: note.written,
                meant: note.meant,
                owners: note.owners(),
            }),
            Err(versioned::Unusable::Version { .. }) => versioned::parse(bytes, SCHEMA),
            Err(malformed) => Err(malformed),
        }
    }

    /// The reservation of the owner of these groups, us in every second; 0 if it reserves nothing.
    pub fn of(&self, owner: &str) -> u64 {
        let groups = self.owners.get(owner).into_iter().flatten();
        groups.map(|(_, us)| *us).fold(0, u64::saturating_add)
    }

    /// All owners of reservations, by the prefix of their groups' names.
    pub fn owners(&self) -> impl Iterator<Item = &str> {
        self.owners.keys().map(String::as_str)
    }

    /// The share of the owner of these groups, us in every second: of each group its reservation, or its share in `shares` where that is
    /// more, as that of a version that an update has replaced until it is gone.
    pub fn held_by(&self, owner: &str, shares: &[(String, u64)]) -> u64 {
        let noted = self.owners.get(owner).into_iter().flatten();
        let there = shares.iter().filter(|(group, _)| group.starts_with(owner));
        let there = there.map(|(group, us)| (group, us));
        sum_of_each(noted.chain(there))
    }

    /// The reservation of the group at the top beside these groups once this owner reserves nothing, us in every second.
    pub fn reserved_without(&self, owner: &str, shares: &[(String, u64)]) -> u64 {
        let mut rest = self.clone();
        rest.owners.remove(owner);
        let others = shares.iter().filter(|(group, _)| !group.starts_with(owner));
        let others: Vec<(String, u64)> = others.cloned().collect();
        (rest.before.per_second_us()).max(rest.needed_us(&others))
    }

    /// The reservation that the group at the top needs beside these groups: of one that is there with another budget than the
    /// noted, the larger one.
    fn needed_us(&self, shares: &[(String, u64)]) -> u64 {
        let noted = self.owners.values().flatten();
        sum_of_each(noted.chain(shares.iter().map(|(group, us)| (group, us))))
    }
}

/// The shares of these groups together: one that is named twice, the larger of the two.
fn sum_of_each<'a>(groups: impl Iterator<Item = (&'a String, &'a u64)>) -> u64 {
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    for (group, us) in groups {
        let most = all.entry(group).or_default();
        *most = (*most).max(*us);
    }
    all.values().copied().fold(0, u64::saturating_add)
}

/// The group at the top, and where the note is.
#[derive(Debug, Clone)]
pub struct Top {
    root: Root,
    path: PathBuf,
    dir: PathBuf,
}

impl Top {
    /// The one of this machine.
    ///
    /// # Errors
    /// When its kernel has no such budgets.
    pub fn of_this_machine() -> Result<Top, HcbsError> {
        Top::at(Root::live(), Path::new(lock::PLACE))
    }

    /// The one of the machine below `root`, with its note and lock in `dir`.
    ///
    /// # Errors
    /// When its kernel has no such budgets.
    pub fn at(root: Root, dir: &Path) -> Result<Top, HcbsError> {
        Ok(Top {
            path: detect_at(&root)?,
            root,
            dir: dir.to_owned(),
        })
    }

    /// The machine that it is of.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The directory of the group.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The groups of this owner that are there with budgets.
    pub fn groups(&self, owner: &str) -> Vec<PathBuf> {
        let shares = shares_in(&self.root, &self.path).into_iter();
        let groups = shares.filter(|(group, _)| group.starts_with(owner));
        groups.map(|(group, _)| self.path.join(group)).collect()
    }

    /// The note; `None`: nobody reserves anything.
    ///
    /// # Errors
    /// When the note cannot be read or understood: another version of timecell wrote it, for instance.
    pub fn note(&self) -> Result<Option<Note>, HcbsError> {
        let file = self.file();
        let why =
            |why: &dyn std::fmt::Display| HcbsError::Note(format!("{}: {why}", file.display()));
        match crate::file::read(&file) {
            Ok(bytes) => (Note::parse(&bytes).map(Some)).map_err(|error| why(&error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(why(&error)),
        }
    }

    /// Whether this owner reserves something.
    ///
    /// # Errors
    /// As [`Top::note`].
    pub fn has(&self, owner: &str) -> Result<bool, HcbsError> {
        Ok((self.note()?).is_some_and(|note| note.of(owner) > 0))
    }

    /// Whether this owner reserves at least this for a group, us in every second.
    ///
    /// # Errors
    /// As [`Top::note`].
    pub fn has_for(&self, owner: &str, group: &str, us: u64) -> Result<bool, HcbsError> {
        let note = self.note()?;
        let reserved = note
            .as_ref()
            .and_then(|note| note.owners.get(owner)?.get(group));
        Ok(reserved.is_some_and(|reserved| *reserved >= us))
    }

    /// The total that new groups can have on each cpu, us in every second: the kernel's limit on all real-time work, less the largest fair server,
    /// less all reserved or held shares. SCHED_DEADLINE threads, of which the kernel reports nothing, are not subtracted.
    ///
    /// # Errors
    /// As [`Top::note`].
    pub fn free_us(&self) -> Result<u64, HcbsError> {
        let shares = shares_in(&self.root, &self.path);
        let needed_us = match self.note()? {
            Some(note) => note.needed_us(&shares),
            None => (shares.iter()).fold(0, |sum: u64, (_, us)| sum.saturating_add(*us)),
        };
        let taken_us = needed_us.saturating_add(ordinary_us(&self.root));
        Ok(limit_us(&self.root).saturating_sub(taken_us))
    }

    fn file(&self) -> PathBuf {
        self.dir.join("hcbs.json")
    }

    /// Changes an owner's reservations for its groups, each with its share in us in every second, and makes the group at the top reserve the
    /// need of all groups, and no less than it did before the first owner. If the kernel refuses more, nothing changes.
    ///
    /// # Errors
    /// The kernel's or the system's error.
    pub fn change(
        &self,
        owner: &str,
        change: impl FnOnce(&mut BTreeMap<String, u64>),
    ) -> Result<(), HcbsError> {
        self.change_by(owner, change, &|wanted| {
            reserve(&self.root, &self.path, wanted)
        })
    }

    fn change_by(
        &self,
        owner: &str,
        change: impl FnOnce(&mut BTreeMap<String, u64>),
        reserve: &dyn Fn(Budget) -> Result<(), HcbsError>,
    ) -> Result<(), HcbsError> {
        let kept =
            |error: io::Error| HcbsError::Note(format!("{}: {error}", self.file().display()));
        let _alone = lock::take(&self.dir, "hcbs.lock", PATIENCE).map_err(kept)?;
        let now = reserved(&self.root, &self.path)?;
        let known = self.note()?;
        let mut note = known.clone().unwrap_or(Note {
            schema: SCHEMA,
            before: now,
            written: now,
            meant: None,
            owners: BTreeMap::new(),
        });
        if now != note.written && note.meant != Some(now) {
            note.before = now;
        }
        let shares = shares_in(&self.root, &self.path);
        let groups = note.owners.entry(owner.to_owned()).or_default();
        let had = groups.clone();
        change(groups);
        // A group that is not gone yet has its budget, so it stays noted for the next call.
        for (group, _) in had {
            if let Some((_, us)) = shares.iter().find(|(name, us)| *name == group && *us > 0) {
                groups.entry(group).or_insert(*us);
            }
        }
        if groups.is_empty() {
            note.owners.remove(owner);
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
        // A process killed in between leaves a note by which the rest can be put in order: the group at the top then has its old
        // reservation, or the one that was about to be written. Nobody's room goes before it is given back, or is used before it is there.
        let more = wanted.per_second_us() > now.per_second_us();
        let between = match (&known, more) {
            (Some(known), false) => Note {
                owners: known.owners.clone(),
                ..note.clone()
            },
            _ => note.clone(),
        };
        if wanted != now {
            self.write(&between).map_err(kept)?;
            if let Err(error) = reserve(wanted) {
                self.write_or_remove(known.as_ref()).map_err(kept)?;
                return Err(error);
            }
        }
        (note.written, note.meant) = (wanted, None);
        let note = Some(&note).filter(|note| !note.owners.is_empty());
        self.write_or_remove(note).map_err(kept)
    }

    fn write_or_remove(&self, note: Option<&Note>) -> io::Result<()> {
        match note {
            Some(note) => self.write(note),
            None => crate::file::gone(fs::remove_file(self.file())),
        }
    }

    fn write(&self, note: &Note) -> io::Result<()> {
        let new = self.dir.join("hcbs.json.new");
        crate::ground::replace(&new, &serde_json::to_vec(note)?)?;
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

        fn has(&self, owner: &str, groups: &[(&str, u64)]) {
            let groups = groups.iter().map(|(group, us)| ((*group).to_owned(), *us));
            let groups: BTreeMap<String, u64> = groups.collect();
            self.top().change(owner, |all| *all = groups).unwrap();
        }

        fn is_noted(&self) -> bool {
            self.0.path().join("run/hcbs.json").exists()
        }
    }

    #[test]
    fn missions_have_it_reserve_what_they_need_together_and_give_it_back() {
        let machine = Machine::new("0 1000000");
        machine.has("a.", &[("a.x", 300_000), ("a.y", 50_000)]);
        assert_eq!(machine.reserves(), "350000 1000000");
        machine.has("b.", &[("b.x", 100_000)]);
        assert_eq!(machine.reserves(), "450000 1000000");
        let note = machine.top().note().unwrap().unwrap();
        assert_eq!(note.of("a."), 350_000);
        let groups = [("a.x".to_owned(), 300_000), ("theirs".to_owned(), 20_000)];
        assert_eq!(note.reserved_without("a.", &groups), 120_000);
        assert_eq!(note.reserved_without("c.", &groups), 470_000);
        machine.has("a.", &[("a.y", 50_000)]);
        assert_eq!(machine.reserves(), "150000 1000000");
        machine.has("a.", &[]);
        assert_eq!(machine.reserves(), "100000 1000000");
        machine.has("b.", &[]);
        assert_eq!(machine.reserves(), "0 1000000");
        assert!(!machine.is_noted());
        // An owner of nothing changes nothing.
        machine.has("a.", &[]);
        assert!(!machine.is_noted());
    }

    #[test]
    fn what_was_there_before_is_kept_with_the_groups_of_others() {
        let machine = Machine::new("50000 100000");
        machine.group("theirs", "40000 100000");
        machine.has("a.", &[("a.x", 100_000)]);
        // Half of every cpu was reserved, and suffices.
        assert_eq!(machine.reserves(), "50000 100000");
        machine.has("a.", &[("a.x", 200_000)]);
        assert_eq!(machine.reserves(), "600000 1000000");
        // They have taken more meanwhile, which is not taken from them.
        machine.group("theirs", "55000 100000");
        machine.has("a.", &[]);
        assert_eq!(machine.reserves(), "550000 1000000");
    }

    #[test]
    fn what_somebody_else_has_written_since_is_what_stays() {
        let machine = Machine::new("0 1000000");
        machine.has("a.", &[("a.x", 300_000)]);
        fs::write(machine.0.path().join("c/cpu.rt.max"), "800000 1000000").unwrap();
        machine.has("a.", &[("a.x", 200_000)]);
        assert_eq!(machine.reserves(), "800000 1000000");
        machine.has("a.", &[]);
        assert_eq!(machine.reserves(), "800000 1000000");
    }

    #[test]
    fn what_is_free_is_what_nobody_holds_or_has_reserved() {
        let machine = Machine::new("0 1000000");
        // Where nothing tells of the server of ordinary work, there is one.
        let free = |us: u64| Ok(us - 50_000);
        assert_eq!(machine.top().free_us(), free(1_000_000));
        for (file, text) in [("runtime", "950000"), ("period", "1000000")] {
            let path = machine
                .0
                .path()
                .join(format!("proc/sys/kernel/sched_rt_{file}_us"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        machine.group("theirs", "10000 100000");
        assert_eq!(machine.top().free_us(), free(850_000));
        // Reserved, and one of the two is there with more than that.
        machine.has("a.", &[("a.x", 100_000), ("a.y", 50_000)]);
        machine.group("a.x", "20000 100000");
        assert_eq!(machine.top().free_us(), free(600_000));
    }

    #[test]
    fn a_group_that_is_there_is_never_cut_off() {
        let machine = Machine::new("0 1000000");
        machine.has("a.", &[("a.x", 300_000)]);
        machine.group("a.x", "30000 100000");
        assert_eq!(machine.top().groups("a.").len(), 1);
        // It is to have less once it is started anew, and keeps its budget until then.
        machine.has("a.", &[("a.x", 100_000)]);
        assert_eq!(machine.reserves(), "300000 1000000");
        machine.has("a.", &[]);
        assert_eq!(machine.reserves(), "300000 1000000");
        // The next call once it is gone gives it all back.
        assert!(machine.is_noted());
        fs::remove_dir_all(machine.0.path().join("c/a.x")).unwrap();
        machine.has("a.", &[]);
        assert_eq!(machine.reserves(), "0 1000000");
        assert!(!machine.is_noted());
    }

    #[test]
    fn what_others_hold_is_the_larger_of_note_and_group_for_each_place() {
        let machine = Machine::new("0 1000000");
        machine.has("a.", &[("a.x", 100_000), ("a.y", 200_000)]);
        machine.has("b.", &[("b.z", 10_000)]);
        let note = machine.top().note().unwrap().unwrap();
        let groups = [
            ("theirs".to_owned(), 500_000),
            // It has its budget from before an update, which is more than the noted one for its next life.
            ("a.x".to_owned(), 300_000),
            ("a.y".to_owned(), 50_000),
            // One that is noted no more, and not gone yet.
            ("a.was".to_owned(), 7_000),
        ];
        assert_eq!(note.held_by("a.", &groups), 507_000);
        assert_eq!(note.held_by("b.", &groups), 10_000);
        assert_eq!(note.held_by("a.", &[]), 300_000);
    }

    #[test]
    fn whoever_is_killed_between_note_and_group_loses_nothing() {
        let machine = Machine::new("0 1000000");
        machine.has("a.", &[("a.x", 300_000)]);
        // As if it had been killed before it wrote to the group.
        fs::write(machine.0.path().join("c/cpu.rt.max"), "0 1000000").unwrap();
        machine.has("a.", &[("a.x", 300_000)]);
        assert_eq!(machine.reserves(), "300000 1000000");
        machine.has("a.", &[]);
        assert_eq!(machine.reserves(), "0 1000000");
    }

    /// A process killed before or after the group is written, while another mission has its part.
    #[test]
    fn what_one_of_two_was_killed_at_is_not_taken_for_what_was_there_before() {
        for (had, has) in [
            (&[][..], &[("b.y", 100_000)][..]),
            (&[("b.y", 100_000)], &[]),
        ] {
            for is_written in [false, true] {
                let machine = Machine::new("0 1000000");
                machine.has("a.", &[("a.x", 300_000)]);
                machine.has("b.", had);
                let killed = std::panic::catch_unwind(|| {
                    let places = has.iter().map(|(place, us)| ((*place).to_owned(), *us));
                    let places: BTreeMap<String, u64> = places.collect();
                    machine
                        .top()
                        .change_by("b.", |all| *all = places, &|wanted| {
                            if is_written {
                                reserve(machine.top().root(), machine.top().path(), wanted)?;
                            }
                            panic!("killed");
                        })
                });
                assert!(killed.is_err());
                machine.has("b.", &[]);
                assert_eq!(machine.reserves(), "300000 1000000");
                machine.has("a.", &[]);
                assert_eq!(machine.reserves(), "0 1000000");
                assert!(!machine.is_noted());
            }
        }
    }

    #[test]
    fn a_note_of_another_version_is_left_alone() {
        let machine = Machine::new("0 1000000");
        machine.has("a.", &[("a.x", 300_000)]);
        let file = machine.0.path().join("run/hcbs.json");
        let newer = r#"{"schema":3}"#;
        fs::write(&file, newer).unwrap();
        let error = machine.top().change("a.", BTreeMap::clear).unwrap_err();
        assert!(error.to_string().contains("it has version 3"), "{error}");
        assert_eq!(fs::read_to_string(file).unwrap(), newer);
        assert_eq!(machine.reserves(), "300000 1000000");
    }

    #[test]
    fn what_an_earlier_timecell_noted_is_known_by_its_groups() {
        let machine = Machine::new("300000 1000000");
        let file = machine.0.path().join("run/hcbs.json");
        fs::create_dir(file.parent().unwrap()).unwrap();
        let earlier = r#"{"schema":1,"before":{"runtime_us":0,"period_us":1000000},"written":{"runtime_us":300000,"period_us":1000000},"missions":{"a":{"x":250000,"x.b":50000}}}"#;
        fs::write(&file, earlier).unwrap();
        let top = machine.top();
        let note = top.note().unwrap().unwrap();
        assert_eq!(note.owners().collect::<Vec<_>>(), ["timecell-cell-a."]);
        // Its group is there, and not counted twice.
        let groups = [("timecell-cell-a.x".to_owned(), 250_000)];
        assert_eq!(note.held_by("timecell-cell-a.", &groups), 300_000);
        // It is written as this version has it.
        machine.has("timecell-cell-b.", &[("timecell-cell-b.y", 100_000)]);
        assert_eq!(machine.reserves(), "400000 1000000");
        let written = fs::read_to_string(&file).unwrap();
        assert!(written.contains(r#""schema":2"#), "{written}");
        assert!(
            written.contains(r#""timecell-cell-a.x.b":50000"#),
            "{written}"
        );
        machine.has("timecell-cell-b.", &[]);
        machine.has("timecell-cell-a.", &[]);
        assert_eq!(machine.reserves(), "0 1000000");
        assert!(!machine.is_noted());
        // One that was about to write.
        let meant = earlier.replace(
            r#""missions""#,
            r#""meant":{"runtime_us":350000,"period_us":1000000},"missions""#,
        );
        fs::write(&file, meant).unwrap();
        let meant = top.note().unwrap().unwrap().meant;
        assert_eq!(meant.map(|budget| budget.runtime_us), Some(350_000));
    }

    #[test]
    fn where_more_is_refused_nothing_has_changed() {
        let machine = Machine::new("0 1000000");
        let top = machine.top();
        let one = |all: &mut BTreeMap<String, u64>| {
            all.insert("b.x".to_owned(), 900_000);
        };
        let refuse = |asked: Budget| {
            // A process killed just now leaves a note.
            assert_eq!(top.note().unwrap().unwrap().meant, Some(asked));
            Err(HcbsError::Top {
                asked_us: asked.per_second_us(),
                has_us: 0,
                busy: true,
            })
        };
        assert!(top.change_by("b.", one, &refuse).is_err());
        assert!(!machine.is_noted());
        machine.has("a.", &[("a.x", 300_000)]);
        let noted = top.note().unwrap();
        let error = top.change_by("b.", one, &refuse).unwrap_err().to_string();
        assert!(error.contains("1200.000 ms of every second"), "{error}");
        assert_eq!(top.note().unwrap(), noted);
        assert_eq!(machine.reserves(), "300000 1000000");
    }
}
