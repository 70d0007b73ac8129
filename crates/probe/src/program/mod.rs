//! The user's program, started by the probe inside the cell: it inherits the cell's class, cpus and limits.
//!
//! Either a job is one execution of it, or it is started once and reports its jobs on a page ([`reports`]), or nothing is known
//! of its jobs and it is started and stopped ([`endless`]).

mod beside;
mod endless;
#[cfg(test)]
mod kept;
mod page;
mod reap;
mod reports;
mod turns;

pub use beside::samples_beside;
pub(crate) use endless::Endless;
pub use page::{TaskOnPage, prepare_page, tasks_on};
pub(crate) use reports::{Reporting, Started};

use std::cell::RefCell;
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use timecell_client::layout::VARIABLE;

use crate::control::Stage;
use reap::{Reaper, ended};

/// Time for a program to end once it is asked to, ns.
const ENDING_NS: i64 = 2_000_000_000;

/// A program, its arguments and its environment, ready to be started without an allocation.
pub(crate) struct Program {
    /// The texts behind the pointers.
    _texts: Vec<CString>,
    argv: Vec<*mut libc::c_char>,
    environment: Vec<*mut libc::c_char>,
    settings: Settings,
    reaper: RefCell<Option<Reaper>>,
}

/// How it is started: no input, its output is dropped, its errors go to the cell's log.
struct Settings {
    actions: libc::posix_spawn_file_actions_t,
    attributes: libc::posix_spawnattr_t,
}

impl Program {
    /// The program of these words, which reports on `page`.
    ///
    /// # Errors
    /// An errno: a word with a NUL, or no memory.
    pub fn new(words: &[String], page: Option<&Path>) -> Result<Program, i32> {
        let bad = |_| libc::EINVAL;
        let words: Vec<CString> = (words.iter())
            .map(|word| CString::new(word.as_str()))
            .collect::<Result<_, _>>()
            .map_err(bad)?;
        let (is_page, page_too) = (VARIABLE.to_bytes(), page.map(Path::as_os_str));
        let mut environment: Vec<CString> = (std::env::vars_os())
            .filter(|(name, _)| name.as_encoded_bytes() != is_page)
            .map(|(name, value)| [name.into_vec(), value.into_vec()].join(&b'='))
            .map(CString::new)
            .collect::<Result<_, _>>()
            .map_err(bad)?;
        if let Some(page) = page_too {
            let set = [is_page, page.as_encoded_bytes()].join(&b'=');
            environment.push(CString::new(set).map_err(bad)?);
        }
        let pointers = |texts: &[CString]| {
            let texts = texts.iter().map(|text| text.as_ptr().cast_mut());
            texts.chain([std::ptr::null_mut()]).collect()
        };
        Ok(Program {
            argv: pointers(&words),
            environment: pointers(&environment),
            settings: Settings::new()?,
            reaper: RefCell::new(None),
            _texts: words.into_iter().chain(environment).collect(),
        })
    }

    /// Starts it; its pid.
    pub fn start(&self) -> Result<libc::pid_t, (Stage, i32)> {
        let mut pid = 0;
        // SAFETY: argv and environment end in null and point to C strings that this owns, as it does the settings.
        let error = unsafe {
            libc::posix_spawn(
                &raw mut pid,
                self.argv[0],
                &raw const self.settings.actions,
                &raw const self.settings.attributes,
                self.argv.as_ptr(),
                self.environment.as_ptr(),
            )
        };
        match error {
            0 => Ok(pid),
            errno => Err((Stage::Start, errno)),
        }
    }

    /// Has its executions reaped by a thread of its own from now on, so that none is reaped in a real-time class.
    ///
    /// # Errors
    /// An errno: no more threads or descriptors.
    pub fn with_reaper(self) -> Result<Program, i32> {
        self.reaper.replace(Some(Reaper::start()?));
        Ok(self)
    }

    /// Runs it from its start to its exit; it may be reaped later.
    pub fn execute(&self) -> Result<(), (Stage, i32)> {
        let pid = self.start()?;
        let status = ended(pid, 0);
        match self.reaper.borrow().as_ref() {
            Some(reaper) => reaper.take(pid),
            None => reap::reap(pid),
        }
        match status {
            Some(0) => Ok(()),
            Some(status) => Err((Stage::Exit, status)),
            None => Err((Stage::Start, libc::ECHILD)),
        }
    }

    /// Waits until all executions are reaped.
    pub fn reap(&self) {
        self.reaper.take();
    }
}

impl Settings {
    fn new() -> Result<Settings, i32> {
        let told = |errno: i32| if errno == 0 { Ok(()) } else { Err(errno) };
        // SAFETY: both are initialised by the calls before they are used, and destroyed on drop; the path is a C string.
        unsafe {
            let mut settings: Settings = std::mem::zeroed();
            told(libc::posix_spawn_file_actions_init(
                &raw mut settings.actions,
            ))?;
            told(libc::posix_spawnattr_init(&raw mut settings.attributes))?;
            for (descriptor, how) in [(0, libc::O_RDONLY), (1, libc::O_WRONLY)] {
                told(libc::posix_spawn_file_actions_addopen(
                    &raw mut settings.actions,
                    descriptor,
                    c"/dev/null".as_ptr(),
                    how,
                    0,
                ))?;
            }
            // A group of its own, which 0 stands for: its children are stopped and ended with it.
            told(libc::posix_spawnattr_setpgroup(
                &raw mut settings.attributes,
                0,
            ))?;
            // The probe ignores it, which a program would inherit.
            let mut signals: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut signals);
            libc::sigaddset(&raw mut signals, libc::SIGPIPE);
            told(libc::posix_spawnattr_setsigdefault(
                &raw mut settings.attributes,
                &raw const signals,
            ))?;
            told(libc::posix_spawnattr_setflags(
                &raw mut settings.attributes,
                (libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETPGROUP) as libc::c_short,
            ))?;
            Ok(settings)
        }
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        // SAFETY: both were initialised, and are used no more.
        unsafe {
            libc::posix_spawn_file_actions_destroy(&raw mut self.actions);
            libc::posix_spawnattr_destroy(&raw mut self.attributes);
        }
    }
}

/// Cpu time of all children that have ended, ns.
pub(crate) fn children_cpu_ns() -> i64 {
    // SAFETY: rusage is plain data and the call fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec * 1_000_000_000 + time.tv_usec * 1_000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

/// How a program ended that should not have, from its wait status.
pub(crate) fn ending(status: i32) -> String {
    if libc::WIFSIGNALED(status) {
        format!("was ended by signal {}", libc::WTERMSIG(status))
    } else {
        format!("ended with exit status {}", libc::WEXITSTATUS(status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_program_runs_to_its_exit_and_its_end_is_told() {
        let run = |of: &[&str]| Program::new(&words(of), None).unwrap().execute();
        assert_eq!(run(&["/bin/true"]), Ok(()));
        let (stage, status) = run(&["/bin/sh", "-c", "exit 3"]).unwrap_err();
        assert_eq!(stage as u32, Stage::Exit as u32);
        assert_eq!(ending(status), "ended with exit status 3");
        let (_, status) = run(&["/bin/sh", "-c", "kill -9 $$"]).unwrap_err();
        assert_eq!(ending(status), "was ended by signal 9");
        let missing = run(&["/nonexistent"]).unwrap_err();
        assert_eq!(
            (missing.0 as u32, missing.1),
            (Stage::Start as u32, libc::ENOENT)
        );
    }

    #[test]
    fn it_finds_its_page_and_nobody_reads_what_it_prints() {
        let page = Path::new("/somewhere/page");
        let test = "test \"$TIMECELL_PAGE\" = /somewhere/page && ! read x && test ! -t 1";
        let program = Program::new(&words(&["/bin/sh", "-c", test]), Some(page)).unwrap();
        assert_eq!(program.execute(), Ok(()));
    }

    #[test]
    fn a_word_with_a_nul_is_refused() {
        assert_eq!(
            Program::new(&words(&["a\0"]), None).err(),
            Some(libc::EINVAL)
        );
    }
}
