use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use stats::{Tail, TailRound};
fn main() {
    for n in [6000u32, 200_000, 5_000_000] {
        let mut r = Xoshiro256PlusPlus::seed_from_u64(1);
        let v: Vec<i64> = (0..n)
            .map(|i| {
                (1e5 - 1e4 * (1.0 - r.random::<f64>()).ln() + if i % 1000 == 5 { 2e5 } else { 0.0 })
                    as i64
            })
            .collect();
        let a: Vec<u32> = (0..n).collect();
        let s = std::time::Instant::now();
        let t = Tail::of(
            &[TailRound {
                activations: &a,
                values_ns: &v,
            }],
            7,
        )
        .unwrap();
        println!("{n} {:?} {:?} {:?}", s.elapsed(), t.spikes, t.refusals);
        let v: Vec<i64> = (0..n)
            .map(|_| (1e5 - 1e4 * (1.0 - r.random::<f64>()).ln()) as i64)
            .collect();
        let s = std::time::Instant::now();
        let t = Tail::of(
            &[TailRound {
                activations: &a,
                values_ns: &v,
            }],
            7,
        )
        .unwrap();
        println!("{n} {:?} {:?} {:?}", s.elapsed(), t.spikes, t.refusals);
    }
}
