//! The owner of an image exchanges its parts for links at every call that names one of them, in every process that makes the cell: no cell shows the
//! destination of the links, and nothing is looked up by its name twice.

use std::ffi::CString;
use std::fs;
use std::io::{IoSliceMut, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use engine::Cell;
use engine::app::{AppSpec, Bind, Image, Streams, become_subreaper, create};
use model::EngineKind;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::{Place, assert_nothing_left, finish, launcher, output, rootfs};

/// The word with which this test plays the supervisor that is traced.
pub const MAKE: &str = "make";

/// Not root, and nobody's on purpose: the owner of the image.
const OWNER: u32 = 47_110;

/// Makes the cell of a specification, runs it to its end, and prints its output, or why there is none.
pub fn make(file: &Path) -> ! {
    become_subreaper().unwrap();
    let spec: AppSpec = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    match create(&spec, Streams::Log, &launcher()) {
        Err(why) => println!("refused: {why}"),
        Ok(mut cell) => {
            if let Err(why) = cell.start() {
                println!("refused: {why}");
            } else {
                finish(&mut cell);
                println!("{}", output(&mut cell));
            }
            cell.remove().unwrap();
        }
    }
    std::process::exit(0)
}

/// A directory of the owner's, beneath which all that is exchanged lies.
struct Scene {
    place: Place,
    theirs: PathBuf,
}

/// The names that are exchanged, in the owner's directory.
const EXCHANGED: [&str; 2] = ["bundle/rootfs", "shared"];
/// And beneath one of them.
const DEV: &str = "bundle/rootfs/dev";

impl Scene {
    fn new(kind: EngineKind) -> Scene {
        let place = Place::new(kind);
        let secret = place.path().join("secret");
        let scene = Scene {
            theirs: place.path().join("theirs"),
            place,
        };
        fs::create_dir_all(scene.theirs.join("bundle")).unwrap();
        for name in EXCHANGED {
            let (meant, aside) = (scene.theirs.join(name), scene.aside(name));
            for (root, mark) in [(&meant, "meant"), (&secret, "secret")] {
                if !root.exists() {
                    let copied = Command::new("cp")
                        .arg("-a")
                        .arg(rootfs())
                        .arg(root)
                        .status();
                    assert!(copied.unwrap().success());
                    fs::write(root.join("mark"), mark).unwrap();
                }
            }
            symlink(&secret, aside).unwrap();
        }
        // Where a runtime would make devices.
        fs::create_dir(secret.join("devices")).unwrap();
        fs::create_dir(scene.theirs.join(DEV)).unwrap();
        symlink(secret.join("devices"), scene.aside(DEV)).unwrap();
        let config = r#"{"ociVersion": "1.0.2", "root": {"path": "rootfs"},
            "process": {"args": ["/bin/sh", "-c", "cat /mark /data/mark"], "cwd": "/"}}"#;
        fs::write(scene.theirs.join("bundle/config.json"), config).unwrap();
        give(&scene.theirs);
        scene
    }

    fn aside(&self, name: &str) -> PathBuf {
        self.theirs.join(format!("{name}.aside"))
    }

    fn exchange(&self, names: &[&str]) {
        for name in names {
            let (one, other) = (self.theirs.join(name), self.aside(name));
            renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
        }
    }

    /// Whether nothing was made where the links lead.
    fn is_untouched(&self) -> bool {
        let devices = self.place.path().join("secret/devices");
        fs::read_dir(devices).unwrap().next().is_none()
    }

    fn spec(&self, kind: EngineKind) -> AppSpec {
        let mut spec = match kind {
            EngineKind::Podman => {
                let image = Image::Rootfs(self.theirs.join("bundle/rootfs"));
                let mut spec = self.place.spec(kind, image);
                spec.command = ["sh", "-c", "cat /mark /data/mark"]
                    .map(str::to_owned)
                    .to_vec();
                spec
            }
            _ => self
                .place
                .spec(kind, Image::Bundle(self.theirs.join("bundle"))),
        };
        spec.binds = vec![Bind::new(self.theirs.join("shared"), "/data", false)];
        spec
    }
}

fn give(path: &Path) {
    lchown(path, Some(OWNER), Some(OWNER)).unwrap();
    if !path.is_symlink() && path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path());
        }
    }
}

/// One call of a traced process: the directory that it starts from, and where its path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    pid: i32,
    from: PathBuf,
    path: PathBuf,
}

pub fn an_image_is_looked_up_once_whatever_its_owner_exchanges(kind: EngineKind) {
    let scene = Scene::new(kind);
    let spec = scene.spec(kind);
    let beneath = |calls: Vec<Named>| -> Vec<Named> {
        let all = calls.into_iter();
        all.filter(|call| call.path.starts_with(&scene.theirs))
            .collect()
    };
    let mut calls = Vec::new();
    let (maker, said) = traced(&scene, &spec, |call| calls.push(call));
    assert_eq!(said.trim(), "meantmeant");
    let calls = beneath(calls);
    let stops = calls.len();
    // Those that start from a directory of the image go by its descriptor.
    let root = scene.theirs.join("bundle/rootfs");
    let by_name: Vec<&Named> = (calls.iter())
        .filter(|call| !call.from.starts_with(&root))
        .collect();
    let mut paths: Vec<PathBuf> = by_name.iter().map(|call| call.path.clone()).collect();
    paths.sort();
    // The directory itself is on the way to the image and to the source of the mount.
    let once = [
        "",
        "",
        "bundle",
        "bundle/config.json",
        "bundle/rootfs",
        "shared",
    ];
    let mut expected: Vec<PathBuf> = once.map(|name| scene.theirs.join(name)).to_vec();
    if kind == EngineKind::Podman {
        expected.retain(|path| !path.ends_with("config.json"));
    }
    assert_eq!(paths, expected);
    assert!(by_name.iter().all(|call| call.pid == maker), "{by_name:?}");
    let sets: [&[&str]; 2] = [&EXCHANGED, &[DEV]];
    for (stop, names) in (0..stops).flat_map(|stop| sets.map(|names| (stop, names))) {
        let mut passed = 0;
        let (_, said) = traced(&scene, &spec, |call| {
            if call.path.starts_with(&scene.theirs) {
                if passed == stop {
                    scene.exchange(names);
                }
                passed += 1;
            }
        });
        assert!(passed > stop, "the run has fewer calls than the first");
        scene.exchange(names);
        assert!(scene.is_untouched(), "stop {stop}: {said}");
        assert!(!said.contains("secret"), "stop {stop}: {said}");
        assert!(
            said.trim() == "meantmeant" || said.starts_with("refused: "),
            "stop {stop}: {said}"
        );
    }
}

/// Calls with paths: number, where the descriptor of the directory is, and where the path is.
const CALLS: &[(libc::c_long, Option<usize>, usize)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, None, 0),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_stat, None, 0),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lstat, None, 0),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_readlink, None, 0),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_access, None, 0),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, None, 0),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, None, 0),
    (libc::SYS_openat, Some(0), 1),
    (libc::SYS_openat2, Some(0), 1),
    (libc::SYS_newfstatat, Some(0), 1),
    (libc::SYS_statx, Some(0), 1),
    (libc::SYS_readlinkat, Some(0), 1),
    (libc::SYS_faccessat, Some(0), 1),
    (libc::SYS_faccessat2, Some(0), 1),
    (libc::SYS_mkdirat, Some(0), 1),
    (libc::SYS_open_tree, Some(0), 1),
    (libc::SYS_move_mount, Some(0), 1),
    (libc::SYS_mount, None, 0),
    (libc::SYS_statfs, None, 0),
    (libc::SYS_chdir, None, 0),
    (libc::SYS_getxattr, None, 0),
    (libc::SYS_lgetxattr, None, 0),
    (libc::SYS_listxattr, None, 0),
    (libc::SYS_llistxattr, None, 0),
];

/// Makes the cell of this specification in a process that is traced with all its children; returns its pid and its output.
fn traced(scene: &Scene, spec: &AppSpec, see: impl FnMut(Named)) -> (i32, String) {
    let file = scene.place.path().join("spec.json");
    fs::write(&file, serde_json::to_vec(spec).unwrap()).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(MAKE).arg(&file);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    // SAFETY: only system calls between fork and exec.
    unsafe {
        command.pre_exec(|| {
            if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            filter()
        });
    }
    let mut child = command.spawn().unwrap();
    let pid = child.id().cast_signed();
    follow(&child, see);
    // It was waited for.
    let _ = child.wait();
    let mut said = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_nothing_left(spec, i32::MAX);
    let _ = fs::remove_file(spec.work_dir.join("output"));
    (pid, said)
}

/// Has the calling process stop at each of [`CALLS`] (seccomp_unotify is the cells' own).
fn filter() -> std::io::Result<()> {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const JUMP: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const RETURN: u16 = 0x06;
    const MOST: usize = 64;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = [step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW); MOST];
    program[0] = step(LOAD, 0, 0, 0);
    for (index, (number, ..)) in CALLS.iter().enumerate() {
        let to_the_end = u8::try_from(CALLS.len() - index).unwrap_or(0);
        let number = u32::try_from(*number).unwrap_or(0);
        program[index + 1] = step(JUMP, to_the_end, 0, number);
    }
    program[CALLS.len() + 2] = step(RETURN, 0, 0, libc::SECCOMP_RET_TRACE);
    let program = libc::sock_fprog {
        len: u16::try_from(CALLS.len() + 3).unwrap_or(0),
        filter: program.as_mut_ptr(),
    };
    // SAFETY: a program of this length.
    let done = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Lets all processes run until the last has ended, and shows each call.
fn follow(child: &Child, mut see: impl FnMut(Named)) {
    let mut known = std::collections::BTreeSet::new();
    loop {
        let mut status = 0;
        // SAFETY: `status` is valid. Only children and tracees of this thread.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
        if pid < 0 {
            return;
        }
        if !libc::WIFSTOPPED(status) {
            continue;
        }
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        let is_new = known.insert(pid);
        if is_new && pid == child.id().cast_signed() {
            let options = libc::PTRACE_O_TRACESECCOMP
                | libc::PTRACE_O_TRACEFORK
                | libc::PTRACE_O_TRACEVFORK
                | libc::PTRACE_O_TRACECLONE
                | libc::PTRACE_O_TRACEEXEC
                | libc::PTRACE_O_EXITKILL;
            // SAFETY: the process is stopped.
            unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) };
        }
        if event == libc::PTRACE_EVENT_SECCOMP
            && let Some(call) = named(pid)
        {
            see(call);
        }
        // The stop of a new process, and those that only tell of an event, are not its own signals.
        let own = event == 0 && !is_new;
        // SAFETY: the process is stopped.
        unsafe { libc::ptrace(libc::PTRACE_CONT, pid, 0, if own { signal } else { 0 }) };
    }
}

/// The call at which a process stands; `None` where it names nothing, or names it through `/proc`, which is by descriptor.
fn named(pid: i32) -> Option<Named> {
    // SAFETY: all zero is a value of it.
    let mut about: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    // SAFETY: the process is stopped, and the structure has this size.
    let size = unsafe {
        libc::ptrace(
            libc::PTRACE_GET_SYSCALL_INFO,
            pid,
            size_of_val(&about),
            &raw mut about,
        )
    };
    if size < 0 {
        // One that is killed while it stands is gone.
        let error = std::io::Error::last_os_error();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
        return None;
    }
    // SAFETY: it stands at a call that a filter stopped.
    let call = unsafe { about.u.seccomp };
    let number = libc::c_long::try_from(call.nr).unwrap();
    let (_, dir, path) = CALLS.iter().find(|(known, ..)| *known == number)?;
    let text = text(pid, call.args[*path])?;
    if text.as_os_str().is_empty() || text.starts_with("/proc") {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "descriptors are ints")]
    let dir = dir.map_or(libc::AT_FDCWD, |dir| call.args[dir] as i32);
    let from = match (text.is_absolute(), dir) {
        (true, _) => PathBuf::from("/"),
        (_, libc::AT_FDCWD) => fs::read_link(format!("/proc/{pid}/cwd")).ok()?,
        (_, dir) => fs::read_link(format!("/proc/{pid}/fd/{dir}")).ok()?,
    };
    Some(Named {
        pid,
        path: from.join(text),
        from,
    })
}

/// A text in the memory of a process.
fn text(pid: i32, at: u64) -> Option<PathBuf> {
    let mut bytes = vec![0; 4096];
    let mut filled = 0;
    // Up to the end of its page at a time: the next may not be there.
    while !bytes[..filled].contains(&0) && filled < bytes.len() {
        let at = at + filled as u64;
        let most = (4096 - (at % 4096) as usize).min(bytes.len() - filled);
        let mut local = [IoSliceMut::new(&mut bytes[filled..filled + most])];
        let remote = libc::iovec {
            iov_base: at as *mut libc::c_void,
            iov_len: most,
        };
        // SAFETY: as long as the slice; the other process's memory is only read.
        let read = unsafe {
            libc::process_vm_readv(pid, local.as_mut_ptr().cast(), 1, &raw const remote, 1, 0)
        };
        filled += usize::try_from(read).ok().filter(|read| *read > 0)?;
    }
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = CString::new(&bytes[..end]).ok()?;
    Some(std::ffi::OsStr::from_bytes(text.as_bytes()).into())
}
