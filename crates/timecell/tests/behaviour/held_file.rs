//! A file that blocks its readers inside the system call until it is released, where the kernel can neither stop nor kill
//! them. This process is the file system (FUSE), and answers when it wants.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// The kernel's requests, by number (`linux/fuse.h`).
mod opcode {
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const FLUSH: u32 = 25;
    pub const INIT: u32 = 26;
    pub const INTERRUPT: u32 = 36;
    pub const BATCH_FORGET: u32 = 42;
}

/// Interval between checks whether the file is to be released, ms.
const LOOK_MS: i32 = 10;

#[derive(Default)]
struct Wanted {
    readers: AtomicUsize,
    let_go: AtomicBool,
    over: AtomicBool,
}

/// The file, until this is dropped.
pub struct HeldFile {
    path: PathBuf,
    wanted: Arc<Wanted>,
    server: Option<JoinHandle<()>>,
}

impl HeldFile {
    /// At a path where nothing exists yet.
    pub fn at(path: &Path) -> HeldFile {
        File::create(path).unwrap();
        let device = File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .unwrap();
        let options = format!(
            "fd={},rootmode=100644,user_id=0,group_id=0,allow_other",
            device.as_raw_fd()
        );
        let text = |bytes: &[u8]| CString::new(bytes).unwrap();
        let (target, options) = (text(path.as_os_str().as_bytes()), text(options.as_bytes()));
        // SAFETY: strings that end with zero.
        let done = unsafe {
            libc::mount(
                c"timecell-test".as_ptr(),
                target.as_ptr(),
                c"fuse".as_ptr(),
                libc::MS_NOSUID | libc::MS_NODEV,
                options.as_ptr().cast(),
            )
        };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        let wanted = Arc::new(Wanted::default());
        let theirs = Arc::clone(&wanted);
        HeldFile {
            path: path.to_owned(),
            wanted,
            server: Some(std::thread::spawn(move || serve(device, &theirs))),
        }
    }

    /// How many readers are blocked.
    pub fn readers(&self) -> usize {
        self.wanted.readers.load(Ordering::SeqCst)
    }

    /// The file is empty to all who read it.
    pub fn let_go(&self) {
        self.wanted.let_go.store(true, Ordering::SeqCst);
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        self.wanted.over.store(true, Ordering::SeqCst);
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
        let target = CString::new(self.path.as_os_str().as_bytes()).unwrap();
        // SAFETY: a string that ends with zero.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    }
}

/// Answers until it is over; closing the device releases all who wait.
fn serve(mut device: File, wanted: &Wanted) {
    let mut held: Vec<u64> = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    while !wanted.over.load(Ordering::SeqCst) {
        if wanted.let_go.load(Ordering::SeqCst) {
            for unique in held.drain(..) {
                answer(&mut device, unique, 0, &[]);
            }
        }
        let mut asked = libc::pollfd {
            fd: device.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor, on the stack.
        if unsafe { libc::poll(&raw mut asked, 1, LOOK_MS) } != 1 {
            continue;
        }
        let Ok(length) = device.read(&mut buffer) else {
            continue;
        };
        let request = &buffer[..length];
        let unique = u64::from_ne_bytes(request[8..16].try_into().unwrap());
        match u32::from_ne_bytes(request[4..8].try_into().unwrap()) {
            opcode::INIT => answer(&mut device, unique, 0, &init()),
            opcode::GETATTR => answer(&mut device, unique, 0, &attributes()),
            // Reads bypass the page cache.
            opcode::OPEN => answer(&mut device, unique, 0, &words(&[0, 0, 1, 0])),
            opcode::READ => {
                held.push(unique);
                wanted.readers.fetch_add(1, Ordering::SeqCst);
            }
            opcode::STATFS => answer(&mut device, unique, 0, &[0; 80]),
            opcode::FLUSH | opcode::RELEASE => answer(&mut device, unique, 0, &[]),
            // A blocked reader stays blocked.
            opcode::INTERRUPT | opcode::FORGET | opcode::BATCH_FORGET => {}
            _ => answer(&mut device, unique, -libc::ENOSYS, &[]),
        }
    }
}

fn answer(device: &mut File, unique: u64, error: i32, body: &[u8]) {
    let length = u32::try_from(16 + body.len()).unwrap();
    let mut whole = length.to_ne_bytes().to_vec();
    whole.extend(error.to_ne_bytes());
    whole.extend(unique.to_ne_bytes());
    whole.extend(body);
    // The reader may be gone.
    let _ = device.write_all(&whole);
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// `fuse_init_out` of version 7.31: the point is that a write has at most 4096 bytes, so that the buffer holds it.
fn init() -> Vec<u8> {
    let mut init = words(&[7, 31, 0, 0, 0, 4096, 1]);
    init.resize(64, 0);
    init
}

/// `fuse_attr_out` of a file that everybody may read and that is not empty: nobody would read an empty one.
fn attributes() -> Vec<u8> {
    let mut attributes = words(&[0, 0, 0, 0]);
    // Number, length, blocks and times.
    attributes.extend(words(&[1, 0, 4096, 0]));
    attributes.extend([0; 32 + 12]);
    let (mode, links) = (libc::S_IFREG | 0o444, 1);
    attributes.extend(words(&[mode, links, 0, 0, 0, 4096, 0]));
    attributes
}
