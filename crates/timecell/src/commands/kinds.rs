//! Recognises timecell's kinds of files, so that a command that is given the wrong kind can name the command that reads it.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::cli::{Analyze, AnalyzeCommand, Command, Scenario};

/// The kinds of timecell's files and directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Experiment,
    Mission,
    TaskSet,
    Run,
}

impl Kind {
    /// Its name with its article, and the command that reads it.
    fn told(self) -> (&'static str, &'static str) {
        match self {
            Kind::Experiment => ("an experiment", "bench"),
            Kind::Mission => ("a mission", "admit"),
            Kind::TaskSet => ("a task set", "analyze"),
            Kind::Run => ("a run", "report"),
        }
    }
}

/// The file given to a command, and the kinds that it reads.
pub struct Given(PathBuf, &'static [Kind]);

/// The file that a command line names; `None` if it names none, or the command reads no file of these kinds.
pub fn given(command: &Command) -> Option<Given> {
    let (path, wanted): (&Path, &'static [Kind]) = match command {
        Command::Bench(options) => match &options.scenario {
            Some(Scenario::Series(_, series)) => (series.own.mission.as_deref()?, &[Kind::Mission]),
            _ => (Path::new(options.file.as_deref()?), &[Kind::Experiment]),
        },
        Command::Report(options) => (options.paths.first()?, &[Kind::Run]),
        Command::Admit(options) => (options.mission.as_deref()?, &[Kind::Mission]),
        Command::Up(options) => (options.mission.as_deref()?, &[Kind::Mission]),
        Command::Update(options) => (&options.mission, &[Kind::Mission]),
        Command::Export(options) if options.rt_app => (&options.run, &[Kind::TaskSet]),
        Command::Export(options) => (&options.run, &[Kind::Run]),
        Command::Analyze(options) => (set_of(options)?, &[Kind::TaskSet]),
        _ => return None,
    };
    Some(Given(path.to_owned(), wanted))
}

/// The task set that `analyze` is given.
fn set_of(options: &Analyze) -> Option<&Path> {
    match &options.command {
        None => options.check.source.file.as_deref(),
        Some(AnalyzeCommand::Design(design)) => design.source.file.as_deref(),
        Some(AnalyzeCommand::Generate(_) | AnalyzeCommand::Schedulability(_)) => None,
    }
}

impl Given {
    /// One sentence, if the file is of a kind that the command does not read.
    pub fn hint(&self) -> Option<String> {
        let kind = of(&self.0).filter(|kind| !self.1.contains(kind))?;
        let (what, verb) = kind.told();
        let path = self.0.display();
        Some(format!(
            "{path} looks like {what}: `timecell {verb} {path}` reads it"
        ))
    }
}

/// The kind of the file, judged by its beginning; `None` for anything else.
fn of(path: &Path) -> Option<Kind> {
    if path.is_dir() {
        return path.join("run.json").is_file().then_some(Kind::Run);
    }
    let mut text = Vec::new();
    // Only regular files: not standard input, nor a pipe that may never end.
    let file = path.is_file().then(|| std::fs::File::open(path))?.ok()?;
    file.take(1 << 16).read_to_end(&mut text).ok()?;
    of_text(&String::from_utf8_lossy(&text))
}

fn of_text(text: &str) -> Option<Kind> {
    let mut lines = text.lines().map(str::trim);
    let table = |line: &str, names: &[&str]| {
        let name = line.trim_start_matches('[').split([']', '.']).next();
        line.starts_with('[') && name.is_some_and(|name| names.contains(&name.trim()))
    };
    let experiment = ["workload", "trial", "matrix", "scale", "scheduling"];
    if lines.clone().any(|line| table(line, &experiment)) {
        return Some(Kind::Experiment);
    }
    lines.clone().find(|line| table(line, &["cell"]))?;
    // A task set has no name; all its cells do.
    let top = lines.by_ref().take_while(|line| !line.starts_with('['));
    let named = |line: &str| {
        line.split('=')
            .next()
            .is_some_and(|key| key.trim() == "name")
    };
    let is_mission = top.into_iter().any(named);
    Some(if is_mission {
        Kind::Mission
    } else {
        Kind::TaskSet
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_their_tables() {
        for (text, kind) in [
            (
                "schema = 1\nname = \"m\"\n[[cell]]\nname = \"a\"\n",
                Some(Kind::Mission),
            ),
            ("schema = 1\n[[cell]]\nname = \"a\"\n", Some(Kind::TaskSet)),
            (
                "name = \"x\"\n[workload]\nkind = \"mac\"\n",
                Some(Kind::Experiment),
            ),
            (
                "name = \"x\"\n[[trial]]\ncells = [\"bare\"]\n",
                Some(Kind::Experiment),
            ),
            ("T: 0 Min: 1\n", None),
            ("{\"a\": [1]}", None),
            ("", None),
        ] {
            assert_eq!(of_text(text), kind, "{text}");
        }
        assert_eq!(
            of_text(crate::commands::bench::TEMPLATE),
            Some(Kind::Experiment)
        );
    }
}
