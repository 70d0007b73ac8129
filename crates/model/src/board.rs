//! The file that describes a board or machine to boot: its processor, its kernel, and how QEMU emulates it.

use std::path::PathBuf;

use crate::file::{self, Format, Kind, Table, table};
use crate::{Bytes, Duration, InputErrors};

/// The version of the format that is read.
const SCHEMA: i64 = 1;

choice! {
    /// The instruction set of a machine, as `uname -m` names it.
    pub enum Architecture {
        /// 64-bit x86.
        X86_64 = "x86_64",
        /// 64-bit ARM.
        Aarch64 = "aarch64",
    }
}

impl Architecture {
    /// That of this binary, if it is one of them.
    pub fn own() -> Option<Architecture> {
        <Architecture as crate::Choice>::named(std::env::consts::ARCH)
    }

    /// Debian's name for it.
    pub fn debian(self) -> &'static str {
        match self {
            Architecture::X86_64 => "amd64",
            Architecture::Aarch64 => "arm64",
        }
    }
}

choice! {
    /// Who executes the guest's instructions.
    pub enum Accel {
        /// KVM if it carries the guest, else QEMU's translator.
        Auto = "auto",
        /// The host's processor.
        Kvm = "kvm",
        /// QEMU's translator: an emulated machine.
        Tcg = "tcg",
    }
}

choice! {
    /// The system that a board boots.
    pub enum RootSystem {
        /// timecell and the packages of the board's file.
        Minimal = "minimal",
        /// Beside them Debian's engines, tools of real time and network, and an OpenSSH server.
        Debian = "debian",
    }
}

/// What [`RootSystem::Debian`] adds to the packages of a board's file.
const DEBIAN: [&str; 21] = [
    "base-files",
    "bash",
    "busybox-static",
    "catatonit",
    "coreutils",
    "crun",
    "findutils",
    "fuse-overlayfs",
    "grep",
    "gzip",
    "iproute2",
    "iputils-ping",
    "openssh-server",
    "podman",
    "procps",
    "rt-tests",
    "slirp4netns",
    "stress-ng",
    "uidmap",
    "util-linux",
    "xz-utils",
];

/// The least memory of a machine, bytes.
pub(crate) const LEAST_MEMORY: u64 = 64 << 20;

const WORDS: Kind = Kind::List {
    of: &Kind::Word,
    least: 0,
    most: 256,
    unique: false,
};

const KERNEL_WORDS: Kind = Kind::List {
    of: &Kind::KernelWord,
    least: 0,
    most: 256,
    unique: false,
};

table! {
    /// A board or machine that QEMU boots.
    pub struct Board: "board", "the top level" {
        /// version of this format; newer ones are refused
        "schema" = Kind::Integer { least: 1, most: i64::MAX }, Required "1";
        /// what it is, in some words
        title: String = Kind::Label, Required "\"my board\"";
        /// its instruction set
        architecture: Architecture, Required "\"aarch64\"";
        /// number of its cpus
        cpus: u32 = Kind::Integer { least: 1, most: 512 }, Default "1";
        /// its memory
        memory: Bytes = Kind::Size { least: LEAST_MEMORY }, Default "\"1GiB\"";
        /// the serial line of the kernel's console, the first one of the machine
        console: String = Kind::KernelWord, Required "\"ttyS0\"";
        /// the line over which timecell speaks with it, the second one of the machine: serial, or virtual such as `hvc0`
        channel: String = Kind::KernelWord, Required "\"ttyS1\"";
        /// Debian packages of its system, with what they depend on
        packages: Vec<String> = WORDS, Default "[]";
        /// longest wait for an answer after switching it on
        boot_time: Duration = Kind::Time { least_ns: 1_000_000_000 }, Default "\"2min\"";
        /// its kernel
        kernel: BoardKernel, Required "{ package = \"linux-image-rt-arm64\" }";
        /// how QEMU emulates it
        qemu: Qemu, Required "{ machine = \"virt\" }";
        /// its SD card
        card: Option<Card>, Without "it has none";
    }
}

table! {
    /// The kernel of a board.
    pub struct BoardKernel: "kernel", "[kernel]" {
        /// Debian package of the kernel
        package: Option<String> = Kind::Word, Without "`file` instead";
        /// the kernel's image, instead of a package
        file: Option<PathBuf>, Without "`package` instead";
        /// whether QEMU starts the unpacked kernel at its PVH entry, without firmware; of x86_64
        unpacked: bool, Default "false";
        /// Debian's release from which packages come
        release: String = Kind::Name, Default "\"bookworm\"";
        /// device tree: a file, or with `package` one of the package, such as `xilinx/zynqmp-zcu102-rev1.0.dtb`
        device_tree: Option<PathBuf>, Without "the machine's own";
        /// nodes of the device tree that get a clock of 100 MHz in place of clocks, power domains and pins of firmware that QEMU lacks; what is attached to them is left out
        fixed_clocks: Vec<String> = WORDS, Default "[]";
        /// drivers of the package that are loaded before anything else, in this order, each behind those that it needs; of a kernel that is a file, their files, with a slash in each path
        modules: Vec<String> = WORDS, Default "[]";
        /// further words for the kernel's command line
        arguments: Vec<String> = KERNEL_WORDS, Default "[]";
    }
}

table! {
    /// A board as QEMU emulates it.
    pub struct Qemu: "qemu", "[qemu]" {
        /// QEMU's name of the machine, with its properties
        machine: String = Kind::Word, Required "\"virt\"";
        /// QEMU's name of the cpu
        cpu: Option<String> = Kind::Word, Without "the machine's own";
        /// who executes its instructions; `auto`: KVM if it carries the guest, else QEMU's translator
        accel: Accel, Default "\"auto\"";
        /// further words for QEMU's command line
        arguments: Vec<String> = WORDS, Default "[]";
    }
}

table! {
    /// The SD card of a board.
    pub struct Card: "card", "[card]" {
        /// the kernel's name of its second partition, which is the root
        root: String = Kind::KernelWord, Required "\"/dev/mmcblk0p2\"";
        /// drivers that lead to the root, in this order, each behind those that it needs: of the controller, and what ext4 needs; loaded, if they are not built in
        drivers: Vec<String> = WORDS, Required "[\"sdhci-of-arasan\"]";
        /// number of its slot in QEMU
        slot: u32 = Kind::Integer { least: 0, most: 15 }, Default "0";
    }
}

/// The file as its reader knows it.
pub(crate) const FORMAT: Format = Format {
    name: "board",
    schema: SCHEMA,
    most_bytes: Board::FILE_BYTES,
    top: Board::SHAPE,
    narrower: |_, _, _| None,
};

impl Board {
    /// The longest file, bytes.
    pub const FILE_BYTES: usize = 1 << 20;

    /// Reads the file of a board; `name` is its name in messages, usually its path.
    ///
    /// # Errors
    /// Every fault, each with its line and how to fix it.
    pub fn parse(name: &str, text: &str) -> Result<Board, InputErrors> {
        let board = file::read(&FORMAT, name, text, |top, faults| {
            let board = Board::of(top);
            let kernel = top.table("kernel");
            if let Some(kernel) = kernel.filter(|_| faults.is_empty())
                && board.kernel.package.is_some() == board.kernel.file.is_some()
            {
                let fix = "give either `package` or `file`";
                let what = match board.kernel.file {
                    Some(_) => "the kernel is both a package and a file",
                    None => "there is no kernel",
                };
                faults.report(&kernel.place, &["file"], what, fix);
            }
            if board.kernel.device_tree.is_none()
                && !board.kernel.fixed_clocks.is_empty()
                && faults.is_empty()
            {
                let what = "`fixed_clocks` changes a device tree, and there is none";
                faults.report(
                    &top.place,
                    &["kernel"],
                    what,
                    "add `device_tree` or remove it",
                );
            }
            let is_file = board.kernel.package.is_none();
            let differs = |module: &&String| module.contains('/') != is_file;
            if let Some(module) = board.kernel.modules.iter().find(differs)
                && faults.is_empty()
            {
                let (what, fix) = match is_file {
                    true => (
                        "a kernel that is a file",
                        "write its path, with a slash in it",
                    ),
                    false => ("a package's kernel", "write the name of one of its drivers"),
                };
                let what = format!("`{module}` is no module of {what}");
                faults.report(&top.place, &["kernel"], what, fix);
            }
            if board.console == board.channel && faults.is_empty() {
                let what = "console and channel are the same line";
                faults.report(
                    &top.place,
                    &["channel"],
                    what,
                    "name another line of the machine",
                );
            }
            board
        });
        board.map(|(board, _)| board)
    }

    /// Adds the packages of a system.
    pub fn set_root(&mut self, root: RootSystem) {
        let all: &[&str] = match root {
            RootSystem::Minimal => &[],
            RootSystem::Debian => &DEBIAN,
        };
        let all = all.iter().map(|name| (*name).to_owned());
        self.packages.extend(all);
        self.packages.sort();
        self.packages.dedup();
    }

    /// Writes the board as a file that [`Board::parse`] reads back to the same value.
    pub fn to_toml(&self) -> String {
        format!("schema = {SCHEMA}\n{}", file::Writer::file(self))
    }

    /// The JSON Schema (draft 2020-12) of the file.
    pub fn schema() -> serde_json::Value {
        file::schema(&FORMAT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::reference::{assert_has_every_key, page};

    const LEAST: &str = "schema = 1\ntitle = \"b\"\narchitecture = \"aarch64\"\nconsole = \"ttyS0\"\nchannel = \"ttyS1\"\n\
        [kernel]\npackage = \"linux-image-arm64\"\n[qemu]\nmachine = \"virt\"\n";

    fn faults(text: &str) -> String {
        Board::parse("b.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn the_rest_has_defaults() {
        let board = Board::parse("b.toml", LEAST).unwrap();
        assert_eq!((board.cpus, board.memory), (1, Bytes::new(1 << 30)));
        assert_eq!(board.qemu.accel, Accel::Auto);
        assert_eq!(board.kernel.release, "bookworm");
        assert_eq!(Board::parse("again", &board.to_toml()), Ok(board));
    }

    #[test]
    fn a_system_adds_its_packages() {
        let mut board = Board::parse("b.toml", LEAST).unwrap();
        board.packages = vec!["podman".to_owned(), "zsh".to_owned()];
        board.set_root(RootSystem::Minimal);
        assert_eq!(board.packages, ["podman", "zsh"]);
        board.set_root(RootSystem::Debian);
        assert_eq!(board.packages.len(), DEBIAN.len() + 1);
        assert!(board.packages.is_sorted());
    }

    #[test]
    fn unknown_keys_are_refused_with_what_was_meant() {
        let said = faults(&LEAST.replace("channel", "chanel"));
        assert!(said.contains("b.toml:5: unknown key `chanel`"), "{said}");
        assert!(said.contains("did you mean `channel`"), "{said}");
    }

    #[test]
    fn there_is_one_kernel_and_two_lines() {
        let said = faults(&LEAST.replace(
            "package = \"linux-image-arm64\"",
            "file = \"a\"\npackage = \"b\"",
        ));
        assert!(said.contains("both a package and a file"), "{said}");
        let said = faults(&LEAST.replace("package = \"linux-image-arm64\"", "arguments = [\"a\"]"));
        assert!(said.contains("there is no kernel"), "{said}");
        let said = faults(&LEAST.replace("ttyS1", "ttyS0"));
        assert!(
            said.contains("b.toml:5: console and channel are the same line"),
            "{said}"
        );
        let said = faults(&LEAST.replace("console", "memory = \"1MiB\"\nconsole"));
        assert!(said.contains("64"), "{said}");
    }

    #[test]
    fn words_for_the_kernel_are_words() {
        let card = |root: &str| format!("{LEAST}[card]\nroot = \"{root}\"\ndrivers = []\n");
        for text in [
            card("a\\nb"),
            card("a b"),
            card(""),
            card("/dev/\u{e0}"),
            LEAST.replace("ttyS0", "ttyS0 init=/bin/sh"),
            LEAST.replace("[qemu]", "arguments = [\"quiet\", \"--\"]\n[qemu]"),
            LEAST.replace("[qemu]", "arguments = ['a=\"b']\n[qemu]"),
        ] {
            let said = faults(&text);
            assert!(
                said.contains("is no word of the kernel's command line"),
                "{text}: {said}"
            );
        }
        let text = LEAST.replace("[qemu]", "arguments = [\"a.b=c,d:1\", \"-x\"]\n[qemu]");
        assert!(Board::parse("b.toml", &text).is_ok());
    }

    #[test]
    fn modules_are_those_of_a_package_or_files() {
        let with = |kernel: &str| LEAST.replace("package = \"linux-image-arm64\"", kernel);
        let said = faults(&with("file = \"a\"\nmodules = [\"ext4\"]"));
        assert!(
            said.contains("`ext4` is no module of a kernel that is a file"),
            "{said}"
        );
        let said = faults(&with("package = \"a\"\nmodules = [\"./ext4.ko\"]"));
        assert!(
            said.contains("`./ext4.ko` is no module of a package's kernel"),
            "{said}"
        );
        let text = with("file = \"a\"\nmodules = [\"./ext4.ko\"]");
        assert!(Board::parse("b.toml", &text).is_ok());
        let text = LEAST.to_owned() + "[card]\nroot = \"/dev/mmcblk0p2\"\ndrivers = [\"sdhci\"]\n";
        let board = Board::parse("b.toml", &text).unwrap();
        assert_eq!(board.card.as_ref().unwrap().slot, 0);
        assert_eq!(Board::parse("again", &board.to_toml()), Ok(board));
    }

    #[test]
    fn the_documentation_has_every_key() {
        assert_has_every_key(&page("boards.md"), FORMAT.top);
    }
}
