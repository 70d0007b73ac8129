//! Directories of the host that turn into links before or while a cell that mounts them is created.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use engine::Cell;
use engine::app::{AppSpec, Bind, Streams, create};
use model::EngineKind;

use crate::support::{Place, finish, launcher, output, refusal, run};

/// How often a cell is created while a directory turns into a link and back: many are refused.
const CELLS: usize = 8;
const TRIES: u32 = 100;

struct Scene {
    place: Place,
    /// The directory that a cell is meant to see.
    shared: PathBuf,
    /// The directory that it is not meant to see.
    secret: PathBuf,
}

impl Scene {
    fn new(kind: EngineKind) -> Scene {
        let place = Place::new(kind);
        let scene = Scene {
            shared: place.path().join("outer/shared"),
            secret: place.path().join("secret"),
            place,
        };
        for (dir, name) in [(&scene.shared, "meant"), (&scene.secret, "secret")] {
            fs::create_dir_all(dir).unwrap();
            fs::write(dir.join(name), "").unwrap();
        }
        scene
    }

    /// A cell that prints the contents of the intended directory.
    fn spec(&self, kind: EngineKind) -> AppSpec {
        let mut spec = self.place.script(kind, "ls /data");
        spec.binds = vec![Bind {
            leads_to: Some(self.shared.clone()),
            ..Bind::new(&self.shared, "/data", false)
        }];
        spec
    }
}

/// The destination of a source counts, not the identity of its directory.
pub fn a_source_that_leads_elsewhere_is_refused(kind: EngineKind) {
    let scene = Scene::new(kind);
    let spec = scene.spec(kind);
    assert_eq!(run(&spec).1, "meant\n");
    fs::remove_dir_all(&scene.shared).unwrap();
    fs::create_dir(&scene.shared).unwrap();
    fs::write(scene.shared.join("made anew"), "").unwrap();
    assert_eq!(run(&spec).1, "made anew\n");
    // The last part, and one before.
    let outer = scene.place.path().join("outer");
    for (swapped, target) in [(&scene.shared, "secret"), (&outer, "elsewhere")] {
        let target = scene.place.path().join(target);
        fs::create_dir_all(target.join("shared")).unwrap();
        fs::remove_dir_all(swapped).unwrap();
        symlink(&target, swapped).unwrap();
        let why = refusal(&spec);
        let sentence = format!(
            "the mount's source {} now leads to {}",
            scene.shared.display(),
            scene.shared.canonicalize().unwrap().display()
        );
        assert!(why.contains(&sentence), "{why}");
        fs::remove_file(swapped).unwrap();
        fs::create_dir_all(&scene.shared).unwrap();
    }
    assert_eq!(run(&spec).1, "");
}

/// Between the check of a source and the mount there is no time to swap in a link.
pub fn a_source_is_mounted_as_it_was_looked_at(kind: EngineKind) {
    let scene = Scene::new(kind);
    let over = AtomicBool::new(false);
    let seen: Vec<String> = std::thread::scope(|threads| {
        let (shared, secret) = (&scene.shared, &scene.secret);
        let swapping = threads.spawn(|| swap(shared, secret, &over));
        let tries = (0..TRIES).filter_map(|_| said(&scene.spec(kind)));
        let seen = tries.take(CELLS).collect();
        over.store(true, Ordering::Relaxed);
        swapping.join().unwrap();
        seen
    });
    assert!(
        seen.iter().all(|said| !said.contains("secret")),
        "a cell was shown another directory: {seen:?}"
    );
}

fn swap(shared: &Path, secret: &Path, over: &AtomicBool) {
    let aside = shared.with_extension("aside");
    while !over.load(Ordering::Relaxed) {
        fs::rename(shared, &aside).unwrap();
        symlink(secret, shared).unwrap();
        std::thread::sleep(std::time::Duration::from_micros(500));
        fs::remove_file(shared).unwrap();
        fs::rename(&aside, shared).unwrap();
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
}

/// The output of a cell, if it was created.
fn said(spec: &AppSpec) -> Option<String> {
    let mut cell = create(spec, Streams::Log, &launcher()).ok()?;
    cell.start().unwrap();
    finish(&mut cell);
    let said = output(&mut cell);
    cell.remove().unwrap();
    Some(said)
}
