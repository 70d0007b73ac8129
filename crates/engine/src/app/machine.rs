//! A cell that is a virtual machine: it is made as a cell of engine `embedded`, whose program is timecell, which runs QEMU in it. All
//! that holds cells holds the machine so, and what breaks out of a guest is in a cell.

use std::path::Path;

use model::{Board, EngineKind};

use super::{Access, AppSpec, Bind, Device, Image, RealTime, Scheduling, Tmpfs};
use crate::EngineError;
use crate::engines::Machine;
use crate::error::{Result, refused};
use crate::made;

/// Directories of the host with QEMU and its libraries, as far as they are there.
const HOST: [&str; 4] = ["/usr", "/bin", "/lib", "/lib64"];
/// Where the directory of the guest's program, its kernel and its drivers are in the cell, and where its system is made.
const PROGRAM: &str = "/guest/program";
const KERNEL: &str = "/guest/kernel";
const MODULES: &str = "/guest/modules";
const MADE: &str = "/made";
/// Memory that the cell takes beside that of its guest and its guest's system, bytes.
const BESIDE: u64 = 256 << 20;

/// A cell of engine `qemu` as the cell in which its machine runs; `memory_bytes`: the user's limit.
///
/// # Errors
/// If the machine's kernel is not to be had, or the limit is less than it takes.
pub fn machine(
    spec: AppSpec,
    asked: &model::Machine,
    memory_bytes: Option<u64>,
) -> Result<AppSpec, EngineError> {
    let made = around(&spec, asked, memory_bytes);
    made.map_err(|cause| made::error(&spec, "make the virtual machine", cause))
}

/// The least memory that the cell of a machine with this program of its guest can be held to, bytes; `None`: its board or the program is unknown.
pub fn least_memory(asked: &model::Machine, program: &Path) -> Option<u64> {
    let (board, _) = guest::machine::board(asked.board()).ok()?;
    let memory = asked.applied_to(board).memory.bytes();
    Some(memory.saturating_add(made_bytes(program).ok()? + BESIDE))
}

/// Room for the guest's system with its program, bytes: ours is its first process.
fn made_bytes(program: &Path) -> std::io::Result<u64> {
    let ours = std::fs::metadata("/proc/self/exe")?.len();
    Ok(std::fs::metadata(program)?.len() + ours + BESIDE / 8)
}

fn around(spec: &AppSpec, asked: &model::Machine, memory_bytes: Option<u64>) -> Result<AppSpec> {
    let machine = Machine::of(asked, &|what| eprintln!("{what}"));
    let machine = machine.map_err(|need| {
        format!(
            "{}: {} ({})",
            need.what,
            need.reason,
            need.fix.unwrap_or_default()
        )
    })?;
    let Image::Binary(program) = &spec.image else {
        return Err("the program of a guest is a static binary".into());
    };
    let Some(kernel) = &machine.kernel else {
        return Err(refused!(
            "{}: its board has a device tree, or packages, which machines of cells have not",
            machine.name
        ));
    };
    let mut board =
        Board::parse(&machine.name, &machine.board).map_err(|faults| faults.to_string())?;
    board.kernel.file = Some(KERNEL.into());
    board.kernel.package = None;
    board.kernel.unpacked = false;
    let modules: Vec<_> = (machine.modules.iter())
        .map(|file| {
            (
                file,
                Path::new(MODULES).join(file.file_name().unwrap_or_default()),
            )
        })
        .collect();
    board.kernel.modules = (modules.iter())
        .map(|(_, target)| target.display().to_string())
        .collect();
    let made_bytes = made_bytes(program)?;
    let takes = machine.memory_bytes + made_bytes + BESIDE;
    if let Some(limit) = memory_bytes.filter(|limit| *limit < takes) {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        return Err(refused!(
            "its memory of {} MiB is too little: a machine of {} MiB takes {} MiB",
            mib(limit),
            mib(machine.memory_bytes),
            mib(takes)
        ));
    }
    let mut around = AppSpec {
        engine: EngineKind::Embedded,
        image: Image::Binary(std::fs::read_link("/proc/self/exe")?),
        ..spec.clone()
    };
    // The threads of virtual cpus that are tasks get their class from the supervisor, by their names.
    let asks = match &spec.grants.scheduling {
        Scheduling::Granted(granted) => matches!(granted.real_time, RealTime::Band { .. }),
        _ => false,
    };
    let asks = if asks { "asks" } else { "-" };
    let words = [
        "probe",
        "machine",
        &machine.name,
        &board.to_toml(),
        asks,
        &machine.helpers,
    ];
    around.args = words.map(str::to_owned).into();
    let target = Path::new(PROGRAM).join(program.file_name().unwrap_or_default());
    around.args.push(target.display().to_string());
    around.args.extend(spec.args.iter().cloned());
    around.env = [("TIMECELL_GUEST_CACHE".to_owned(), MADE.to_owned())].into();
    let host = HOST.iter().filter_map(|dir| {
        let leads_to = std::fs::canonicalize(dir).ok()?;
        Some(Bind::new(leads_to, *dir, false))
    });
    around.binds = host.collect();
    around.binds.push(Bind::new(program, target, false));
    around.binds.push(Bind::new(kernel, KERNEL, false));
    (around.binds).extend(
        modules
            .into_iter()
            .map(|(file, target)| Bind::new(file, target, false)),
    );
    around.tmpfs = vec![Tmpfs {
        target: MADE.into(),
        size_bytes: made_bytes,
    }];
    if machine.kvm {
        around.devices = vec![Device {
            path: "/dev/kvm".into(),
            access: Access::ReadWrite,
        }];
    }
    around.limits.memory_bytes = Some(
        spec.limits
            .memory_bytes
            .map_or(takes, |limit| limit.max(takes)),
    );
    Ok(around)
}
