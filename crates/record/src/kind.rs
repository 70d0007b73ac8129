//! The kinds of runs, and the file that identifies each.

use std::path::Path;

/// The kind of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Trials of an experiment: cells that run jobs.
    Jobs,
    /// The same with growing numbers of cells: an experiment with a table `scale`.
    Scale,
    /// Single measurements, repeated.
    Series,
    /// Supply of enforcers to cells that always want the cpu.
    Supply,
    /// Contests of two cells, and the budgets that they receive.
    Isolation,
}

impl Kind {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Kind; 5] = [
        Kind::Series,
        Kind::Supply,
        Kind::Isolation,
        Kind::Jobs,
        Kind::Scale,
    ];

    /// The file in the run's directory that only runs of this kind have; those of [`Kind::Jobs`] and [`Kind::Scale`] have an
    /// experiment, which distinguishes the two.
    pub const fn file(self) -> &'static str {
        match self {
            Kind::Jobs | Kind::Scale => "experiment.toml",
            Kind::Series => "series.json",
            Kind::Supply => "supply.json",
            Kind::Isolation => "isolation.json",
        }
    }

    /// The content of a run of this kind without trials with jobs, as a clause; `None`: it has them.
    pub(crate) const fn instead_of_jobs(self) -> Option<&'static str> {
        match self {
            Kind::Jobs | Kind::Scale => None,
            Kind::Series => Some("single measurements (series.json) and no jobs;"),
            Kind::Supply => Some("the gaps of spinning threads (supply.json) and no jobs;"),
            Kind::Isolation => Some(
                "contests of two cells (isolation.json), which are not trials of an experiment;",
            ),
        }
    }

    /// Whether it keeps raw files of its trials.
    pub(crate) const fn keeps_trials(self) -> bool {
        !matches!(self, Kind::Series)
    }

    /// The kind of the run in `dir` by its files alone, which cannot distinguish [`Kind::Scale`] from [`Kind::Jobs`]; `None`: not
    /// a run.
    pub(crate) fn by_files(dir: &Path) -> Option<Kind> {
        let mut all = Kind::ALL.into_iter();
        all.find(|kind| dir.join(kind.file()).is_file())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::run::Run;

    #[test]
    fn a_run_is_told_by_its_file_and_what_it_lacks_is_said() {
        let experiment = "schema = 1\nname = \"x\"\n[workload]\nkind = \"timer\"\njobs = 2\n[[trial]]\nname = \"bare\"\ncells = [\"bare\"]\n";
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Scale) {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join("run.json"), "{}").unwrap();
            let error = Run::open(dir.path()).unwrap_err().to_string();
            assert!(error.contains("it contains no experiment.toml"), "{error}");
            fs::write(dir.path().join(kind.file()), experiment).unwrap();
            let run = Run::open(dir.path()).unwrap();
            assert_eq!(run.kind().unwrap(), kind);
            assert_eq!(run.has_no_experiment(), kind != Kind::Jobs);
            match run.experiment() {
                Ok(experiment) => assert_eq!((kind, experiment.name.as_str()), (Kind::Jobs, "x")),
                Err(error) => assert!(error.to_string().contains(kind.file()), "{error}"),
            }
        }
        let scale = "schema = 1\nname = \"x\"\n[workload]\nkind = \"mac\"\nsteps = 1000\njobs = 20\nperiod = \"1ms\"\npacing = \"relative\"\n\
            [scale]\nengines = [\"embedded\"]\ncounts = [1, 2]\n";
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("run.json"), "{}").unwrap();
        fs::write(dir.path().join("experiment.toml"), scale).unwrap();
        let run = Run::open(dir.path()).unwrap();
        assert_eq!(run.kind().unwrap(), Kind::Scale);
        assert!(!run.has_no_experiment());
    }
}
