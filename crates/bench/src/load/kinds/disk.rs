//! `disk`: 1 MB blocks, each committed to the device before the next, and random data written and read at random
//! places. stress-ng's `--hdd` with these options, or the same built in.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use model::{LoadKind, LoadPlan};
use record::Achieved;

use super::stress_ng;
use crate::load::kind::{Gauge, Load, Program, Setting, Window};
use crate::load::tally::Tally;

pub(crate) struct Disk;

/// Bytes of a block.
pub(super) const BLOCK: usize = 1_000_000;
/// Blocks of a file before it is written over.
const BLOCKS: u64 = 64;
/// Blocks of the file that is written and read at random.
const RANDOM_BLOCKS: u64 = 16;
/// Bytes of a random access.
const PIECE: usize = 4096;
/// Random accesses between two committed blocks.
const PIECES: u64 = 64;

impl Load for Disk {
    fn kind(&self) -> LoadKind {
        LoadKind::Disk
    }

    fn does(&self) -> &'static str {
        "commits 1 MB blocks to the disk of --out, writes and reads at random"
    }

    fn program(&self) -> Option<Program> {
        Some(stress_ng::PROGRAM)
    }

    fn command(&self, _: &LoadPlan, _: &Setting) -> Vec<String> {
        stress_ng::command(&[
            "--hdd",
            "1",
            "--hdd-bytes",
            "64M",
            "--hdd-write-size",
            "1M",
            "--hdd-opts",
            "wr-rnd,rd-rnd,fdatasync",
            "--temp-path",
            ".",
        ])
    }

    fn told(&self, window: &Window<'_>) -> Vec<Achieved> {
        let mut told = stress_ng::told(window, "hdd");
        let bytes = window
            .after
            .written_bytes
            .saturating_sub(window.before.written_bytes);
        if bytes > 0 {
            told.insert(0, window.per_second("written", "MB/s", bytes as f64 / 1e6));
        }
        told
    }

    fn gauges(&self) -> Vec<Gauge> {
        vec![
            Gauge::rate("committed", "MB/s", 1e6),
            Gauge::rate("random writes", "MB/s", 1e6),
            Gauge::rate("random reads", "MB/s", 1e6),
        ]
    }

    fn work(&self, setting: &Setting, tally: &Tally) -> String {
        let dir = setting.dir.as_deref().unwrap_or(".");
        let run = || -> std::io::Result<()> {
            tally.die_with_coordinator()?;
            let (ordered, random) = (nameless(dir)?, nameless(dir)?);
            let mut block = vec![0; BLOCK];
            let mut piece = [0; PIECE];
            let mut random_number = 0x9e37_79b9_7f4a_7c15u64;
            // Written in order first: a file of random pieces is one of thousands of extents, and the devices and file
            // systems that discard freed blocks take half a minute to remove it.
            for number in 0..RANDOM_BLOCKS {
                fill(&mut block, &mut random_number);
                random.write_all_at(&block, number * BLOCK as u64)?;
            }
            random.sync_data()?;
            let places = RANDOM_BLOCKS * BLOCK as u64 / PIECE as u64;
            for turn in 0u64.. {
                fill(&mut block, &mut random_number);
                ordered.write_all_at(&block, turn % BLOCKS * BLOCK as u64)?;
                commit(&ordered)?;
                tally.add(0, BLOCK as u64);
                for _ in 0..PIECES {
                    fill(&mut piece[..8], &mut random_number);
                    random.write_all_at(&piece, random_number % places * PIECE as u64)?;
                    tally.add(1, PIECE as u64);
                    fill(&mut piece[..8], &mut random_number);
                    random.read_exact_at(&mut piece, random_number % places * PIECE as u64)?;
                    tally.add(2, PIECE as u64);
                }
                // Random writes reach the device too, and do not fill memory.
                random.sync_data()?;
            }
            Ok(())
        };
        match run() {
            Ok(()) => "all turns are used up".to_owned(),
            Err(error) => format!("{dir}: {error}"),
        }
    }

    fn pause_ns(&self) -> i64 {
        // A card of a small board commits 1 MB in some hundred milliseconds.
        2_000_000_000
    }

    fn needs_disk(&self, _: bool) -> bool {
        true
    }
}

/// A file without a name: it disappears with its last process in any case.
#[expect(clippy::disallowed_methods, reason = "the file has no name")]
pub(super) fn nameless(dir: &str) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .mode(0o600)
        .open(Path::new(dir))
}

pub(super) fn commit(file: &File) -> std::io::Result<()> {
    file.sync_data()
}

/// Random bytes, which no device can compress.
fn fill(bytes: &mut [u8], random: &mut u64) {
    for chunk in bytes.chunks_mut(8) {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        chunk.copy_from_slice(&random.to_ne_bytes()[..chunk.len()]);
    }
}
