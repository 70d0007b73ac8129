//! `[workload]` of kind "program": the user's program does the jobs.

use crate::Duration;

const WANTED: &str = "a list of texts, such as [\"./app\", \"--rate\", \"100\"]";
/// Maximum number of words of a program.
const MOST_WORDS: usize = 256;
/// Maximum length of a word of a program in bytes.
const MOST_BYTES: usize = 4096;

/// How timecell learns of a program's jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramJobs {
    /// Each execution, from its start to its exit, is a job.
    Executions,
    /// It reports them through the client's page.
    Reported,
    /// Not at all, and it does not end on its own: only its start, its cpu time and its exit are known.
    Endless,
}

/// A task of a program that reports its jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedTask {
    /// The name under which the program opens it.
    pub name: String,
    /// Time between its releases.
    pub period: Duration,
}

/// A program that replaces timecell's own work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramLoad {
    /// Its path, and its arguments.
    pub words: Vec<String>,
    /// The kind of its jobs.
    pub jobs: ProgramJobs,
    /// Its tasks if it reports their jobs: the first is the one that is compared, the others are measured beside it. Empty: the one
    /// that it opens first.
    pub tasks: Vec<ReportedTask>,
}

impl ProgramLoad {
    /// A program and its arguments.
    ///
    /// # Errors
    /// A fault in the words, and the remedy.
    pub fn new(words: Vec<String>, jobs: ProgramJobs) -> Result<ProgramLoad, (String, String)> {
        let told = |what: String| (what, format!("write {WANTED}"));
        if words.first().is_none_or(String::is_empty) {
            return Err(told("no program is named".to_owned()));
        }
        if words.len() > MOST_WORDS {
            return Err(told(format!(
                "the program has {} words; at most {MOST_WORDS} are allowed",
                words.len()
            )));
        }
        let bad = |word: &&String| word.len() > MOST_BYTES || word.contains('\0');
        if let Some(word) = words.iter().find(bad) {
            let start: String = word.chars().take(20).collect();
            return Err(told(format!(
                "the word that begins with {start:?} contains a NUL or has more than {MOST_BYTES} bytes"
            )));
        }
        Ok(ProgramLoad {
            words,
            jobs,
            tasks: Vec::new(),
        })
    }

    /// Whether it reports its jobs.
    pub fn reports(&self) -> bool {
        self.jobs == ProgramJobs::Reported
    }

    /// Its path.
    pub fn path(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// The program, and its kind of job: `./app 5 (each job an execution)`.
    pub fn told(&self) -> String {
        let jobs = match (self.jobs, self.tasks.first()) {
            (ProgramJobs::Reported, None) => "jobs as it reports them",
            (ProgramJobs::Reported, Some(task)) => &format!("jobs of its task {}", task.name),
            (ProgramJobs::Executions, _) => "each job an execution",
            (ProgramJobs::Endless, _) => "started and ended, jobs unknown",
        };
        format!("{} ({jobs})", self.line())
    }

    /// The command line as a user would type it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Experiment, InputErrors, Work};

    fn parse(workload: &str) -> Result<Experiment, InputErrors> {
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
    fn the_tasks_that_it_reports_are_read_and_written() {
        let tasks = "reported = [{ name = \"control\", period = \"1ms\" }, { name = \"a \\\"b\\\"\", period = \"50ms\" }]";
        let read = parse(&format!("program = [\"a\"]\nreports = true\n{tasks}")).unwrap();
        let of = |read: &Experiment| read.workload.program.clone().unwrap();
        let names: Vec<String> = of(&read).tasks.into_iter().map(|task| task.name).collect();
        assert_eq!(names, ["control", "a \"b\""]);
        assert_eq!(of(&read).told(), "a (jobs of its task control)");
        let again = Experiment::parse("again", &read.to_toml()).unwrap();
        assert_eq!(again, read);
        for (more, told) in [
            (tasks, "`reported` needs `reports = true`"),
            ("reports = true\nreported = [{ name = \"x\" }]", "period"),
            (
                "reports = true\nreported = [{ name = \"x\", period = \"1ms\" }, { name = \"x\", period = \"2ms\" }]",
                "names `x` twice",
            ),
        ] {
            let error = parse(&format!("program = [\"a\"]\n{more}")).unwrap_err();
            assert!(error.to_string().contains(told), "{more}: {error}");
        }
    }

    #[test]
    fn one_that_is_endless_runs_for_a_period_once_a_round() {
        let read = parse("program = [\"./app\"]\nendless = true\nperiod = \"300ms\"").unwrap();
        assert_eq!((read.workload.work, read.workload.jobs), (Work::Endless, 1));
        assert_eq!(read.workload.deadline_ns(), None);
        let again = Experiment::parse("again", &read.to_toml()).unwrap();
        assert_eq!(again, read);
        for (more, told) in [
            ("reports = true", "cannot be `endless`"),
            ("jobs = 5", "`jobs` has no meaning for an endless program"),
            ("deadline = \"5ms\"", "`deadline` has no meaning"),
            ("pacing = \"relative\"", "`pacing` has no meaning"),
        ] {
            let error = parse(&format!("program = [\"a\"]\nendless = true\n{more}"));
            let error = error.unwrap_err().to_string();
            assert!(error.contains(told), "{more}: {error}");
        }
    }

    #[test]
    fn what_is_no_program_is_told_with_the_fix() {
        for (workload, told) in [
            ("", "`program`"),
            ("program = []", "`program` is empty"),
            ("program = [\"\"]", "no program is named"),
            ("program = [\"a\", \"b\\u0000\"]", "contains a NUL"),
            ("program = [1]", "it must be a text"),
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
        assert!(error.contains("has no meaning for kind \"mac\""), "{error}");
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
