//! A link to another machine: OpenSSH's client, or a serial line; at its other end the server answers in frames.

use std::cell::Cell;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use model::{Architecture, Choice as _};
use rustix::fs::{Mode, OFlags};
use rustix::termios::{ControlModes, OptionalActions, tcgetattr, tcsetattr};

use super::bring::{Pace, SCRIPT, SILENT, Talk, Unbrought};
use super::message::{FromRemote, ToRemote};
use super::target::Target;
use crate::channel::{Sender, frame, received};
use crate::tail::Tail;
use crate::{GuestError, Program};

/// How long a login may take, with a password that somebody types.
const LOGIN: Duration = Duration::from_secs(300);
/// How long a shell on a console may take to answer.
const CONSOLE: Duration = Duration::from_secs(10);
/// Bytes of a piece of the program on a serial line, whose terminal keeps 4096 for its reader.
const PIECE: usize = 2048;
/// How long ssh may take to end by itself.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Options that end a connection that does not answer: ssh's own look, and the time to connect.
const LIVENESS: [&str; 3] = [
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "ConnectTimeout=20",
];

/// How machines are reached.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// ssh and options of its own; empty for `ssh`.
    pub ssh: Vec<String>,
    /// Directory there for timecell and orders, instead of the user's cache.
    pub dir: Option<String>,
    /// Whether ssh may ask for passwords and the like.
    pub may_ask: bool,
}

/// A link whose server answers.
pub struct Link {
    /// To the server.
    pub to: Sender<ToRemote>,
    /// From the server, until the link closes.
    pub from: Receiver<(FromRemote, u32)>,
    ssh: Option<(Child, Tail)>,
    closed: Arc<AtomicBool>,
}

/// Why there is no link.
pub enum Unlinked {
    /// It may be there later.
    Lost(GuestError),
    /// Trying again is useless.
    Hopeless(GuestError),
    /// The user ended it.
    Stopped,
}

/// The caller while a link is made: is told, and may end that.
pub struct Heard<'h> {
    /// Is told of steps that take long.
    pub tell: &'h dyn Fn(&str),
    /// Whether the user wants to end.
    pub stop: &'h dyn Fn() -> bool,
    /// Set once the other machine has answered.
    pub reached: &'h Cell<bool>,
}

/// Finds timecell for a processor.
pub type Programs<'p> = dyn Fn(Architecture) -> Result<Program, GuestError> + 'p;

impl Link {
    /// Opens a link, and brings timecell there if it is not.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(
        target: &Target,
        reach: &Reach,
        programs: &Programs<'_>,
        heard: &Heard<'_>,
    ) -> Result<Link, Unlinked> {
        match target {
            Target::Ssh(name) => ssh(name, reach, programs, heard),
            Target::Serial { device, baud } => {
                serial(target, (device, *baud), reach, programs, heard)
            }
        }
    }

    fn over(talk: Talk<'_>, ssh: Option<(Child, Tail)>) -> Link {
        let closed = Arc::default();
        let (from, to) = talk.ends(Arc::clone(&closed));
        Link {
            to: Sender::new(to),
            from: received(from),
            ssh,
            closed,
        }
    }

    /// The last line that ssh has said, if any.
    pub fn said(&mut self) -> Option<String> {
        let (ssh, tail) = self.ssh.as_mut()?;
        end(ssh);
        last_line(tail)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // A console gets its shell back; ssh ends the server by closing its line.
        if self.ssh.is_none() {
            let _ = self.to.send(&ToRemote::Leave);
        }
        self.closed.store(true, Ordering::Relaxed);
        if let Some((ssh, _)) = &mut self.ssh {
            end(ssh);
        }
    }
}

/// Waits for ssh to end, which may carry other connections of the user's, and kills it if it does not.
fn end(ssh: &mut Child) {
    let until = Instant::now() + LAST_WORDS;
    while Instant::now() < until && matches!(ssh.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Neither fails for a child that was not waited for.
    let _ = ssh.kill();
    let _ = ssh.wait();
}

fn last_line(tail: &Tail) -> Option<String> {
    last_reason(&tail.text()).map(str::to_owned)
}

/// The last line that ssh has said, but for those that only say that its way through a gateway has ended.
fn last_reason(text: &str) -> Option<&str> {
    let mut lines = text.lines().rev().map(str::trim);
    let follows = |line: &str| {
        line.ends_with("UNKNOWN port 65535") || line.starts_with("kex_exchange_identification:")
    };
    let reason = lines
        .clone()
        .find(|line| !line.is_empty() && !follows(line));
    reason.or_else(|| lines.find(|line| !line.is_empty()))
}

/// The host whose key has changed, as the file of known hosts names it: the one asked for, or a gateway.
fn changed(text: &str) -> Option<&str> {
    let after = |line| Some(str::split_once(line, "key for ")?.1);
    let mut hosts = text.lines().filter_map(after);
    hosts.find_map(|rest| Some(rest.split_once(" has changed")?.0))
}

/// Timecell for a machine as `uname -m` names it.
fn program(
    target: &dyn std::fmt::Display,
    machine: &str,
    programs: &Programs<'_>,
) -> Result<Program, GuestError> {
    let named = match machine {
        "arm64" => "aarch64",
        "amd64" => "x86_64",
        name => name,
    };
    let of = Architecture::named(named).ok_or_else(|| {
        GuestError::unmet(
            format!("{target}: its processor is `{machine}`"),
            "timecell runs on x86_64 and aarch64",
        )
    })?;
    programs(of)
}

/// The script as the argument of a shell, for any login shell.
fn command(dir: Option<&str>) -> String {
    let dir = dir.unwrap_or_default();
    let quoted = dir.replace('\'', "'\\''");
    format!("exec sh -c '{SCRIPT}\ntc \"$1\"' sh '{quoted}'")
}

fn ssh(
    name: &str,
    reach: &Reach,
    programs: &Programs<'_>,
    heard: &Heard<'_>,
) -> Result<Link, Unlinked> {
    let (program_name, options) = match reach.ssh.split_first() {
        Some((program, options)) => (program.as_str(), options),
        None => ("ssh", &[][..]),
    };
    let mut ssh = Command::new(program_name);
    ssh.args(options).arg("-T");
    for option in LIVENESS {
        ssh.args(["-o", option]);
    }
    if !reach.may_ask {
        ssh.args(["-o", "BatchMode=yes"]);
    }
    ssh.arg(name).arg(command(reach.dir.as_deref()));
    ssh.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: between fork and exec, only the disposition of a signal is changed. Ctrl-C is for the order there, not for ssh.
    unsafe {
        ssh.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_IGN);
            Ok(())
        });
    }
    let mut child = ssh.spawn().map_err(|error| {
        Unlinked::Hopeless(GuestError::unmet(
            format!("`{program_name}`, which connects, cannot be started: {error}"),
            "apt install openssh-client, or name another by --ssh",
        ))
    })?;
    let (Some(to), Some(from), Some(complaints)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        let broken = GuestError::unmet("ssh has no pipes", "try again");
        return Err(Unlinked::Hopeless(broken));
    };
    let tail = Tail::follow(complaints, |_| ());
    let mut link = Closing(Some((child, tail)));
    let mut talk = Talk::new(
        File::from(OwnedFd::from(from)),
        File::from(OwnedFd::from(to)),
        heard.stop,
    );
    let pace = Pace {
        piece: 1 << 20,
        takes: Duration::from_secs(120),
        slow: false,
    };
    let target: &dyn std::fmt::Display = &name;
    match brought(&mut talk, LOGIN, pace, target, programs, heard) {
        Ok(()) => Ok(Link::over(talk, link.0.take())),
        Err(Unbrought::Line(why)) => Err(link.refused(name, &why)),
        Err(other) => Err(unlinked(&name, other)),
    }
}

/// The conversation from the first answer of the script to the running server.
fn brought(
    talk: &mut Talk<'_>,
    patience: Duration,
    pace: Pace,
    target: &dyn std::fmt::Display,
    programs: &Programs<'_>,
    heard: &Heard<'_>,
) -> Result<(), Unbrought> {
    let (machine, gzip) = talk.here(patience)?;
    heard.reached.set(true);
    let program = program(target, &machine, programs).map_err(Unbrought::Here)?;
    let digest = talk.bring(&program, gzip, pace, heard.tell)?;
    talk.serve(&digest)
}

fn unlinked(target: &dyn std::fmt::Display, why: Unbrought) -> Unlinked {
    match why {
        Unbrought::Stopped => Unlinked::Stopped,
        Unbrought::Here(error) => Unlinked::Hopeless(error),
        Unbrought::There(why) => Unlinked::Hopeless(GuestError::unmet(
            format!("{target}: timecell cannot be kept there: {why}"),
            "make room there, or name another directory by --remote-dir",
        )),
        Unbrought::Line(why) => Unlinked::Lost(GuestError::unmet(
            format!("{target}: the line: {why}"),
            "look whether it is connected, and at its rate",
        )),
    }
}

/// ssh, which ends with this value.
struct Closing(Option<(Child, Tail)>);

impl Drop for Closing {
    fn drop(&mut self) {
        if let Some((ssh, _)) = &mut self.0 {
            let _ = ssh.kill();
            let _ = ssh.wait();
        }
    }
}

impl Closing {
    /// Why ssh has ended: its own sentence, and the remedy.
    fn refused(&mut self, name: &str, why: &str) -> Unlinked {
        let Some((mut ssh, tail)) = self.0.take() else {
            return Unlinked::Stopped;
        };
        end(&mut ssh);
        // Its words are complete a moment after its end.
        std::thread::sleep(Duration::from_millis(50));
        let text = tail.text();
        let said = last_line(&tail).unwrap_or_else(|| format!("ssh said nothing: {why}"));
        let has = |part: &str| text.contains(part);
        let (what, fix, is_final) = if let Some(host) = changed(&text) {
            (
                format!("the host key of {host} is another than the known one"),
                format!("find out why; if it is right, `ssh-keygen -R '{host}'`"),
                true,
            )
        } else if has("Host key verification failed") {
            let fix = format!("accept it once by `ssh {name}`");
            ("its host key is not known here".to_owned(), fix, true)
        } else if has("Permission denied") || has("Too many authentication failures") {
            let fix = format!("make `ssh {name}` work first, for example by ssh-copy-id");
            (format!("it lets nobody in: {said}"), fix, true)
        } else {
            let fix = format!("see whether `ssh {name}` works");
            (said.clone(), fix, false)
        };
        let error = GuestError::unmet(format!("{name}: {what}"), fix);
        match is_final {
            // ssh's own words come first: they name the file and the line.
            true if !tail.text().trim().is_empty() => Unlinked::Hopeless(GuestError::Ssh {
                said: tail.text().trim().to_owned(),
                why: Box::new(error),
            }),
            true => Unlinked::Hopeless(error),
            false => Unlinked::Lost(error),
        }
    }
}

/// Opens a serial line with this rate and nothing that changes bytes.
fn line(device: &Path, baud: u32) -> std::io::Result<File> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let line = rustix::fs::open(device, flags, Mode::empty())?;
    rustix::fs::fcntl_setfl(&line, flags - OFlags::NONBLOCK)?;
    // One at a time speaks with the board; root is not kept out by the terminal's own lock.
    rustix::fs::flock(&line, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
    rustix::termios::ioctl_tiocexcl(&line)?;
    let mut settings = tcgetattr(&line)?;
    settings.make_raw();
    settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
    settings.set_speed(baud)?;
    tcsetattr(&line, OptionalActions::Now, &settings)?;
    Ok(line.into())
}

/// Types the script at the console's shell and calls it; true if a server is there already, which an earlier link has left.
fn typed(talk: &mut Talk<'_>, target: &Target, dir: &str) -> Result<bool, Unbrought> {
    // A server says within this time that it lives.
    let seen = talk.drain(Duration::from_secs(5))?;
    if seen.windows(4).any(|four| four == frame::MARK) {
        return Ok(true);
    }
    // A script that waits for the rest of a piece gets it, and ends.
    talk.type_in(&"\n".repeat(PIECE))?;
    talk.type_in("quit\n")?;
    talk.drain(Duration::from_secs(1))?;
    talk.type_in("\x03\x15\n")?;
    let seen = talk.drain(Duration::from_secs(1))?;
    if String::from_utf8_lossy(&seen)
        .trim_end()
        .ends_with("login:")
    {
        return Err(Unbrought::Here(GuestError::unmet(
            format!("{target}: its console asks for a login"),
            "log in with a terminal program first, and leave that",
        )));
    }
    for line in SCRIPT.lines() {
        talk.type_in(&format!("{line}\n"))?;
        // A console has little room for bytes that are not read yet.
        talk.drain(Duration::from_millis(20))?;
    }
    let dir = dir.replace('\'', "'\\''");
    talk.type_in(&format!(
        "tc_tty=${{tc_tty:-$(stty -g)}}; stty raw -echo; tc '{dir}'; stty \"$tc_tty\" || stty sane; unset tc_tty; unset -f tc say sum\n"
    ))?;
    Ok(false)
}

fn serial(
    target: &Target,
    (device, baud): (&Path, u32),
    reach: &Reach,
    programs: &Programs<'_>,
    heard: &Heard<'_>,
) -> Result<Link, Unlinked> {
    let opened = line(device, baud).and_then(|line| Ok((line.try_clone()?, line)));
    let (from, to) = opened.map_err(|error| {
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        let why = match error.kind() {
            std::io::ErrorKind::WouldBlock => "another program uses it".to_owned(),
            _ => error.to_string(),
        };
        let error = GuestError::unmet(
            format!(
                "{}: the serial line cannot be opened: {why}",
                device.display()
            ),
            "look at its name and its group (dialout), which may use it",
        );
        match is_missing {
            // An adapter that was pulled out comes back.
            true => Unlinked::Lost(error),
            false => Unlinked::Hopeless(error),
        }
    })?;
    let mut talk = Talk::new(from, to, heard.stop);
    let pace = Pace {
        piece: PIECE,
        takes: Duration::from_secs(3) + Duration::from_secs(20 * PIECE as u64) / baud,
        slow: true,
    };
    let dir = reach.dir.as_deref().unwrap_or_default();
    for is_last in [false, false, true] {
        let answered = typed(&mut talk, target, dir).and_then(|is_there| match is_there {
            true => Ok(()),
            false => brought(&mut talk, CONSOLE, pace, target, programs, heard),
        });
        match answered {
            Ok(()) => return Ok(Link::over(talk, None)),
            // The line may have damaged the script.
            Err(Unbrought::Line(why)) if why == SILENT && !heard.reached.get() && !is_last => {}
            Err(Unbrought::Line(why)) if why == SILENT && !heard.reached.get() => break,
            Err(why) => return Err(unlinked(target, why)),
        }
    }
    Err(Unlinked::Lost(GuestError::unmet(
        format!("{target}: no shell answers on it"),
        "connect it to the board's console, look at its rate, and log in there first",
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_there_is_quoted() {
        assert!(command(Some("/a'b")).ends_with("tc \"$1\"' sh '/a'\\''b'"));
        assert!(command(None).ends_with("sh ''"));
    }

    #[test]
    fn a_gateway_that_is_the_reason_is_named() {
        let end = "kex_exchange_identification: Connection closed by remote host\r\nConnection closed by UNKNOWN port 65535\r\n";
        let why = "ssh: connect to host gateway port 22: Connection refused";
        assert_eq!(last_reason(&format!("hello\n{why}\r\n{end}\n")), Some(why));
        // Alone, they are better than nothing.
        let last = "Connection closed by UNKNOWN port 65535";
        assert_eq!(last_reason(end), Some(last));
        assert_eq!(last_reason("\n"), None);
        let said = "a host key has just been changed.\nHost key for [gateway]:2222 has changed and you have requested strict checking.\n";
        assert_eq!(changed(said), Some("[gateway]:2222"));
        assert_eq!(changed(end), None);
    }
}
