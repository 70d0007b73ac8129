//! The undo file: the changes, the values before, and putting those back.
//!
//! It is trusted only where it is the caller's own, and only files that a fix may name are written. Its changes last until the
//! reboot, and so does it.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Applied, Failed, Fix, FixError, Form, Write};
use crate::root::{Root, reason_of};
use crate::versioned::{self, Unusable};
use crate::{foreign_file, ground};

/// The default path: in memory, as the changes that it lists are.
pub const USUAL: &str = "/run/timecell/doctor-undo.json";

/// Version of the file.
const SCHEMA: u32 = 1;
/// The most bytes that are read: some thousands of interrupts.
const MOST_BYTES: u64 = 4 << 20;
/// The files that a fix writes, `*` for a number.
pub(super) const FILES: [&str; 12] = [
    "/proc/irq/*/smp_affinity_list",
    "/proc/irq/default_smp_affinity",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/timer_migration",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
    "/sys/kernel/debug/sched/fair_server/cpu*/runtime",
    "/sys/kernel/debug/sched/features",
    "/sys/kernel/debug/sched/preempt",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/module/rcutree/parameters/rcu_resched_ns",
];

/// One file that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The check that it fixes.
    pub id: String,
    /// The file.
    pub path: String,
    /// How its value stands in it.
    pub form: Form,
    /// The value that it had.
    pub was: String,
    /// The value that it was given.
    pub set: String,
    /// Another value that it may have as well: that of an earlier call, as long as `set` may not be written yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<String>,
}

impl Change {
    /// The open changes of a fix.
    pub fn open_of(fix: &Fix) -> impl Iterator<Item = Change> {
        fix.open().map(|write| Change::of(fix, write))
    }

    pub(super) fn of(fix: &Fix, write: &Write) -> Change {
        Change {
            id: fix.id.to_string(),
            path: write.path.clone(),
            form: write.form,
            was: write.was.clone(),
            set: write.set.clone(),
            earlier: None,
        }
    }

    /// The same with the file's present value.
    pub(super) fn having(&self, now: String) -> Change {
        let mut change = self.clone();
        // A value that no fix could have written would make the undo file one that is not believed.
        if is_one_line(&now) {
            change.set = now;
        }
        change
    }

    /// Whether a fix could have made it.
    pub(crate) fn is_ours(&self) -> bool {
        FILES.iter().any(|file| has_shape(&self.path, file))
            && [Some(&self.was), Some(&self.set), self.earlier.as_ref()]
                .into_iter()
                .flatten()
                .all(|text| is_one_line(text))
    }
}

fn is_one_line(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_control)
}

/// Whether a path is one of `shape`, in which `*` at the end of a part stands for a number.
fn has_shape(path: &str, shape: &str) -> bool {
    let is_like = |part: &str, like: &str| match like.strip_suffix('*') {
        None => part == like,
        Some(name) => part.strip_prefix(name).is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        }),
    };
    let (mut parts, mut likes) = (path.split('/'), shape.split('/'));
    loop {
        match (parts.next(), likes.next()) {
            (None, None) => return true,
            (Some(part), Some(like)) if is_like(part, like) => {}
            _ => return false,
        }
    }
}

/// The undo file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Undo {
    schema: u32,
    /// The boot in which the changes were made.
    boot_id: String,
    /// Files that are still changed, in the order in which they were.
    changes: Vec<Change>,
    /// Files that the kernel lets nobody change, as a call in this boot has found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stayed: Vec<String>,
}

/// Changes that earlier calls in this boot have left, as far as anything tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Noted {
    /// Files that were changed and not put back.
    pub changes: Vec<Change>,
    /// Files that the kernel lets nobody change.
    pub stayed: Vec<String>,
}

/// The contents of an undo file; users other than root may also read one of root's. Empty where there is no trusted one.
pub fn noted(root: &Root, path: &Path) -> Noted {
    let undo = Undo::read_by(path, foreign_file::read).ok().flatten();
    match undo.filter(|undo| undo.boot_id == boot_id(root)) {
        Some(undo) => Noted {
            changes: undo.changes,
            stayed: undo.stayed,
        },
        None => Noted::default(),
    }
}

/// The outcome of putting back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PutBack {
    /// Files that have their old value again.
    pub put_back: Vec<Change>,
    /// Files that had it already.
    pub already: Vec<Change>,
    /// Files that are not put back, and why: somebody else has changed them since.
    pub gone: Vec<Failed>,
    /// Files that are absent for now, and why, such as those of a cpu that is offline; they stay in the undo file.
    pub absent: Vec<Failed>,
    /// Files that could not be read or written; they stay in the undo file.
    pub failed: Vec<Failed>,
    /// Whether the changes were made before the last boot, so that they are gone.
    pub other_boot: bool,
}

/// Puts back the changes in an undo file, the last one first. Finished changes are removed from the file, so that a second call
/// does nothing. `None`: there is no such file.
///
/// # Errors
/// [`FixError`], with nothing changed.
pub fn put_back(root: &Root, path: &Path) -> Result<Option<PutBack>, FixError> {
    let Some(undo) = Undo::read(path)? else {
        return Ok(None);
    };
    let mut done = PutBack {
        other_boot: undo.boot_id != boot_id(root),
        ..PutBack::default()
    };
    let mut left = Undo {
        changes: Vec::new(),
        stayed: Vec::new(),
        ..undo.clone()
    };
    if !done.other_boot {
        for change in &undo.changes {
            super::may_write(root, &change.path)?;
        }
        // Before anything is changed: a user who may not write the file changes nothing either.
        undo.save(path)?;
        for change in undo.changes.into_iter().rev() {
            left.changes.extend(one(root, change, &mut done));
        }
        left.changes.reverse();
    }
    // Changes left in it are seen to be done the next time. A file that somebody has kept elsewhere is his to remove.
    let _ = match path == Path::new(USUAL) {
        true => left.save_or_remove(path),
        false => left.save(path),
    };
    Ok(Some(done))
}

/// Puts one back; returns its entry if it stays in the undo file.
fn one(root: &Root, change: Change, done: &mut PutBack) -> Option<Change> {
    let now = match change.form.read(root, &change.path, &change.set) {
        Ok(now) => now,
        Err(error) => {
            let failed = Failed {
                change: change.clone(),
                why: error.to_string(),
            };
            match root.is_absent(&change.path) {
                true => done.absent.push(failed),
                false => done.failed.push(failed),
            }
            return Some(change);
        }
    };
    if now == change.was {
        done.already.push(change);
    } else if now != change.set && change.earlier.as_ref() != Some(&now) {
        let why = format!(
            "it is now {now}, neither {} nor the old {}",
            change.set, change.was
        );
        done.gone.push(Failed { change, why });
    } else {
        match super::take_back(root, &change) {
            Ok(()) => done.put_back.push(change),
            // With its present value, so that the next time it is tried again.
            Err(now) => {
                let stays = now.change.clone();
                done.failed.push(*now);
                return Some(stays);
            }
        }
    }
    None
}

impl Undo {
    fn new(root: &Root) -> Undo {
        Undo {
            schema: SCHEMA,
            boot_id: boot_id(root),
            changes: Vec::new(),
            stayed: Vec::new(),
        }
    }

    /// The undo file of an earlier call, if that was in this boot.
    pub(super) fn read_or_new(root: &Root, path: &Path) -> Result<Undo, FixError> {
        let earlier = Undo::read(path)?;
        Ok((earlier.filter(|undo| undo.boot_id == boot_id(root)))
            .unwrap_or_else(|| Undo::new(root)))
    }

    fn read(path: &Path) -> Result<Option<Undo>, FixError> {
        Undo::read_by(path, ground::read)
    }

    fn read_by(
        path: &Path,
        read: fn(&Path, u64) -> std::io::Result<Vec<u8>>,
    ) -> Result<Option<Undo>, FixError> {
        let bad = |reason: String| FixError::BadUndo {
            path: path.to_owned(),
            reason,
        };
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        if let Err(foreign) = ground::check(dir.unwrap_or(Path::new("."))) {
            return Err(bad(format!(
                "users other than root can change {}, so it is not trusted",
                foreign.at.display()
            )));
        }
        let bytes = match read(path, MOST_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(bad(reason_of(&error))),
        };
        let undo: Undo = versioned::parse(&bytes, SCHEMA).map_err(|error| {
            bad(match error {
                Unusable::Version { .. } => error.to_string(),
                Unusable::Malformed(error) => {
                    format!("it is not an undo file of `timecell doctor` ({error})")
                }
            })
        })?;
        if let Some(change) = undo.changes.iter().find(|change| !change.is_ours()) {
            return Err(bad(format!(
                "it names {}, which no fix changes",
                change.path.escape_debug()
            )));
        }
        Ok(Some(undo))
    }

    /// Adds changes that are about to be made: a process killed before leaves the file with an earlier call's value.
    pub(super) fn expect(&mut self, changes: impl IntoIterator<Item = Change>) {
        self.add(changes, |known, was| match known.earlier.as_deref() {
            Some(earlier) if earlier == was => known.earlier.clone(),
            _ => Some(known.set.clone()),
        });
    }

    /// Adds changes that were made.
    pub(super) fn note(&mut self, changes: impl IntoIterator<Item = Change>) {
        self.add(changes, |_, _| None);
    }

    /// Of a file that was changed before, the oldest value counts. `earlier` says which other value it may have now, from the
    /// known change and its last value.
    fn add(
        &mut self,
        changes: impl IntoIterator<Item = Change>,
        earlier: impl Fn(&Change, &str) -> Option<String>,
    ) {
        for change in changes {
            let is_same = |known: &&mut Change| {
                // A feature of the scheduler has its file in common with the others.
                known.path == change.path && feature(known) == feature(&change)
            };
            match self.changes.iter_mut().find(is_same) {
                Some(known) => {
                    known.earlier = earlier(known, &change.was);
                    known.set = change.set;
                }
                None => self.changes.push(change),
            }
        }
    }

    /// Files that stayed as they are, and no longer those that did not.
    pub(super) fn note_stayed(&mut self, applied: &Applied) {
        let changed = |path: &String| applied.changed.iter().any(|change| change.path == *path);
        self.stayed.retain(|path| !changed(path));
        for failed in &applied.stayed {
            if !self.stayed.contains(&failed.change.path) {
                self.stayed.push(failed.change.path.clone());
            }
        }
    }

    /// Writes it in place of the old one.
    pub(super) fn save(&self, path: &Path) -> Result<(), FixError> {
        let failed = |error: &std::io::Error| FixError::NoUndo {
            path: path.to_owned(),
            reason: reason_of(error),
        };
        let write = || -> std::io::Result<()> {
            if let Some(dir) = path.parent() {
                std::fs::create_dir_all(dir)?;
            }
            let part = path.with_extension("part");
            let _ = std::fs::remove_file(&part);
            let mut file = (std::fs::OpenOptions::new().write(true).create_new(true))
                .mode(0o644)
                .open(&part)?;
            let mut text = serde_json::to_vec_pretty(self)?;
            text.push(b'\n');
            file.write_all(&text)?;
            // A process killed here leaves the old one whole.
            std::fs::rename(&part, path)
        };
        write().map_err(|error| failed(&error))
    }

    /// The same; no file where there is nothing to tell.
    pub(super) fn save_or_remove(&self, path: &Path) -> Result<(), FixError> {
        if self.changes.is_empty() && self.stayed.is_empty() {
            let _ = std::fs::remove_file(path);
            return Ok(());
        }
        self.save(path)
    }
}

fn feature(change: &Change) -> Option<&str> {
    let name = || change.set.strip_prefix("NO_").unwrap_or(&change.set);
    (change.form == Form::Feature).then(name)
}

fn boot_id(root: &Root) -> String {
    root.read("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
}
