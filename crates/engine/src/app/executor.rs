//! The last step of making a cell: the process that becomes its program has given up everything but the right to execute it.

use std::convert::Infallible;
use std::ffi::{CString, NulError};
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use libcontainer::oci_spec::runtime::Spec;
use libcontainer::workload::{Executor, ExecutorError, ExecutorValidationError};

use super::{capabilities, magic_links};
use crate::error::{Doing, Error, Result, refused};
use crate::seccomp::Filter;

/// Executes a container's program under a filter.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) filter: Filter,
    /// The capabilities granted to the program.
    pub(crate) capabilities: Vec<String>,
    /// The pipe through which a failure is told.
    pub(crate) report: RawFd,
    /// The socket of the cell's agent, where it has one.
    pub(crate) agent: Option<RawFd>,
}

impl Executor for Guard {
    fn exec(&self, spec: &Spec) -> Result<(), ExecutorError> {
        let (args, env) = words(spec);
        let executed = capabilities::hide_groups(&self.capabilities)
            .and_then(|()| execute(&args, &env, &self.filter, self.agent));
        let Err(why) = executed;
        tell(self.report, &why);
        Err(ExecutorError::Other(why.to_string()))
    }

    fn validate(&self, spec: &Spec) -> Result<(), ExecutorValidationError> {
        let (args, env) = words(spec);
        match find(&args, &env) {
            Ok(_) => Ok(()),
            Err(why) => Err(ExecutorValidationError::ArgValidationError(why.to_string())),
        }
    }
}

fn words(spec: &Spec) -> (Vec<String>, Vec<String>) {
    let Some(process) = spec.process() else {
        return (Vec::new(), Vec::new());
    };
    (
        process.args().clone().unwrap_or_default(),
        process.env().clone().unwrap_or_default(),
    )
}

/// Reports through the pipe why the program could not be executed; fine if nobody listens any more.
pub(crate) fn tell(pipe: RawFd, why: &Error) {
    // SAFETY: the descriptor is open, and stays so when this handle goes.
    let mut pipe = ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(pipe) });
    let _ = pipe.write_all(why.to_string().as_bytes());
}

/// Becomes the program; returns only why that was not possible. `agent` is the socket of the cell's agent, where it has one; it is closed.
pub(crate) fn execute(
    args: &[String],
    env: &[String],
    filter: &Filter,
    agent: Option<RawFd>,
) -> Result<Infallible> {
    let program = find(args, env)?;
    magic_links::check_here(&program)?;
    let path = CString::new(program.as_os_str().as_encoded_bytes())?;
    let texts = |words: &[String]| -> Result<Vec<CString>, NulError> {
        let texts = words.iter().map(|word| CString::new(word.as_str()));
        texts.collect()
    };
    let (args, env) = (texts(args)?, texts(env)?);
    let pointers = |words: &[CString]| -> Vec<*const libc::c_char> {
        let words = words.iter().map(|word| word.as_ptr());
        words.chain([std::ptr::null()]).collect()
    };
    let (args, env) = (pointers(&args), pointers(&env));
    forget_signals()?;
    // SAFETY: handed down by the supervisor for this, and nobody else's here.
    let agent = agent.map(|agent| unsafe { OwnedFd::from_raw_fd(agent) });
    filter.install(agent.as_ref().map(AsFd::as_fd))?;
    drop(agent);
    // SAFETY: strings that end in NUL in arrays that end in null; all of them outlive the call.
    unsafe { libc::execve(path.as_ptr(), args.as_ptr(), env.as_ptr()) };
    let error = io::Error::last_os_error();
    let hint = match error.raw_os_error() {
        // It was found a moment ago.
        Some(libc::ENOENT) => ": its interpreter or dynamic loader is not in the cell",
        Some(libc::ENOEXEC) => ": it is not a program for this kind of machine",
        _ => "",
    };
    Err(Error::from(error).noted(hint)).doing(|| format!("cannot execute {}", program.display()))
}

/// Resets every signal to its default: the settings of this program, its libraries and its parents must not reach the program that follows.
pub(crate) fn forget_signals() -> Result<()> {
    const LAST: i32 = 64;
    // The kernel's own structure, longer than on any architecture: all zeroes is SIG_DFL. The C library would keep two
    // signals for itself.
    let default = [0_u64; 8];
    let nobody = std::ptr::null_mut::<u64>();
    for signal in (1..=LAST).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal)) {
        // SAFETY: a structure that is long enough, and a set of 64 signals.
        checked(unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), nobody, 8)
        })?;
    }
    let none = 0_u64;
    // SAFETY: a set of 64 signals.
    checked(unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const none,
            nobody,
            8,
        )
    })
}

fn checked(answer: libc::c_long) -> Result<()> {
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()).doing(|| "cannot reset signals"),
    }
}

/// Where the program is, in the root and with the rights that it will have.
fn find(args: &[String], env: &[String]) -> Result<PathBuf> {
    let name = args.first().ok_or("there is no program to execute")?;
    if name.contains('/') {
        return executable(Path::new(name)).map(|()| name.into());
    }
    let path = env
        .iter()
        .find_map(|variable| variable.strip_prefix("PATH="));
    let path = path.unwrap_or_default();
    let mut refused = None;
    for dir in path.split(':').filter(|dir| !dir.is_empty()) {
        let program = Path::new(dir).join(name);
        match executable(&program) {
            Ok(()) => return Ok(program),
            Err(why) if program.exists() => refused = Some(why),
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| refused!("`{name}` is not in the cell (PATH is {path})")))
}

fn executable(program: &Path) -> Result<()> {
    let named = || program.display();
    let found = program
        .metadata()
        .doing(|| format!("{} is not in the cell", named()))?;
    if !found.is_file() {
        return Err(refused!("{} is not a program", named()));
    }
    rustix::fs::access(program, rustix::fs::Access::EXEC_OK).map_err(|_| {
        let uid = rustix::process::getuid().as_raw();
        refused!("{} may not be executed by user {uid}", named())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_looked_for_along_its_own_path() {
        let env = |path: &str| vec![format!("PATH={path}")];
        let args = |word: &str| vec![word.to_owned()];
        let sh = find(&args("sh"), &env("/nowhere:/bin")).unwrap();
        assert_eq!(sh, Path::new("/bin/sh"));
        let why = find(&args("sh"), &env("/nowhere")).unwrap_err().to_string();
        assert!(
            why.contains("`sh` is not in the cell (PATH is /nowhere)"),
            "{why}"
        );
        let why = find(&args("/etc/passwd"), &[]).unwrap_err().to_string();
        assert!(why.contains("may not be executed"), "{why}");
        let why = find(&args("/etc"), &[]).unwrap_err().to_string();
        assert!(why.contains("is not a program"), "{why}");
        assert!(find(&[], &[]).is_err());
    }
}
