//! The keeper of a mission's cell that is a partition beside Linux: it begins the partition, passes on its heartbeats and the hypervisor's
//! console, and ends as the partition does, or with it. One that was killed leaves the partition running, for the next keeper to take over.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use jailhouse::config::{Cell, cell};
use jailhouse::console::{Line, OfCell, Splitter};
use jailhouse::driver::MOST_SYSTEM_BYTES;
use jailhouse::inmate::{Here, Inmate, InmateError, STARTS};
use jailhouse::register::{PATIENCE, Register, RegisterError, Wanted};
use jailhouse::{Console, Driver, Heartbeat, Image, PAGE, State};
use timecell_client::{Client, Task};

use crate::cell::{EXIT_BAD_ARGS, EXIT_FAILED};

/// How often the heartbeat is looked at.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// At every how many of these looks the driver is asked for the state and the console.
const ASKS: u32 = 5;
/// Bytes of the hypervisor's lines, and of those of cells, that are passed on in a second.
const CONSOLE_BYTES: usize = 16 << 10;

static ENDS: AtomicBool = AtomicBool::new(false);

extern "C" fn end(_: libc::c_int) {
    ENDS.store(true, Relaxed);
}

/// Keeps a partition: `OWNER NAME SYSTEM CONFIGURATION HEARTBEAT BOOT_NS` and `FILE ADDRESS` for each image: its mission, its name, the file of
/// the system configuration, the bytes of its own in hexadecimal, the physical address of its heartbeat or `-`, and the longest wait for the
/// first one. Returns the exit code: 0 if the partition says of itself that it has ended.
pub fn partition(words: &[String]) -> i32 {
    // SAFETY: the handler sets a flag.
    unsafe { libc::signal(libc::SIGTERM, end as *const () as libc::sighandler_t) };
    let Some(kept) = Kept::of(words) else {
        return EXIT_BAD_ARGS;
    };
    match kept.keep() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            EXIT_FAILED
        }
    }
}

/// Beats, in a Linux that is a partition, for the keeper in the other one: `ADDRESS PERIOD_MS`: the physical address of its heartbeat, also in
/// hexadecimal behind `0x`, and the time between two, 1 ms or more. Ends only with an error.
pub fn beat(words: &[String]) -> i32 {
    let Some((address, period_ms)) = beating(words) else {
        eprintln!(
            "usage: timecell probe beat ADDRESS MS; ADDRESS is a multiple of 8, in hexadecimal behind 0x, and MS at least 1"
        );
        return EXIT_BAD_ARGS;
    };
    match timecell_client::Heartbeat::at(address) {
        Ok(mut heartbeat) => loop {
            heartbeat.beat();
            thread::sleep(Duration::from_millis(period_ms));
        },
        Err(error) => {
            eprintln!("{error}");
            EXIT_FAILED
        }
    }
}

fn beating(words: &[String]) -> Option<(u64, u64)> {
    let [address, period_ms] = words else {
        return None;
    };
    let address = match address.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => address.parse().ok(),
    };
    let address = address.filter(|address| address.is_multiple_of(8))?;
    Some((address, period_ms.parse().ok().filter(|ms| *ms > 0)?))
}

struct Kept {
    owner: String,
    system: String,
    heartbeat: Option<u64>,
    inmate: Inmate,
    /// The files of its images, with their addresses.
    files: Vec<(String, u64)>,
}

impl Kept {
    fn of(words: &[String]) -> Option<Kept> {
        let [owner, name, system, cell, heartbeat, boot_ns, files @ ..] = words else {
            return None;
        };
        let bytes = |at| u8::from_str_radix(cell.get(at..at + 2)?, 16).ok();
        let (pairs, rest) = files.as_chunks();
        let files = pairs
            .iter()
            .map(|[file, address]| Some((file.clone(), address.parse().ok()?)));
        Some(Kept {
            owner: owner.clone(),
            system: system.clone(),
            heartbeat: match heartbeat.as_str() {
                "-" => None,
                address => Some(address.parse().ok()?),
            },
            inmate: Inmate {
                name: name.clone(),
                cell: (0..cell.len())
                    .step_by(2)
                    .map(bytes)
                    .collect::<Option<_>>()?,
                images: Vec::new(),
                boot_time: Duration::from_nanos(boot_ns.parse().ok()?),
            },
            files: files.collect::<Option<_>>().filter(|_| rest.is_empty())?,
        })
    }

    fn keep(mut self) -> Result<i32, RegisterError> {
        let unusable = |file: &str, error| RegisterError::Unusable(format!("{file}: {error}"));
        for (file, address) in &self.files {
            let image = Image::read(Path::new(file), *address);
            self.inmate
                .images
                .push(image.map_err(|error| unusable(file, error))?);
        }
        let system = host::given_file::bytes(Path::new(&self.system), MOST_SYSTEM_BYTES)
            .map_err(|error| unusable(&self.system, error))?;
        let driver = Driver::open()?;
        let prints =
            Cell::read(&self.inmate.cell).is_ok_and(|own| own.flags & cell::CONSOLE_PERMITTED != 0);
        let mut console = Log::new(Console::open()?, OfCell::new(&self.inmate.name, prints));
        // That the page is shared is checked before anything is read of it.
        let heartbeat = self.heartbeat.map(Heartbeat::at).transpose();
        let mut here = Here::new(
            &driver,
            heartbeat.map_err(|error| unusable("/dev/mem", error))?,
            &ENDS,
        );
        let register = Register::default();
        let wanted = Wanted {
            owner: &self.owner,
            system: &system,
            inmate: &self.inmate,
            heartbeat: self.heartbeat.map(|at| at / PAGE * PAGE),
        };
        // Without a page, nobody watches its heartbeats. Until the first one comes, or is late, the keeper has its own.
        let client = Client::open_from_env().ok();
        let mut task = client
            .as_ref()
            .and_then(|client| client.task(&self.inmate.name).ok());
        let begins = AtomicBool::new(true);
        let most = PATIENCE + self.inmate.boot_time * STARTS;
        let since = Instant::now();
        let begun = thread::scope(|scope| {
            scope.spawn(|| {
                while begins.load(Relaxed) && since.elapsed() < most {
                    task.as_mut().map(Task::heartbeat);
                    thread::sleep(BETWEEN_LOOKS);
                }
            });
            let begun = register.begin(&driver, &wanted, &mut here);
            begins.store(false, Relaxed);
            begun
        });
        console.pass_on();
        let name = &self.inmate.name;
        let end = || {
            register.end(&self.owner, name)?;
            Ok(128 + libc::SIGTERM)
        };
        let (taken_over, began) = match begun {
            Err(RegisterError::Inmate(InmateError::Ended(_))) => return end(),
            begun => begun?,
        };
        let first = began
            .first_beat
            .map_or("it has no heartbeat".to_owned(), |time| {
                format!("first heartbeat after {} ms", time.as_millis())
            });
        let again = if taken_over { "taken over" } else { "created" };
        println!(
            "{name}: {again}, {first}, {} lost starts",
            began.lost_starts
        );
        let id = driver.cell(name)?.map(|cell| cell.id);
        // So that cells can wait for it.
        if let Some(task) = &mut task {
            task.begin();
            task.end();
        }
        let mut beats = here.heartbeat.as_ref().map(Heartbeat::read);
        loop {
            for _ in 0..ASKS {
                if ENDS.load(Relaxed) {
                    let code = end()?;
                    console.end();
                    return Ok(code);
                }
                let now = here.heartbeat.as_ref().map(Heartbeat::read);
                if now != beats {
                    beats = now;
                    task.as_mut().map(Task::heartbeat);
                }
                thread::sleep(BETWEEN_LOOKS);
            }
            let state = id.map_or(Ok(None), |id| driver.state(id))?;
            console.pass_on();
            if let Some((code, why)) = end_of(state) {
                console.end();
                eprintln!("{name}: {why}");
                return Ok(code);
            }
        }
    }
}

/// The exit code of a keeper whose partition is in this state, and why; `None`: it runs.
fn end_of(state: Option<State>) -> Option<(i32, String)> {
    let failed = |why: &str| Some((EXIT_FAILED, why.to_owned()));
    match state {
        Some(State::Running | State::RunningLocked) => None,
        Some(State::ShutDown) => Some((0, "it has shut down".to_owned())),
        Some(State::Failed) => {
            failed("failed: it accessed something that is not its own, or says so")
        }
        Some(State::Other(state)) => failed(&state),
        None => failed("it was destroyed by somebody else"),
    }
}

/// The hypervisor's console, passed on line by line.
struct Log {
    console: Console,
    splitter: Splitter,
    own: OfCell,
    began: Instant,
}

impl Log {
    fn new(console: Console, own: OfCell) -> Log {
        Log {
            console,
            splitter: Splitter::new(CONSOLE_BYTES),
            own,
            began: Instant::now(),
        }
    }

    fn pass_on(&mut self) {
        let mut bytes = [0; 4096];
        // A flood is left to the next look.
        for _ in 0..4 {
            let read = self.console.read(&mut bytes);
            let now_ns = self.began.elapsed().as_nanos() as u64;
            let lines = self.splitter.take(&bytes[..read], now_ns);
            self.print(lines);
            if read == 0 {
                break;
            }
        }
    }

    /// Passes on the rest, and the line that has not ended.
    fn end(mut self) {
        self.pass_on();
        let lines = self.splitter.end();
        self.print(lines);
    }

    fn print(&mut self, lines: Vec<Line>) {
        for line in lines.into_iter().flat_map(|line| self.own.take(line)) {
            match line {
                Line::Hypervisor(_, text) => println!("hypervisor: {text}"),
                Line::Cell(text) => println!("console: {text}"),
                Line::Missed(bytes) => println!("console: missed {bytes} bytes"),
                Line::Dropped(bytes) => println!("console: {bytes} bytes of a flood are left out"),
            }
        }
    }
}
