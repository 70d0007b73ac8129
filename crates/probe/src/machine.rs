//! The program of a mission's cell that is a virtual machine: the parent of QEMU. It boots the machine, checks that QEMU's threads of the
//! virtual cpus have the names by which they are held, runs the guest's program, passes on its output, and ends as that does.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use guest::image::WORK;
use guest::machine::{self, Boots, Guest, Output};
use guest::{GuestError, program};
use host::sched::{self, Class};
use model::{Board, Helpers};

use crate::bridge::broken;
use crate::cell::{EXIT_BAD_ARGS, EXIT_FAILED};
use crate::helpers;

/// How long the guest may give no sign of life; it gives one every 4 s.
const SILENT: Duration = Duration::from_secs(20);
/// How often it is seen that the cell is to end.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

static ENDS: AtomicBool = AtomicBool::new(false);

extern "C" fn end(_: libc::c_int) {
    ENDS.store(true, Relaxed);
}

/// Boots the machine of the board whose name and file's text are the first two words, has the threads of its virtual cpus ask for a real-time
/// class if the third is `asks`, gives QEMU's other threads what the fourth says ([`Helpers`]), and runs in its guest the program whose path here
/// is the fifth, with the words behind as its arguments. Returns the exit code: that of the program.
pub fn machine(words: &[String]) -> i32 {
    let [name, board, asks, helpers, file, arguments @ ..] = words else {
        return EXIT_BAD_ARGS;
    };
    let Some(helpers) = Helpers::from_word(helpers) else {
        return EXIT_BAD_ARGS;
    };
    // SAFETY: the handler sets a flag.
    unsafe { libc::signal(libc::SIGTERM, end as *const () as libc::sighandler_t) };
    // QEMU's threads inherit the class: only those of virtual cpus are to have that of the cell.
    if let Err(error) = sched::set_class(0, &Class::Other) {
        eprintln!("QEMU's own threads cannot be kept out of the cell's class: {error}");
        return EXIT_FAILED;
    }
    let asks = asks == "asks";
    match run((name, board), asks, &helpers, Path::new(file), arguments) {
        Ok(code) => code,
        // It has switched itself off.
        Err(_) if ENDS.load(Relaxed) => 128 + libc::SIGTERM,
        Err(error) => {
            broken(&error);
            EXIT_FAILED
        }
    }
}

fn run(
    (name, board): (&str, &str),
    asks: bool,
    helpers: &Helpers,
    file: &Path,
    arguments: &[String],
) -> Result<i32, GuestError> {
    let board = Board::parse(name, board)?;
    let own = program(Path::new("/proc/self/exe"))?;
    let with = [file.to_owned()];
    let boots = Boots::new((board, name.to_owned()), &own, &with, false, &|_| ())?;
    boots.fits()?;
    let booted = machine::boot(&boots, None, |_| ())?;
    let mut guest = booted.guest;
    guest.bear_silence(SILENT);
    let vcpus = named(&mut guest)?;
    helpers::place(&guest, &vcpus, helpers)?;
    for thread in vcpus.iter().filter(|_| asks) {
        // The cell's agent grants what the cell has.
        let _ = sched::set_class(*thread, &Class::Fifo { priority: 1 });
    }
    let vcpus = vcpus.len();
    eprintln!(
        "{name}: {} virtual cpu{} by {}, Linux {}",
        vcpus,
        if vcpus == 1 { "" } else { "s" },
        if booted.kvm {
            "KVM"
        } else {
            "emulation: its times are not representative"
        },
        booted.ready.kernel,
    );
    let input = guest.input();
    thread::spawn(move || {
        while !ENDS.load(Relaxed) {
            thread::sleep(BETWEEN_LOOKS);
        }
        input.off();
    });
    let inside = PathBuf::from(WORK).join(file.file_name().unwrap_or_default());
    let mut command = vec![inside.display().to_string()];
    command.extend_from_slice(arguments);
    let status = guest.run(&command, false, &mut |from, bytes| {
        let text = String::from_utf8_lossy(bytes);
        match from {
            Output::Out => print!("{text}"),
            Output::Err => eprint!("{text}"),
        }
    })?;
    guest.off();
    Ok(status)
}

/// The threads of virtual cpus, by QEMU's monitor, if they have the names by which they are held.
fn named(guest: &mut Guest) -> Result<Vec<i32>, GuestError> {
    let vcpus = guest.vcpus()?;
    for (number, thread) in vcpus.iter().enumerate() {
        let name = host::process::name(*thread).unwrap_or_default();
        if !name.starts_with(&format!("CPU {number}/")) {
            return Err(GuestError::unmet(
                format!("QEMU's thread {thread} of virtual cpu {number} is called `{name}`"),
                "use a QEMU that names its threads (-name debug-threads=on)",
            ));
        }
    }
    Ok(vcpus)
}
