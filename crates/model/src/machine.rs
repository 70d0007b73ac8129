//! The virtual machine that is a cell: a board, and the values of this cell in place of the board's.

use std::path::{Path, PathBuf};

use crate::board::{Accel, Board, LEAST_MEMORY};
use crate::file::{Kind, table};
use crate::{Bytes, Choice};

table! {
    /// The virtual machine that a cell of engine `qemu` is.
    pub struct Machine(Default): "machine", "[machine]" {
        /// name of a board, or its file: kernel, devices and QEMU's machine
        board: Option<String> = Kind::Text, Without "`microvm`, of 64-bit ARM `virt`";
        /// number of its virtual cpus
        vcpus: Option<u32> = Kind::Integer { least: 1, most: 512 }, Without "the board's";
        /// its memory
        memory: Option<Bytes> = Kind::Size { least: LEAST_MEMORY }, Without "the board's";
        /// its kernel: a Debian package, or a file if there is a slash in it
        kernel: Option<String> = Kind::Text, Without "the board's";
        /// who executes its instructions; `auto`: KVM if it carries the guest, else QEMU's translator
        accel: Option<Accel> = Kind::Choice(Accel::WORDS), Without "the board's";
        /// QEMU's threads that execute no virtual cpu
        helpers: Helpers, Without "class `other`";
    }
}

choice! {
    /// The class of QEMU's threads that execute no virtual cpu: none that has a reservation.
    pub enum HelperClass {
        /// That of ordinary work.
        Other = "other",
        /// The same for work that does not interact.
        Batch = "batch",
        /// Whatever nothing else wants.
        Idle = "idle",
    }
}

table! {
    /// QEMU's threads that execute no virtual cpu: its main loop, its devices, its workers.
    pub struct Helpers(Default): "helpers", "`helpers`" {
        /// their class, never a real-time one
        class: Option<HelperClass> = Kind::Choice(HelperClass::WORDS), Without "`other`";
        /// their cpus; of a mission, among those of the cell
        cpus: Vec<u32> = CPUS, Without "in a measurement, off the cpu of a machine of one task; else those of the cell";
    }
}

const CPUS: Kind = Kind::List {
    of: &Kind::Integer {
        least: 0,
        most: 4_095,
    },
    least: 1,
    most: 4_096,
    unique: true,
};

impl Helpers {
    /// Their class.
    pub fn class(&self) -> HelperClass {
        self.class.unwrap_or(HelperClass::Other)
    }

    /// As one word of a command line, such as `idle:0,2`.
    pub fn to_word(&self) -> String {
        let cpus: Vec<String> = self.cpus.iter().map(u32::to_string).collect();
        format!("{}:{}", self.class().name(), cpus.join(","))
    }

    /// Reads [`Helpers::to_word`]; `None`: it is none.
    pub fn from_word(word: &str) -> Option<Helpers> {
        let (class, cpus) = word.split_once(':')?;
        let cpus = cpus.split(',').filter(|cpu| !cpu.is_empty());
        Some(Helpers {
            class: Some(HelperClass::named(class)?),
            cpus: cpus.map(|cpu| cpu.parse().ok()).collect::<Option<_>>()?,
        })
    }
}

impl Machine {
    /// The board of a machine that names none.
    pub const BOARD: &'static str = match cfg!(target_arch = "aarch64") {
        true => "virt",
        false => "microvm",
    };
    /// The least memory of a machine, bytes.
    pub const LEAST_MEMORY: u64 = LEAST_MEMORY;
    /// The most virtual cpus of a machine; QEMU's machines have fewer.
    pub const MOST_VCPUS: u32 = 512;

    /// Name or file of its board.
    pub fn board(&self) -> &str {
        self.board.as_deref().unwrap_or(Machine::BOARD)
    }

    /// This machine with its relative paths, those of a board's file and of a kernel, beginning at a directory.
    #[must_use]
    pub fn beside(&self, dir: &Path) -> Machine {
        let from = |path: &String, is_path: bool| match is_path {
            true => dir.join(path).display().to_string(),
            false => path.clone(),
        };
        let is_path = |name: &String| name.contains('/') || name.ends_with(".toml");
        Machine {
            board: self.board.as_ref().map(|board| from(board, is_path(board))),
            kernel: (self.kernel.as_ref()).map(|kernel| from(kernel, kernel.contains('/'))),
            ..self.clone()
        }
    }

    /// All that is said of it but for QEMU's other threads, to follow a name: nothing, or such as `, q35, 2 vcpus`.
    pub fn said(&self) -> String {
        let parts = [
            self.board.clone(),
            self.vcpus.map(|vcpus| format!("{vcpus} vcpus")),
            self.memory.map(|memory| memory.to_string()),
            self.kernel.clone(),
        ];
        parts
            .iter()
            .flatten()
            .map(|part| format!(", {part}"))
            .collect()
    }

    /// This machine, with another's values where it has none.
    #[must_use]
    pub fn or(&self, other: &Machine) -> Machine {
        Machine {
            board: self.board.clone().or_else(|| other.board.clone()),
            vcpus: self.vcpus.or(other.vcpus),
            memory: self.memory.or(other.memory),
            kernel: self.kernel.clone().or_else(|| other.kernel.clone()),
            accel: self.accel.or(other.accel),
            helpers: Helpers {
                class: self.helpers.class.or(other.helpers.class),
                cpus: match self.helpers.cpus.is_empty() {
                    true => other.helpers.cpus.clone(),
                    false => self.helpers.cpus.clone(),
                },
            },
        }
    }

    /// Puts its values in place of those of its board.
    pub fn applied_to(&self, mut board: Board) -> Board {
        board.cpus = self.vcpus.unwrap_or(board.cpus);
        board.memory = self.memory.unwrap_or(board.memory);
        board.qemu.accel = self.accel.unwrap_or(board.qemu.accel);
        if let Some(kernel) = &self.kernel {
            let is_file = kernel.contains('/');
            board.kernel.file = is_file.then(|| PathBuf::from(kernel));
            board.kernel.package = (!is_file).then(|| kernel.clone());
            if is_file {
                // A file comes without modules: what the machine needs has to be built into it.
                board.kernel.modules.clear();
            }
        }
        board
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_value_counts() {
        let own = Machine {
            vcpus: Some(2),
            kernel: Some("/boot/vmlinuz".into()),
            ..Machine::default()
        };
        let all = Machine {
            board: Some("q35".into()),
            vcpus: Some(4),
            memory: Some(Bytes::new(1 << 30)),
            kernel: Some("linux-image-amd64".into()),
            accel: Some(Accel::Tcg),
            helpers: Helpers {
                class: Some(HelperClass::Idle),
                cpus: vec![0, 2],
            },
        };
        let both = own.or(&all);
        assert_eq!((both.board(), both.vcpus), ("q35", Some(2)));
        assert_eq!(own.board(), Machine::BOARD);
        assert_eq!(own.said(), ", 2 vcpus, /boot/vmlinuz");
        assert_eq!(Machine::default().said(), "");
        let near = own.or(&Machine {
            board: Some("b.toml".into()),
            kernel: Some("./vmlinux".into()),
            ..Machine::default()
        });
        let near = near.beside(Path::new("/etc/m"));
        assert_eq!(near.board(), "/etc/m/b.toml");
        assert_eq!(near.kernel.as_deref(), Some("/boot/vmlinuz"));
        assert_eq!(all.beside(Path::new("/etc/m")), all);
        assert_eq!(both.helpers, all.helpers);
        assert_eq!(all.helpers.to_word(), "idle:0,2");
        for helpers in [&own.helpers, &all.helpers] {
            let read = Helpers::from_word(&helpers.to_word()).unwrap();
            assert_eq!((read.class(), &read.cpus), (helpers.class(), &helpers.cpus));
        }
        assert_eq!(Helpers::from_word("fifo:0"), None);
        let text = "schema = 1\ntitle = \"b\"\narchitecture = \"x86_64\"\nconsole = \"ttyS0\"\nchannel = \"ttyS1\"\n\
            [kernel]\npackage = \"a\"\nmodules = [\"b\"]\n[qemu]\nmachine = \"q35\"\n";
        let board = both.applied_to(Board::parse("b", text).unwrap());
        assert_eq!((board.cpus, board.memory), (2, Bytes::new(1 << 30)));
        assert_eq!(board.qemu.accel, Accel::Tcg);
        assert_eq!(board.kernel.file, Some("/boot/vmlinuz".into()));
        assert_eq!(board.kernel.package, None);
        assert!(board.kernel.modules.is_empty());
        let board = all.applied_to(board);
        assert_eq!(board.kernel.package.as_deref(), Some("linux-image-amd64"));
        assert_eq!(board.kernel.file, None);
    }
}
