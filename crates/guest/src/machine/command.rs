//! QEMU's command line for a board.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use model::{Architecture, Board};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::GuestError;
use crate::cache::Cache;
use crate::card::{self, Inserted};
use crate::elf::Program;
use crate::image::{self, Image};
use crate::kernel::{self, Kernel};
use crate::tail;

/// Memory that a kernel and what runs in a guest take at least, beside its system, bytes.
const BESIDE: u64 = 96 << 20;
/// Memory that a kernel takes while it unpacks a system to tmpfs, bytes.
const UNPACKING: u64 = 64 << 20;

/// A machine with all that it boots.
#[derive(Debug)]
pub struct Boots {
    /// The board.
    pub board: Board,
    /// Its short name, which becomes the host name.
    pub name: String,
    /// Its kernel.
    pub kernel: Kernel,
    /// Its initial file system, unless the card has all that its kernel needs.
    pub image: Option<Image>,
    /// The card that it boots from.
    pub card: Option<Inserted>,
    /// Where its parts come from.
    pub cache: Cache,
}

/// What the first process of the guest does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It serves the channel.
    Serve,
    /// It lets somebody type at the console.
    Shell,
}

/// The name of QEMU's program for a processor.
pub(super) fn program(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::X86_64 => "qemu-system-x86_64",
        Architecture::Aarch64 => "qemu-system-aarch64",
    }
}

/// Debian's package of that program.
pub(super) fn package(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::X86_64 => "qemu-system-x86",
        Architecture::Aarch64 => "qemu-system-arm",
    }
}

impl Boots {
    /// Gets together all that a board boots: what is not in the user's cache is downloaded, or all anew if `again`. `program` is
    /// timecell for its processor, and `with` are files to take along.
    ///
    /// # Errors
    /// If something is not to be had, or a file cannot be read.
    pub fn new(
        (board, name): (Board, String),
        program: &Program,
        with: &[PathBuf],
        again: bool,
        tell: &dyn Fn(&str),
    ) -> Result<Boots, GuestError> {
        let cache = Cache::of_user()?;
        let kernel = kernel::get(&cache, &board, again, tell)?;
        let inputs = (program, &kernel.modules[..]);
        let image = image::make(&cache, &board, inputs, with, again, tell)?;
        Ok(Boots {
            board,
            name,
            kernel,
            image: Some(image),
            card: None,
            cache,
        })
    }

    /// Takes all that a board boots from the image of its card, which is not changed.
    ///
    /// # Errors
    /// If the board has no card, or this is none.
    pub fn from_card((board, name): (Board, String), path: &Path) -> Result<Boots, GuestError> {
        let cache = Cache::of_user()?;
        let (kernel, image, card) = card::read(&cache, (&board, &name), path)?;
        Ok(Boots {
            board,
            name,
            kernel,
            image,
            card: Some(card),
            cache,
        })
    }

    /// The kernel's command line with which somebody who boots these files by hand gets a shell at the console.
    pub fn arguments(&self) -> String {
        self.kernel_words(true, Mode::Shell)
    }

    /// Fails if the board's memory does not hold its system: the archive, and at the same time what is unpacked from it.
    ///
    /// # Errors
    /// That, with the memory that it takes.
    pub fn fits(&self) -> Result<(), GuestError> {
        let bytes = self.image.as_ref().map_or(0, |image| image.bytes);
        let has = self.board.memory.bytes();
        let takes = bytes.saturating_mul(2).saturating_add(BESIDE);
        if takes <= has {
            return Ok(());
        }
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        let what = format!(
            "{}: its memory of {} is too little: to boot takes {} MiB",
            self.name,
            self.board.memory,
            mib(takes)
        );
        Err(GuestError::unmet(
            what,
            "give it more `memory`, or fewer `packages`",
        ))
    }

    /// Whether the system does not fit tmpfs, which the kernel gives half of the memory that the archive leaves. Ramfs has no limit, but no
    /// extended attributes.
    fn is_tight(&self) -> bool {
        let unpacks = (self.image.as_ref()).map_or(0, |image| {
            image.bytes.saturating_mul(3).saturating_add(UNPACKING)
        });
        unpacks > self.board.memory.bytes()
    }

    /// Words for QEMU but for the serial lines.
    fn words(&self, kvm: bool, mode: Mode) -> Vec<String> {
        let board = &self.board;
        let mut words: Vec<String> = [
            "-machine",
            &board.qemu.machine,
            "-accel",
            if kvm { "kvm" } else { "tcg" },
        ]
        .map(str::to_owned)
        .into();
        let mut more = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if let Some(cpu) = &board.qemu.cpu {
            more("-cpu", cpu.clone());
        }
        more("-smp", board.cpus.to_string());
        more("-m", format!("{}M", board.memory.bytes() >> 20));
        more("-kernel", self.kernel.image.display().to_string());
        // The file has no name: QEMU opens it by the number that it inherits.
        if let Some(image) = &self.image {
            more(
                "-initrd",
                format!("/proc/self/fd/{}", image.file.as_raw_fd()),
            );
        }
        if let Some(card) = &self.card {
            let (slot, file) = (card.slot, card.file.as_raw_fd());
            // Writes of the guest are gone with QEMU.
            let drive =
                format!("if=sd,index={slot},format=raw,snapshot=on,file=/proc/self/fd/{file}");
            more("-drive", drive);
        }
        if let Some(tree) = &self.kernel.device_tree {
            more("-dtb", format!("/proc/self/fd/{}", tree.as_raw_fd()));
        }
        more("-append", self.kernel_words(kvm, mode));
        // The threads of virtual cpus are `CPU 0/TCG` or `CPU 0/KVM` and so on.
        let name = escaped(&self.name);
        more("-name", format!("guest={name},debug-threads=on"));
        words.extend(["-nodefaults", "-display", "none", "-no-reboot"].map(str::to_owned));
        words.extend(board.qemu.arguments.iter().cloned());
        words
    }

    /// The kernel's command line; behind `--` what its first process gets.
    fn kernel_words(&self, kvm: bool, mode: Mode) -> String {
        let Board {
            console, channel, ..
        } = &self.board;
        let mut words = match &self.card {
            // A panic is to end QEMU at once.
            Some(card) => vec![card.words.clone(), "panic=-1".into()],
            None => vec![
                format!("console={console}"),
                "rdinit=/init".into(),
                "panic=-1".into(),
                "cgroup_no_v1=all".into(),
                "loglevel=5".into(),
            ],
        };
        if !kvm {
            words.push(format!("{}=qemu-tcg", host::virt::EMULATED));
        }
        if self.is_tight() {
            words.push("rootfstype=ramfs".into());
        }
        if self.card.is_none() {
            words.extend(self.board.kernel.arguments.iter().cloned());
        }
        let (mode, line) = match mode {
            Mode::Serve => ("serve", channel),
            Mode::Shell => ("shell", console),
        };
        let begins = if self.image.is_some() {
            "init"
        } else {
            "first"
        };
        words.push(format!(
            "-- {} {begins} {mode} {line} {}",
            crate::inside::WORD,
            host_name(&self.name)
        ));
        words.join(" ")
    }

    /// QEMU with console, channel and monitor at these sockets, to be read from its other ends.
    pub(super) fn headless(&self, kvm: bool, lines: &[OwnedFd; 3]) -> Command {
        let kept = lines.iter().map(OwnedFd::as_raw_fd).collect();
        let mut command = self.command(kvm, Mode::Serve, kept);
        for (name, line) in ["console", "channel", "monitor"].into_iter().zip(lines) {
            command
                .arg("-chardev")
                .arg(format!("socket,id={name},fd={}", line.as_raw_fd()));
        }
        command.args(["-serial", "chardev:console"]);
        self.channel_line(&mut command);
        command.args(["-mon", "chardev=monitor,mode=control"]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// QEMU with the console on our own terminal.
    pub(super) fn at_terminal(&self, kvm: bool) -> Command {
        let mut command = self.command(kvm, Mode::Shell, Vec::new());
        command.args(["-serial", "mon:stdio", "-chardev", "null,id=channel"]);
        self.channel_line(&mut command);
        command
    }

    /// Makes the channel the machine's second serial line, unless the board's file has a virtual one for it.
    fn channel_line(&self, command: &mut Command) {
        if !self.board.channel.starts_with("hvc") {
            command.args(["-serial", "chardev:channel"]);
        }
    }

    fn command(&self, kvm: bool, mode: Mode, mut kept: Vec<i32>) -> Command {
        let mut command = Command::new(program(self.board.architecture));
        command.args(self.words(kvm, mode));
        kept.extend(self.image.as_ref().map(|image| image.file.as_raw_fd()));
        let card = self.card.iter().flat_map(|card| [&card.file, &card.kernel]);
        kept.extend(card.map(File::as_raw_fd));
        kept.extend(self.kernel.device_tree.as_ref().map(File::as_raw_fd));
        tie(&mut command, kept);
        command
    }
}

/// A value for an option of QEMU's that has several: of commas, two stand for one.
fn escaped(value: &str) -> String {
    value.replace(',', ",,")
}

/// Fails if a board has more memory than this machine, or more cpus than its machine of QEMU's, which is asked.
///
/// # Errors
/// That, the latter in QEMU's words, or that there is no QEMU.
pub fn takes_size(board: &Board) -> Result<(), GuestError> {
    if let Some(has) = host::provenance::memory_bytes(&host::root::Root::live())
        && has < board.memory.bytes()
    {
        let (asked, mib) = (board.memory, has >> 20);
        let what = format!("its memory of {asked} is more than the {mib} MiB of this machine");
        return Err(GuestError::unmet(what, "give it less `memory`"));
    }
    if board.cpus == 1 {
        return Ok(());
    }
    let program = program(board.architecture);
    let told = |said: String| GuestError::Program { program, said };
    let mut command = Command::new(program);
    tie(&mut command, Vec::new());
    let mut qemu = command
        .args(["-machine", &board.qemu.machine, "-accel", "tcg", "-smp"])
        .arg(board.cpus.to_string())
        .args(["-S", "-nodefaults", "-display", "none", "-monitor", "stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| told(error.to_string()))?;
    if let Some(mut monitor) = qemu.stdin.take() {
        // Fails where QEMU has ended already.
        let _ = monitor.write_all(b"quit\n");
    }
    let ended = (qemu.wait_with_output()).map_err(|error| told(error.to_string()))?;
    let said = String::from_utf8_lossy(&ended.stderr);
    match ended.status.success() {
        true => Ok(()),
        false => Err(told(tail::reason(&said, program).to_owned())),
    }
}

/// Has a program end with this process, and leaves it these descriptors, which the caller holds until it is started.
pub(crate) fn tie(command: &mut Command, kept: Vec<i32>) {
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec only system calls are made, on descriptors that the parent holds meanwhile.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if rustix::process::getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH.into());
            }
            for &kept in &kept {
                fcntl_setfd(std::os::fd::BorrowedFd::borrow_raw(kept), FdFlags::empty())?;
            }
            Ok(())
        });
    }
}

/// The host name of a board's guest: a word of the kernel's command line, of at most 63 characters, from the name of the board or of its file.
pub(crate) fn host_name(board: &str) -> String {
    let stem = Path::new(board)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy();
    let letters = stem.chars().take(63);
    let letters = letters.map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    letters.collect()
}

/// Whether this machine has a KVM for a processor that may be used.
pub(super) fn has_kvm(architecture: Architecture) -> bool {
    let kvm = PathBuf::from("/dev/kvm");
    Architecture::own() == Some(architecture)
        && File::options().read(true).write(true).open(kvm).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_that_of_the_board() {
        let (board, name) = crate::machine::board("zcu102").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let kernel = Kernel {
            image: "/k".into(),
            device_tree: Some(tempfile::tempfile().unwrap()),
            plain_tree: None,
            modules: Vec::new(),
            from: String::new(),
        };
        let image = Image {
            file: tempfile::tempfile().unwrap(),
            bytes: 1 << 30,
        };
        let mut boots = Boots {
            board,
            name,
            kernel,
            image: Some(image),
            card: None,
            cache: Cache::at(dir.path()),
        };
        let words = boots.words(false, Mode::Serve).join(" ");
        for part in [
            "-machine xlnx-zcu102 -accel tcg -smp 4 -m 2048M -kernel /k -initrd /proc/self/fd/",
            " -append console=ttyPS0 rdinit=/init ",
            " timecell.emulated=qemu-tcg rootfstype=ramfs -- guest init serve ttyPS1 zcu102 -name guest=zcu102,debug-threads=on -nodefaults",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        let said = boots.fits().unwrap_err().to_string();
        assert_eq!(
            said,
            "zcu102: its memory of 2GiB is too little: to boot takes 2144 MiB (give it more `memory`, or fewer `packages`)"
        );
        assert_eq!(host_name("/x/my board.toml"), "my-board");
        assert_eq!(host_name(&"a".repeat(99)).len(), 63);
        let words = boots.words(true, Mode::Shell).join(" ");
        assert!(
            words.contains("-- guest init shell ttyPS0") && !words.contains("emulated"),
            "{words}"
        );
        boots.name = "a,b=c".to_owned();
        let words = boots.words(true, Mode::Shell).join(" ");
        assert!(
            words.contains("-name guest=a,,b=c,debug-threads=on"),
            "{words}"
        );
    }
}
