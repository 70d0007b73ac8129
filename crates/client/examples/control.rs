//! A control loop of 10 ms that reports its jobs; `docs/src/client.md` shows it.

use timecell_client::{Client, now_ns};

const PERIOD_NS: i64 = 10_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::open_from_env()?;
    // The name that the mission gives the task. Open it in the thread that runs its jobs, or move it there.
    let mut control = client.task("control")?;
    let mut release_ns = now_ns();
    loop {
        sleep_until(release_ns);
        control.begin_released(release_ns);
        control_step();
        control.end();
        release_ns += PERIOD_NS;
    }
}

fn control_step() {}

fn sleep_until(ns: i64) {
    let left = u64::try_from(ns - now_ns()).unwrap_or(0);
    std::thread::sleep(std::time::Duration::from_nanos(left));
}
