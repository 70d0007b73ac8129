//! The common part of rootful and rootless podman: the command line, a private storage for each cell, and its removal.
//!
//! The storage is private so that the user's own podman is neither seen nor changed, and so that removing a cell
//! is removing a directory. Locks are kept in files there, because podman's usual lock table is one for the whole
//! user and would lose an entry for every cell whose coordinator was killed.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use host::file::at;
use host::install::install;
use host::{pidfd, process as processes};
use model::Requirement;
use rustix::fs::OFlags;

use crate::engines::calls::Source;
use crate::engines::info::installed;
use crate::error::{Doing, Result, refused};
use crate::identity::Identity;
use crate::made::{self, Payload};
use crate::note::MARK;
use crate::process::Process;
use crate::{CellSpec, cgroups, limits, marks, mounts, oci, process, programs, reach};

/// How podman is called for one cell.
pub(crate) struct Cli<'a> {
    pub(crate) cell: &'a dyn Identity,
    /// The OCI runtime it is to use.
    pub(crate) runtime: PathBuf,
    /// Without root's powers.
    pub(crate) rootless: bool,
}

/// Where podman looks for programs, regardless of this process's own PATH.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The image of the payload. Nothing else is in the storage.
pub(super) const IMAGE: &str = "timecell-payload:latest";

/// The file that keeps the name of the storage driver.
const DRIVER: &str = "driver";

/// The OCI runtimes in the order of podman's own preference.
const RUNTIMES: [&str; 2] = ["crun", "runc"];

/// The OCI runtime for podman: crun, or runc where crun is not there or refuses the machine.
pub(crate) fn runtime(rootless: bool) -> Option<(&'static str, PathBuf)> {
    RUNTIMES
        .into_iter()
        .filter(|name| rootless || oci::layout(name).met)
        .find_map(|name| Some((name, programs::find(name)?)))
}

/// That there is an OCI runtime which podman can use here.
pub(crate) fn runtime_requirement(rootless: bool) -> Requirement {
    const WHAT: &str = "OCI runtime for podman";
    if let Some((name, path)) = runtime(rootless) {
        let refused = RUNTIMES.into_iter().take_while(|other| *other != name);
        let because: Vec<String> = refused
            .filter(|other| programs::find(other).is_some())
            .map(|other| {
                format!(
                    ", because {other} is refused: {}",
                    oci::layout(other).reason
                )
            })
            .collect();
        return Requirement::met(WHAT, format!("{}{}", path.display(), because.concat()));
    }
    let refused = oci::layout("crun");
    if programs::find("crun").is_some() && !refused.met {
        let fix = refused.fix.unwrap_or_default();
        return Requirement::unmet(
            WHAT,
            format!("crun: {}, and `runc` is not installed", refused.reason),
            format!("{fix}, or {}", install("runc")),
        );
    }
    Requirement::unmet(
        WHAT,
        "neither `crun` nor `runc` is installed",
        install("crun"),
    )
}

/// The programs that it consists of, where they are installed.
pub(crate) fn programs(rootless: bool) -> Vec<PathBuf> {
    let mut found = installed(&["podman", "conmon"]);
    found.extend(runtime(rootless).map(|(_, path)| path));
    found
}

/// Such as `podman 4.3.1 (crun)`.
pub(crate) fn version(rootless: bool) -> Option<String> {
    let line = programs::first_line("podman", &["--version"])?;
    let (runtime, _) = runtime(rootless)?;
    Some(format!(
        "{} ({runtime})",
        line.replace("podman version", "podman")
    ))
}

impl<'a> Cli<'a> {
    /// Of root's podman.
    pub(crate) fn rootful(cell: &'a dyn Identity) -> Result<Cli<'a>> {
        Cli::of(cell, false)
    }

    /// Of an unprivileged user's.
    pub(crate) fn rootless(cell: &'a dyn Identity) -> Result<Cli<'a>> {
        Cli::of(cell, true)
    }

    fn of(cell: &'a dyn Identity, rootless: bool) -> Result<Cli<'a>> {
        let (_, runtime) = runtime(rootless).ok_or("there is no OCI runtime for podman")?;
        Ok(Cli {
            cell,
            runtime,
            rootless,
        })
    }

    /// See [`made::home`].
    pub(crate) fn home(&self) -> PathBuf {
        made::home(self.cell)
    }

    fn pid_file(&self) -> PathBuf {
        self.home().join("pid")
    }

    fn conmon_file(&self) -> PathBuf {
        self.home().join("conmon")
    }

    /// Makes the private directory with its configuration, for a storage that is used once.
    pub(crate) fn prepare(&self) -> Result<()> {
        self.prepare_with("vfs")
    }

    /// As [`Cli::prepare`], with this storage driver.
    pub(crate) fn prepare_with(&self, driver: &str) -> Result<()> {
        let home = self.home();
        // Nobody else's directory will do.
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&home)
            .and_then(|()| {
                fs::DirBuilder::new()
                    .mode(0o700)
                    .create(home.join("runtime-dir"))
            })
            .and_then(|()| fs::write(home.join("containers.conf"), config(self.cell.id())))
            .and_then(|()| fs::write(home.join(DRIVER), driver))
            .doing(|| format!("{}", home.display()))
    }

    /// `podman` with everything that makes the storage private; the environment holds nothing else.
    pub(crate) fn command(&self) -> Result<Command> {
        let program = programs::find("podman").ok_or("`podman` is not installed")?;
        let home = self.home();
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", PATH)
            .env("CONTAINERS_CONF", home.join("containers.conf"))
            .env(MARK, self.cell.id())
            .current_dir("/")
            .args([
                "--log-level",
                "error",
                "--events-backend",
                "none",
                "--storage-driver",
            ])
            .arg(driver(&home))
            .args(["--cgroup-manager", "cgroupfs", "--runtime"])
            .arg(&self.runtime);
        for (option, place) in [
            ("--root", "root"),
            ("--runroot", "run"),
            ("--tmpdir", "tmp"),
        ] {
            command.arg(option).arg(home.join(place));
        }
        if self.rootless {
            command.env("XDG_RUNTIME_DIR", home.join("runtime-dir"));
        }
        if let Some(user) = self.cell.user() {
            command.env("HOME", &user.home).env("USER", &user.name);
        } else {
            command.env("HOME", home);
        }
        Ok(command)
    }

    /// Creates and starts the cell; `as_user` turns the command into one of the right user.
    pub(crate) fn make(
        &self,
        spec: &CellSpec,
        as_user: impl FnOnce(&mut Command),
    ) -> Result<Payload> {
        let mut command = self.command()?;
        as_user(&mut command);
        command
            .args(["run", "--detach", "--name", &spec.id])
            .args(["--network", "none"]);
        self.confine(spec, &mut command);
        command
            .args(["--log-driver", "k8s-file", "--log-opt"])
            .arg(format!("path={}", made::log(spec).display()))
            .arg("--pidfile")
            .arg(self.pid_file())
            .arg("--conmon-pidfile")
            .arg(self.conmon_file())
            .arg("--volume")
            .arg(format!("{}:/cell:rw", spec.shared.display()));
        command
            .arg("--rootfs")
            .arg(&spec.rootfs)
            .arg("/timecell")
            .args(&spec.words);
        process::run_quiet(&mut command, &made::log(spec))?;
        Ok(Payload {
            pid: self.payload()?,
            child: None,
            helper: None,
        })
    }

    /// One call that creates a container, runs the payload, waits for its end and removes the container.
    pub(crate) fn call(&self, spec: &CellSpec, source: Source, network: &str) -> Result<Command> {
        let mut command = self.command()?;
        reach::become_user(&mut command, spec);
        command
            .args(["run", "--rm", "--name", &spec.id])
            .args(["--network", network]);
        self.confine(spec, &mut command);
        command
            .arg("--volume")
            .arg(format!("{}:/cell:rw", spec.shared.display()));
        match source {
            Source::Image => command.arg(IMAGE),
            Source::Rootfs => command.arg("--rootfs").arg(&spec.rootfs),
        };
        command.arg("/timecell").args(&spec.words);
        Ok(command)
    }

    /// The pid of the cell's first process. For a rootless cell it comes from a file of the user, who could have put any pid there for us to raise in
    /// priority and to kill.
    fn payload(&self) -> Result<i32> {
        let pid = parse_pid(&self.pid_file())?;
        if let Some(user) = self.cell.user()
            && !believed(pid, user.uid, self.cell.id())
        {
            // It has run to its end already. A later process of that number is not meant.
            if has_ended(pid) {
                return Ok(NO_PID);
            }
            return Err(refused!(
                "{} holds pid {pid}, which is not a process of this cell and of user `{}`",
                self.pid_file().display(),
                user.name
            ));
        }
        Ok(pid)
    }

    /// Sets the rights and limits of a cell, whichever way it is started.
    pub(crate) fn confine(&self, spec: &CellSpec, command: &mut Command) {
        command
            .args(["--no-hosts", "--http-proxy=false"])
            .args(["--read-only", "--read-only-tmpfs=false"])
            .args(["--systemd=false", "--sdnotify", "ignore"])
            .args(["--cap-drop", "all", "--security-opt", "no-new-privileges"])
            .args(["--env", &format!("{MARK}={}", spec.id)]);
        for device in &spec.rights.devices {
            command.arg("--device").arg(device);
        }
        if self.rootless {
            // Nothing may be raised, and without a delegated cgroup no group may be made.
            command.args(["--ulimit", "host"]);
            if self.runtime.ends_with("crun") {
                command.args(["--cgroups", "disabled"]);
            }
        } else {
            command.args(["--cgroup-parent", &format!("/{}", spec.id)]);
            command.args(limits::words(&spec.rights.limits));
            if spec.rights.rtprio > 0 {
                command.args(["--cap-add", "SYS_NICE,IPC_LOCK"]);
            }
            for limit in limits::of(&spec.rights) {
                let name = limit.name.trim_start_matches("RLIMIT_").to_lowercase();
                command.args(["--ulimit", &format!("{name}={0}:{0}", limit.value)]);
            }
            // Given so that podman does not choose a number above this process's own limit.
            if let Some(most) = limits::processes() {
                command.args(["--ulimit", &format!("nproc={most}:{most}")]);
            }
        }
    }

    /// Removes the container, podman's helpers and mounts, and the cgroups.
    pub(crate) fn wipe(&self, as_user: impl FnOnce(&mut Command)) -> Result<()> {
        if self.home().join("root").exists()
            && let Ok(mut command) = self.command()
        {
            as_user(&mut command);
            command.args(["rm", "--force", "--time", "0", "--ignore", self.cell.id()]);
            // Its words are in the log; whether anything is left is seen below.
            let _ = process::run_quiet(&mut command, &made::log(self.cell));
        }
        self.kill_helpers()?;
        // Processes on the way to making the cell, or cleaning up behind it.
        if marks::kill_to_the_last(self.cell)? {
            marks::kill_of(self.cell)?;
        }
        mounts::remove_below(&self.home())?;
        made::remove_dir(&self.home())?;
        cgroups::remove(self.cell.id())
    }

    /// Ends conmon, and the process that keeps a rootless user's namespaces open.
    fn kill_helpers(&self) -> Result<()> {
        for file in [
            self.conmon_file(),
            self.home().join("tmp/pause.pid"),
            self.home().join("runtime-dir/libpod/tmp/pause.pid"),
        ] {
            // The process is held first: the findings then are true of the killed one.
            if let Ok(pid) = parse_pid(&file)
                && let Some(process) = Process::of(pid)
                && self.cell.user().is_none_or(|user| is_of(pid, user.uid))
                && is_helper(pid, &self.home(), self.cell)
            {
                process.kill()?;
            }
        }
        Ok(())
    }
}

/// The configuration file: nothing of the machine's own configuration is read. Podman's children carry the cell's mark, as
/// podman itself does.
///
/// Kernel keyrings are limited to some 200 for a user, and cells have no use for them.
fn config(id: &str) -> String {
    format!(
        "[containers]\nkeyring = false\n[engine]\nlock_type = \"file\"\n\
         conmon_env_vars = [\"PATH={PATH}\", \"{MARK}={id}\"]\n"
    )
}

/// The storage driver that was noted. The note of a rootless cell belongs to the user: only names that podman knows are accepted.
fn driver(home: &Path) -> &'static str {
    let noted = read_small(&home.join(DRIVER)).unwrap_or_default();
    match noted.trim() {
        "overlay" => "overlay",
        _ => "vfs",
    }
}

/// Above every pid that the kernel gives: a process that is no more.
const NO_PID: i32 = i32::MAX;

/// The pid in a file that may be a user's.
fn parse_pid(file: &Path) -> Result<i32> {
    let text = read_small(file).map_err(at(file))?;
    let pid = text.trim().parse().ok().filter(|pid: &i32| *pid > 1);
    pid.ok_or_else(|| refused!("{} holds no pid", file.display()))
}

/// The beginning of a regular file that no link leads to: one of a user's could point anywhere, be a pipe or have no end.
fn read_small(file: &Path) -> io::Result<String> {
    const MOST_BYTES: u64 = 64;
    let opened = mounts::open_without_links(file, OFlags::RDONLY)?;
    if !opened.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    opened.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Whether all of a process's user ids are this one; the owner of its files in /proc tells less.
fn is_of(pid: i32, uid: u32) -> bool {
    let status = processes::status(pid);
    processes::value(&status, "Uid").is_some_and(|ids| {
        ids.split_whitespace()
            .all(|id| id.parse().is_ok_and(|id: u32| id == uid))
    })
}

/// Whether there is no such process, or one that waits to be reaped.
fn has_ended(pid: i32) -> bool {
    Process::of(pid).is_none_or(|process| {
        (process.open()).is_none_or(|pidfd| pidfd::ended_within(&pidfd, Duration::ZERO))
    })
}

/// Whether this process, whose pid stood in a user's file, is that user's and carries the mark of the cell.
///
/// A runtime answers before its process has executed the cell's program, and while it does its environment is empty: a
/// process of this user's is asked again for a while.
fn believed(pid: i32, uid: u32, id: &str) -> bool {
    const EXECUTED: Duration = Duration::from_secs(2);
    let until = Instant::now() + EXECUTED;
    let before = Process::of(pid);
    loop {
        let is_meant = before.is_some() && is_of(pid, uid) && Process::of(pid) == before;
        if !is_meant || marks::is_marked(pid, id, Some(uid)) {
            return is_meant && Process::of(pid) == before;
        }
        if Instant::now() >= until || has_ended(pid) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether this process, whose pid stood in a file, really is a helper of this cell: by its mark, or as a monitor that was
/// told the cell's directory. Others may have that path in their words, such as an editor.
fn is_helper(pid: i32, home: &Path, cell: &dyn Identity) -> bool {
    let user = cell.user().map(|user| user.uid);
    let monitor = processes::name(pid).as_deref() == Some("conmon");
    marks::is_marked(pid, cell.id(), user) || monitor && marks::has_argument(pid, home, user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellSpec, Rights};
    use std::os::unix::fs::symlink;

    #[test]
    fn an_editor_of_a_cells_files_is_left_alone() {
        let work = tempfile::tempdir().unwrap();
        let spec = CellSpec {
            id: format!("timecell-test-editor-{}", std::process::id()),
            engine: model::EngineKind::Podman,
            work_dir: work.path().to_owned(),
            shared: work.path().to_owned(),
            rootfs: work.path().to_owned(),
            words: Vec::new(),
            rights: Rights::default(),
            user: None,
            machine: None,
        };
        let podman = Cli {
            cell: &spec,
            rootless: false,
            runtime: "crun".into(),
        };
        let file = podman.home().join("containers.conf");
        let mut editor = Command::new("/bin/sleep");
        let mut editor = (std::os::unix::process::CommandExt::arg0(&mut editor, &file))
            .arg("100")
            .spawn()
            .unwrap();
        let mut monitor = Command::new("/bin/sleep")
            .arg("100")
            .env(MARK, &spec.id)
            .spawn()
            .unwrap();
        let words = |pid: u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let shown = file.display().to_string();
        while !String::from_utf8_lossy(&words(editor.id())).contains(&shown)
            || !String::from_utf8_lossy(&words(monitor.id())).contains("sleep")
        {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        podman.wipe(|_| {}).unwrap();
        assert!(editor.try_wait().unwrap().is_none());
        assert!(!is_helper(editor.id().cast_signed(), &podman.home(), &spec));
        editor.kill().unwrap();
        editor.wait().unwrap();
        let _ = monitor.wait();
    }

    #[test]
    fn a_pid_in_a_file_is_believed_of_that_user_and_cell_only() {
        let own = rustix::process::geteuid().as_raw();
        let mut child = Command::new("sleep")
            .arg("100")
            .env(MARK, "timecell-a-1")
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        let found = [
            believed(pid, own, "timecell-a-1"),
            believed(pid, own, "timecell-a-2"),
            believed(pid, own + 1, "timecell-a-1"),
            believed(1, own + 1, "timecell-a-1"),
        ];
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [true, false, false, false]);
    }

    #[test]
    fn files_of_a_user_lead_nowhere_else_and_have_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        fs::write(dir.join("other"), "17").unwrap();
        assert_eq!(parse_pid(&dir.join("other")).unwrap(), 17);
        symlink(dir.join("other"), dir.join("pid")).unwrap();
        parse_pid(&dir.join("pid")).unwrap_err();
        symlink(&dir, dir.join("way")).unwrap();
        parse_pid(&dir.join("way/other")).unwrap_err();
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.join("pipe"), 0o600.into()).unwrap();
        parse_pid(&dir.join("pipe")).unwrap_err();
        fs::write(dir.join(DRIVER), "overlay\n").unwrap();
        assert_eq!(driver(&dir), "overlay");
        fs::write(dir.join(DRIVER), "root:x:secret").unwrap();
        assert_eq!(driver(&dir), "vfs");
    }
}
