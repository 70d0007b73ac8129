//! A guest that runs in QEMU: booted, watched and asked over its channel.

use std::fs::File;
use std::io::{self, BufReader, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use host::file;
use model::{Accel, Board, InputError};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use sha2::{Digest, Sha256};

use super::command::{self, Boots};
use super::monitor::Monitor;
use crate::GuestError;
use crate::cache::{Cache, digest, hexadecimal};
use crate::channel::message::{FromGuest, Order, Ready, ToGuest};
use crate::channel::{Sender, received};
use crate::kernel::Kernel;
use crate::tail::{self, Tail};

/// How long a guest may need to boot with KVM before it is tried without.
const KVM_TIME: Duration = Duration::from_secs(12);
/// How long a guest that has booted may be silent: several signs of life.
const SILENT: Duration = Duration::from_secs(60);
/// After this time without an answer a question is asked again.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a guest may take to switch itself off.
const OFF: Duration = Duration::from_secs(20);
/// What a kernel says when nothing runs in it any more, and how long its machine may then take to be off.
const DOWN: &str = "reboot: Restarting system";
const DOWN_FOR: Duration = Duration::from_secs(1);
/// How often a directory is asked for that does not arrive whole.
const TRIES: usize = 3;

/// What a program in the guest prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Its standard output.
    Out,
    /// Its standard error.
    Err,
}

/// A guest that runs; it ends with this value.
#[derive(Debug)]
pub struct Guest {
    qemu: Child,
    /// QEMU's name, which is in front of its complaints.
    program: &'static str,
    monitor: Monitor,
    to: Arc<Sender<ToGuest>>,
    from: Receiver<(FromGuest, u32)>,
    console: Tail,
    complaints: Tail,
    heard: Instant,
    /// How long it may be silent.
    silent: Duration,
    orders: u32,
    lost: u64,
}

/// The standard input of the program that runs in a guest.
#[derive(Debug, Clone)]
pub struct Input(Arc<Sender<ToGuest>>);

impl Input {
    /// Sends some bytes.
    ///
    /// # Errors
    /// Those of the line.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.send(&ToGuest::In(bytes.to_vec()))
    }

    /// Asks the guest to switch itself off. It may be gone.
    pub fn off(&self) {
        let _ = self.0.send(&ToGuest::Off);
    }
}

/// A guest that has booted.
#[derive(Debug)]
pub struct Booted {
    /// The guest.
    pub guest: Guest,
    /// What it said of itself.
    pub ready: Ready,
    /// Whether KVM executes it; else it is emulated.
    pub kvm: bool,
    /// Why it is not KVM that executes it, where that was tried.
    pub note: Option<String>,
}

/// Boots a guest and waits until it answers, also one whose memory seems too little: by what the board says, or `accel`. `see` is shown what its console says.
///
/// # Errors
/// If there is no QEMU, or the guest panics, ends, or does not answer within the board's time.
pub fn boot(boots: &Boots, accel: Option<Accel>, see: fn(&[u8])) -> Result<Booted, GuestError> {
    let limit = Duration::from_nanos(boots.board.boot_time.ns().unsigned_abs());
    let (kvm, why) = carried_by_kvm(boots, accel)?;
    let (guest, ready) = Guest::boot(boots, kvm, limit, see)?;
    Ok(Booted {
        guest,
        ready,
        kvm,
        note: why.as_deref().map(emulated),
    })
}

fn emulated(why: &str) -> String {
    format!("KVM does not carry it ({why}), so it is emulated")
}

/// Whether KVM executes a machine here, by what its board says, or `accel`; and why not, where that was tried. That takes some seconds,
/// and is remembered until the host is started again.
///
/// # Errors
/// If there is no QEMU.
pub fn carried_by_kvm(
    boots: &Boots,
    accel: Option<Accel>,
) -> Result<(bool, Option<String>), GuestError> {
    let board = &boots.board;
    if let Some(known) = known_of_kvm(&boots.cache, board, &boots.kernel, accel) {
        return Ok(known);
    }
    let (kvm, why) = match Guest::boot(boots, true, KVM_TIME, |_| ()) {
        Ok((guest, _)) => {
            guest.off();
            (true, None)
        }
        Err(GuestError::Guest { what, .. }) => (false, Some(what)),
        Err(error) => return Err(error),
    };
    // Without that it is found out again the next time.
    let key = key(board, &boots.kernel);
    let _ = remember(&boots.cache, &key, why.as_deref().unwrap_or_default());
    Ok((kvm, why))
}

/// The answer of [`carried_by_kvm`] where no machine need be tried for it.
pub fn known_of_kvm(
    cache: &Cache,
    board: &Board,
    kernel: &Kernel,
    accel: Option<Accel>,
) -> Option<(bool, Option<String>)> {
    match accel.unwrap_or(board.qemu.accel) {
        Accel::Tcg => return Some((false, None)),
        Accel::Kvm => return Some((true, None)),
        Accel::Auto if !command::has_kvm(board.architecture) => return Some((false, None)),
        Accel::Auto => {}
    }
    let why = found(cache, &key(board, kernel))?;
    Some((why.is_empty(), Some(why).filter(|why| !why.is_empty())))
}

/// What KVM does with one machine says nothing of another.
fn key(board: &Board, kernel: &Kernel) -> String {
    let all = board.to_toml() + &kernel.from;
    format!("kvm-{}", digest(all.as_bytes()).unwrap_or_default())
}

/// What identifies this start of the host.
fn boot_id() -> String {
    file::text("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Why KVM did not carry a guest earlier since the host was started, empty if it did; `None`: none was tried.
fn found(cache: &Cache, key: &str) -> Option<String> {
    let text = file::text(cache.found("found", key)?).ok()?;
    Some(text.strip_prefix(&boot_id())?.trim().to_owned())
}

/// Remembers why KVM does not carry a guest, or that it does, until the host is started again.
fn remember(cache: &Cache, key: &str, why: &str) -> Result<(), GuestError> {
    let filling = cache.fill()?;
    let dir = filling.unfinished()?;
    let path = dir.path().join(key);
    let text = boot_id() + why;
    std::fs::write(&path, text).map_err(GuestError::file(&path, "write it"))?;
    filling.keep(&path, "found", key).map(drop)
}

/// Boots a guest with its console on this terminal, until its user leaves; returns the exit code of QEMU. `tell` is told if it is emulated.
///
/// # Errors
/// If there is no QEMU.
pub fn console(
    boots: &Boots,
    accel: Option<Accel>,
    tell: &dyn Fn(&str),
) -> Result<i32, GuestError> {
    let (kvm, why) = carried_by_kvm(boots, accel)?;
    if let Some(why) = &why {
        tell(&emulated(why));
    }
    if !kvm {
        tell(host::virt::NOT_REPRESENTATIVE);
    }
    let stdin = io::stdin();
    let settings = tcgetattr(&stdin).ok();
    let mut child = start(boots, boots.at_terminal(kvm))?;
    let ended = child.wait();
    // QEMU puts the terminal back, unless it was killed.
    if let Some(settings) = settings {
        let _ = tcsetattr(&stdin, OptionalActions::Now, &settings);
    }
    let ended = ended.map_err(GuestError::file(
        Path::new(command::program(boots.board.architecture)),
        "wait for it",
    ))?;
    Ok(crate::inside::status(ended))
}

fn start(boots: &Boots, mut command: Command) -> Result<Child, GuestError> {
    let architecture = boots.board.architecture;
    let program = command::program(architecture);
    command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => GuestError::unmet(
            format!(
                "`{program}` is not here, which emulates {}",
                architecture.name()
            ),
            format!("apt install {}", command::package(architecture)),
        ),
        _ => GuestError::Program {
            program,
            said: error.to_string(),
        },
    })
}

impl Guest {
    fn boot(
        boots: &Boots,
        kvm: bool,
        limit: Duration,
        see: fn(&[u8]),
    ) -> Result<(Guest, Ready), GuestError> {
        let pair = || UnixStream::pair().map_err(GuestError::file(Path::new("socket"), "make it"));
        let ((console, at_console), (channel, at_channel), (monitor, at_monitor)) =
            (pair()?, pair()?, pair()?);
        let there = [at_console, at_channel, at_monitor].map(OwnedFd::from);
        let mut qemu = start(boots, boots.headless(kvm, &there))?;
        drop(there);
        let complaints = qemu
            .stderr
            .take()
            .map(|from| Tail::follow(from, |_| ()))
            .unwrap_or_default();
        let console = Tail::follow(console, see);
        let to = channel
            .try_clone()
            .map_err(GuestError::file(Path::new("channel"), "use it"))?;
        let mut guest = Guest {
            qemu,
            program: command::program(boots.board.architecture),
            monitor: Monitor::new(monitor),
            to: Arc::new(Sender::new(File::from(OwnedFd::from(to)))),
            from: received(channel),
            console,
            complaints,
            heard: Instant::now(),
            silent: SILENT,
            orders: 0,
            lost: 0,
        };
        let until = Instant::now() + limit;
        loop {
            match guest.next(until)? {
                Some(FromGuest::Ready(ready)) => return Ok((guest, ready)),
                Some(_) => {}
                None => {
                    return Err(guest.fault(&format!(
                        "the guest does not answer {} s after it was switched on",
                        limit.as_secs()
                    )));
                }
            }
        }
    }

    /// The next message until then; `None` if there is none.
    fn next(&mut self, until: Instant) -> Result<Option<FromGuest>, GuestError> {
        let left = until.saturating_duration_since(Instant::now());
        match self.from.recv_timeout(left) {
            Ok((message, lost)) => {
                self.heard = Instant::now();
                self.lost += u64::from(lost);
                Ok(Some(message))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.gone()),
        }
    }

    /// The next message; an error if the guest has been silent for too long.
    fn next_alive(&mut self, until: Instant) -> Result<Option<FromGuest>, GuestError> {
        let message = self.next(until.min(self.heard + self.silent))?;
        if message.is_none() && self.heard.elapsed() >= self.silent {
            return Err(self.fault(&format!(
                "the guest has said nothing for {} s",
                self.silent.as_secs()
            )));
        }
        Ok(message)
    }

    /// The error of a guest whose channel has closed.
    fn gone(&mut self) -> GuestError {
        let until = Instant::now() + Duration::from_secs(2);
        let mut ended = None;
        while ended.is_none() && Instant::now() < until {
            ended = self.qemu.try_wait().ok().flatten();
            thread::sleep(Duration::from_millis(10));
        }
        match ended {
            Some(status) if !status.success() => {
                let said = self.complaints.text();
                let why = tail::reason(&said, self.program);
                self.fault(&format!("QEMU has ended ({status}): {why}"))
            }
            _ => self.fault("the guest has ended by itself"),
        }
    }

    /// The error of a guest: that its kernel has panicked, if so, or else this; with the end of its console.
    fn fault(&self, otherwise: &str) -> GuestError {
        let what = match self.console.panic() {
            Some(why) => format!("the guest's kernel has panicked: {why}"),
            None => otherwise.to_owned(),
        };
        GuestError::Guest {
            what,
            tail: self.console.lines(),
        }
    }

    fn send(&mut self, message: &ToGuest) -> Result<(), GuestError> {
        match self.to.send(message) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                let fix = "put them into a file and take it along by --with";
                Err(InputError::new("arguments", error.to_string(), fix).into())
            }
            Err(_) => Err(self.gone()),
        }
    }

    /// QEMU's process.
    pub fn pid(&self) -> i32 {
        self.qemu.id().cast_signed()
    }

    /// How many messages of the guest were lost on the line.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Lets it be silent for so long: one whose cpus are full of real-time work sends no sign of life.
    pub fn bear_silence(&mut self, silent: Duration) {
        self.silent = silent;
    }

    /// The threads of QEMU that execute the virtual cpus, in their order, as the host numbers them.
    ///
    /// # Errors
    /// If QEMU does not answer.
    pub fn vcpus(&mut self) -> Result<Vec<i32>, GuestError> {
        let asked = self.monitor.vcpus();
        asked.map_err(|error| self.fault(&format!("QEMU's monitor does not answer: {error}")))
    }

    /// The standard input of the program that [`Guest::run`] will be asked to give one.
    pub fn input(&self) -> Input {
        Input(self.to.clone())
    }

    /// Runs a program in the guest to its end and shows what it prints to `see`; returns its status, 128 and the signal if one
    /// killed it. With `input`, its standard input is [`Guest::input`], else it has none.
    ///
    /// # Errors
    /// If the guest fails.
    pub fn run(
        &mut self,
        args: &[String],
        input: bool,
        see: &mut dyn FnMut(Output, &[u8]),
    ) -> Result<i32, GuestError> {
        self.orders += 1;
        let id = self.orders;
        let mut started = false;
        let mut again = Instant::now();
        loop {
            if !started && Instant::now() >= again {
                let now = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                self.send(&ToGuest::Run(Order {
                    id,
                    args: args.to_vec(),
                    input,
                    now_ns: now.as_nanos() as u64,
                }))?;
                again = Instant::now() + ANSWER;
            }
            match self.next_alive(if started {
                Instant::now() + SILENT
            } else {
                again
            })? {
                Some(FromGuest::Started(of)) if of == id => started = true,
                Some(FromGuest::Out(bytes)) => see(Output::Out, &bytes),
                Some(FromGuest::Err(bytes)) => see(Output::Err, &bytes),
                Some(FromGuest::Ended(of, status)) if of == id => return Ok(status),
                _ => {}
            }
        }
    }

    /// Fetches what is in a directory of the guest to one of this machine, which is there; nothing if the guest has no such
    /// directory. The archive is kept on the disk of the cache until it is whole.
    ///
    /// # Errors
    /// If the guest fails, the line damages it again and again, or a disk is full.
    pub fn fetch(&mut self, cache: &Cache, from: &str, into: &Path) -> Result<(), GuestError> {
        for _ in 0..TRIES {
            let mut archive = cache.nameless()?;
            if self.receive(from, &mut archive)? {
                let told = GuestError::file(into, "unpack what the guest has sent");
                let unpacked = archive
                    .rewind()
                    .and_then(|()| crate::tree::unpack(BufReader::new(archive), into));
                return unpacked.map_err(told);
            }
        }
        Err(self.fault(&format!("{from} arrives damaged, {TRIES} times in a row")))
    }

    /// Receives a directory as an archive; whether it is whole.
    fn receive(&mut self, from: &str, archive: &mut File) -> Result<bool, GuestError> {
        let told = || GuestError::file(Path::new("archive"), "keep what the guest sends");
        let mut out = io::BufWriter::with_capacity(1 << 20, archive);
        let mut sum = Sha256::new();
        // When the last piece came.
        let mut came: Option<Instant> = None;
        let mut again = Instant::now();
        loop {
            if came.is_none() && Instant::now() >= again {
                self.send(&ToGuest::Fetch(from.to_owned()))?;
                again = Instant::now() + ANSWER;
            }
            match self.next_alive(came.map_or(again, |came| came + SILENT))? {
                Some(FromGuest::Files(piece)) => {
                    came = Some(Instant::now());
                    sum.update(&piece);
                    out.write_all(&piece).map_err(told())?;
                }
                Some(FromGuest::FilesEnd(digest)) => {
                    out.flush().map_err(told())?;
                    return Ok(hexadecimal(sum) == digest);
                }
                Some(FromGuest::Fault(why)) => return Err(self.fault(&why)),
                // The end was lost on the line.
                _ if came.is_some_and(|came| came.elapsed() >= SILENT) => return Ok(false),
                _ => {}
            }
        }
    }

    /// Switches the guest off, by force if it does not do so itself; whether it did.
    pub fn off(mut self) -> bool {
        let _ = self.to.send(&ToGuest::Off);
        let mut until = Instant::now() + OFF;
        let mut is_down = false;
        while Instant::now() < until {
            if let Ok(Some(status)) = self.qemu.try_wait() {
                return status.success();
            }
            // Not every machine can switch itself off once its kernel is down.
            if !is_down && self.console.text().contains(DOWN) {
                is_down = true;
                until = until.min(Instant::now() + DOWN_FOR);
            }
            thread::sleep(Duration::from_millis(10));
        }
        is_down
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kvm_did_is_remembered_until_the_host_starts_again() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        assert_eq!(found(&cache, "kvm-a"), None);
        remember(&cache, "kvm-a", "it hangs").unwrap();
        assert_eq!(found(&cache, "kvm-a").unwrap(), "it hangs");
        assert_eq!(found(&cache, "kvm-b"), None);
        std::fs::write(cache.path("found", "kvm-a"), "another-boot\nit hangs").unwrap();
        assert_eq!(found(&cache, "kvm-a"), None);
    }
}
