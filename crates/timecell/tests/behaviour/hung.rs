//! Ends the tests when one of them hangs, and names the event it waited for; otherwise a CI run would only show that they never end.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::exit;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lanes::once;

/// Several times the duration of the longest case on a slow machine.
const LONGEST: Duration = Duration::from_secs(420);
const LOOKS: Duration = Duration::from_secs(5);

static RUNNING: Mutex<Vec<(String, Instant)>> = Mutex::new(Vec::new());

/// Measures from now how long a case takes, until this is dropped.
pub struct Watched(String);

impl Watched {
    pub fn new(name: String) -> Watched {
        static WATCH: std::sync::Once = std::sync::Once::new();
        WATCH.call_once(|| {
            // Campaigns take as long as they are told.
            if !once() {
                std::thread::spawn(watch);
            }
        });
        RUNNING.lock().unwrap().push((name.clone(), Instant::now()));
        Watched(name)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        RUNNING.lock().unwrap().retain(|(name, _)| *name != self.0);
    }
}

fn watch() {
    loop {
        std::thread::sleep(LOOKS);
        let running = RUNNING.lock().unwrap();
        if running.iter().any(|(_, began)| began.elapsed() > LONGEST) {
            let mut told = String::from("a test hangs; those that run:\n");
            for (name, began) in running.iter() {
                let _ = writeln!(told, "{:6.1} s  {name}", began.elapsed().as_secs_f64());
            }
            told.push_str("what they have started:\n");
            let mut all = Vec::new();
            children(std::process::id(), 1, &mut told, &mut all);
            eprint!("{told}");
            for pid in all {
                // SAFETY: no memory is involved. Cells and the processes that hold them would keep running.
                unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
            }
            exit(101);
        }
    }
}

/// Each process below this one and the waits of its threads, recursively.
fn children(of: u32, depth: usize, told: &mut String, all: &mut Vec<u32>) {
    for (pid, state) in processes_of(of) {
        let dir = Path::new("/proc").join(pid.to_string());
        let words = fs::read(dir.join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace(['\0', '\n'], " ");
        let words: String = words.chars().take(150).collect();
        let _ = writeln!(told, "{:1$}{pid} {state} {words}", "", 2 * depth);
        let threads = fs::read_dir(dir.join("task"));
        for thread in threads.into_iter().flatten().flatten() {
            let read = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            let _ = writeln!(
                told,
                "{:4$}. {} {} {}",
                "",
                read("comm").trim(),
                read("wchan"),
                // Its number and arguments, to tell on which descriptor or futex.
                read("syscall").trim(),
                2 * depth + 2,
            );
        }
        all.push(pid);
        children(pid, depth + 1, told, all);
    }
}

/// The children of a process, with their states.
fn processes_of(parent: u32) -> Vec<(u32, char)> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name before them may contain any character.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let of: u32 = fields.next()?.parse().ok()?;
        (of == parent).then_some((pid, state))
    })
    .collect()
}
