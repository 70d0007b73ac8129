//! A program for the cell of a mission that always wants the cpu out of band: it enters the cell's quota group or time partition and says how much it got.

use crate::cell::of_evl;
use crate::control::Stage;
use crate::{EXIT_BAD_ARGS, EXIT_FAILED, SpinClass, arm, clock};

const NS: i64 = 1_000_000_000;
/// Seconds, unless asked otherwise, and at most.
const USUAL: i64 = 10;
const MOST: i64 = 3_600;
/// Until it spins, so that nothing of its start is counted, ns.
const LEAD_NS: i64 = NS / 10;

/// The payload; `words` are those behind `timecell probe oob`: `for=SECONDS`, 1 to 3,600, `free`, which enters neither, and `detach`, which takes
/// [`BEYOND`] out of band, detaches and spins in band. Returns
/// the process's exit code.
pub fn oob(words: &[String]) -> i32 {
    let mut seconds = Some(USUAL);
    let (mut is_free, mut detaches) = (false, false);
    for word in words {
        match word.strip_prefix("for=") {
            Some(value) => seconds = value.parse().ok(),
            None if word == "free" => is_free = true,
            None if word == "detach" => detaches = true,
            None => seconds = None,
        }
    }
    let Some(seconds) = seconds.filter(|seconds| (1..=MOST).contains(seconds)) else {
        eprintln!("usage: probe oob [for=SECONDS] [free|detach]; 1 to {MOST} seconds");
        return EXIT_BAD_ARGS;
    };
    let spun = match detaches {
        true => escape(seconds),
        false => spin(seconds, is_free),
    };
    match spun {
        Ok(said) => {
            println!("{said}");
            0
        }
        Err(why) => {
            eprintln!("{why}");
            EXIT_FAILED
        }
    }
}

fn spin(seconds: i64, is_free: bool) -> Result<String, String> {
    arm::touch_stack();
    arm::lock_memory(None);
    let cpus = host::sched::get_affinity(0).map_err(|error| error.to_string())?;
    let cpu = *cpus.first().ok_or("it may run on no cpu")?;
    arm::pin(cpu).map_err(|error| error.to_string())?;
    let policy = policy(cpu, is_free)?;
    let thread = evl::Thread::attach(policy).map_err(|error| error.to_string())?;
    let begin = clock::now() + LEAD_NS;
    thread.sleep_until(begin);
    let before = thread.state().map_err(|error| error.to_string())?;
    let (until, mut last, mut gap) = (begin + seconds * NS, clock::now(), 0);
    while last < until {
        let now = clock::now();
        gap = gap.max(now - last);
        last = now;
    }
    let after = thread.state().map_err(|error| error.to_string())?;
    thread.detach();
    let got = after.cpu_ns.saturating_sub(before.cpu_ns);
    Ok(format!(
        "out of band on cpu {cpu}: {:.1} % by EVL's clock in {seconds} s, longest gap {} ms, in band {} times",
        got as f64 * 100.0 / (seconds * NS) as f64,
        gap / 1_000_000,
        after
            .in_band_switches
            .saturating_sub(before.in_band_switches)
    ))
}

/// A priority that no cell is granted.
const BEYOND: u8 = 95;

/// The class of this thread once it has detached, which it keeps while it spins in band.
fn escape(seconds: i64) -> Result<String, String> {
    arm::touch_stack();
    arm::lock_memory(None);
    let policy = evl::Policy::Fifo { priority: BEYOND };
    let thread = evl::Thread::attach(policy).map_err(|error| error.to_string())?;
    thread.detach();
    let (policy, priority) = arm::class_got();
    let until = clock::now() + seconds * NS;
    while clock::now() < until {
        std::hint::spin_loop();
    }
    Ok(format!(
        "in band again with class {policy}, priority {priority}"
    ))
}

/// The calling thread as one of EVL, in this quota group or time partition; `None`: it runs in band.
pub(crate) fn in_group(
    group: Option<(evl::Kind, i32)>,
    class: SpinClass,
) -> Result<Option<evl::Thread>, (Stage, i32)> {
    let (Some((kind, number)), SpinClass::Fifo { priority }) = (group, class) else {
        return Ok(None);
    };
    evl::Thread::attach(kind.policy(priority, number))
        .map(Some)
        .map_err(of_evl)
}

/// Cpu time by EVL's clock, ns; clocks of Linux do not see it.
pub(crate) fn cpu_ns(thread: &evl::Thread) -> i64 {
    let state = thread.state().unwrap_or_default();
    i64::try_from(state.cpu_ns).unwrap_or(i64::MAX)
}

/// That of the cell's quota group or time partition on this cpu, where it has one.
fn policy(cpu: u32, is_free: bool) -> Result<evl::Policy, String> {
    let (_, priority) = arm::class_got();
    let priority = u8::try_from(priority).unwrap_or(1).max(1);
    let told = |kind: evl::Kind| Some((kind, std::env::var(kind.variable()).ok()?));
    match evl::Kind::ALL.into_iter().find_map(told) {
        Some((kind, word)) if !is_free => {
            let groups = evl::groups(&word).unwrap_or_default();
            let own = groups.iter().find(|group| group.cpu == cpu);
            let own =
                own.ok_or_else(|| format!("{}={word}: none of cpu {cpu}", kind.variable()))?;
            Ok(kind.policy(priority, own.number))
        }
        _ => Ok(evl::Policy::Fifo { priority }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_refused() {
        for words in [&["for=0"][..], &["for=x"], &["for=3601"], &["knights"]] {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            assert_eq!(oob(&words), EXIT_BAD_ARGS, "{words:?}");
        }
    }
}
