//! `--on`: the same command on another machine. The options are added to every verb that can be carried out elsewhere, and taken out
//! again before the rest is sent there; no verb knows of them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches as _, ValueHint};
use guest::remote::Target;
use model::InputError;

/// The verbs that can be carried out elsewhere.
pub const VERBS: [&str; 15] = [
    "doctor", "bench", "report", "demo", "admit", "up", "ps", "logs", "events", "stop", "start",
    "restart", "update", "down", "clean",
];

// Where and how a command is carried out elsewhere. No docstring: it would become the help of every verb that takes these options.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "On another machine")]
pub struct Elsewhere {
    /// Do it on this machine instead: ssh://USER@HOST:PORT, or serial:DEVICE,BAUD for a board's console; of `bench`, several may be
    /// given.
    #[arg(long, value_name = "TARGET")]
    pub on: Vec<Target>,
    /// File or directory to take along, beside those that the command names.
    #[arg(long, value_name = "FILE", requires = "on", value_hint = ValueHint::AnyPath)]
    pub with: Vec<PathBuf>,
    /// timecell for its processor [default: this one if it suits, `timecell-ARCH` beside it, or that of `cargo build` in this directory].
    #[arg(long, value_name = "FILE", requires = "on", value_hint = ValueHint::FilePath)]
    pub remote_binary: Option<PathBuf>,
    /// Directory there for timecell and commands [default: ~/.cache/timecell/remote].
    #[arg(long, value_name = "DIR", requires = "on", value_hint = ValueHint::Other)]
    pub remote_dir: Option<String>,
    /// OpenSSH's client with options, such as 'ssh -F lab.conf -J gateway' [default: ssh].
    #[arg(long, value_name = "COMMAND", requires = "on")]
    pub ssh: Option<String>,
    /// Go on with this order, whose link was lost for good, instead of beginning another.
    #[arg(long, value_name = "ORDER", requires = "on")]
    pub attach: Option<String>,
}

/// Options whose value is where the result goes, here.
const OUTPUTS: [&str; 4] = ["out", "output", "figures", "persist"];
/// Options whose value names something there.
const THERE: [&str; 2] = ["dir", "undo"];

/// The directory of runs where a command is carried out.
pub const RUNS: &str = "runs";

/// A command that is to be carried out elsewhere.
#[derive(Debug)]
pub struct Sent {
    /// Where and how.
    pub elsewhere: Elsewhere,
    /// Its verb.
    pub verb: String,
    /// The words that are sent.
    pub words: Vec<String>,
    /// Files and directories that travel along, by their names there.
    pub with: Vec<(String, PathBuf)>,
    /// Where a result goes that has this name there.
    pub outputs: Vec<(String, PathBuf)>,
    /// Whether files here may be overwritten.
    pub force: bool,
}

/// Adds the options to the verbs that take them.
pub fn add(all: Command) -> Command {
    VERBS.into_iter().fold(all, |all, verb| {
        all.mut_subcommand(verb, |verb| {
            Elsewhere::augment_args(verb.mut_subcommands(Elsewhere::augment_args))
        })
    })
}

/// The command as it is sent, if it is to be carried out elsewhere.
///
/// # Errors
/// If it cannot be: it names something that only makes sense here.
pub fn sent(
    all: &Command,
    matches: &ArgMatches,
    words: &[OsString],
) -> Result<Option<Sent>, InputError> {
    let Some((verb, of)) = matches
        .subcommand()
        .filter(|(verb, _)| VERBS.contains(verb))
    else {
        return Ok(None);
    };
    let mut command = all.find_subcommand(verb);
    let mut given = of;
    while let Some((name, below)) = given.subcommand() {
        command = command.and_then(|command| command.find_subcommand(name));
        given = below;
    }
    let (Some(command), Ok(elsewhere)) = (command, Elsewhere::from_arg_matches(given)) else {
        return Ok(None);
    };
    if elsewhere.on.is_empty() {
        return Ok(None);
    }
    if verb != "bench" && elsewhere.on.len() > 1 {
        let what = "only `bench` is for several machines at once";
        return Err(InputError::new("--on", what, "name one machine"));
    }
    if elsewhere.attach.is_some() && elsewhere.on.len() > 1 {
        let what = "an order is on one machine";
        let fix = "name that machine alone by --on";
        return Err(InputError::new("--attach", what, fix));
    }
    let mut sent = Sent {
        verb: verb.to_owned(),
        words: Vec::new(),
        with: Vec::new(),
        outputs: Vec::new(),
        force: false,
        elsewhere,
    };
    for path in sent.elsewhere.with.clone() {
        if !path.exists() {
            let fix = "name a file or directory to take along";
            let name = path.display().to_string();
            return Err(InputError::new(name, "there is no such file", fix));
        }
        sent.take_along(&path);
    }
    sent.read(command, given, words.get(1..).unwrap_or_default())?;
    Ok(Some(sent))
}

/// An option as it was written: its long name, and its value if that is in the same word.
fn option<'w>(command: &Command, word: &'w str) -> Option<(String, Option<&'w str>)> {
    if let Some(long) = word.strip_prefix("--") {
        return Some(match long.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value)),
            None => (long.to_owned(), None),
        });
    }
    let mut letters = word.strip_prefix('-')?.chars();
    let letter = letters.next()?;
    let arg = command
        .get_arguments()
        .find(|arg| arg.get_short() == Some(letter))?;
    let rest = letters.as_str();
    let value = Some(rest.strip_prefix('=').unwrap_or(rest));
    Some((
        arg.get_long()?.to_owned(),
        value.filter(|value| !value.is_empty()),
    ))
}

/// The flag that other letters follow in one word, and these as a word of their own.
fn after_flag(command: &Command, word: &str) -> Option<(String, String)> {
    let mut letters = word.strip_prefix('-')?.chars();
    let letter = letters.next()?;
    let mut all = command.get_arguments();
    let arg = all.find(|arg| arg.get_short() == Some(letter))?;
    let rest = letters.as_str();
    let is_cluster = !rest.is_empty() && !arg.get_action().takes_values();
    is_cluster.then(|| (format!("-{letter}"), format!("-{rest}")))
}

/// Values that name files and directories.
fn paths(command: &Command, given: &ArgMatches) -> Vec<OsString> {
    let is_path = |arg: &&Arg| {
        use ValueHint::{AnyPath, DirPath, ExecutablePath, FilePath};
        [AnyPath, DirPath, ExecutablePath, FilePath].contains(&arg.get_value_hint())
    };
    let values = command.get_arguments().filter(is_path).filter_map(|arg| {
        let name = arg.get_id().as_str();
        let is_given = given.value_source(name) == Some(ValueSource::CommandLine);
        let is_input = !THERE.contains(&name) && !OUTPUTS.contains(&name);
        (is_given && is_input)
            .then(|| given.get_raw(name))
            .flatten()
    });
    values.flatten().map(OsStr::to_owned).collect()
}

impl Sent {
    fn read(
        &mut self,
        command: &Command,
        given: &ArgMatches,
        words: &[OsString],
    ) -> Result<(), InputError> {
        let paths = paths(command, given);
        let own = Elsewhere::augment_args(Command::new("own"));
        let is_own = |name: &str| own.get_arguments().any(|arg| arg.get_long() == Some(name));
        let takes = |name: &str| {
            let mut all = command.get_arguments();
            let arg = all.find(|arg| arg.get_long() == Some(name));
            arg.is_some_and(|arg| arg.get_action().takes_values())
        };
        let mut words = words.iter().peekable();
        while let Some(raw) = words.next() {
            let mut word = raw.to_string_lossy().into_owned();
            if word == "--" {
                self.words.push(word);
                self.words
                    .extend(words.map(|word| word.to_string_lossy().into_owned()));
                break;
            }
            while let Some((flag, rest)) = after_flag(command, &word) {
                self.words.push(flag);
                word = rest;
            }
            let Some((name, inline)) = option(command, &word) else {
                let word = match paths.contains(raw) {
                    true => self.brought(Path::new(raw)),
                    false => word,
                };
                self.words.push(word);
                continue;
            };
            let mut next = || words.next().map(|next| next.to_string_lossy().into_owned());
            let is_optional = ["persist", "undo"].contains(&name.as_str());
            let value = match inline {
                Some(value) => Some(value.to_owned()),
                // It may be given without a value.
                None if is_optional
                    && given
                        .get_raw(&name)
                        .is_none_or(|mut all| all.next().is_none()) =>
                {
                    None
                }
                None if takes(&name) => next(),
                None => None,
            };
            self.force |= name == "force";
            let Some(value) = value else {
                self.words.push(word);
                continue;
            };
            let path = Path::new(&value);
            if name == "resume" && path.exists() {
                let what = "this run is here, and is resumed where it is";
                let fix = "leave out --on, or name a run that is there";
                return Err(InputError::new(value, what, fix));
            }
            if is_own(&name) {
                continue;
            } else if name == "out" {
                self.outputs.push((RUNS.to_owned(), path.to_owned()));
                continue;
            } else if OUTPUTS.contains(&name.as_str()) && value != "-" {
                let there = self.free(path);
                self.words.push(format!("--{name}=./{there}"));
                self.outputs.push((there, path.to_owned()));
            } else if paths.iter().any(|path| *path == *value) {
                let there = self.brought(path);
                self.words.push(format!("--{name}={there}"));
            } else {
                self.words.push(format!("--{name}={value}"));
            }
        }
        Ok(())
    }

    /// A name there that nothing has yet, such as that of a path here.
    fn free(&self, path: &Path) -> String {
        let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = whole
            .file_name()
            .unwrap_or(OsStr::new("file"))
            .to_string_lossy()
            .into_owned();
        let is_taken = |name: &str| {
            let mut all = self.with.iter().chain(&self.outputs);
            name == RUNS || all.any(|(taken, _)| taken == name)
        };
        let names =
            std::iter::once(name.clone()).chain((2..).map(|number| format!("{number}-{name}")));
        names
            .into_iter()
            .find(|name| !is_taken(name))
            .unwrap_or(name)
    }

    fn take_along(&mut self, path: &Path) -> String {
        if let Some((name, _)) = self.with.iter().find(|(_, known)| known == path) {
            return name.clone();
        }
        let name = self.free(path);
        self.with.push((name.clone(), path.to_owned()));
        name
    }

    /// The name there of something that a command names: it is taken along if it is here.
    fn brought(&mut self, path: &Path) -> String {
        match path.exists() {
            true => format!("./{}", self.take_along(path)),
            false => path.to_string_lossy().into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_of(line: &str) -> Result<Option<Sent>, String> {
        let all = crate::cli::command();
        let words = ["timecell"]
            .into_iter()
            .chain(line.split(' '))
            .map(OsString::from)
            .collect();
        let words = crate::cli::scenario_first(&all, words);
        let matches = all
            .clone()
            .try_get_matches_from(&words)
            .map_err(|error| error.to_string())?;
        sent(&all, &matches, &words).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_sent_is_the_rest_of_the_command() {
        let own = std::env::current_exe().unwrap();
        let name = own.file_name().unwrap().to_string_lossy();
        let own = own.display();
        for (line, words) in [
            ("doctor --on ssh://a --json", "doctor --json".to_owned()),
            (
                "bench --on=ssh://a --ssh ssh overhead --quick --out there",
                "bench overhead --quick".to_owned(),
            ),
            (
                "logs -f -n 20 --on ssh://a camera",
                "logs -f --lines=20 camera".to_owned(),
            ),
            (
                "logs -fn 20 --on ssh://a camera",
                "logs -f --lines=20 camera".to_owned(),
            ),
            (
                "doctor --persist --on ssh://a",
                "doctor --persist".to_owned(),
            ),
            (
                &format!("up {own} --on ssh://a --dir /tmp"),
                format!("up ./{name} --dir=/tmp"),
            ),
            (
                &format!("report /no/run --on ssh://a --baseline={own} -o page.html"),
                format!("report /no/run --baseline=./{name} --output=./page.html"),
            ),
            (
                "bench latency --on serial:/dev/ttyS9 --program ./no -- --on ssh://b",
                "bench latency --program=./no -- --on ssh://b".to_owned(),
            ),
        ] {
            let sent = sent_of(line).unwrap().expect(line);
            assert_eq!(sent.words.join(" "), words, "{line}");
            assert_eq!(sent.elsewhere.on.len(), 1, "{line}");
        }
        let sent = sent_of("report a --on ssh://a -o /x/page.html --force")
            .unwrap()
            .unwrap();
        assert_eq!(
            sent.outputs,
            [("page.html".to_owned(), "/x/page.html".into())]
        );
        assert!(sent.force && sent.with.is_empty());
        assert!(sent_of("doctor").unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        for (line, said) in [
            ("doctor --on telnet:a", "is no way to another machine"),
            ("doctor --with x", "--on"),
            (
                "doctor --on ssh://a --with /no/file",
                "there is no such file",
            ),
            ("bench --on ssh://a --resume /", "is resumed where it is"),
            (
                "bench timer --on ssh://a --on ssh://b --attach 00",
                "an order is on one machine",
            ),
            (
                "ps --on ssh://a --on ssh://b",
                "only `bench` is for several",
            ),
            ("board list --on ssh://a", "unexpected argument"),
        ] {
            let error = sent_of(line).map(|_| ()).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }
}
