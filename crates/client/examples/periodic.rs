//! A control loop with a period and a cpu time of your choice, which reports its jobs: the program of `examples/missions/neighbour.toml`.

use std::env;
use std::time::Duration;

use timecell_client::{Client, now_ns};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut given = env::args().skip(1).map(|given| given.parse::<i64>());
    let (Some(Ok(period_us)), Some(Ok(work_us)), None) = (given.next(), given.next(), given.next())
    else {
        return Err("usage: periodic PERIOD_US WORK_US".into());
    };
    let client = Client::open_from_env()?;
    let mut task = client.task("loop")?;
    let mut release_ns = now_ns();
    loop {
        release_ns += period_us * 1_000;
        sleep_until(release_ns);
        task.begin_released(release_ns);
        work(work_us * 1_000);
        task.end();
    }
}

/// Takes so much cpu time, however long others keep it waiting for that.
fn work(ns: i64) {
    let end = cpu_ns() + ns;
    while cpu_ns() < end {}
}

/// The cpu time of this thread, ns.
fn cpu_ns() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of ours. The clock is every thread's.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn sleep_until(ns: i64) {
    let left = u64::try_from(ns - now_ns()).unwrap_or(0);
    std::thread::sleep(Duration::from_nanos(left));
}
