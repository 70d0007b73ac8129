//! `qemu`: a virtual machine with a kernel of its own, whose first process is timecell. For the coordinator the payload is a process of
//! ours, which is the parent of QEMU and speaks for the machine (crate `probe`).

use std::path::{Path, PathBuf};
use std::process::Command;

use guest::machine::{Boots, carried_by_kvm, known_of_kvm, takes_size};
use guest::{Cache, GuestError};
use model::{Accel, Architecture, Board, Bytes, Duration, EngineKind, Requirement, Size};
use serde::{Deserialize, Serialize};

use super::bare::begin;
use super::info::{Info, installed};
use crate::error::Result;
use crate::made::{self, Payload, state};
use crate::note::MARK;
use crate::{Cell, CellProcess, CellSpec, Engine, EngineError, Footprint, programs};

pub(super) static INFO: Info = Info {
    engine: |_| Box::new(Qemu),
    programs: || installed(&[PROGRAM]),
    // It is nothing but processes.
    wipe: |_| Ok(()),
    run: None,
    steps: None,
    calls: None,
    apps: None,
};

const PROGRAM: &str = match cfg!(target_arch = "aarch64") {
    true => "qemu-system-aarch64",
    false => "qemu-system-x86_64",
};

/// The virtual machine that a cell is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of its board, or the path of the board's file.
    pub name: String,
    /// The board as a file, with the cell's own values in it.
    pub board: String,
    /// Whether KVM executes it; else it is emulated.
    pub kvm: bool,
    /// Why KVM does not, where that was tried.
    pub why_not_kvm: Option<String>,
    /// The file of its kernel, where that is all that it boots beside its program.
    pub kernel: Option<PathBuf>,
    /// The files of the drivers that it loads, in their order.
    #[serde(default)]
    pub modules: Vec<PathBuf>,
    /// Number of its virtual cpus.
    pub vcpus: u32,
    /// Its memory, bytes.
    pub memory_bytes: u64,
    /// QEMU's threads that execute no virtual cpu, as [`model::Helpers::to_word`] writes them.
    pub helpers: String,
}

impl Machine {
    /// The boards that come with timecell for cells of this processor.
    pub const BOARDS: &[&str] = match cfg!(target_arch = "aarch64") {
        true => &["virt"],
        false => &["microvm", "pvh", "q35"],
    };

    /// The machine as an experiment names it, once its kernel is in the user's cache: it is downloaded if need be, and `tell` told.
    ///
    /// # Errors
    /// The need that this machine does not meet: the board is unknown, for another processor, or larger than this machine, its kernel is not
    /// to be had or is none, or KVM, which it insists on, does not carry it.
    pub fn of(
        asked: &model::Machine,
        tell: &dyn Fn(&str),
    ) -> std::result::Result<Machine, Requirement> {
        let what = format!("virtual machine {}", asked.board());
        let lacks = |error: GuestError| match error {
            GuestError::Unmet { what: reason, fix } => Requirement::unmet(&what, reason, fix),
            GuestError::Input(mut error) if !error.fix.is_empty() => {
                let fix = std::mem::take(&mut error.fix);
                Requirement::unmet(&what, error.to_string(), fix)
            }
            error => Requirement::unmet(&what, error.to_string(), "see `timecell board list`"),
        };
        let (board, _) = guest::machine::board(asked.board()).map_err(lacks)?;
        if Architecture::own() != Some(board.architecture) {
            let reason = format!("it is for {}", board.architecture.name());
            let fix = "name a board for this machine's processor, or see `timecell board run`";
            return Err(Requirement::unmet(what, reason, fix));
        }
        let mut board = asked.applied_to(board);
        // Whether KVM carries it is found out as for one that takes whatever does.
        let insists = board.qemu.accel == Accel::Kvm;
        if insists {
            board.qemu.accel = Accel::Auto;
        }
        let found = (|| {
            let cache = Cache::of_user()?;
            let kernel = guest::kernel::get(&cache, &board, false, tell)?;
            let modules = guest::modules::as_files(&cache, &kernel.modules)?;
            guest::image::packages(&cache, &board, false, tell)?;
            takes_size(&board)?;
            let known = known_of_kvm(&cache, &board, &kernel, None);
            // The memory that a board has holds its system, unless it is another amount or has packages.
            if let Some(known) =
                known.filter(|_| asked.memory.is_none() && board.packages.is_empty())
            {
                return Ok((known, kernel, modules));
            }
            let program = guest::program(Path::new("/proc/self/exe"))?;
            let named = (board.clone(), asked.board().to_owned());
            let boots = Boots::new(named, &program, &[], false, tell)?;
            boots.fits()?;
            Ok((carried_by_kvm(&boots, None)?, boots.kernel, modules))
        })();
        let ((kvm, why_not_kvm), kernel, modules) = found.map_err(lacks)?;
        if insists && !kvm {
            let why = why_not_kvm.unwrap_or_else(|| "there is none that may be used".to_owned());
            let reason = format!("KVM does not carry it ({why})");
            return Err(Requirement::unmet(what, reason, "set `accel = \"auto\"`"));
        }
        board.qemu.accel = if kvm { Accel::Kvm } else { Accel::Tcg };
        let is_all = kernel.device_tree.is_none() && board.packages.is_empty();
        Ok(Machine {
            kernel: is_all.then_some(kernel.image),
            modules,
            vcpus: board.cpus,
            memory_bytes: board.memory.bytes(),
            name: asked.board().to_owned(),
            board: board.to_toml(),
            kvm,
            why_not_kvm,
            helpers: asked.helpers.to_word(),
        })
    }

    /// The same machine of another size, which may have too little memory to boot, and waits no longer for it than `boot_time`.
    ///
    /// # Errors
    /// The need that is not met: QEMU's machine has fewer cpus, or this machine less memory.
    pub fn sized(
        &self,
        size: Size,
        boot_time: Option<Duration>,
    ) -> std::result::Result<Machine, Requirement> {
        let vcpus = size.vcpus.unwrap_or(self.vcpus);
        let memory_bytes = size.memory_bytes.unwrap_or(self.memory_bytes);
        let board = (Board::parse(&self.name, &self.board).map_err(GuestError::from))
            .and_then(|mut board| {
                board.cpus = vcpus;
                board.memory = Bytes::new(memory_bytes);
                board.boot_time = boot_time.unwrap_or(board.boot_time);
                takes_size(&board).map(|()| board)
            })
            .map_err(|error| {
                let what = format!("virtual machine {} of {size}", self.name);
                Requirement::unmet(
                    what,
                    error.to_string(),
                    "ask for fewer virtual cpus, or less memory",
                )
            })?;
        Ok(Machine {
            vcpus,
            memory_bytes,
            board: board.to_toml(),
            ..self.clone()
        })
    }
}

struct Qemu;

impl Engine for Qemu {
    fn kind(&self) -> EngineKind {
        EngineKind::Qemu
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![programs::requirement(PROGRAM, "qemu-system")]
    }

    fn version(&self) -> Option<String> {
        programs::first_line(PROGRAM, &["--version"])
    }

    fn cell_sets_class(&self) -> bool {
        false
    }

    fn footprint(&self) -> Footprint {
        Footprint {
            processes: 6,
            processes_beside: 6,
            files: 60,
            memory_kib: 320 << 10,
            ..Footprint::PROCESS
        }
    }

    fn create(&self, spec: &CellSpec) -> std::result::Result<Box<dyn Cell>, EngineError> {
        let made = made::create(spec, || make(spec), INFO.wipe)?;
        Ok(Box::new(Running {
            made,
            threads: threads(spec),
        }))
    }
}

/// Where the threads of its virtual cpus are written once it has booted.
fn threads(spec: &CellSpec) -> PathBuf {
    state(spec).join("threads")
}

/// Our process that boots the machine of a cell: `timecell probe WORD` with its board.
fn command(spec: &CellSpec, word: &str) -> Result<Command> {
    let machine = (spec.machine.as_ref()).ok_or("nothing says which machine the cell is")?;
    std::fs::create_dir_all(state(spec))?;
    let board = state(spec).join("board.toml");
    std::fs::write(&board, &machine.board)?;
    let mut command = Command::new(spec.rootfs.join("timecell"));
    command.args(["probe", word, &machine.name]).arg(&board);
    Ok(command)
}

/// The command that boots the machine of a cell, tells the page that its only word names when it answers, and switches it off.
///
/// # Errors
/// If the directory of the cell cannot be written.
pub fn boot_command(spec: &CellSpec) -> std::result::Result<Command, EngineError> {
    let command = command(spec, "boots").map(|mut command| {
        command.args(&spec.words).env(MARK, &spec.id);
        command
    });
    command.map_err(|cause| made::error(spec, "boot the machine", cause))
}

fn make(spec: &CellSpec) -> Result<Payload> {
    let mut command = command(spec, "bridge")?;
    let helpers = (spec.machine.as_ref()).map_or("", |machine| &machine.helpers);
    command.arg(threads(spec)).arg(helpers);
    // What the machine runs: `load`, or behind `probe`, `run` or `set`.
    let words = match spec.words.split_first() {
        Some((word, rest)) if word == "probe" => rest,
        _ => &spec.words,
    };
    begin(command, spec, words)
}

/// A machine that runs.
struct Running {
    made: Box<dyn Cell>,
    threads: PathBuf,
}

impl Cell for Running {
    fn pid(&self) -> i32 {
        self.made.pid()
    }

    fn scheduled(&self) -> Vec<i32> {
        let text = host::file::text(&self.threads).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn processes(&self) -> Vec<CellProcess> {
        self.made.processes()
    }

    fn log_tail(&self) -> String {
        self.made.log_tail()
    }

    fn remove(&mut self) -> std::result::Result<(), EngineError> {
        self.made.remove()
    }
}
