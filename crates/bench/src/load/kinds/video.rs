//! `video`: decodes video in software as fast as it can. ffmpeg on a clip that it makes from its own test source
//! (testsrc2, 1280x720, MPEG-4 part 2), or the kernel of such a decoder built in: dequantised blocks through an inverse
//! discrete cosine transform, added to motion-compensated blocks of the frame before.

use std::hint::black_box;
use std::path::Path;

use model::{LoadKind, LoadPlan};
use record::Achieved;

use crate::load::kind::{Gauge, Load, Program, Setting, Window};
use crate::load::tally::Tally;

pub(crate) struct Video;

const WIDTH: usize = 1280;
const HEIGHT: usize = 720;
/// Pixels on the side of a block.
const SIDE: usize = 8;
/// Name of the clip in the loads' directory.
const CLIP: &str = "clip.mkv";

impl Load for Video {
    fn kind(&self) -> LoadKind {
        LoadKind::Video
    }

    fn does(&self) -> &'static str {
        "decodes 1280x720 video in software on every cpu, as fast as it can"
    }

    fn program(&self) -> Option<Program> {
        Some(Program {
            name: "ffmpeg",
            package: "ffmpeg",
            version: &["-version"],
        })
    }

    fn command(&self, _: &LoadPlan, setting: &Setting) -> Vec<String> {
        let threads = setting.cpus.len().to_string();
        let words = format!(
            "ffmpeg -hide_banner -loglevel error -nostdin -nostats -progress pipe:1 -stats_period 0.1 \
             -threads {threads} -stream_loop -1 -i {CLIP} -f null -"
        );
        words.split_whitespace().map(str::to_owned).collect()
    }

    fn prepare(&self, dir: &Path) -> Option<Vec<String>> {
        if dir.join(CLIP).exists() {
            return None;
        }
        let words = format!(
            "ffmpeg -hide_banner -loglevel error -nostdin -f lavfi -i testsrc2=size={WIDTH}x{HEIGHT}:rate=30 -t 4 \
             -c:v mpeg4 -q:v 3 -y {CLIP}"
        );
        Some(words.split_whitespace().map(str::to_owned).collect())
    }

    fn progress(&self, log: &str) -> Option<u64> {
        (log.lines().rev()).find_map(|line| line.strip_prefix("frame=")?.trim().parse().ok())
    }

    fn told(&self, window: &Window<'_>) -> Vec<Achieved> {
        vec![window.per_second("frames decoded", "1/s", window.progress as f64)]
    }

    fn gauges(&self) -> Vec<Gauge> {
        vec![Gauge::rate("frames decoded", "1/s", (HEIGHT / SIDE) as f64)]
    }

    fn work(&self, setting: &Setting, tally: &Tally) -> String {
        crate::load::kind::on_each_cpu(setting, tally, |cpu| {
            let mut before = vec![128u8; WIDTH * HEIGHT];
            let mut now = before.clone();
            let mut random = cpu.wrapping_mul(2_654_435_761) | 1;
            loop {
                for top in (0..HEIGHT).step_by(SIDE) {
                    row(&before, &mut now, top, &mut random);
                    tally.add(0, 1);
                }
                std::mem::swap(&mut before, &mut now);
                black_box(&before);
            }
        })
    }

    fn needs_disk(&self, built_in: bool) -> bool {
        // For the clip.
        !built_in
    }
}

/// One row of blocks of a predicted frame: every block has a few coefficients, as real streams do.
fn row(before: &[u8], now: &mut [u8], top: usize, random: &mut u32) {
    for left in (0..WIDTH).step_by(SIDE) {
        let mut block = [0i32; SIDE * SIDE];
        for _ in 0..6 {
            *random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let place = (*random >> 26) as usize;
            block[place] = ((*random >> 8) & 0x3f) as i32 * 16 - 504;
        }
        inverse_dct(&mut block);
        // Up to 7 pixels down and to the right, kept inside the frame.
        let from_top = (top + (*random >> 13 & 7) as usize).min(HEIGHT - SIDE);
        let from_left = (left + (*random >> 17 & 7) as usize).min(WIDTH - SIDE);
        for row in 0..SIDE {
            let from = &before[(from_top + row) * WIDTH + from_left..][..SIDE];
            let to = &mut now[(top + row) * WIDTH + left..][..SIDE];
            for ((to, from), change) in to.iter_mut().zip(from).zip(&block[row * SIDE..]) {
                *to = (i32::from(*from) + change).clamp(0, 255) as u8;
            }
        }
    }
}

/// cos(k pi / 16) in units of 1/4096.
const COSINES: [i32; 8] = [4096, 4017, 3784, 3406, 2896, 2276, 1567, 799];

/// cos((2 x + 1) u pi / 16) in units of 1/4096.
const fn cosine(x: usize, u: usize) -> i32 {
    let k = (2 * x + 1) * u % 32;
    match k {
        0..=7 => COSINES[k],
        8 => 0,
        9..=16 => -(if k == 16 { 4096 } else { COSINES[16 - k] }),
        17..=23 => -COSINES[k - 16],
        24 => 0,
        _ => COSINES[32 - k],
    }
}

/// The basis with its scaling: 1/sqrt(8) for u = 0, 1/2 else.
const BASIS: [[i32; SIDE]; SIDE] = {
    let mut basis = [[0; SIDE]; SIDE];
    let mut x = 0;
    while x < SIDE {
        let mut u = 0;
        while u < SIDE {
            basis[x][u] = if u == 0 { 1448 } else { cosine(x, u) / 2 };
            u += 1;
        }
        x += 1;
    }
    basis
};

/// The inverse discrete cosine transform of a block, rows then columns, in fixed point.
fn inverse_dct(block: &mut [i32; SIDE * SIDE]) {
    let mut rows = [0; SIDE * SIDE];
    for row in 0..SIDE {
        for x in 0..SIDE {
            let sum: i32 = (0..SIDE).map(|u| block[row * SIDE + u] * BASIS[x][u]).sum();
            rows[row * SIDE + x] = (sum + 2048) >> 12;
        }
    }
    for column in 0..SIDE {
        for y in 0..SIDE {
            let sum: i32 = (0..SIDE)
                .map(|v| rows[v * SIDE + column] * BASIS[y][v])
                .sum();
            block[y * SIDE + column] = (sum + 2048) >> 12;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_is_the_inverse_dct() {
        // Against the definition in floating point, for every single coefficient.
        let scale = |u: usize| if u == 0 { (1.0f64 / 8.0).sqrt() } else { 0.5 };
        for place in 0..64 {
            let (v, u) = (place / SIDE, place % SIDE);
            let mut block = [0; 64];
            block[place] = 800;
            inverse_dct(&mut block);
            for (at, got) in block.iter().enumerate() {
                let (y, x) = (at / SIDE, at % SIDE);
                let wave = |x: usize, u: usize| {
                    scale(u) * ((2 * x + 1) as f64 * u as f64 * std::f64::consts::PI / 16.0).cos()
                };
                let wanted = 800.0 * wave(x, u) * wave(y, v);
                assert!(
                    (f64::from(*got) - wanted).abs() < 2.0,
                    "{place} {at}: {got} {wanted}"
                );
            }
        }
    }

    #[test]
    fn a_frame_changes_with_the_blocks() {
        let before = vec![128u8; WIDTH * HEIGHT];
        let mut now = before.clone();
        row(&before, &mut now, 16, &mut 1);
        let changed = |rows: &[u8]| rows.iter().filter(|pixel| **pixel != 128).count();
        assert!(changed(&now[16 * WIDTH..24 * WIDTH]) > 4 * WIDTH);
        assert_eq!(changed(&now[..16 * WIDTH]) + changed(&now[24 * WIDTH..]), 0);
    }

    #[test]
    fn progress_is_the_last_frame() {
        let log = "frame=12\nfps=1\nframe=  31\nprogress=continue\n";
        assert_eq!(Video.progress(log), Some(31));
        assert_eq!(Video.progress(""), None);
    }
}
