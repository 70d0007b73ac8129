//! A payload of plain computing: all solutions of the N-queens problem by backtracking, on several threads.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

use host::sched::{self, Class};

use crate::args::{ArgsError, ClassBy};
use crate::cell::{attend, farewell, report, wait_while};
use crate::control::{GO, Slot, Stage, State};
use crate::map::{ControlMap, Map, preallocated};
use crate::{EXIT_BAD_ARGS, arm, clock};

/// Largest board: the counters of a bigger one would run for years.
const LARGEST: u32 = 20;
const BYTES: u64 = 4096;

/// The page that payload and coordinator share.
#[repr(C)]
struct Page {
    solutions: AtomicU64,
    begun_ns: AtomicI64,
    ended_ns: AtomicI64,
    cpu_ns: AtomicI64,
}

/// The result of a payload, with its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Solved {
    /// Solutions found.
    pub solutions: u64,
    /// From the release until the last thread has ended, ns; starting the threads is part of it.
    pub wall_ns: i64,
    /// Cpu time of all threads together, ns.
    pub cpu_ns: i64,
}

/// The coordinator's side of the page with the result.
pub struct Queens {
    map: Map,
}

/// The arguments of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueensArgs {
    /// The control page, as seen from inside the cell; the payload takes its first slot.
    pub control: String,
    /// The page with the result, as seen from inside the cell.
    pub page: String,
    /// Queens, and side of the board.
    pub n: u32,
    /// Threads that share the work.
    pub threads: u32,
    /// Thread i is pinned to `cpus[i % len]`.
    pub cpus: Vec<u32>,
    /// SCHED_FIFO priority, or `None` for best effort.
    pub fifo: Option<u8>,
    /// The process that sets class and affinity.
    pub class_by: ClassBy,
}

impl QueensArgs {
    /// The words behind `timecell`.
    pub fn to_words(&self) -> Vec<String> {
        let mut words = vec![
            "probe".to_owned(),
            "queens".to_owned(),
            format!("control={}", self.control),
            format!("page={}", self.page),
            format!("n={}", self.n),
            format!("threads={}", self.threads),
            format!("cpus={}", host::cpus::format_list(&self.cpus)),
        ];
        words.extend(self.fifo.map(|priority| format!("fifo={priority}")));
        if self.class_by == ClassBy::Coordinator {
            words.push("class-from-outside".to_owned());
        }
        words
    }

    /// Reads the words behind `timecell probe queens`.
    ///
    /// # Errors
    /// Names the word that is missing or not understood.
    pub fn from_words(words: &[String]) -> Result<QueensArgs, ArgsError> {
        let mut args = QueensArgs {
            control: String::new(),
            page: String::new(),
            n: 0,
            threads: 0,
            cpus: Vec::new(),
            fifo: None,
            class_by: ClassBy::Cell,
        };
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let bad = || ArgsError(format!("cannot read `{word}`"));
            match key {
                "control" => args.control = value.to_owned(),
                "page" => args.page = value.to_owned(),
                "n" => args.n = value.parse().map_err(|_| bad())?,
                "threads" => args.threads = value.parse().map_err(|_| bad())?,
                "cpus" => args.cpus = host::cpus::parse_list(value).map_err(|_| bad())?,
                "fifo" => args.fifo = Some(value.parse().map_err(|_| bad())?),
                "class-from-outside" => args.class_by = ClassBy::Coordinator,
                _ => return Err(bad()),
            }
        }
        if !(1..=LARGEST).contains(&args.n) || args.threads < 1 || args.cpus.is_empty() {
            return Err(ArgsError(format!(
                "queens need `n=` (1 to {LARGEST}), `threads=` and `cpus=`"
            )));
        }
        Ok(args)
    }
}

impl Queens {
    /// Makes the page at `path`, on tmpfs; an old one is replaced.
    ///
    /// # Errors
    /// When the file cannot be made or mapped.
    pub fn create(path: &Path) -> io::Result<Queens> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = preallocated(path, BYTES)?;
        Ok(Queens {
            map: Map::of(&file)?,
        })
    }

    /// The payload's result; `None` until it is there.
    pub fn solved(&self) -> Option<Solved> {
        let page = page(&self.map);
        let ended = page.ended_ns.load(Acquire);
        (ended != 0).then(|| Solved {
            solutions: page.solutions.load(Relaxed),
            wall_ns: ended - page.begun_ns.load(Relaxed),
            cpu_ns: page.cpu_ns.load(Relaxed),
        })
    }
}

fn page(map: &Map) -> &Page {
    // SAFETY: the mapping is page-aligned and at least BYTES long (made so here, checked when opened); the page
    // holds atomics only.
    unsafe { &*map.as_ptr().cast::<Page>() }
}

/// The payload; `words` are those behind `timecell probe queens`. Returns the process's exit code.
pub fn queens(words: &[String]) -> i32 {
    let present_ns = clock::now();
    let args = match QueensArgs::from_words(words) {
        Ok(args) => args,
        Err(error) => {
            eprintln!("{error}");
            return EXIT_BAD_ARGS;
        }
    };
    let file = OpenOptions::new().read(true).write(true).open(&args.page);
    let map = match file.and_then(|file| Map::of(&file)) {
        Ok(map) if map.len() as u64 >= BYTES => map,
        Ok(_) => return EXIT_BAD_ARGS,
        Err(error) => {
            eprintln!("probe: {}: {error}", args.page);
            return EXIT_BAD_ARGS;
        }
    };
    attend(Path::new(&args.control), 0, present_ns, |control, slot| {
        live(&args, page(&map), control, slot)
    })
}

fn live(
    args: &QueensArgs,
    page: &Page,
    control: &ControlMap,
    slot: &Slot,
) -> Result<(), (Stage, i32)> {
    let locked = arm::lock_memory(None) as u32;
    slot.memory_locked.store(locked, Relaxed);
    report(control, slot, State::Present);
    wait_while(&slot.permit, |permit| permit == 0)?;
    if args.class_by == ClassBy::Cell {
        sched::set_affinity(0, &args.cpus).map_err(|error| (Stage::Affinity, error.errno()))?;
        if let Some(priority) = args.fifo {
            arm::take_class(&Class::Fifo { priority })
                .map_err(|error| (Stage::Class, error.errno()))?;
        }
    }
    let (policy, priority) = arm::class_got();
    slot.policy.store(policy, Relaxed);
    slot.priority.store(priority, Relaxed);
    slot.cpu.store(arm::current_cpu(), Relaxed);
    slot.armed_ns.store(clock::now(), Relaxed);
    report(control, slot, State::Armed);
    if wait_while(&control.head().go, |go| go == 0)? != GO {
        return Err((Stage::Abandoned, libc::ECANCELED));
    }
    clock::sleep_until(control.head().go_ns.load(Acquire));
    let begun_ns = clock::now();
    slot.started_ns.store(begun_ns, Release);
    let before = clock::process_cpu_time();
    // Threads inherit class and cpus of the one that starts them.
    let solutions = solve(args.n, args.threads, |thread| {
        arm::pin(args.cpus[thread % args.cpus.len()])
    })
    .map_err(|error| (Stage::Affinity, error.errno()))?;
    let ended_ns = clock::now();
    let cpu_ns = clock::process_cpu_time() - before;
    let _ = arm::take_class(&Class::Other);
    page.solutions.store(solutions, Relaxed);
    page.begun_ns.store(begun_ns, Relaxed);
    page.cpu_ns.store(cpu_ns, Relaxed);
    page.ended_ns.store(ended_ns, Release);
    report(control, slot, State::Done);
    farewell(control);
    Ok(())
}

/// Counts the ways to put `n` queens on an n x n board with `threads` threads; each calls `begin` with its number
/// first. The work is dealt out in pieces, one for each place of the queens of the first two rows.
fn solve<E: Send>(
    n: u32,
    threads: u32,
    begin: impl Fn(usize) -> Result<(), E> + Sync,
) -> Result<u64, E> {
    let pieces = n * n;
    let next = AtomicU32::new(0);
    let count = |thread: u32| {
        begin(thread as usize)?;
        let mut found = 0;
        loop {
            let piece = next.fetch_add(1, Relaxed);
            if piece >= pieces {
                return Ok(found);
            }
            let (first, second) = ((piece / n) as usize, (piece % n) as usize);
            let mut board = Board::new(n as usize);
            if n == 1 {
                found += 1;
            } else if board.put(0, first) && board.put(1, second) {
                found += board.fill(2);
            }
        }
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..threads)
            .map(|thread| {
                let count = &count;
                scope.spawn(move || count(thread))
            })
            .collect();
        others
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(found) => found,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .sum()
    })
}

/// Columns and diagonals taken by the queens that stand.
struct Board {
    n: usize,
    columns: [bool; LARGEST as usize],
    down: [bool; 2 * LARGEST as usize],
    up: [bool; 2 * LARGEST as usize],
}

impl Board {
    fn new(n: usize) -> Board {
        Board {
            n,
            columns: [false; LARGEST as usize],
            down: [false; 2 * LARGEST as usize],
            up: [false; 2 * LARGEST as usize],
        }
    }

    /// Puts a queen there, if nothing attacks it.
    fn put(&mut self, row: usize, column: usize) -> bool {
        let (down, up) = (row + column, row + self.n - column);
        if self.columns[column] || self.down[down] || self.up[up] {
            return false;
        }
        self.set(row, column, true);
        true
    }

    fn set(&mut self, row: usize, column: usize, taken: bool) {
        self.columns[column] = taken;
        self.down[row + column] = taken;
        self.up[row + self.n - column] = taken;
    }

    /// Ways to fill the rows from `row` on.
    fn fill(&mut self, row: usize) -> u64 {
        if row == self.n {
            return 1;
        }
        let mut found = 0;
        for column in 0..self.n {
            if self.put(row, column) {
                found += self.fill(row + 1);
                self.set(row, column, false);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Barrier;

    fn count(n: u32, threads: u32) -> u64 {
        let Ok(found) = solve(n, threads, |_| Ok::<(), std::convert::Infallible>(()));
        found
    }

    #[test]
    fn finds_every_solution_with_any_number_of_threads() {
        // Sequence A000170 of the OEIS.
        for (n, solutions) in (1..).zip([1, 0, 0, 2, 10, 4, 40, 92, 352]) {
            for threads in [1, 2, 5] {
                assert_eq!(
                    count(n, threads),
                    solutions,
                    "{n} queens, {threads} threads"
                );
            }
        }
    }

    #[test]
    fn a_thread_that_cannot_begin_is_told() {
        let ended = solve(4, 2, |thread| if thread == 1 { Err("no") } else { Ok(()) });
        assert_eq!(ended, Err("no"));
    }

    #[test]
    fn words_and_back() {
        for (fifo, class_by) in [(Some(80), ClassBy::Cell), (None, ClassBy::Coordinator)] {
            let args = QueensArgs {
                control: "/cell/control".to_owned(),
                page: "/cell/queens".to_owned(),
                n: 12,
                threads: 4,
                cpus: vec![0, 1, 3],
                fifo,
                class_by,
            };
            assert_eq!(QueensArgs::from_words(&args.to_words()[2..]), Ok(args));
        }
        for words in [&["n=12"][..], &["n=21", "threads=1", "cpus=0"], &["x=1"]] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert!(QueensArgs::from_words(&words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn a_payload_waits_for_the_release_and_tells_what_it_found() {
        let dir = tempfile::tempdir().unwrap();
        let barrier = Barrier::create(&dir.path().join("control"), 1).unwrap();
        let result = Queens::create(&dir.path().join("queens")).unwrap();
        let args = QueensArgs {
            control: dir.path().join("control").display().to_string(),
            page: dir.path().join("queens").display().to_string(),
            n: 8,
            threads: 2,
            cpus: vec![host::cpus::default_rt_cpu()],
            fifo: None,
            class_by: ClassBy::Cell,
        };
        let words = args.to_words();
        let cell = std::thread::spawn(move || queens(&words[2..]));
        let soon = clock::now() + 20_000_000_000;
        barrier
            .wait_all(State::Present, "present", soon, || false)
            .unwrap();
        barrier.permit(0);
        barrier
            .wait_all(State::Armed, "armed", soon, || false)
            .unwrap();
        assert_eq!(result.solved(), None);
        let go_ns = barrier.open(1_000_000);
        barrier
            .wait_all(State::Done, "done", soon, || false)
            .unwrap();
        assert!(barrier.slot(0).started_ns.load(Acquire) >= go_ns);
        let solved = result.solved().unwrap();
        assert_eq!(solved.solutions, 92);
        assert!(solved.wall_ns > 0 && solved.cpu_ns > 0);
        barrier.leave();
        assert_eq!(cell.join().unwrap(), 0);
        assert_eq!(queens(&[]), EXIT_BAD_ARGS);
    }
}
