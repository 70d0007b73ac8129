//! `[workload]` of kind "program": a program of the user's does the jobs.

use std::fmt::Write as _;

use crate::experiment::{Pacing, Work};
use crate::parse::quoted;
use crate::reader::Table;
use crate::{Experiment, InputError, Keep};

/// Keys of `[workload]` that only a program has.
pub(crate) const KEYS: [&str; 3] = ["program", "reports", "endless"];
const WANTED: &str = "a list of texts, such as [\"./app\", \"--rate\", \"100\"]";
/// Most words of a program.
const MOST_WORDS: usize = 256;
/// Longest word of a program in bytes.
const MOST_BYTES: usize = 4096;

/// How the jobs of a program are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramJobs {
    /// Each is one execution of it, from its start to its exit.
    Executions,
    /// It reports them through the client's page.
    Reported,
    /// Not at all, and it does not end by itself: what is known is its start, its cpu time and its exit.
    Endless,
}

/// A program in place of the work that timecell brings along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramLoad {
    /// Its path, and its arguments.
    pub words: Vec<String>,
    /// What its jobs are.
    pub jobs: ProgramJobs,
}

impl ProgramLoad {
    /// A program and its arguments.
    ///
    /// # Errors
    /// What is wrong with the words, and what would be right.
    pub fn new(words: Vec<String>, jobs: ProgramJobs) -> Result<ProgramLoad, (String, String)> {
        let told = |what: String| (what, format!("give {WANTED}"));
        if words.first().is_none_or(String::is_empty) {
            return Err(told("no program is named".to_owned()));
        }
        if words.len() > MOST_WORDS {
            return Err(told(format!(
                "the program has {} words, and may have {MOST_WORDS}",
                words.len()
            )));
        }
        let bad = |word: &&String| word.len() > MOST_BYTES || word.contains('\0');
        if let Some(word) = words.iter().find(bad) {
            let start: String = word.chars().take(20).collect();
            return Err(told(format!(
                "the word that begins with {start:?} holds a NUL or more than {MOST_BYTES} bytes"
            )));
        }
        Ok(ProgramLoad { words, jobs })
    }

    /// Whether it reports its jobs.
    pub fn reports(&self) -> bool {
        self.jobs == ProgramJobs::Reported
    }

    /// What this makes of the work.
    pub fn work(&self) -> Work {
        match self.jobs {
            ProgramJobs::Executions | ProgramJobs::Reported => Work::Program,
            ProgramJobs::Endless => Work::Endless,
        }
    }

    /// Its path.
    pub fn path(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// The program, and what a job of it is: `./app 5 (each job an execution)`.
    pub fn told(&self) -> String {
        let jobs = match self.jobs {
            ProgramJobs::Reported => "jobs as it reports them",
            ProgramJobs::Executions => "each job an execution",
            ProgramJobs::Endless => "started and ended, jobs unknown",
        };
        format!("{} ({jobs})", self.line())
    }

    /// The program as a person would type it.
    pub fn line(&self) -> String {
        let plain = |word: &str| {
            let is_plain = |c: char| c.is_alphanumeric() || "-_./=+,:@%".contains(c);
            !word.is_empty() && word.chars().all(is_plain)
        };
        let words = self.words.iter().map(|word| match plain(word) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        });
        words.collect::<Vec<String>>().join(" ")
    }
}

/// The program that the table names.
pub(crate) fn program(table: &Table<'_>) -> Result<ProgramLoad, InputError> {
    let words = table.array("program", WANTED, |item| {
        (item.as_str().map(str::to_owned)).ok_or_else(|| "a word is a text".to_owned())
    })?;
    let words = words.ok_or_else(|| table.missing("program", "[\"./app\"]"))?;
    let has = |key: &str| Ok(table.boolean(key)?.unwrap_or(false));
    let jobs = match (has("reports")?, has("endless")?) {
        (false, false) => ProgramJobs::Executions,
        (true, false) => ProgramJobs::Reported,
        (false, true) => ProgramJobs::Endless,
        (true, true) => {
            let what = "`endless` is said of a program whose jobs are not known";
            return Err(table.fault("endless", what, "remove it, or `reports`"));
        }
    };
    ProgramLoad::new(words, jobs).map_err(|(what, mend)| table.fault("program", what, mend))
}

/// Writes it as [`program`] reads it.
pub(crate) fn write(out: &mut String, program: &ProgramLoad) {
    for line in lines(program) {
        let _ = writeln!(out, "{line}");
    }
}

/// The keys of the program and their values.
pub(crate) fn lines(program: &ProgramLoad) -> Vec<String> {
    let words: Vec<String> = program.words.iter().map(|word| quoted(word)).collect();
    let jobs = match program.jobs {
        ProgramJobs::Endless => "endless = true".to_owned(),
        _ => format!("reports = {}", program.reports()),
    };
    vec![format!("program = [{}]", words.join(", ")), jobs]
}

impl Experiment {
    /// Lets this program do the jobs.
    ///
    /// # Errors
    /// When the experiment's work cannot be a program's.
    pub fn set_program(&mut self, program: ProgramLoad) -> Result<(), InputError> {
        if self.tasks.is_some() {
            return Err(InputError::new(
                "--program",
                format!("`{}` runs a task set of its own", self.name),
                "use scenario overhead, concurrency, latency or scale, or an experiment file",
            ));
        }
        if program.jobs == ProgramJobs::Endless {
            self.turns = None;
        }
        if program.jobs != ProgramJobs::Executions {
            self.workload.pacing = Pacing::Periodic;
        }
        if program.jobs == ProgramJobs::Endless {
            if self.scale.is_some() || self.keep != Keep::Samples {
                return Err(InputError::new(
                    "--program",
                    "a program that neither ends nor tells its jobs is started, run and ended in each round, one cell at a time",
                    "use it without [scale] and histograms",
                ));
            }
            self.workload.deadline = None;
            self.workload.jobs = 1;
            for trial in &mut self.trials {
                trial.jobs = None;
                trial.forget_own_jobs();
            }
        }
        self.workload.work = program.work();
        self.workload.program = Some(program);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(workload: &str) -> Result<Experiment, InputError> {
        let text = format!(
            "schema = 1\nname = \"x\"\n[workload]\nkind = \"program\"\n{workload}\n[[trial]]\nname = \"a\"\ncells = [\"bare\"]\n"
        );
        Experiment::parse("x", &text)
    }

    #[test]
    fn a_program_is_read_and_written() {
        let read = parse("program = [\"./app\", \"a b\", \"c\\\"d\"]\nperiod = \"10ms\"").unwrap();
        assert_eq!(read.workload.work, Work::Program);
        let program = read.workload.program.clone().unwrap();
        assert_eq!(program.words, ["./app", "a b", "c\"d"]);
        assert_eq!(program.line(), "./app 'a b' 'c\"d'");
        assert!(!program.reports());
        let again = Experiment::parse("again", &read.to_toml()).unwrap();
        assert_eq!(again, read);
    }

    #[test]
    fn one_that_is_endless_runs_for_a_period_once_a_round() {
        let read = parse("program = [\"./app\"]\nendless = true\nperiod = \"300ms\"").unwrap();
        assert_eq!((read.workload.work, read.workload.jobs), (Work::Endless, 1));
        assert_eq!(read.workload.deadline_ns(), None);
        let again = Experiment::parse("again", &read.to_toml()).unwrap();
        assert_eq!(again, read);
        for (more, told) in [
            ("reports = true", "whose jobs are not known"),
            (
                "jobs = 5",
                "`jobs` says nothing of a program that is endless",
            ),
            ("deadline = \"5ms\"", "`deadline` says nothing"),
            ("pacing = \"relative\"", "`pacing` says nothing"),
        ] {
            let error = parse(&format!("program = [\"a\"]\nendless = true\n{more}"));
            let error = error.unwrap_err().to_string();
            assert!(error.contains(told), "{more}: {error}");
        }
    }

    #[test]
    fn what_is_no_program_is_told_with_the_mend() {
        for (workload, told) in [
            ("", "`program`"),
            ("program = []", "no program is named"),
            ("program = [\"\"]", "no program is named"),
            ("program = [\"a\", \"b\\u0000\"]", "holds a NUL"),
            ("program = [1]", "a word is a text"),
            ("program = [\"a\"]\nsteps = 3", "steps"),
            (
                "program = [\"a\"]\nreports = true\npacing = \"relative\"",
                "periodic",
            ),
        ] {
            let error = parse(workload).unwrap_err().to_string();
            assert!(error.contains(told), "{workload}: {error}");
        }
        let text = "schema = 1\nname = \"x\"\n[workload]\nkind = \"mac\"\nprogram = [\"a\"]\n[[trial]]\nname = \"a\"\ncells = [\"bare\"]\n";
        let error = Experiment::parse("x", text).unwrap_err().to_string();
        assert!(error.contains("says nothing of kind \"mac\""), "{error}");
    }

    #[test]
    fn one_that_is_endless_takes_no_turns() {
        let text = "schema = 1\nname = \"x\"\n[workload]\nkind = \"mac\"\n[turns]\n[[trial]]\nname = \"a\"\ncells = [\"bare\"]\n";
        for (jobs, turns) in [
            (ProgramJobs::Executions, true),
            (ProgramJobs::Reported, true),
            (ProgramJobs::Endless, false),
        ] {
            let mut experiment = Experiment::parse("x", text).unwrap();
            let program = ProgramLoad::new(vec!["/bin/true".to_owned()], jobs).unwrap();
            experiment.set_program(program).unwrap();
            assert_eq!(experiment.turns.is_some(), turns);
            let again = Experiment::parse("again", &experiment.to_toml()).unwrap();
            assert_eq!(again, experiment);
        }
    }
}
