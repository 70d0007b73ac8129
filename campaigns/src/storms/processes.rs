//! Attacks by many processes that act together.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use super::turns::sleep_until;

/// The deed of the attack in a turn, called with its end.
pub type Step = Box<dyn FnMut(u64)>;
/// The preparation by the process of this number, from 0: how many of something, and the step that uses them.
pub type Prepare = fn(usize) -> (usize, Step);

/// Makes so many processes, or as many as there may be. Each prepares something, which comes with its number, and is called
/// with the end of each turn; it ends with this one.
pub fn in_processes(name: &str, most: usize, prepare: Prepare) -> Step {
    let mut processes: Vec<UnixStream> = Vec::new();
    while processes.len() < most {
        let Ok((own, its)) = UnixStream::pair() else {
            break;
        };
        // SAFETY: this process has one thread, so that its copy may do all that it could.
        match unsafe { libc::fork() } {
            0 => {
                let number = processes.len();
                // Held here, the others would not see the end.
                drop((own, processes));
                one(its, number, prepare)
            }
            child if child > 0 => processes.push(own),
            _ => break,
        }
    }
    let mut all = 0;
    processes.retain_mut(|process| {
        let mut count = [0; 8];
        let prepared = process.read_exact(&mut count).is_ok();
        all += u64::from_ne_bytes(count);
        prepared
    });
    println!("{name}: {all}, of {} processes", processes.len());
    Box::new(move |end| {
        for process in &mut processes {
            let _ = process.write_all(&end.to_ne_bytes());
        }
        sleep_until(end);
    })
}

fn one(mut turns: UnixStream, number: usize, prepare: Prepare) -> ! {
    let (count, mut step) = prepare(number);
    let mut end = [0; 8];
    if turns.write_all(&(count as u64).to_ne_bytes()).is_ok() {
        while turns.read_exact(&mut end).is_ok() {
            step(u64::from_ne_bytes(end));
        }
    }
    // SAFETY: nothing of this process is of use to anybody.
    unsafe { libc::_exit(0) }
}
