//! A mission's supervisor as a child process, and the requests to it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use host::pidfd;
use jailhouse::Driver;
use model::mission::Mission;
use rustix::process::{Signal, set_parent_process_death_signal};
use supervise::control::{Ask, CellStatus, Client, Say, Status};
use supervise::state::Hold;

use crate::session::Interrupt;

/// This program.
pub(super) const OWN: &str = "/proc/self/exe";
/// Longest time for a mission to run, or to end.
const PATIENCE: Duration = Duration::from_secs(300);
/// Between two looks whether the user interrupts.
const LOOK: Duration = Duration::from_millis(100);
/// Between two questions to a supervisor that prints nothing: of the first job of a cell, it prints nothing.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(10);

/// A cell of the mission.
struct Known {
    name: String,
    is_partition: bool,
}

/// A mission, and its supervisor if it is up. The mission is ended when this is dropped.
pub(super) struct Supervised {
    pub(super) name: String,
    pub(super) file: PathBuf,
    /// The directory of the mission.
    pub(super) dir: PathBuf,
    cells: Vec<Known>,
    up: Option<Up>,
    /// Whether the directory is kept, with the journal and the output of cells.
    pub(super) is_kept: bool,
}

/// A supervisor.
struct Up {
    child: Child,
    lines: Receiver<String>,
    /// The last line that it has printed, preferably an error.
    last: String,
    client: Option<Client>,
}

impl Supervised {
    pub(super) fn of(mission: &Mission, file: &Path, dir: PathBuf) -> Supervised {
        let cells = mission.cells.iter().map(|cell| Known {
            name: cell.name.clone(),
            is_partition: cell.engine.is_partition(),
        });
        Supervised {
            name: mission.name.clone(),
            file: file.to_owned(),
            dir,
            cells: cells.collect(),
            up: None,
            is_kept: false,
        }
    }

    /// Boots the mission unless it is up.
    pub(super) fn runs(&mut self, interrupt: &Interrupt) -> Result<(), String> {
        match self.up {
            Some(_) => self.all_run(&BTreeMap::new(), interrupt),
            None => self.up(interrupt),
        }
    }

    /// Boots the mission, until all its cells run.
    pub(super) fn up(&mut self, interrupt: &Interrupt) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("`timecell up` cannot be started: {error}");
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        let mut command = Command::new(OWN);
        (command
            .arg("up")
            .arg(&self.file)
            .arg("--dir")
            .arg(&self.dir))
        .stdin(Stdio::null())
        .stdout(writer.try_clone().map_err(failed)?)
        .stderr(writer)
        // Signals of the terminal are for the measuring process, which then ends the mission.
        .process_group(0);
        // SAFETY: the closure makes one system call. The supervisor of a killed process ends its mission.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?));
        }
        let child = command.spawn().map_err(failed)?;
        // The pipe ends with the supervisor.
        drop(command);
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(reader).lines().map_while(Result::ok);
            lines.for_each(|line| drop(sender.send(line)));
        });
        self.up = Some(Up {
            child,
            lines,
            last: String::new(),
            client: None,
        });
        self.all_run(&BTreeMap::new(), interrupt)
    }

    /// Ends the mission, if it is up.
    pub(super) fn down(&mut self, interrupt: &Interrupt) -> Result<(), String> {
        if self.up.is_none() {
            return Ok(());
        }
        self.ask(&["down"], interrupt)?;
        let up = self.up.as_mut().expect("it was there");
        let until = Instant::now() + PATIENCE;
        ended(&mut up.child, until, interrupt)?;
        self.up = None;
        Ok(())
    }

    /// Restarts a cell, until all run.
    pub(super) fn restart(&mut self, cell: &str, interrupt: &Interrupt) -> Result<(), String> {
        let starts = self.starts(cell)?;
        self.ask(&["restart", cell], interrupt)?;
        self.all_run(&starts, interrupt)
    }

    /// Makes a cell crash, and waits until all run.
    pub(super) fn recover(&mut self, cell: &str, interrupt: &Interrupt) -> Result<(), String> {
        let starts = self.starts(cell)?;
        let known = self.cells.iter().find(|known| known.name == cell);
        if known.is_some_and(|known| known.is_partition) {
            let shut = Driver::open().and_then(|driver| driver.load(cell, &[]));
            shut.map_err(|error| error.to_string())?;
        } else {
            let pid = self
                .status()?
                .cells
                .iter()
                .find(|of| of.cell == cell)
                .and_then(|of| of.pid);
            let pid = pid.ok_or_else(|| format!("{cell} has no process"))?;
            let process = pidfd::open(pid).and_then(pidfd::kill);
            process.map_err(|error| format!("the process of {cell} cannot be killed: {error}"))?;
        }
        self.all_run(&starts, interrupt)
    }

    /// Ends the mission somehow.
    pub(super) fn end(&mut self) {
        let Some(mut up) = self.up.take() else {
            return;
        };
        let ended = pidfd::open(up.child.id().cast_signed()).is_ok_and(|process| {
            let _ = pidfd::send(&process, libc::SIGTERM);
            pidfd::ended_within(&process, PATIENCE)
        });
        if !ended {
            let _ = up.child.kill();
        }
        let _ = up.child.wait();
        if !ended {
            self.end_orphans();
        }
    }

    /// Ends cells without a supervisor, if there are any.
    pub(super) fn end_orphans(&self) {
        let mut down = Command::new(OWN);
        let down = down
            .arg("down")
            .arg("--dir")
            .arg(&self.dir)
            .stdin(Stdio::null());
        let _ = down.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }

    /// How often this cell was started by now.
    fn starts(&mut self, cell: &str) -> Result<BTreeMap<String, u64>, String> {
        let status = self.status()?;
        let of = status.cells.iter().find(|of| of.cell == cell);
        Ok(of
            .map(|of| (of.cell.clone(), of.starts))
            .into_iter()
            .collect())
    }

    /// Waits until all cells run, those in `before` after another start.
    fn all_run(
        &mut self,
        before: &BTreeMap<String, u64>,
        interrupt: &Interrupt,
    ) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            // Before it listens, nothing runs.
            let late = match self.status() {
                Err(why) => why,
                Ok(status) => {
                    let awaited: Vec<&Known> = (self.cells.iter())
                        .filter(|known| !known.is_ready(&status, before))
                        .collect();
                    let of = |known: &Known| status.cells.iter().find(|of| of.cell == known.name);
                    let Some(first) = awaited.first() else {
                        return Ok(());
                    };
                    let found: Vec<&CellStatus> =
                        awaited.iter().filter_map(|known| of(known)).collect();
                    // Those that wait for another cell run after it.
                    let stays = |of: &CellStatus| of.holds.iter().any(|hold| *hold != Hold::Needs);
                    if let Some(stopped) = found.iter().find(|of| stays(of)) {
                        let end = stopped.last_end.as_ref().map(|end| end.text.clone());
                        let why = stopped.why.clone().or(end).unwrap_or_default();
                        return Err(format!("{} stays stopped: {why}", stopped.cell));
                    }
                    format!("{} does not run", first.name)
                }
            };
            if interrupt.came() {
                return Err("interrupted".to_owned());
            }
            if Instant::now() > until {
                return Err(format!("not within {} s: {late}", PATIENCE.as_secs()));
            }
            self.printed(BETWEEN_QUESTIONS)?;
        }
    }

    /// Waits so long for the supervisor's next line.
    fn printed(&mut self, patience: Duration) -> Result<(), String> {
        let up = self.up.as_mut().ok_or("it is not up")?;
        match up.lines.recv_timeout(patience) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(line) => {
                let is_error = |line: &str| line.starts_with("error: ");
                if !line.trim().is_empty() && (is_error(&line) || !is_error(&up.last)) {
                    up.last = line;
                }
                Ok(())
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = up
                    .child
                    .wait()
                    .map_or(String::new(), |status| status.to_string());
                let said = up.last.trim_start_matches("error: ");
                Err(format!("`timecell up` ended ({status}): {said}"))
            }
        }
    }

    fn status(&mut self) -> Result<Status, String> {
        let up = self.up.as_mut().ok_or("it is not up")?;
        let client = match &mut up.client {
            Some(client) => client,
            none => none.insert(Client::connect(&self.dir).map_err(|error| error.to_string())?),
        };
        match client.ask(&self.dir, Ask::Status, &mut |_| ()) {
            Ok(Say::Status(status)) => Ok(*status),
            Ok(_) => Err("the supervisor gave another answer than its state".to_owned()),
            Err(error) => {
                up.client = None;
                Err(error.to_string())
            }
        }
    }

    /// Sends a request by a process of its own, and waits for its end.
    fn ask(&mut self, words: &[&str], interrupt: &Interrupt) -> Result<(), String> {
        let verb = words[0];
        let mut command = Command::new(OWN);
        let mut child = command
            .args(words)
            .arg("--dir")
            .arg(&self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("`timecell {verb}` cannot be started: {error}"))?;
        let status = ended(&mut child, Instant::now() + PATIENCE, interrupt).inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })?;
        if status.success() {
            return Ok(());
        }
        let mut said = String::new();
        let _ = (child.stderr.take()).map(|said_by| said_by.take(4096).read_to_string(&mut said));
        let said = said.lines().last().unwrap_or_default();
        let said = said.trim_start_matches("error: ");
        Err(format!("`timecell {verb}` ended ({status}): {said}"))
    }
}

/// The end of a process.
fn ended(
    child: &mut Child,
    until: Instant,
    interrupt: &Interrupt,
) -> Result<std::process::ExitStatus, String> {
    let failed = |error: std::io::Error| format!("a process cannot be waited for: {error}");
    let process = pidfd::open(child.id().cast_signed()).map_err(failed)?;
    while !pidfd::ended_within(&process, LOOK) {
        if interrupt.came() {
            return Err("interrupted".to_owned());
        }
        if Instant::now() > until {
            return Err(format!("not ended within {} s", PATIENCE.as_secs()));
        }
    }
    child.wait().map_err(failed)
}

impl Known {
    fn is_ready(&self, status: &Status, before: &BTreeMap<String, u64>) -> bool {
        let of = status.cells.iter().find(|of| of.cell == self.name);
        of.is_some_and(|of| {
            let starts = before.get(&self.name);
            of.ready && starts.is_none_or(|starts| of.starts > *starts)
        })
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.end();
        if !self.is_kept {
            // It holds a journal and the output of cells, which nobody missed.
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}
