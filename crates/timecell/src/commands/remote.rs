//! `--on`: a command, carried out on other machines with the files that it names here; its results are put where they would be had it been
//! carried out here.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use clap::Parser as _;
use guest::machine::Output;
use guest::remote::{Job, Reach, Remote, Target, Watch, unpack};
use guest::{Cache, GuestError};
use host::{foreign_file, writer};

use super::common::is_ours;
use super::{board, fetched, found, report};
use crate::cli::{Cli, Command, RUNS, Sent};
use crate::exit::{CommandError, Ended};
use crate::out;

/// Verbs whose orders go on however long nobody follows them.
const LASTING: [&str; 2] = ["bench", "up"];

/// The signals that end a command.
const ENDING: [i32; 2] = [libc::SIGINT, libc::SIGTERM];

/// How a machine is done with a command: its exit code and the runs that it has made, and the standard output that was held back.
type Done = (Result<(Ended, Vec<PathBuf>), CommandError>, Vec<u8>);

/// Carries out a command on every machine that is named.
pub fn run(sent: &Sent) -> Result<Ended, CommandError> {
    let signal = signals().map_err(fetched::told(Path::new("signals"), "take them"))?;
    let cache = Cache::of_user()?;
    let all = &sent.elsewhere.on;
    let one = |target: &Target| {
        let screen = Screen {
            target,
            sent,
            signal: signal.clone(),
            is_one: all.len() == 1,
            held: RefCell::default(),
            runs: RefCell::default(),
        };
        screen.carry(&cache)
    };
    if let [target] = &all[..] {
        return Ok(one(target).0?.0);
    }
    let done: Vec<Done> = thread::scope(|scope| {
        let begun: Vec<_> = all
            .iter()
            .map(|target| scope.spawn(|| one(target)))
            .collect();
        let ended = begun.into_iter().map(|thread| thread.join());
        ended
            .map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let (mut code, mut runs) = (0, Vec::new());
    for (target, (done, output)) in all.iter().zip(done) {
        if !output.is_empty() {
            out::note(&format!("on      {target}"));
            out::foreign_raw(&output);
        }
        let this = match done {
            Ok((ended, made)) => {
                runs.extend(made.into_iter().next());
                ended.code()
            }
            Err(error) => {
                if let CommandError::Guest(GuestError::Ssh { said, .. }) = &error {
                    out::note(&prefixed(&target.label(), said));
                }
                out::error(&error.to_string());
                error.code()
            }
        };
        // A threshold that fails is told before all else.
        if code == 0 || this == Ended::VerdictFails.code() {
            code = this;
        }
    }
    if runs.len() > 1
        && let Err(error) = compare(&runs)
    {
        out::note(&format!("note    the runs are not shown together: {error}"));
    }
    Ok(Ended::Program(code))
}

/// Draws the runs of several machines side by side.
fn compare(runs: &[PathBuf]) -> Result<(), CommandError> {
    let words = ["timecell".into(), "report".into()].into_iter();
    let words = words.chain(runs.iter().map(|run| run.as_os_str().to_owned()));
    if let Ok(Cli {
        command: Command::Report(options),
    }) = Cli::try_parse_from(words)
    {
        report::run(&options)?;
    }
    Ok(())
}

/// Keeps the signal that ends a command; the second one ends this process at once.
fn signals() -> std::io::Result<Arc<AtomicUsize>> {
    let (came, again) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    for signal in ENDING {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, again.clone())?;
        signal_hook::flag::register(signal, again.clone())?;
        signal_hook::flag::register_usize(signal, came.clone(), signal as usize)?;
    }
    Ok(came)
}

/// The text with a name before every line.
fn prefixed(name: &str, text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("{name}: {line}")).collect();
    lines.join("\n")
}

/// Shows the output of one machine: as it comes, or if there are several, standard output as a whole and other lines with its name.
struct Screen<'s> {
    target: &'s Target,
    sent: &'s Sent,
    signal: Arc<AtomicUsize>,
    is_one: bool,
    /// Standard output, and an incomplete line of standard error.
    held: RefCell<(Vec<u8>, Vec<u8>)>,
    runs: RefCell<Vec<PathBuf>>,
}

impl Screen<'_> {
    fn carry(&self, cache: &Cache) -> Done {
        let elsewhere = &self.sent.elsewhere;
        let ssh = elsewhere.ssh.as_deref().unwrap_or_default();
        let reach = Reach {
            ssh: ssh.split_whitespace().map(str::to_owned).collect(),
            dir: elsewhere.remote_dir.clone(),
            may_ask: self.is_one,
        };
        let binary = elsewhere.remote_binary.as_deref();
        let remote = Remote {
            target: self.target,
            reach: &reach,
            programs: &|of| found::program(of, binary, "--remote-binary"),
            cache,
        };
        let job = Job {
            args: self.sent.words.clone(),
            env: BTreeMap::from([("COLUMNS".to_owned(), out::width().to_string())]),
            lasting: LASTING.contains(&self.sent.verb.as_str()),
            with: self.sent.with.clone(),
            attach: elsewhere.attach.clone(),
        };
        let carried = remote.carry(&job, self);
        let (output, line) = self.held.take();
        if !line.is_empty() {
            self.note(&String::from_utf8_lossy(&line));
        }
        (self.ended(carried), output)
    }

    fn ended(
        &self,
        carried: Result<Option<i32>, GuestError>,
    ) -> Result<(Ended, Vec<PathBuf>), CommandError> {
        let status = carried?.ok_or_else(|| GuestError::Remote {
            target: self.target.to_string(),
            what: "the command was killed there, or the machine was started again".to_owned(),
        })?;
        Ok((Ended::Program(status), self.runs.take()))
    }

    /// Puts the results in their places; see [`fetched::keep`].
    fn keep(&self, archive: File) -> Result<(), CommandError> {
        let outputs = &self.sent.outputs;
        let named = |name: &str| outputs.iter().find(|(there, _)| there == name);
        let into = named(RUNS).map_or(Path::new(RUNS), |(_, here)| here);
        let sort = |dir: &Path| {
            for entry in std::fs::read_dir(dir).map_err(fetched::told(dir, "read it"))? {
                let entry = entry.map_err(fetched::told(dir, "read it"))?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if name != RUNS {
                    let here = named(&name).map_or(Path::new(&name), |(_, here)| here);
                    place(&entry.path(), here, self.sent.force, &|text| {
                        self.note(text)
                    })?;
                }
            }
            Ok(dir.join(RUNS))
        };
        let runs = fetched::keep(into, |dir| unpack(archive, dir), sort)?;
        self.runs.borrow_mut().extend(runs);
        Ok(())
    }
}

/// Puts a file or directory in its place. Only a page of ours is replaced unasked; anything else goes beside what is there.
fn place(from: &Path, to: &Path, force: bool, note: &dyn Fn(&str)) -> Result<(), CommandError> {
    let failed = |doing| fetched::told(to, doing);
    let about = from.symlink_metadata().map_err(failed("read it"))?;
    let name = from.file_name().unwrap_or_default().to_string_lossy();
    // Either could change the behaviour of other programs here.
    let fault = match about.is_symlink() {
        true => Some("it is a link"),
        false => name
            .starts_with('.')
            .then_some("its name has a dot in front"),
    };
    if let Some(fault) = fault {
        note(&format!("{} is not kept: {fault}", out::name(&name)));
        return Ok(());
    }
    if about.is_dir() && to.is_dir() {
        for entry in std::fs::read_dir(from).map_err(failed("read it"))? {
            let entry = entry.map_err(failed("read it"))?;
            place(&entry.path(), &to.join(entry.file_name()), force, note)?;
        }
        return Ok(());
    }
    let is_page = |path| is_ours(path).unwrap_or(false);
    let may_replace = to.is_file() && (force || is_page(from) && is_page(to));
    let to = match may_replace {
        true => to.to_owned(),
        false => fetched::free(to),
    };
    match writer::rename(from, &to) {
        Err(error) if error.kind() == std::io::ErrorKind::CrossesDevices && about.is_file() => {
            let copied = foreign_file::open(from).and_then(|mut file| {
                std::io::copy(&mut file, &mut writer::create(&to)?)?;
                Ok(())
            });
            copied.map_err(fetched::told(&to, "write it"))?;
        }
        moved => moved.map_err(fetched::told(&to, "move it there"))?,
    }
    out::note(&format!("file    {}", to.display()));
    Ok(())
}

impl Watch for Screen<'_> {
    fn see(&self, of: Output, bytes: &[u8]) {
        if self.is_one {
            return board::show(of, bytes);
        }
        let (output, rest) = &mut *self.held.borrow_mut();
        match of {
            Output::Out => output.extend_from_slice(bytes),
            Output::Err => {
                rest.extend_from_slice(bytes);
                if let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') {
                    let lines: Vec<u8> = rest.drain(..=end).collect();
                    let lines = String::from_utf8_lossy(&lines);
                    out::note(&prefixed(&self.target.label(), &lines));
                }
            }
        }
    }

    fn note(&self, text: &str) {
        match self.is_one {
            true => out::note(&format!("note    {text}")),
            false => out::note(&prefixed(&self.target.label(), text)),
        }
    }

    fn signal(&self) -> Option<i32> {
        let signal = self.signal.load(Ordering::Relaxed);
        (signal != 0).then_some(signal as i32)
    }

    fn made(&self, archive: File) -> Result<(), GuestError> {
        self.keep(archive).map_err(|error| GuestError::Remote {
            target: self.target.to_string(),
            what: error.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_and_hidden_names_are_left_out_at_every_level() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["home/mine", "came/below", "here/below"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        for name in ["came/page", "came/below/.hidden", "came/below/table"] {
            fs::write(path(name), "").unwrap();
        }
        symlink(path("home"), path("came/link")).unwrap();
        symlink(path("home"), path("came/below/link")).unwrap();
        let notes = RefCell::new(Vec::new());
        let note = |text: &str| notes.borrow_mut().push(text.to_owned());
        place(&path("came"), &path("here"), false, &note).unwrap();
        let mut notes = notes.take();
        notes.sort();
        let link = "link is not kept: it is a link";
        let hidden = ".hidden is not kept: its name has a dot in front";
        assert_eq!(notes, [hidden, link, link]);
        let names = |place: &str| {
            let all = fs::read_dir(path(place)).unwrap();
            let mut names: Vec<_> = all.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(names("here"), ["below", "page"]);
        assert_eq!(names("here/below"), ["table"]);
        assert!(path("home/mine").is_dir());
    }
}
