//! Jobs of the critical program, in a file that it shares with the test: a count, then one record per job.
//! The file is in memory, so that recording a job never waits for a disk.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most jobs of one mission.
const ROOM: usize = 100_000;
const WORDS: usize = 3;
const BYTES: usize = 8 + ROOM * WORDS * 8;

/// An ended job; CLOCK_MONOTONIC, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    pub release_ns: i64,
    pub begin_ns: i64,
    pub end_ns: i64,
}

impl Job {
    pub fn response_ns(&self) -> i64 {
        self.end_ns - self.release_ns
    }
}

/// Creates the file with all its memory allocated.
pub fn make(path: &Path) {
    std::fs::write(path, vec![0; BYTES]).unwrap();
}

/// Number of ended jobs.
pub fn count(file: &File) -> usize {
    let mut count = [0; 8];
    file.read_exact_at(&mut count, 0).unwrap();
    usize::try_from(u64::from_ne_bytes(count)).unwrap()
}

/// Jobs from `first` to the last ended one.
pub fn since(file: &File, first: usize) -> Vec<Job> {
    let (count, record) = (count(file), WORDS * 8);
    let mut bytes = vec![0; (count - first) * record];
    file.read_exact_at(&mut bytes, (8 + first * record) as u64)
        .unwrap();
    let (words, _) = bytes.as_chunks::<8>();
    let words: Vec<i64> = words.iter().map(|word| i64::from_ne_bytes(*word)).collect();
    (words.chunks(WORDS))
        .map(|job| Job {
            release_ns: job[0],
            begin_ns: job[1],
            end_ns: job[2],
        })
        .collect()
}

/// The program's side.
pub struct Jobs {
    words: &'static [AtomicU64],
}

impl Jobs {
    pub fn map(file: &File) -> Jobs {
        // SAFETY: the file is that long and stays so; its numbers are read and written as atomics only, and the mapping is
        // there until the program ends.
        let words = unsafe {
            let at = libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                0,
            );
            assert_ne!(at, libc::MAP_FAILED);
            std::slice::from_raw_parts(at.cast::<AtomicU64>(), BYTES / 8)
        };
        Jobs { words }
    }

    /// Whether there was room.
    pub fn add(&mut self, job: &Job) -> bool {
        let count = self.words[0].load(Ordering::Relaxed);
        let at = 1 + usize::try_from(count).unwrap() * WORDS;
        let Some(record) = self.words.get(at..at + WORDS) else {
            return false;
        };
        for (word, time) in record
            .iter()
            .zip([job.release_ns, job.begin_ns, job.end_ns])
        {
            word.store(time.cast_unsigned(), Ordering::Relaxed);
        }
        self.words[0].store(count + 1, Ordering::Release);
        true
    }
}
