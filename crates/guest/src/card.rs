//! SD cards of boards, as images: an MBR, a FAT32 partition that the board's firmware boots from, and an ext4 partition that is the
//! root. QEMU boots from the same image ([`read`]).

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use model::{Board, Card, InputError};

use crate::GuestError;
use crate::bootable;
use crate::cache::Cache;
use crate::elf::Program;
use crate::given;
use crate::image::{self, Image};
use crate::kernel::{self, Kernel};
use crate::partitions::{self, Partition};
use crate::tree::Tree;

const SECTOR: u64 = 512;
const MIB: u64 = 1 << 20;
/// Where the first partition begins.
const BEGIN: u64 = MIB;
/// Free room in each partition, bytes: for the vendor's BOOT.BIN with a bitstream, and for runs.
const ROOM: u64 = 64 * MIB;
/// Identifies the image; the kernel's name of the root by its partition is made from it.
const SIGNATURE: u32 = 0x7469_6d65;
const CONFIGURATION: &str = "extlinux/extlinux.conf";
/// The longest configuration that is read, bytes.
const MOST_CONFIGURATION: u64 = 64 << 10;

/// Sizes of an image, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The FAT32 partition.
    pub boot: u64,
    /// The ext4 partition.
    pub root: u64,
    /// The whole card: a power of two, as QEMU demands.
    pub card: u64,
}

impl Sizes {
    /// Both partitions of an image.
    fn partitions<'f>(&self, file: &'f File) -> (Partition<'f>, Partition<'f>) {
        let part = |begin, length| Partition {
            file,
            begin,
            length,
        };
        (part(BEGIN, self.boot), part(BEGIN + self.boot, self.root))
    }
}

/// A card that is in a board.
#[derive(Debug)]
pub struct Inserted {
    /// Its image.
    pub file: File,
    /// Number of its slot in QEMU.
    pub slot: u32,
    /// The kernel's command line, without the words for its first process.
    pub words: String,
    /// The kernel's image, which has no name.
    pub kernel: File,
}

/// Writes the image of a board's card to an empty file, whose name in messages is `path`: with the files of `with` in its root.
///
/// # Errors
/// If the board has no card, or its kernel's package lacks a driver that leads to the root; if something is not to be had, or the disk is full.
pub fn write(
    (board, name): (&Board, &str),
    program: &Program,
    with: &[PathBuf],
    again: bool,
    (path, file): (&Path, &File),
    tell: &dyn Fn(&str),
) -> Result<Sizes, GuestError> {
    let card = card_of(board, name)?;
    let cache = Cache::of_user()?;
    let mut board = board.clone();
    // Of a kernel that is a file, nobody knows the drivers: it has them built in.
    if board.kernel.package.is_some() {
        let names = &mut board.kernel.modules;
        names.extend(card.drivers.iter().cloned());
        if !names.iter().any(|name| name == "ext4") {
            names.push("ext4".to_owned());
        }
    }
    let board = &board;
    let kernel = kernel::get(&cache, board, again, tell)?;
    let tree = image::tree(&cache, board, program, with, again, tell)?;
    // Without drivers to load, the kernel mounts the root by itself.
    let first = match kernel.modules[..] {
        [] => None,
        _ => Some(image::first(&cache, program, &kernel.modules)?),
    };
    let told = || GuestError::file(path, "write the image");
    let words = arguments(board, &card.root, name, first.is_some());
    let boot = boot_files(&kernel, first.as_ref(), &words);
    let (boot_bytes, _) = boot.size().map_err(told())?;
    let sizes = sizes(boot_bytes, tree.size().map_err(told())?);
    file.set_len(sizes.card).map_err(told())?;
    file.write_all_at(&boot_record(&sizes), 0).map_err(told())?;
    let (first, second) = sizes.partitions(file);
    let written = partitions::write_fat(&cache, &boot, SIGNATURE, first)
        .and_then(|()| partitions::write_ext4(&cache, &tree, second));
    written.map_err(|error| match error {
        GuestError::Program { said, .. } if said == partitions::FULL => {
            told()(rustix::io::Errno::NOSPC.into())
        }
        error => error,
    })?;
    Ok(sizes)
}

/// Reads the contents of a board's card for QEMU: kernel, device tree as the board's file changes it, initial file system.
///
/// # Errors
/// If the board has no card, or the image is none of a card that [`write`] makes.
pub fn read(
    cache: &Cache,
    (board, name): (&Board, &str),
    path: &Path,
) -> Result<(Kernel, Option<Image>, Inserted), GuestError> {
    let card = card_of(board, name)?;
    let file = given::open(path, u64::MAX)?;
    let bad = |what: &str| {
        let fix = format!("make one by `timecell board image {name} --sd FILE`");
        GuestError::from(InputError::new(path.display().to_string(), what, fix))
    };
    let begin = first_partition(&file).ok_or_else(|| bad("it has no FAT32 partition"))?;
    let mut kind = [0; 8];
    let is_read = file.read_exact_at(&mut kind, begin + 82).is_ok();
    if !is_read || &kind != b"FAT32   " {
        return Err(bad("its first partition is no FAT32"));
    }
    let bytes = (file.metadata())
        .map_err(GuestError::file(path, "read it"))?
        .len();
    if !bytes.is_power_of_two() {
        let what = format!("its size of {bytes} bytes is no power of two, which QEMU demands");
        let fix = format!(
            "enlarge it by `truncate --size {} FILE`",
            bytes.next_power_of_two()
        );
        return Err(InputError::new(path.display().to_string(), what, fix).into());
    }
    let get = |name: &str, most| {
        let what = || {
            bad(&format!(
                "its first partition has no {name} that can be read"
            ))
        };
        partitions::read_fat(&file, begin, name, most)?.ok_or_else(what)
    };
    let text = get(CONFIGURATION, MOST_CONFIGURATION)?;
    let text = String::from_utf8_lossy(&text);
    let named = |key: &str| value(&text, key);
    let nameless = |name: &str| {
        let bytes = get(name, given::MOST)?;
        let mut file = cache.nameless()?;
        file.write_all(&bytes)
            .map_err(GuestError::file(cache.dir(), "keep a file of the card"))?;
        Ok::<_, GuestError>((file, bytes))
    };
    let linux = named("linux").ok_or_else(|| bad("its extlinux.conf names no kernel"))?;
    let (kernel, _) = nameless(linux)?;
    bootable::check_file(&kernel, path, board.architecture)?;
    let image = named("initrd").map(nameless).transpose()?;
    let tree = match named("fdt") {
        Some(tree) => Some(kernel::changed_bytes(
            cache,
            board,
            path,
            &nameless(tree)?.1,
        )?),
        None => None,
    };
    let words = named("append").unwrap_or_default();
    let words = words.split(" -- ").next().unwrap_or_default().to_owned();
    Ok((
        Kernel {
            image: format!("/proc/self/fd/{}", kernel.as_raw_fd()).into(),
            device_tree: tree,
            plain_tree: None,
            modules: Vec::new(),
            from: path.display().to_string(),
        },
        image.map(|(file, bytes)| Image {
            file,
            bytes: bytes.len() as u64,
        }),
        Inserted {
            slot: card.slot,
            file,
            words,
            kernel,
        },
    ))
}

/// The card of a board.
fn card_of<'b>(board: &'b Board, name: &str) -> Result<&'b Card, GuestError> {
    Ok(board.card.as_ref().ok_or_else(|| {
        let fix = "add a table [card] to its file";
        InputError::new(name, "this board has no card", fix)
    })?)
}

/// The kernel's command line on a card; behind `--` the words for its first process.
fn arguments(board: &Board, root: &str, name: &str, is_brought: bool) -> String {
    let console = &board.console;
    let mut words = vec![format!(
        "console={console},115200n8 root={root} rw rootwait cgroup_no_v1=all panic=10 loglevel=5"
    )];
    let (init, begins) = match is_brought {
        true => ("rdinit=/init", "init"),
        false => ("rootfstype=ext4 init=/init", "first"),
    };
    words.push(init.to_owned());
    words.extend(board.kernel.arguments.iter().cloned());
    let (word, host) = (crate::inside::WORD, crate::machine::host_name(name));
    words.push(format!("-- {word} {begins} shell {console} {host}"));
    words.join(" ")
}

/// The files of the first partition.
fn boot_files(kernel: &Kernel, first: Option<&Image>, words: &str) -> Tree {
    let mut files = Tree::default();
    files.file("Image", 0o644, &kernel.image);
    let mut text = "default timecell\nlabel timecell\n    linux /Image\n".to_owned();
    if let Some(tree) = &kernel.plain_tree {
        files.file("system.dtb", 0o644, tree);
        text += "    fdt /system.dtb\n";
    }
    if let Some(image) = first {
        let path = format!("/proc/self/fd/{}", image.file.as_raw_fd());
        files.file("initrd.img", 0o644, path.as_ref());
        text += "    initrd /initrd.img\n";
    }
    text += &format!("    append {words}\n");
    files.text(CONFIGURATION, 0o644, text);
    files
}

/// The value of a key in the first entry of a configuration of extlinux.
fn value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let mut lines = text.lines().filter_map(|line| line.trim().split_once(' '));
    let (_, value) = lines.find(|(known, _)| known.eq_ignore_ascii_case(key))?;
    Some(value.trim())
}

/// Sizes for boot files and a root of so many bytes in so many entries.
fn sizes(boot: u64, (root, entries): (u64, u64)) -> Sizes {
    let boot = (boot + ROOM).next_multiple_of(MIB);
    // An entry fills whole blocks of 4 KiB; a sixteenth is for tables and the journal.
    let content = root + entries * 4096;
    let least = content + content / 16 + ROOM;
    let card = (BEGIN + boot + least).next_power_of_two();
    Sizes {
        boot,
        root: card - BEGIN - boot,
        card,
    }
}

/// The first sector: two partitions, the first of which is booted from.
fn boot_record(sizes: &Sizes) -> [u8; SECTOR as usize] {
    let mut sector = [0; SECTOR as usize];
    sector[440..444].copy_from_slice(&SIGNATURE.to_le_bytes());
    let parts = [
        (0x80, 0x0c, BEGIN, sizes.boot),
        (0, 0x83, BEGIN + sizes.boot, sizes.root),
    ];
    for (place, (active, kind, begin, length)) in parts.into_iter().enumerate() {
        let entry = &mut sector[446 + 16 * place..][..16];
        entry[0] = active;
        // Cylinders and heads are not used.
        entry[1..8].copy_from_slice(&[0xfe, 0xff, 0xff, kind, 0xfe, 0xff, 0xff]);
        entry[8..12].copy_from_slice(&((begin / SECTOR) as u32).to_le_bytes());
        entry[12..].copy_from_slice(&((length / SECTOR) as u32).to_le_bytes());
    }
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

/// Where the first partition begins, if it is FAT32.
fn first_partition(file: &File) -> Option<u64> {
    let mut sector = [0; SECTOR as usize];
    file.read_exact_at(&mut sector, 0).ok()?;
    let is_fat = sector[510..] == [0x55, 0xaa] && [0x0b, 0x0c].contains(&sector[450]);
    let begin = sector[454..458].try_into().ok().map(u32::from_le_bytes);
    begin
        .filter(|_| is_fat)
        .map(|begin| u64::from(begin) * SECTOR)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::modules::Module;

    /// The beginning of a kernel of 64-bit ARM, as far as that is looked at.
    fn kernel_bytes() -> [u8; 60] {
        let mut bytes = [b'k'; 60];
        bytes[56..].copy_from_slice(b"ARM\x64");
        bytes
    }

    fn kernel(dir: &Path) -> Kernel {
        let image = dir.join("vmlinuz");
        fs::write(&image, kernel_bytes()).unwrap();
        Kernel {
            image,
            device_tree: None,
            plain_tree: None,
            modules: Vec::new(),
            from: String::new(),
        }
    }

    #[test]
    fn a_card_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(&dir.path().join("cache"));
        let (board, name) = crate::machine::board("zcu102").unwrap();
        let program = Program {
            architecture: board.architecture,
            loaded: b"program".to_vec(),
        };
        let module = Module {
            name: "ext4".to_owned(),
            bytes: b"module".to_vec(),
        };
        let path = dir.path().join("card.img");
        let file = File::create_new(&path).unwrap();
        let words = arguments(&board, "/dev/mmcblk0p2", &name, true);
        assert_eq!(
            words,
            "console=ttyPS0,115200n8 root=/dev/mmcblk0p2 rw rootwait cgroup_no_v1=all panic=10 loglevel=5 rdinit=/init \
             -- guest init shell ttyPS0 zcu102"
        );
        let words = arguments(&board, "/dev/sda2", &name, false);
        let end = "rootfstype=ext4 init=/init -- guest first shell ttyPS0 zcu102";
        assert!(words.ends_with(end), "{words}");
        let words = arguments(&board, "/dev/mmcblk0p2", &name, true);
        let first = image::first(&cache, &program, &[module]).unwrap();
        let bytes = first.bytes;
        let boot = boot_files(&kernel(dir.path()), Some(&first), &words);
        let sizes = sizes(9 << 20, (1 << 20, 3));
        assert_eq!((sizes.boot, sizes.card), (73 << 20, 256 << 20));
        file.set_len(sizes.card).unwrap();
        file.write_all_at(&boot_record(&sizes), 0).unwrap();
        let bad = |why: &str| {
            let error = read(&cache, (&board, &name), &path).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        };
        bad("its first partition is no FAT32; make one by `timecell board image zcu102 --sd FILE`");
        let (first, _) = sizes.partitions(&file);
        match partitions::write_fat(&cache, &boot, SIGNATURE, first) {
            // Without mtools, their absence is told.
            Err(GuestError::Unmet { fix, .. }) => return assert_eq!(fix, "apt install mtools"),
            made => made.unwrap(),
        }
        let (kernel, image, card) = read(&cache, (&board, &name), &path).unwrap();
        assert_eq!((image.unwrap().bytes, card.slot), (bytes, 1));
        assert_eq!(card.words, words.split(" -- ").next().unwrap());
        assert_eq!(fs::read(kernel.image).unwrap(), kernel_bytes());
        file.set_len(500 << 20).unwrap();
        bad(
            "its size of 524288000 bytes is no power of two, which QEMU demands; enlarge it by `truncate --size 536870912",
        );
        file.write_all_at(&[0; 512], 0).unwrap();
        bad("it has no FAT32 partition");
        let (pc, _) = crate::machine::board("x86-rt").unwrap();
        let error = read(&cache, (&pc, "x86-rt"), &path).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("x86-rt: this board has no card"),
            "{error}"
        );
    }
}
