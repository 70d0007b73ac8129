//! The program inside the cells: this test binary, whose arguments name its attempts. It prints lines that the tests
//! read, and tries everything by system calls alone.

use std::io::Write;
use std::time::Duration;

use crate::{attacks, counts, life, traced};

/// The first word of the program's calls.
pub const WORD: &str = "in-a-cell";

/// Ends the process if it was started inside a cell.
pub fn run_if_asked() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match &words[..] {
        [life::SUPERVISE, file, start] => life::supervise(file.as_ref(), *start == "true"),
        [traced::MAKE, file] => traced::make(file.as_ref()),
        [life::TAKE_OVER, work_dir] => life::take_over(work_dir.as_ref()),
        _ => {}
    }
    let [WORD, deed, rest @ ..] = &words[..] else {
        return;
    };
    match *deed {
        "attack" => rest.iter().for_each(|name| attacks::attempt(name)),
        "scheduling" => scheduling(),
        "fork-bomb" => fork_bomb(),
        "memory" => memory(rest),
        "take" => counts::take(rest),
        "threads" => threads(),
        "count" => count(rest),
        "raise" => attacks::raise(rest),
        _ => std::process::exit(99),
    }
    std::process::exit(0);
}

/// Class, priority and number of cpus of the calling thread.
fn scheduling() {
    let class = host::sched::get_class(0).map_err(|error| error.to_string());
    let cpus = host::sched::get_affinity(0).map_err(|error| error.to_string());
    println!("{class:?} {cpus:?}");
}

/// Creates processes that stay, until that is refused; prints how many there were.
fn fork_bomb() {
    let mut made = 0;
    loop {
        // SAFETY: the child only waits for its end.
        match unsafe { libc::fork() } {
            0 => loop {
                std::thread::sleep(Duration::from_secs(100));
            },
            -1 => {
                let error = std::io::Error::last_os_error().raw_os_error();
                println!("{made} {error:?}");
                return;
            }
            _ => made += 1,
        }
        if made > 10_000 {
            println!("{made} and no end");
            return;
        }
    }
}

/// Touches this many MiB.
fn memory(words: &[&str]) {
    let mebibytes: usize = words[0].parse().unwrap();
    let mut all = Vec::new();
    for number in 0..mebibytes {
        all.push(vec![u8::try_from(number % 255).unwrap() + 1; 1 << 20]);
    }
    println!("{} MiB", all.len());
}

/// Starts and ends threads, with whichever call the C library uses for it.
fn threads() {
    let threads: Vec<_> = (0..4).map(|n| std::thread::spawn(move || n)).collect();
    let sum: i32 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    println!("threads {sum}");
}

/// Appends to a file, one byte at a time, for ever.
fn count(words: &[&str]) {
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(words[0])
        .unwrap();
    loop {
        file.write_all(b".").unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}
