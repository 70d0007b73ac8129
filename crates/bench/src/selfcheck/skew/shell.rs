//! The thesis's poller: a shell that looks for a file and starts `sleep 0.001` by turns (here busybox, which starts faster than bash and
//! coreutils), and how its start is noticed.

use std::io::Read;
use std::path::Path;

use host::sched;
use probe::clock;

use crate::BenchError;
use crate::error::failed;

/// The static shell.
pub(super) const BUSYBOX: &str = "/bin/busybox";

/// Whether shells can poll here.
pub(crate) fn is_there() -> bool {
    Path::new(BUSYBOX).exists()
}

/// Puts the shell into a root filesystem.
pub(super) fn install(rootfs: &Path) -> Result<(), BenchError> {
    if !is_there() {
        return Ok(());
    }
    let bin = rootfs.join("bin");
    std::fs::create_dir_all(&bin).map_err(failed(&bin, "make the directory"))?;
    // `sleep` is a separate program, as in the scripts of the field: the shell starts it each time.
    for name in ["sh", "sleep"] {
        let program = bin.join(name);
        std::fs::copy(BUSYBOX, &program).map_err(failed(&program, "copy busybox"))?;
    }
    Ok(())
}

/// The words of cell `index`.
pub(super) fn words(index: usize) -> Vec<String> {
    let script = format!(
        "while [ ! -e /cell/GO ]; do /bin/sleep 0.001 || exit 1; done; \
         echo {index} > /cell/stamp; exec /bin/sleep 100"
    );
    ["probe", "exec", "/bin/sh", "-c", &script]
        .map(str::to_owned)
        .to_vec()
}

/// Reads the shells' stamps from a named pipe, in a thread above them all.
///
/// `echo` is built into the shell, so a stamp costs it no process: the thesis's `date` would look worse.
pub(super) struct Stamps(std::thread::JoinHandle<std::io::Result<Vec<(usize, i64)>>>);

impl Stamps {
    pub(super) fn listen(shared: &Path, cells: usize) -> Result<Stamps, BenchError> {
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::fs::PermissionsExt;
        let path = shared.join("stamp");
        let name = std::ffi::CString::new(path.as_os_str().as_bytes())
            .map_err(|_| BenchError::Failed("a path holds a zero byte".to_owned()))?;
        // SAFETY: a valid C string.
        if unsafe { libc::mkfifo(name.as_ptr(), 0o666) } != 0 {
            return Err(failed(&path, "make the pipe")(
                std::io::Error::last_os_error(),
            ));
        }
        let open = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666))
            // Read and write: the end of one writer must not be the end of the pipe.
            .and_then(|()| std::fs::File::options().read(true).write(true).open(&path));
        let mut pipe = open.map_err(failed(&path, "open the pipe"))?;
        Ok(Stamps(std::thread::spawn(move || {
            let _ = sched::set_class(0, &sched::Class::Fifo { priority: 90 });
            let mut stamps = Vec::new();
            let mut pending = String::new();
            let mut bytes = [0u8; 4096];
            while stamps.len() < cells {
                let count = pipe.read(&mut bytes)?;
                let now = clock::now();
                pending.push_str(&String::from_utf8_lossy(&bytes[..count]));
                while let Some((line, rest)) = pending.split_once('\n') {
                    if let Ok(index) = line.parse() {
                        stamps.push((index, now));
                    }
                    pending = rest.to_owned();
                }
            }
            Ok(stamps)
        })))
    }

    pub(super) fn collect(self, cpus: &[u32]) -> Result<Vec<(u32, i64)>, BenchError> {
        let heard = self.0.join().map_err(|_| {
            BenchError::Failed("the thread that hears the stamps failed".to_owned())
        })?;
        let heard = heard.map_err(failed(Path::new("stamp"), "read the pipe"))?;
        Ok(heard
            .into_iter()
            .map(|(index, at)| (cpus[index % cpus.len()], at))
            .collect())
    }
}
