//! The last step of making a cell: in the process that becomes its program, with everything given up but the right to
//! execute it.

use std::ffi::CString;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::path::{Path, PathBuf};

use libcontainer::oci_spec::runtime::Spec;
use libcontainer::workload::{Executor, ExecutorError, ExecutorValidationError};

use super::magic_links;
use crate::seccomp::Filter;

/// Executes a container's program under a filter.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) filter: Filter,
    /// The pipe through which a failure is told.
    pub(crate) report: RawFd,
}

impl Executor for Guard {
    fn exec(&self, spec: &Spec) -> Result<(), ExecutorError> {
        let (args, env) = words(spec);
        let why = execute(&args, &env, &self.filter);
        tell(self.report, &why);
        Err(ExecutorError::Other(why))
    }

    fn validate(&self, spec: &Spec) -> Result<(), ExecutorValidationError> {
        let (args, env) = words(spec);
        find(&args, &env)
            .map(|_| ())
            .map_err(ExecutorValidationError::ArgValidationError)
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

/// Says through the pipe why the program could not be executed; if nobody listens any more, nobody can be told.
pub(crate) fn tell(pipe: RawFd, why: &str) {
    // SAFETY: the descriptor is open, and stays so when this handle goes.
    let mut pipe = ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(pipe) });
    let _ = pipe.write_all(why.as_bytes());
}

/// Becomes the program; returns why that was not possible.
pub(crate) fn execute(args: &[String], env: &[String], filter: &Filter) -> String {
    let prepared = || -> Result<_, String> {
        let program = find(args, env)?;
        magic_links::check_here(&program)?;
        let text = |word: &str| CString::new(word).map_err(|error| error.to_string());
        let path = text(&program.display().to_string())?;
        let args = args
            .iter()
            .map(|word| text(word))
            .collect::<Result<Vec<_>, _>>()?;
        let env = env
            .iter()
            .map(|word| text(word))
            .collect::<Result<Vec<_>, _>>()?;
        Ok((program, path, args, env))
    };
    let (program, path, args, env) = match prepared() {
        Ok(prepared) => prepared,
        Err(why) => return why,
    };
    let pointers = |words: &[CString]| -> Vec<*const libc::c_char> {
        let words = words.iter().map(|word| word.as_ptr());
        words.chain([std::ptr::null()]).collect()
    };
    let (args, env) = (pointers(&args), pointers(&env));
    if let Err(why) = forget_signals() {
        return why;
    }
    if let Err(why) = filter.install() {
        return why;
    }
    // SAFETY: strings that end in NUL in arrays that end in null; all of them outlive the call.
    unsafe { libc::execve(path.as_ptr(), args.as_ptr(), env.as_ptr()) };
    let error = io::Error::last_os_error();
    let hint = match error.raw_os_error() {
        // It was found a moment ago.
        Some(libc::ENOENT) => ": its interpreter or dynamic loader is not in the cell",
        Some(libc::ENOEXEC) => ": it is no program of this machine's kind",
        _ => "",
    };
    format!("cannot execute {}: {error}{hint}", program.display())
}

/// Every signal as if nobody had ever asked for anything else: what this program, its libraries and those before it do
/// with signals is not for the program that follows.
pub(crate) fn forget_signals() -> Result<(), String> {
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

fn checked(answer: libc::c_long) -> Result<(), String> {
    match answer {
        0 => Ok(()),
        _ => Err(format!(
            "cannot reset signals: {}",
            io::Error::last_os_error()
        )),
    }
}

/// Where the program is, in the root and with the rights that it will have.
fn find(args: &[String], env: &[String]) -> Result<PathBuf, String> {
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
    Err(refused.unwrap_or_else(|| format!("`{name}` is not in the cell (PATH is {path})")))
}

fn executable(program: &Path) -> Result<(), String> {
    let named = || program.display();
    let found = program
        .metadata()
        .map_err(|error| format!("{} is not in the cell: {error}", named()))?;
    if !found.is_file() {
        return Err(format!("{} is no program", named()));
    }
    rustix::fs::access(program, rustix::fs::Access::EXEC_OK).map_err(|_| {
        let uid = rustix::process::getuid().as_raw();
        format!("{} may not be executed by user {uid}", named())
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
        let why = find(&args("sh"), &env("/nowhere")).unwrap_err();
        assert!(
            why.contains("`sh` is not in the cell (PATH is /nowhere)"),
            "{why}"
        );
        let why = find(&args("/etc/passwd"), &[]).unwrap_err();
        assert!(why.contains("may not be executed"), "{why}");
        let why = find(&args("/etc"), &[]).unwrap_err();
        assert!(why.contains("is no program"), "{why}");
        assert!(find(&[], &[]).is_err());
    }
}
