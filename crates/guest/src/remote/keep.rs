//! The keeper of an order: leads a session of its own, in which timecell runs with its output in files, and writes how it ended. It
//! lives as long as the order, with or without a link.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, getpid, kill_process_group, setsid};

use super::place::{NEW, Place, WORK};

/// How long an order that does not last goes on without a follower, and how often that is looked at.
const ALONE: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_secs(60);

/// Starts the keeper of an order that is complete, unless it was carried out already.
///
/// # Errors
/// Those of starting it.
pub fn start(place: &Place) -> io::Result<()> {
    let Some(lock) = place.lock()? else {
        return Ok(());
    };
    if place.status()? != NEW {
        return Ok(());
    }
    // It keeps the lock as its standard input.
    let mut keeper = Command::new(std::env::current_exe()?);
    keeper.args([super::WORD, "keep"]).arg(place.dir());
    keeper.stdin(lock).stdout(Stdio::null());
    keeper.stderr(File::options().append(true).open(place.path("err"))?);
    keeper.current_dir("/").spawn()?;
    Ok(())
}

/// Carries out the order in this directory; returns the keeper's exit code.
pub fn run(dir: &Path) -> i32 {
    let place = Place::at(dir);
    match carried_out(&place).and_then(|status| place.write_status(&format!("ended {status}"))) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("error: {}: cannot be carried out: {error}", dir.display());
            let _ = place.write_status("ended 1");
            1
        }
    }
}

/// Does nothing. Programs do not inherit it, as they would inherit that a signal is ignored.
extern "C" fn survive(_: libc::c_int) {}

fn carried_out(place: &Place) -> io::Result<i32> {
    setsid()?;
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(signal, survive as *const () as libc::sighandler_t) };
    }
    let keeper = getpid();
    place.write_status(&format!("runs {}", keeper.as_raw_nonzero()))?;
    let order = place.order()?;
    let append = |name: &str| File::options().append(true).open(place.path(name));
    let mut child = Command::new(std::env::current_exe()?)
        .args(&order.args)
        .envs(&order.env)
        .current_dir(place.path(WORK))
        .stdin(Stdio::null())
        .stdout(append("out")?)
        .stderr(append("err")?)
        .spawn()?;
    if !order.lasting {
        let followed = place.path("followed");
        thread::spawn(move || end_alone(&followed, keeper));
    }
    Ok(crate::inside::status(child.wait()?))
}

/// Ends an order that nobody has followed for long.
fn end_alone(followed: &Path, keeper: Pid) {
    let mut last = Followed::now(None);
    loop {
        let seen = fs::metadata(followed).and_then(|file| file.modified());
        if last.ago(seen.ok()) > ALONE {
            let _ = kill_process_group(keeper, Signal::TERM);
        }
        thread::sleep(LOOK);
    }
}

/// The time in the mark of followers, and when it was first seen: the clock of a board may be set meanwhile.
struct Followed {
    mark: Option<SystemTime>,
    since: Instant,
}

impl Followed {
    fn now(mark: Option<SystemTime>) -> Followed {
        let since = Instant::now();
        Followed { mark, since }
    }

    /// How long the mark has been as it is now.
    fn ago(&mut self, mark: Option<SystemTime>) -> Duration {
        if mark != self.mark {
            *self = Followed::now(mark);
        }
        self.since.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_ends_no_order() {
        let mark = Some(SystemTime::now());
        let mut last = Followed::now(mark);
        last.since -= ALONE;
        assert!(last.ago(mark) >= ALONE);
        let years = Duration::from_secs(1_000_000_000);
        for mark in [Some(SystemTime::UNIX_EPOCH), mark.map(|at| at + years)] {
            assert!(last.ago(mark) < ALONE);
        }
    }
}
