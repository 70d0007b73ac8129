//! A payload that only reports that it is alive: its first and last instant, and in between a heartbeat.
//!
//! For scenarios that measure how cells start and end; the measuring loop is not involved.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU32};

use crate::map::{Map, preallocated};
use crate::{EXIT_ABANDONED, EXIT_BAD_ARGS, clock};

/// The page that payload and coordinator share.
#[repr(C)]
struct Page {
    /// The first clock reading of the payload, CLOCK_MONOTONIC ns; 0 until then.
    first_ns: AtomicI64,
    /// The last one before it ends.
    last_ns: AtomicI64,
    /// The newest heartbeat.
    beat_ns: AtomicI64,
    /// 1 once the payload is to stop answering.
    wedge: AtomicU32,
}

const BYTES: u64 = 4096;
/// A payload for which nobody waits any more ends on its own after this time, ns.
const PATIENCE_NS: i64 = 3_600_000_000_000;
/// As [`PATIENCE_NS`], for one that spins.
const SPIN_PATIENCE_NS: i64 = 30_000_000_000;

/// The coordinator's side of the shared page.
pub struct Life {
    map: Map,
}

impl Life {
    /// Makes the page at `path`, on tmpfs; an old one is replaced.
    ///
    /// # Errors
    /// When the file cannot be made or mapped.
    pub fn create(path: &Path) -> io::Result<Life> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = preallocated(path, BYTES)?;
        Ok(Life {
            map: Map::of(&file)?,
        })
    }

    /// The words behind `timecell` for a payload that tells its first and last instant and ends at once.
    pub fn ending(page: &str) -> Vec<String> {
        ["probe", "life", page].map(str::to_owned).to_vec()
    }

    /// The words behind `timecell` for a payload that beats every `beat_ns` until it is killed.
    pub fn beating(page: &str, beat_ns: i64) -> Vec<String> {
        let mut words = Life::ending(page);
        words.push(format!("beat={beat_ns}"));
        words
    }

    /// Clears the times of the payload before, and `wedge`.
    pub fn reset(&self) {
        let page = self.page();
        for word in [&page.first_ns, &page.last_ns, &page.beat_ns] {
            word.store(0, Release);
        }
        page.wedge.store(0, Release);
    }

    /// The payload's first clock reading, CLOCK_MONOTONIC ns.
    pub fn first_ns(&self) -> Option<i64> {
        told(&self.page().first_ns)
    }

    /// The payload's last clock reading before its end, CLOCK_MONOTONIC ns.
    pub fn last_ns(&self) -> Option<i64> {
        told(&self.page().last_ns)
    }

    /// The newest heartbeat, CLOCK_MONOTONIC ns.
    pub fn beat_ns(&self) -> Option<i64> {
        told(&self.page().beat_ns)
    }

    /// Makes the payload stop answering: it spins and beats no more.
    pub fn wedge(&self) {
        self.page().wedge.store(1, Release);
    }

    fn page(&self) -> &Page {
        page(&self.map)
    }
}

fn page(map: &Map) -> &Page {
    // SAFETY: the mapping is page-aligned and at least BYTES long (made so here, checked when opened); the page
    // holds atomics only.
    unsafe { &*map.as_ptr().cast::<Page>() }
}

fn told(word: &AtomicI64) -> Option<i64> {
    Some(word.load(Acquire)).filter(|ns| *ns != 0)
}

/// The payload; `words` are those behind `timecell probe life`. Returns the process's exit code.
pub fn life(words: &[String]) -> i32 {
    let first_ns = clock::now();
    let (path, beat_ns) = match words {
        [path] => (path, None),
        [path, beat] => match beat.strip_prefix("beat=").map(str::parse::<i64>) {
            Some(Ok(ns)) if ns > 0 => (path, Some(ns)),
            _ => return EXIT_BAD_ARGS,
        },
        _ => return EXIT_BAD_ARGS,
    };
    let map = match open(Path::new(path)) {
        Ok(map) => map,
        Err(error) => {
            eprintln!("probe: {path}: {error}");
            return EXIT_BAD_ARGS;
        }
    };
    let page = page(&map);
    page.first_ns.store(first_ns, Release);
    if let Some(beat_ns) = beat_ns {
        return beat(page, first_ns, beat_ns);
    }
    page.last_ns.store(clock::now(), Release);
    0
}

fn open(path: &Path) -> io::Result<Map> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let map = Map::of(&file)?;
    match map.len() as u64 >= BYTES {
        true => Ok(map),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Tells the page at `path` the first and the last instant of a payload that has no access to it.
pub(crate) fn stamp(path: &Path) -> io::Result<()> {
    let map = open(path)?;
    page(&map).first_ns.store(clock::now(), Release);
    page(&map).last_ns.store(clock::now(), Release);
    Ok(())
}

fn beat(page: &Page, first_ns: i64, beat_ns: i64) -> i32 {
    let mut next = first_ns;
    while next - first_ns < PATIENCE_NS {
        if page.wedge.load(Relaxed) != 0 {
            let until = clock::now() + SPIN_PATIENCE_NS;
            while clock::now() < until {
                std::hint::spin_loop();
            }
            return EXIT_ABANDONED;
        }
        page.beat_ns.store(clock::now(), Release);
        next += beat_ns;
        clock::sleep_until(next);
    }
    EXIT_ABANDONED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(path: &Path, beat: Option<&str>) -> Vec<String> {
        let path = path.display().to_string();
        std::iter::once(path)
            .chain(beat.map(str::to_owned))
            .collect()
    }

    #[test]
    fn first_and_last_are_told_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("life");
        let life_page = Life::create(&path).unwrap();
        assert_eq!((life_page.first_ns(), life_page.last_ns()), (None, None));
        let before = clock::now();
        assert_eq!(life(&words(&path, None)), 0);
        let (first, last) = (life_page.first_ns().unwrap(), life_page.last_ns().unwrap());
        assert!(before <= first && first <= last && last <= clock::now());
        life_page.reset();
        assert_eq!(life_page.first_ns(), None);
    }

    #[test]
    fn what_is_not_understood_ends_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("life");
        assert_eq!(life(&[]), EXIT_BAD_ARGS);
        assert_eq!(life(&words(&path, None)), EXIT_BAD_ARGS);
        std::fs::write(&path, "short").unwrap();
        assert_eq!(life(&words(&path, None)), EXIT_BAD_ARGS);
        Life::create(&path).unwrap();
        for beat in ["beat=", "beat=0", "x"] {
            assert_eq!(life(&words(&path, Some(beat))), EXIT_BAD_ARGS, "{beat}");
        }
    }

    #[test]
    fn a_wedged_payload_beats_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("life");
        let page = Life::create(&path).unwrap();
        let words = words(&path, Some("beat=1000000"));
        // Ends by itself later, with the test's process at the latest.
        std::thread::spawn(move || life(&words));
        let patience = clock::now() + 20_000_000_000;
        let beats_again = |from: Option<i64>, until: i64| {
            while page.beat_ns() == from && clock::now() < until {
                clock::sleep_for(1_000_000);
            }
            page.beat_ns() != from
        };
        assert!(beats_again(None, patience));
        assert!(beats_again(page.beat_ns(), patience));
        page.wedge();
        // One beat may have been under way.
        clock::sleep_for(50_000_000);
        let _ = beats_again(page.beat_ns(), clock::now() + 200_000_000);
        assert!(!beats_again(page.beat_ns(), clock::now() + 100_000_000));
    }
}
