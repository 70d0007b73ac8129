//! The faults, and the environment that makes them possible: small disks, a cgroup with few pids.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Random;
use crate::support::{Said, payloads, timecell};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A payload is killed.
    Cell,
    /// A process that makes or keeps cells is killed: runtime, monitor, helper.
    Runtime,
    /// The process that measures is killed.
    Coordinator,
    /// The disk of the run is full.
    Disk,
    /// Shared memory is full.
    SharedMemory,
    /// No more process or thread can be started.
    Pids,
    /// Ctrl-C, or SIGTERM.
    Signal,
    /// The disk is full, and then the process that measures is killed.
    DiskAndCoordinator,
}

const ALL: [Fault; 8] = [
    Fault::Cell,
    Fault::Runtime,
    Fault::Coordinator,
    Fault::Disk,
    Fault::SharedMemory,
    Fault::Pids,
    Fault::Signal,
    Fault::DiskAndCoordinator,
];

impl Fault {
    /// Every kind in turn, with the one that loses most twice.
    pub fn of(run: u32, random: &mut Random) -> Fault {
        let turn = run as usize % (ALL.len() + 1);
        let _ = random.next();
        ALL.get(turn).copied().unwrap_or(Fault::Coordinator)
    }
}

/// The preparation of a fault; put back on drop.
pub struct Ground {
    disk: Option<Disk>,
    shared: Option<Disk>,
    pids: Option<PathBuf>,
}

impl Ground {
    pub fn of(fault: Fault, dir: &Path) -> Ground {
        let small = matches!(fault, Fault::Disk | Fault::DiskAndCoordinator);
        Ground {
            disk: small.then(|| Disk::mounted(&dir.join("runs"), "16m")),
            shared: (fault == Fault::SharedMemory)
                .then(|| Disk::mounted(&dir.join("shm"), &room_for_a_run())),
            pids: (fault == Fault::Pids).then(pids_group).flatten(),
        }
    }

    /// Starts the bench of `dir`, in the background.
    pub fn start(&self, dir: &Path) -> Child {
        let mut command = self.command(dir);
        if let Some(group) = &self.pids {
            let procs = group.join("cgroup.procs");
            // SAFETY: one open and one write between fork and exec.
            unsafe { command.pre_exec(move || fs::write(&procs, "0")) };
        }
        command
            .args(["bench", "faults.toml"])
            .stdout(Stdio::null())
            .stderr(fs::File::create(dir.join("errors")).unwrap())
            .spawn()
            .unwrap()
    }

    pub fn say(&self, dir: &Path, words: &[&str]) -> Said {
        self.command(dir).args(words).output().unwrap().into()
    }

    /// The binary under test, with its own shared memory if needed.
    fn command(&self, dir: &Path) -> Command {
        let mut command = timecell();
        command.current_dir(dir);
        if let Some(shared) = &self.shared {
            let from = c_path(&shared.0);
            // SAFETY: system calls alone between fork and exec, with strings made before.
            unsafe {
                command.pre_exec(move || {
                    let none = std::ptr::null();
                    let done = libc::unshare(libc::CLONE_NEWNS) == 0
                        && libc::mount(
                            none,
                            c"/".as_ptr(),
                            none,
                            libc::MS_REC | libc::MS_PRIVATE,
                            none.cast(),
                        ) == 0
                        && libc::mount(
                            from.as_ptr(),
                            c"/dev/shm".as_ptr(),
                            none,
                            libc::MS_BIND,
                            none.cast(),
                        ) == 0;
                    match done {
                        true => Ok(()),
                        false => Err(std::io::Error::last_os_error()),
                    }
                })
            };
        }
        command
    }

    /// Where the bench keeps its samples, as seen from here.
    pub fn shared_memory(&self) -> PathBuf {
        let shared = self.shared.as_ref();
        shared.map_or(PathBuf::from("/dev/shm"), |disk| disk.0.clone())
    }

    /// Triggers it; returns a description of the hit.
    pub fn inflict(&mut self, fault: Fault, bench: &Child, random: &mut Random) -> String {
        let pid = bench.id();
        let kill = |pid: u32, signal: i32| {
            // SAFETY: a process that this test has started, itself or through the bench.
            unsafe { libc::kill(pid.cast_signed(), signal) };
        };
        match fault {
            Fault::Coordinator => {
                kill(pid, libc::SIGKILL);
                "killed".to_owned()
            }
            Fault::Signal => {
                let signal = random.one_of(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]);
                kill(pid, signal);
                format!("signal {signal}")
            }
            Fault::Cell => match first_of(
                || payloads(pid).into_iter().map(|(pid, _)| pid).collect(),
                random,
            ) {
                Some(cell) => {
                    kill(cell.unsigned_abs(), libc::SIGKILL);
                    "a payload".to_owned()
                }
                None => "no payload was there".to_owned(),
            },
            Fault::Runtime => match first_of(|| helpers(pid), random) {
                Some(helper) => {
                    let name = fs::read_to_string(format!("/proc/{helper}/comm"));
                    kill(helper.unsigned_abs(), libc::SIGKILL);
                    name.unwrap_or_default().trim().to_owned()
                }
                None => "no helper was there".to_owned(),
            },
            Fault::Disk => {
                self.disk.as_ref().unwrap().fill();
                "full".to_owned()
            }
            Fault::DiskAndCoordinator => {
                self.disk.as_ref().unwrap().fill();
                std::thread::sleep(Duration::from_millis(random.below(600)));
                kill(pid, libc::SIGKILL);
                "full, then killed".to_owned()
            }
            Fault::SharedMemory => {
                self.shared.as_ref().unwrap().fill();
                "full".to_owned()
            }
            Fault::Pids => {
                let Some(group) = &self.pids else {
                    return "no pids controller".to_owned();
                };
                let now = fs::read_to_string(group.join("pids.current")).unwrap();
                let more = random.below(3);
                let most = now.trim().parse::<u64>().unwrap() + more;
                fs::write(group.join("pids.max"), most.to_string()).unwrap();
                format!("{more} more allowed")
            }
        }
    }

    /// Makes room again.
    pub fn relieve(&mut self) {
        for disk in [&self.disk, &self.shared].into_iter().flatten() {
            let _ = fs::remove_file(disk.0.join("filler"));
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Some(group) = &self.pids {
            let _ = fs::remove_dir(group);
        }
    }
}

/// The cells' copy of the binary, which is large when built for debugging, and their samples.
fn room_for_a_run() -> String {
    let binary = fs::metadata(env!("CARGO_BIN_EXE_timecell")).unwrap().len();
    format!("{}m", 100 + (binary >> 20))
}

/// The first that appears within two seconds, or a random one if several exist.
fn first_of(list: impl Fn() -> Vec<i32>, random: &mut Random) -> Option<i32> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        let there = list();
        if !there.is_empty() {
            return Some(random.one_of(&there));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    None
}

/// Processes that belong to the cells of bench `pid` or were started by it, and measure nothing.
fn helpers(pid: u32) -> Vec<i32> {
    let mark = format!("timecell-{pid}-");
    let parent = format!(" {pid} ");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let helps = |process: &i32| {
        let read = |name: &str| fs::read(format!("/proc/{process}/{name}")).unwrap_or_default();
        let text = |name: &str| String::from_utf8_lossy(&read(name)).into_owned();
        let words = text("cmdline");
        if words.is_empty() || words.contains("\0probe\0run\0") || process.unsigned_abs() == pid {
            return false;
        }
        let stat = text("stat");
        let child = stat
            .rsplit_once(')')
            .is_some_and(|(_, rest)| rest.get(2..).is_some_and(|rest| rest.starts_with(&parent)));
        child || words.contains(&mark) || text("environ").contains(&mark)
    };
    processes.filter(helps).collect()
}

/// A cgroup with its own limit on pids, v1 or v2.
fn pids_group() -> Option<PathBuf> {
    let name = format!("faults-{}", std::process::id());
    for root in ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"] {
        let group = Path::new(root).join(&name);
        if fs::create_dir(&group).is_ok() {
            if group.join("pids.max").is_file() {
                return Some(group);
            }
            let _ = fs::remove_dir(&group);
        }
    }
    None
}

fn c_path(path: &Path) -> std::ffi::CString {
    std::ffi::CString::new(path.to_string_lossy().as_bytes()).unwrap()
}

/// A small disk, unmounted on drop.
pub struct Disk(pub PathBuf);

impl Disk {
    pub fn mounted(at: &Path, size: &str) -> Disk {
        fs::create_dir_all(at).unwrap();
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "faults"])
            .arg(at)
            .status()
            .unwrap();
        assert!(done.success());
        Disk(at.to_owned())
    }

    /// Leaves less than a page free.
    pub fn fill(&self) {
        let mut file = fs::File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
