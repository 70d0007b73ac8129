//! SD cards of boards, as images: an MBR, a FAT32 partition that the board's firmware boots from, and an ext4 partition that is the
//! root. QEMU boots from the same image ([`read`]).

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use model::{Board, InputError};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::GuestError;
use crate::cache::Cache;
use crate::elf::Program;
use crate::fat::{self, Volume};
use crate::image::{self, Image};
use crate::kernel::{self, Kernel};
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
const MOST_CONFIGURATION: usize = 64 << 10;
/// The largest of the other files that are read, bytes.
const MOST_FILE: usize = 1 << 30;

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
/// If the board has no card, or its kernel no ext4; if something is not to be had, or the disk is full.
pub fn write(
    (board, name): (&Board, &str),
    program: &Program,
    with: &[PathBuf],
    again: bool,
    (path, file): (&Path, &File),
    tell: &dyn Fn(&str),
) -> Result<Sizes, GuestError> {
    let root = root_of(board, name)?;
    let cache = Cache::of_user()?;
    let mut board = board.clone();
    let names = &mut board.kernel.modules;
    // A kernel that is a file has it built in, or its user knows better.
    if board.kernel.package.is_some() && !names.iter().any(|name| name == "ext4") {
        names.push("ext4".to_owned());
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
    let words = arguments(board, root, name, first.is_some());
    let boot = boot_files(&kernel, first, &words)?;
    let boot_bytes = boot.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let sizes = sizes(boot_bytes, tree.size().map_err(told())?);
    file.set_len(sizes.card).map_err(told())?;
    file.write_all_at(&boot_record(&sizes), 0).map_err(told())?;
    fat::write(file, BEGIN, sizes.boot, &boot).map_err(told())?;
    write_ext4(&cache, &tree, file, &sizes)?;
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
    root_of(board, name)?;
    let file = File::open(path).map_err(GuestError::file(path, "read the image of the card"))?;
    let about = file.metadata().map_err(GuestError::file(path, "read it"))?;
    let bad = |what: &str| {
        let fix = format!("make one by `timecell board image {name} --sd FILE`");
        GuestError::from(InputError::new(path.display().to_string(), what, fix))
    };
    if !about.is_file() {
        return Err(bad("it is no file"));
    }
    let begin = first_partition(&file).ok_or_else(|| bad("it has no FAT32 partition"))?;
    let fat = Volume::at(&file, begin).ok_or_else(|| bad("its first partition is no FAT32"))?;
    let get = |name: &str, most| {
        let what = || {
            bad(&format!(
                "its first partition has no {name} that can be read"
            ))
        };
        fat.read(name, most).ok_or_else(what)
    };
    let text = get(CONFIGURATION, MOST_CONFIGURATION)?;
    let text = String::from_utf8_lossy(&text);
    let named = |key: &str| value(&text, key);
    let nameless = |name: &str| {
        let bytes = get(name, MOST_FILE)?;
        let mut file = cache.nameless()?;
        file.write_all(&bytes)
            .map_err(GuestError::file(cache.dir(), "keep a file of the card"))?;
        Ok::<_, GuestError>((file, bytes))
    };
    let linux = named("linux").ok_or_else(|| bad("its extlinux.conf names no kernel"))?;
    let (kernel, _) = nameless(linux)?;
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
            slot: board.card.as_ref().map_or(0, |card| card.slot),
            file,
            words,
            kernel,
        },
    ))
}

/// The kernel's name of a board's root.
fn root_of<'b>(board: &'b Board, name: &str) -> Result<&'b str, GuestError> {
    let card = board.card.as_ref().ok_or_else(|| {
        let fix = "add a table [card] with `root` to its file";
        InputError::new(name, "this board has no card", fix)
    })?;
    Ok(&card.root)
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

/// The files of the first partition by their names.
type Files = Vec<(&'static str, Vec<u8>)>;

fn boot_files(kernel: &Kernel, first: Option<Image>, words: &str) -> Result<Files, GuestError> {
    let read = |path: &Path| fs::read(path).map_err(GuestError::file(path, "read it"));
    let mut files: Files = vec![("Image", read(&kernel.image)?)];
    let mut text = "default timecell\nlabel timecell\n    linux /Image\n".to_owned();
    if let Some(tree) = &kernel.plain_tree {
        files.push(("system.dtb", read(tree)?));
        text += "    fdt /system.dtb\n";
    }
    if let Some(mut image) = first {
        let mut bytes = Vec::new();
        let told = GuestError::file(Path::new("initrd.img"), "read it");
        let read = image.file.rewind();
        read.and_then(|()| image.file.read_to_end(&mut bytes))
            .map_err(told)?;
        files.push(("initrd.img", bytes));
        text += "    initrd /initrd.img\n";
    }
    text += &format!("    append {words}\n");
    files.push((CONFIGURATION, text.into()));
    Ok(files)
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

/// Makes the second partition by mke2fs, which needs no mount. Files are root's: it runs as root of a user namespace, unless it is.
fn write_ext4(cache: &Cache, tree: &Tree, file: &File, sizes: &Sizes) -> Result<(), GuestError> {
    let filling = cache.fill()?;
    let dir = filling.unfinished()?;
    let told = GuestError::file(dir.path(), "lay out the root");
    tree.place(dir.path()).map_err(told)?;
    let mut command = match rustix::process::geteuid().is_root() {
        true => Command::new("mke2fs"),
        false => {
            let mut command = Command::new("unshare");
            command.args(["--map-root-user", "mke2fs"]);
            command
        }
    };
    let offset = format!("offset={},root_owner=0:0", BEGIN + sizes.boot);
    let image = format!("/proc/self/fd/{}", file.as_raw_fd());
    let place = dir.path().to_string_lossy();
    let size = format!("{}k", sizes.root >> 10);
    command.args([
        "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-L", "timecell",
    ]);
    command.args(["-E", &offset, "-d", &place, &image, &size]);
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    let kept = file.as_raw_fd();
    // SAFETY: between fork and exec only system calls are made, on a descriptor that the caller holds meanwhile.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            fcntl_setfd(BorrowedFd::borrow_raw(kept), FdFlags::empty())?;
            Ok(())
        });
    }
    let missing = || {
        let what = "`mke2fs` is not here, which makes the root of the card";
        GuestError::unmet(what, "apt install e2fsprogs")
    };
    let done = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => missing(),
        _ => GuestError::Program {
            program: "mke2fs",
            said: error.to_string(),
        },
    })?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    match last.unwrap_or("it said nothing").trim() {
        said if said.contains("mke2fs: No such file")
            || said.contains("failed to execute mke2fs") =>
        {
            Err(missing())
        }
        said => Err(GuestError::Program {
            program: "mke2fs",
            said: said.trim_start_matches("mke2fs: ").to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::Module;

    fn kernel(dir: &Path) -> Kernel {
        let image = dir.join("vmlinuz");
        fs::write(&image, b"kernel").unwrap();
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
        let boot = boot_files(&kernel(dir.path()), Some(first), &words).unwrap();
        let sizes = sizes(9 << 20, (1 << 20, 3));
        assert_eq!((sizes.boot, sizes.card), (73 << 20, 256 << 20));
        file.set_len(sizes.card).unwrap();
        file.write_all_at(&boot_record(&sizes), 0).unwrap();
        let bad = |why: &str| {
            let error = read(&cache, (&board, &name), &path).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        };
        bad("its first partition is no FAT32; make one by `timecell board image zcu102 --sd FILE`");
        fat::write(&file, BEGIN, sizes.boot, &boot).unwrap();
        let (kernel, image, card) = read(&cache, (&board, &name), &path).unwrap();
        assert_eq!((image.unwrap().bytes, card.slot), (bytes, 1));
        assert_eq!(card.words, words.split(" -- ").next().unwrap());
        assert_eq!(fs::read(kernel.image).unwrap(), b"kernel");
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

    #[test]
    fn files_of_the_root_are_of_root() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(&dir.path().join("cache"));
        let mut tree = Tree::default();
        tree.text("etc/passwd", 0o640, "root");
        tree.link("usr/bin", "../bin");
        let path = dir.path().join("card.img");
        let file = File::create_new(&path).unwrap();
        let sizes = sizes(0, (0, 3));
        file.set_len(sizes.card).unwrap();
        match write_ext4(&cache, &tree, &file, &sizes) {
            // Without mke2fs, its absence is told.
            Err(GuestError::Unmet { fix, .. }) => return assert_eq!(fix, "apt install e2fsprogs"),
            made => made.unwrap(),
        }
        let image = format!("{}?offset={}", path.display(), BEGIN + sizes.boot);
        let asked = Command::new("/usr/sbin/debugfs")
            .args(["-R", "stat etc/passwd", &image])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&asked.stdout).into_owned();
        assert!(said.contains("Mode:  0640"), "{said}");
        assert!(said.contains("User:     0   Group:     0"), "{said}");
    }
}
