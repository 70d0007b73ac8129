//! The kinds of runs, and the requests for each besides measuring and drawing it. This list refuses requests that a kind lacks, in one
//! sentence that names its own.

use record::RecordError;
use record::run::Run;

use crate::judge::{Figure, Unit};

/// The kind of a run; or files of other tools, which are judged like a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Trials of periodic jobs.
    Jobs,
    /// Growing numbers of cells.
    Scale,
    /// Single measurements.
    Series,
    /// Supply of budgets.
    Supply,
    /// Contests of two cells.
    Isolation,
    /// Files that other tools wrote.
    Files,
}

model::choice! {
    /// Requests about a run.
    pub enum Ask: words {
        /// `--fail-if`
        FailIf = "--fail-if",
        /// `--baseline`
        Baseline = "--baseline",
        /// `report RUN RUN`
        Compare = "report RUN RUN",
        /// `report --against published`
        Published = "report --against published",
        /// `bench --resume`
        Resume = "bench --resume",
        /// `export --csv`
        Csv = "export --csv",
        /// `export --statistics`
        Statistics = "export --statistics",
        /// `export --parquet`
        Parquet = "export --parquet",
        /// `export --hdr`
        Hdr = "export --hdr",
        /// `export --cyclictest-json` and `--cyclictest-hist`
        Cyclictest = "export --cyclictest-json",
    }
}

impl Ask {
    /// An error's words on a kind that cannot do it.
    const fn refused(self) -> &'static str {
        match self {
            Ask::FailIf => "is not judged",
            Ask::Baseline | Ask::Compare => "is not compared with another run",
            Ask::Published => "has no published figures to be shown beside",
            Ask::Resume => "cannot be resumed",
            Ask::Csv | Ask::Statistics | Ask::Parquet => "has no table",
            Ask::Hdr => "keeps no histograms",
            Ask::Cyclictest => "has no wake-up latencies for cyclictest's forms",
        }
    }
}

/// One kind.
struct Info {
    kind: Kind,
    /// With its article.
    name: &'static str,
    /// The noun for subjects with figures.
    subject: &'static str,
    /// Figures that thresholds may name: metrics with every statistic, and whole names.
    figures: &'static [&'static str],
    asks: &'static [Ask],
}

const KINDS: [Info; 6] = [
    Info {
        kind: Kind::Jobs,
        name: "a run of periodic jobs",
        subject: "cell",
        figures: &[
            "skipped",
            "latency",
            "execution",
            "response",
            "start",
            "exit",
            "skew",
            "creation.median",
            "late",
            "lost",
            "faults",
        ],
        asks: &Ask::ALL,
    },
    Info {
        kind: Kind::Scale,
        name: "a scale study",
        subject: "number of cells",
        figures: &[
            "skipped",
            "execution.mean",
            "response.mean",
            "skew",
            "lost",
            "failed",
        ],
        asks: &[
            Ask::FailIf,
            Ask::Baseline,
            Ask::Compare,
            Ask::Published,
            Ask::Resume,
            Ask::Csv,
            Ask::Statistics,
            Ask::Parquet,
            Ask::Cyclictest,
        ],
    },
    Info {
        kind: Kind::Series,
        name: "a run of single measurements",
        subject: "measurement",
        figures: &["time", "memory", "creation.median"],
        asks: &[
            Ask::FailIf,
            Ask::Baseline,
            Ask::Compare,
            Ask::Published,
            Ask::Resume,
            Ask::Csv,
            Ask::Statistics,
            Ask::Parquet,
        ],
    },
    Info {
        kind: Kind::Supply,
        name: "a study of supply",
        subject: "budget or set",
        figures: &["missed", "late", "gap.max"],
        asks: &[
            Ask::FailIf,
            Ask::Baseline,
            Ask::Compare,
            Ask::Resume,
            Ask::Csv,
            Ask::Statistics,
            Ask::Parquet,
        ],
    },
    Info {
        kind: Kind::Isolation,
        name: "a study of isolation",
        subject: "enforcer",
        figures: &["missed", "late"],
        asks: &[
            Ask::FailIf,
            Ask::Baseline,
            Ask::Compare,
            Ask::Resume,
            Ask::Csv,
            Ask::Statistics,
            Ask::Parquet,
        ],
    },
    Info {
        kind: Kind::Files,
        name: "a file of another tool",
        subject: "series",
        figures: &["latency", "execution", "response"],
        asks: &[Ask::FailIf],
    },
];

impl Kind {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Kind> {
        KINDS.iter().map(|info| info.kind)
    }

    /// The kind of a run.
    ///
    /// # Errors
    /// When its experiment cannot be read.
    pub fn of(run: &Run) -> Result<Kind, RecordError> {
        Ok(match run.kind()? {
            record::Kind::Jobs => Kind::Jobs,
            record::Kind::Scale => Kind::Scale,
            record::Kind::Series => Kind::Series,
            record::Kind::Supply => Kind::Supply,
            record::Kind::Isolation => Kind::Isolation,
        })
    }

    fn info(self) -> &'static Info {
        let own = KINDS.iter().find(|info| info.kind == self);
        own.expect("every kind is in the list")
    }

    /// Its name, with its article.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The noun for subjects with figures.
    pub fn subject(self) -> &'static str {
        self.info().subject
    }

    /// Whether it can do that.
    pub fn can(self, ask: Ask) -> bool {
        self.info().asks.contains(&ask)
    }

    /// Checks that it can do that; the error is the fault and the remedy.
    ///
    /// # Errors
    /// Both, without a full stop.
    pub fn must(self, ask: Ask) -> Result<(), [String; 2]> {
        if self.can(ask) {
            return Ok(());
        }
        let asks: Vec<&str> = self.info().asks.iter().map(|ask| ask.words()).collect();
        Err([
            format!("{} {}", self.name(), ask.refused()),
            format!("what can be asked of it: {}", and(&asks)),
        ])
    }

    /// Whether a run of this kind may have this figure.
    pub fn has(self, figure: Figure) -> bool {
        let (name, metric) = (figure.to_string(), figure.metric());
        let mut own = self.info().figures.iter();
        own.any(|own| *own == name || *own == metric)
    }

    /// Whether runs of this kind may have it in this unit: only jobs are counted as shares of activations and compared as ratios.
    #[must_use]
    pub fn has_in(self, figure: Figure, unit: Unit) -> bool {
        let of_jobs = matches!(unit, Unit::Share | Unit::Ratio);
        self.has(figure) && (self == Kind::Jobs || !of_jobs)
    }

    /// An error that there is no such figure, and which there are.
    pub fn lacks(self, figure: Figure, unit: Unit) -> String {
        let share = match unit {
            Unit::Share => " as a share of activations",
            Unit::Ratio => " as a ratio to a baseline",
            _ => "",
        };
        let elsewhere: Vec<&str> = (KINDS.iter())
            .filter(|info| info.kind != self && info.kind != Kind::Files && share.is_empty())
            .filter(|info| info.kind.has(figure) && !self.has(figure))
            .map(|info| info.name)
            .collect();
        let elsewhere = match elsewhere.as_slice() {
            [] | [_, _, _, ..] => String::new(),
            all => format!(" (which {} has)", all.join(" or ")),
        };
        let (name, own) = (self.name(), and(self.info().figures));
        match self.has(figure) && share.is_empty() {
            true if matches!(figure, Figure::Skew(_)) => {
                "no measured trial has several cells".to_owned()
            }
            true => format!("there is no `{figure}` in it; {name} may have {own}"),
            false => format!("{name} has no `{figure}`{share}{elsewhere}; it has {own}"),
        }
    }
}

/// `a, b and c`.
fn and(all: &[&str]) -> String {
    match all {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Count;

    #[test]
    fn what_a_kind_cannot_do_is_refused_with_what_it_can() {
        let [what, fix] = Kind::Supply.must(Ask::Hdr).unwrap_err();
        assert_eq!(what, "a study of supply keeps no histograms");
        assert_eq!(
            fix,
            "what can be asked of it: --fail-if, --baseline, report RUN RUN, bench --resume, export --csv, export --statistics and export --parquet"
        );
        // Every kind that timecell measures.
        for kind in Kind::all().filter(|kind| *kind != Kind::Files) {
            assert_eq!(kind.must(Ask::Resume), Ok(()));
        }
        for kind in Kind::all() {
            assert_eq!(kind.info().kind, kind);
            assert!(kind.can(Ask::FailIf), "{}", kind.name());
        }
    }

    #[test]
    fn every_name_of_a_kind_is_that_of_a_figure_and_every_figure_is_of_a_kind() {
        let all = Figure::all();
        for info in &KINDS {
            for name in info.figures {
                let known =
                    |figure: &Figure| figure.to_string() == *name || figure.metric() == *name;
                assert!(all.iter().any(known), "{name}");
            }
        }
        for figure in all {
            assert!(Kind::all().any(|kind| kind.has(figure)), "{figure}");
        }
    }

    #[test]
    fn a_figure_that_a_kind_has_not_is_told_with_those_that_it_has() {
        let memory: crate::judge::Threshold = "memory.max > 1MB".parse().unwrap();
        assert_eq!(
            Kind::Isolation.lacks(memory.figure, Unit::Bytes),
            "a study of isolation has no `memory.max` (which a run of single measurements has); it has missed and late"
        );
        assert_eq!(
            Kind::Isolation.lacks(Figure::Count(Count::Late), Unit::Share),
            "a study of isolation has no `late` as a share of activations; it has missed and late"
        );
    }
}
