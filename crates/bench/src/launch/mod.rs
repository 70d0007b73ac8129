//! Ways of starting a program and waiting until nothing of it is left: from fork and exec to container managers.
//!
//! One [`Launcher`] per way; each records the instants that it can. Callers evaluate them.

mod commands;
mod floor;
mod oci;

pub(crate) use commands::Commands;
pub(crate) use oci::Oci;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use floor::Floor;

use engine::{CellSpec, Rights, User};
use host::foreign_file;
use model::EngineKind;
use probe::{Life, ProbeArgs, clock};
use record::run::Run;

use crate::BenchError;
use crate::error::failed;
use crate::place::Place;
use crate::sweep::new_place;

/// Instants of one launch, CLOCK_MONOTONIC ns, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launched {
    /// The request.
    pub asked: i64,
    /// The cell existed and its payload had not begun; `None` if the launcher does not report it.
    pub created: Option<i64>,
    /// The payload's first clock reading.
    pub first: i64,
    /// The payload's last clock reading.
    pub last: i64,
    /// The launcher saw the payload's end; `None` if it does not report it.
    pub ended: Option<i64>,
    /// Nothing of the cell was left.
    pub gone: i64,
    /// The launcher's own steps as it names them and when each was done, if it reports them.
    pub steps: Vec<(String, i64)>,
}

/// Needs of every launch.
pub(crate) struct Stage {
    pub place: Place,
    pub rootfs: PathBuf,
    pub shared: PathBuf,
    /// Written by every payload.
    pub life: Life,
}

/// Name of the page in the shared directory.
const PAGE: &str = "life";

impl Stage {
    /// Makes the place, the root filesystem and the page.
    pub(crate) fn set() -> Result<Stage, BenchError> {
        let mut place = new_place()?;
        let rootfs = place.rootfs()?;
        let shared = place.sub("trials/0/shared")?;
        let page = shared.join(PAGE);
        let life = Life::create(&page).map_err(failed(&page, "make the page"))?;
        Ok(Stage {
            place,
            rootfs,
            shared,
            life,
        })
    }

    /// The same for a run: a sweep of a killed run's place notes the kill there.
    pub(crate) fn of_run(run: &Run) -> Result<Stage, BenchError> {
        let mut stage = Stage::set()?;
        stage.place.note_run(run.dir())?;
        Ok(stage)
    }

    /// The page as a process of the host sees it.
    pub(crate) fn page(&self) -> PathBuf {
        self.shared.join(PAGE)
    }

    /// The id of the cell called `name`.
    pub(crate) fn id(name: &str) -> String {
        format!("timecell-{}-{name}", std::process::id())
    }

    /// The directory of the cell called `name`.
    pub(crate) fn work_dir(&self, name: &str) -> PathBuf {
        self.place.dir().join(format!("trials/0/cells/{name}"))
    }

    /// The spec of the cell called `name`.
    pub(crate) fn spec(
        &self,
        name: &str,
        kind: EngineKind,
        user: Option<&User>,
        words: Vec<String>,
        rights: Rights,
    ) -> Result<CellSpec, BenchError> {
        Ok(CellSpec {
            id: Stage::id(name),
            engine: kind,
            rootfs: self.rootfs.clone(),
            words,
            shared: self.shared.clone(),
            work_dir: self.place.sub(&format!("trials/0/cells/{name}"))?,
            user: user.cloned(),
            rights,
            machine: None,
        })
    }
}

/// The rights of a cell whose threads take real-time priorities up to this, and lock their measuring memory.
pub(crate) fn rights(rtprio: u8) -> Rights {
    Rights {
        rtprio,
        memlock_bytes: 128 << 20,
        devices: Vec::new(),
        limits: model::Size::default(),
    }
}

/// The words of a cell that runs one probe.
pub(crate) fn probe_words(args: &ProbeArgs) -> Vec<String> {
    let words = ["probe".to_owned(), "run".to_owned()];
    words.into_iter().chain(args.to_words()).collect()
}

/// The page as a cell sees it.
pub(crate) fn page_in_cell() -> String {
    format!("/cell/{PAGE}")
}

/// One way.
pub(crate) trait Launcher {
    /// Starts the program, waits for its end and removes its cell's remains; the error is one sentence.
    fn launch(&mut self, stage: &Stage, number: u32) -> Result<Launched, String>;
}

/// A launch whose begin and end alone are known; the rest is the payload's stamps.
fn told(stage: &Stage, asked: i64, gone: i64) -> Result<Launched, String> {
    let payload = stage.life.first_ns().zip(stage.life.last_ns());
    let (first, last) = payload.ok_or("the payload left no stamp")?;
    Ok(Launched {
        asked,
        created: None,
        first,
        last,
        ended: None,
        gone,
        steps: Vec::new(),
    })
}

/// Runs `command` to its end with its words in `log`; the instant of the request and of the end.
fn timed(command: &mut Command, log: &Path) -> Result<(i64, i64), String> {
    let file = foreign_file::append(log).map_err(|error| format!("{}: {error}", log.display()))?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(file);
    let asked = clock::now();
    let status = command.status().map_err(|error| error.to_string())?;
    let gone = clock::now();
    if status.success() {
        return Ok((asked, gone));
    }
    let said = std::fs::read_to_string(log).unwrap_or_default();
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or_default().display();
    Err(match said.trim().lines().last() {
        Some(line) => format!("{program} ended with {status} and the message: {line}"),
        None => format!("{program} ended with {status}"),
    })
}

/// fork and exec: the least there is.
pub(crate) struct ForkExec;

impl Launcher for ForkExec {
    fn launch(&mut self, stage: &Stage, _: u32) -> Result<Launched, String> {
        stage.life.reset();
        let mut command = Command::new(stage.rootfs.join("timecell"));
        command
            .args(Life::ending(&stage.page().display().to_string()))
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let asked = clock::now();
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let status = child.wait().map_err(|error| error.to_string())?;
        let gone = clock::now();
        if !status.success() {
            return Err(format!("the payload ended with {status}"));
        }
        told(stage, asked, gone)
    }
}

/// clone3 with namespaces and a root of its own: the base of every container engine.
pub(crate) struct Clone3 {
    floor: Floor,
    /// Inherited by the payload, which cannot reach the page otherwise.
    _page: File,
}

impl Clone3 {
    pub(crate) fn new(stage: &Stage) -> Result<Clone3, BenchError> {
        use std::os::fd::AsRawFd;
        let path = stage.page();
        let page = foreign_file::open_to_write(&path).map_err(failed(&path, "open the page"))?;
        // SAFETY: an open descriptor of ours; it is to be inherited.
        unsafe { libc::fcntl(page.as_raw_fd(), libc::F_SETFD, 0) };
        let words = Life::ending(&format!("/proc/self/fd/{}", page.as_raw_fd()));
        let floor =
            Floor::new(&stage.rootfs, &words).map_err(failed(&stage.rootfs, "prepare a launch"))?;
        Ok(Clone3 { floor, _page: page })
    }
}

impl Launcher for Clone3 {
    fn launch(&mut self, stage: &Stage, _: u32) -> Result<Launched, String> {
        stage.life.reset();
        let asked = clock::now();
        let (code, cloned) = self.floor.run().map_err(|error| error.to_string())?;
        let gone = clock::now();
        if code != 0 {
            return Err(format!("the launch by clone3 ended with code {code}"));
        }
        let told = told(stage, asked, gone)?;
        Ok(Launched {
            created: Some(cloned).filter(|cloned| *cloned <= told.first),
            ..told
        })
    }
}
