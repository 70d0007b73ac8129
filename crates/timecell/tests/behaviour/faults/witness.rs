//! An independent witness of which cells have finished: it reads the headers in shared memory while the cells measure.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use record::samples::Header;

/// Trial and cell, and the header of the finished cell.
pub type Finished = BTreeMap<(u32, String), Header>;

pub struct Witness {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Finished>,
}

impl Witness {
    /// Watches the directory of coordinator `pid` in `shared`.
    pub fn start(shared: PathBuf, pid: u32) -> Witness {
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut seen = Finished::new();
            loop {
                // Once more after the end: cells that outlive their coordinator are seen too.
                let last = ended.load(Ordering::Acquire);
                look(&shared, pid, &mut seen);
                if last {
                    return seen;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Witness { over, thread }
    }

    pub fn stop(self) -> Finished {
        self.over.store(true, Ordering::Release);
        self.thread.join().unwrap()
    }
}

fn look(shared: &Path, pid: u32, seen: &mut Finished) {
    let place = format!("-{pid}");
    for place in list(shared).filter(|path| path.to_string_lossy().ends_with(&place)) {
        for trial in list(&place.join("trials")) {
            let number = trial
                .file_name()
                .and_then(|name| name.to_str()?.parse().ok());
            let Some(number) = number else { continue };
            for file in list(&trial.join("shared")) {
                let Some(cell) = file
                    .file_name()
                    .and_then(|name| name.to_str()?.strip_suffix(".samples").map(str::to_owned))
                else {
                    continue;
                };
                if let Some(header) = finished(&file) {
                    seen.entry((number, cell)).or_insert(header);
                }
            }
        }
    }
}

fn finished(file: &Path) -> Option<Header> {
    let mut bytes = [0; size_of::<Header>()];
    fs::File::open(file)
        .ok()?
        .read_exact_at(&mut bytes, 0)
        .ok()?;
    let header = Header::from_bytes(&bytes);
    // `complete` is not the last word that a cell writes: the sums must be there too.
    let whole = header.complete == 1 && header.go_ns != 0 && header.ended_ns != 0;
    (whole && header.count + header.skipped == header.planned).then_some(header)
}

fn list(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}
