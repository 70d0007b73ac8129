//! `memory`: streams through memory and accesses it at random, so that neither caches nor bandwidth are left to others. stress-ng's
//! `--stream` and `--cache`, or the same two patterns built in.

use std::hint::black_box;

use model::{LoadKind, LoadPlan};
use record::Achieved;

use super::stress_ng;
use crate::load::kind::{Gauge, Load, Program, Setting, Window};
use crate::load::tally::Tally;

pub(crate) struct Memory;

/// 64-bit words of one array; three of them are larger than the caches of most machines.
const WORDS: usize = 4 << 20;
/// Words streamed between two counts.
const CHUNK: usize = 64 << 10;
/// Random accesses between two chunks.
const TOUCHES: u64 = 4096;

impl Load for Memory {
    fn kind(&self) -> LoadKind {
        LoadKind::Memory
    }

    fn does(&self) -> &'static str {
        "thrashes caches and memory bandwidth on every cpu"
    }

    fn program(&self) -> Option<Program> {
        Some(stress_ng::PROGRAM)
    }

    fn command(&self, _: &LoadPlan, setting: &Setting) -> Vec<String> {
        let workers = setting.cpus.len().to_string();
        // The size is that of a large cache: virtual machines report sizes that take minutes to stream through.
        stress_ng::command(&[
            "--stream",
            &workers,
            "--stream-l3-size",
            "16M",
            "--cache",
            &workers,
        ])
    }

    fn told(&self, window: &Window<'_>) -> Vec<Achieved> {
        let mut told = stress_ng::told(window, "stream");
        told.extend(stress_ng::told(window, "cache"));
        told
    }

    fn gauges(&self) -> Vec<Gauge> {
        vec![
            Gauge::rate("streamed", "MB/s", 1e6),
            Gauge::rate("random accesses", "million/s", 1e6),
        ]
    }

    fn work(&self, setting: &Setting, tally: &Tally) -> String {
        crate::load::kind::on_each_cpu(setting, tally, |cpu| {
            let mut a = vec![1u64; WORDS];
            let mut b = vec![2u64; WORDS];
            let mut c = vec![3u64; WORDS];
            let mut random = u64::from(cpu) + 1;
            loop {
                for at in (0..WORDS).step_by(CHUNK) {
                    let to = at + CHUNK;
                    for ((a, b), c) in (a[at..to].iter_mut()).zip(&b[at..to]).zip(&c[at..to]) {
                        *a = b.wrapping_add(c.wrapping_mul(3));
                    }
                    tally.add(0, 3 * 8 * CHUNK as u64);
                    for _ in 0..TOUCHES {
                        // xorshift (Marsaglia 2003): cheap, and no prefetcher follows it.
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        let place = random as usize % WORDS;
                        c[place] = c[place].wrapping_add(a[place]);
                    }
                    tally.add(1, TOUCHES);
                }
                std::mem::swap(&mut a, &mut b);
                black_box((&a, &b, &c));
            }
        })
    }
}
