//! The command that boots boards.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use model::{Accel, Choice, RootSystem};

/// Options of `board`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  timecell board list
  timecell board run zcu102 -- bench overhead --quick   boot it, measure, fetch the run, switch it off
  timecell board run x86-rt -- doctor                   what a PREEMPT_RT kernel of Debian's has
  timecell board boot zcu102                            a console to type into; Ctrl-A x leaves
  timecell board image zcu102 --sd card.img             an SD card for the real one
  timecell board run ./mine.toml -- doctor              a board of your own (docs: boards.md)

Boards are emulated by QEMU, without root. Figures of an emulated machine say nothing about the times of a real one, and are \
labelled so. Kernel and packages are downloaded from Debian once and kept in ~/.cache/timecell/guests (TIMECELL_GUEST_CACHE)."
)]
pub struct Board {
    /// What to do.
    #[command(subcommand)]
    pub command: BoardCommand,
}

/// What `board` does.
#[derive(Debug, Subcommand)]
pub enum BoardCommand {
    /// List the boards that come with timecell.
    #[command(after_help = "Examples:
  timecell board list")]
    List,
    /// Download what a board needs, and print the path of its kernel.
    #[command(after_help = "Examples:
  timecell board fetch zcu102                 before there is no network any more
  timecell board fetch zcu102 --root debian   what its larger system needs
  timecell board fetch zcu102 --refresh       newer versions, if there are any")]
    Fetch {
        /// Name of a board, or path of a board's file.
        #[arg(value_name = "BOARD")]
        board: String,
        /// System to boot.
        #[arg(long, value_name = "SYSTEM", default_value = "minimal", value_parser = root)]
        root: RootSystem,
        /// Look for newer versions of the kernel and packages.
        #[arg(long)]
        refresh: bool,
    },
    /// Make kernel, device tree and initial file system of a board without booting it.
    #[command(after_help = "Examples:
  timecell board build zcu102               into the directory zcu102: kernel, device-tree.dtb, initramfs.cpio
  timecell board build zcu102 -o there --json           paths, sizes and digests for scripts

The same inputs give the same bytes. QEMU boots these files; `board image` makes a card for a real board.")]
    Build(Builds),
    /// Make the image of an SD card that boots a board into timecell.
    #[command(after_help = "Examples:
  timecell board image zcu102 --sd card.img
  timecell board run zcu102 --sd card.img -- doctor     the same image in QEMU
  dd if=card.img of=/dev/sdX bs=4M conv=fsync           onto the card; then copy BOOT.BIN onto its first partition

It needs no root. The kernel boots to a shell at the console; timecell is there, and so are files of --with, in /board. The first-stage loader (BOOT.BIN) is the vendor's, and yours to copy.")]
    Image(Images),
    /// Boot a board, with its console on this terminal.
    #[command(after_help = "Examples:
  timecell board boot zcu102            a shell as root; `exit` switches it off, Ctrl-A x leaves at once
  timecell board boot x86-rt --with mission.toml        the file is in /board")]
    Boot(Boots),
    /// Boot a board, run timecell in it, fetch its runs, and switch it off.
    #[command(after_help = "Examples:
  timecell board run zcu102 -- bench overhead --quick
  timecell board run zcu102 --root debian -- bench concurrency --rounds 1 --jobs 50 --period 100ms
  timecell board run zcu102 --with mine.toml -- bench mine.toml
  timecell board run x86-rt --program sh --with checks -- ./checks

Exit codes: that of the program in the guest; 1 also if the guest panics, hangs or ends; 2 bad usage or input; 4 no QEMU, or a \
kernel or package that is not here and cannot be downloaded.")]
    Run(Runs),
}

/// What a board's system is made from.
#[derive(Debug, Args)]
pub struct Parts {
    /// Name of a board, or path of a board's file.
    #[arg(value_name = "BOARD")]
    pub board: String,
    /// System to boot: `minimal` has the packages of the board's file, `debian` also podman, OpenSSH and more.
    #[arg(long, value_name = "SYSTEM", default_value = "minimal", value_parser = root)]
    pub root: RootSystem,
    /// File to take along; it is in /board, where programs run.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub with: Vec<PathBuf>,
    /// timecell for the board's processor [default: this one if it suits, `timecell-ARCH` beside it, or that of `cargo build` in this
    /// directory].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub guest_binary: Option<PathBuf>,
    /// Look for newer versions of the kernel and packages.
    #[arg(long)]
    pub refresh: bool,
}

/// Options of `board build`.
#[derive(Debug, Args)]
pub struct Builds {
    #[command(flatten)]
    pub parts: Parts,
    /// Directory for the files [default: the board's name].
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Print paths, sizes and digests as JSON.
    #[arg(long)]
    pub json: bool,
    /// Overwrite files that are there.
    #[arg(long)]
    pub force: bool,
}

/// Options of `board image`.
#[derive(Debug, Args)]
pub struct Images {
    #[command(flatten)]
    pub parts: Parts,
    /// File for the image of the card.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub sd: PathBuf,
    /// Overwrite a file that is there.
    #[arg(long)]
    pub force: bool,
}

/// What a board boots.
#[derive(Debug, Args)]
pub struct Boots {
    #[command(flatten)]
    pub parts: Parts,
    /// Boot from this image of an SD card, which is not changed.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["root", "with", "guest_binary", "refresh"])]
    pub sd: Option<PathBuf>,
    /// Who executes the board's instructions, instead of what its file says.
    #[arg(long, value_name = "ACCEL", value_parser = accel)]
    pub accel: Option<Accel>,
}

/// Options of `board run`.
#[derive(Debug, Args)]
pub struct Runs {
    #[command(flatten)]
    pub boots: Boots,
    /// Directory for the runs that are made.
    #[arg(long, value_name = "DIR", default_value = "runs", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// Program of the guest to run instead of timecell.
    #[arg(long, value_name = "PROGRAM", default_value = "timecell")]
    pub program: String,
    /// Print what the board's console says, to standard error.
    #[arg(long)]
    pub console: bool,
    /// Arguments of timecell in the guest.
    #[arg(value_name = "ARGS", last = true, required = true)]
    pub args: Vec<String>,
}

fn root(text: &str) -> Result<RootSystem, String> {
    RootSystem::named(text).ok_or_else(|| format!("it is one of {}", RootSystem::WORDS.join(", ")))
}

fn accel(text: &str) -> Result<Accel, String> {
    Accel::named(text).ok_or_else(|| format!("it is one of {}", Accel::WORDS.join(", ")))
}
