//! Two runs of one kind side by side, figure by figure, for every kind that can be judged. No jobs are paired and no ratio is estimated: a
//! difference is reported where the two 95 % intervals do not touch.

use record::RecordError;
use record::run::Run;
use record::series::Condition;

use super::Difference;
use super::differences;
use crate::judge::{Ends, Figure, Measured, Reading, Readings, Statistic, Subject, Unit};
use crate::kind::Kind;
use crate::studied::studied;

/// Two runs of one kind, their figures side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadingsComparison {
    /// The kind of both.
    pub kind: Kind,
    /// Names of the first and the second.
    pub runs: [String; 2],
    /// Figures in both, in the second's order.
    pub pairs: Vec<ReadingPair>,
    /// Subjects that only the first has.
    pub only_first: Vec<String>,
    /// Subjects that only the second has.
    pub only_second: Vec<String>,
    /// Differences between the machines.
    pub machine: Vec<Difference>,
    /// Differences between the conditions.
    pub experiment: Vec<Difference>,
    /// Cautions for a reader, as sentences with a full stop.
    pub cautions: Vec<String>,
}

/// One figure of one subject in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadingPair {
    /// The subject.
    pub label: String,
    /// The figure.
    pub figure: Figure,
    /// Unit of both values.
    pub unit: Unit,
    /// In the first run and in the second.
    pub values: [Measured; 2],
    /// The verdict on the two.
    pub change: Change,
}

/// The verdict on a figure in two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The second's interval lies above the first's.
    Larger,
    /// The second's interval lies below the first's.
    Smaller,
    /// The intervals touch.
    NotTold,
    /// The values are the same.
    Same,
    /// The values were seen, and differ.
    Seen,
}

impl ReadingPair {
    fn new(label: &str, first: &Reading, second: &Reading) -> Option<ReadingPair> {
        let (Ok(a), Ok(b)) = (&first.found, &second.found) else {
            return None;
        };
        let change = match (a.interval(), b.interval()) {
            (Some((_, high)), Some((low, _))) if low > high => Change::Larger,
            (Some((low, _)), Some((_, high))) if high < low => Change::Smaller,
            (Some(_), Some(_)) => Change::NotTold,
            _ if a == b && a.ends == Ends::Exact => Change::Same,
            _ => Change::Seen,
        };
        Some(ReadingPair {
            label: label.to_owned(),
            figure: first.figure,
            unit: first.unit,
            values: [a.clone(), b.clone()],
            change,
        })
    }
}

/// Whether a figure is among those that are compared: of a distribution its middle, its tail and its end.
fn is_compared(reading: &Reading, subject: &Subject) -> bool {
    let statistic = match reading.figure {
        Figure::Job(_, statistic)
        | Figure::Skew(statistic)
        | Figure::Memory(statistic)
        | Figure::Time(statistic) => statistic,
        Figure::CreationMedian | Figure::LongestGap | Figure::Count(_) => return true,
    };
    match statistic {
        Statistic::Median | Statistic::P99 | Statistic::Max => true,
        Statistic::Mean => {
            let medians = subject.readings.iter().filter(|other| {
                other.figure.metric() == reading.figure.metric() && other.found.is_ok()
            });
            !medians
                .into_iter()
                .any(|other| other.figure.to_string().ends_with(".median"))
        }
        _ => false,
    }
}

/// Compares a run with these figures with another of its kind, which may be any without periodic jobs to pair.
///
/// # Errors
/// When a file of either record cannot be read.
pub(crate) fn compare_readings(
    first: &Run,
    second: &Run,
    b: &Readings,
) -> Result<ReadingsComparison, RecordError> {
    let a = studied(first)?.readings();
    let there = |subjects: &[Subject]| -> Vec<Subject> {
        let there = subjects.iter().filter(|subject| subject.absent.is_none());
        there.cloned().collect()
    };
    let (kind, ours, theirs) = (b.kind, there(&b.subjects), there(&a.subjects));
    let mut pairs = Vec::new();
    for subject in &ours {
        let Some(other) = theirs.iter().find(|other| other.own == subject.own) else {
            continue;
        };
        for reading in subject
            .readings
            .iter()
            .filter(|one| is_compared(one, subject))
        {
            let counterpart = other.reading(reading.figure, reading.unit);
            let pair = |one| ReadingPair::new(&subject.label, one, reading);
            pairs.extend(counterpart.and_then(pair));
        }
    }
    let only = |here: &[Subject], there: &[Subject]| -> Vec<String> {
        let absent = here
            .iter()
            .filter(|one| there.iter().all(|other| other.own != one.own));
        absent.map(|subject| subject.label.clone()).collect()
    };
    let experiment = conditions(kind, first, second)?;
    let mut cautions = super::cautions(first, second)?;
    if !experiment.is_empty() {
        cautions.push("The conditions differ, which may explain the differences.".to_owned());
    }
    Ok(ReadingsComparison {
        kind,
        runs: [first.name(), second.name()],
        pairs,
        only_first: only(&theirs, &ours),
        only_second: only(&ours, &theirs),
        machine: differences::machine(&first.provenance()?, &second.provenance()?),
        experiment,
        cautions,
    })
}

/// Why figures of the same name in these runs of one kind mean different things; `None`: they do not. One clause.
///
/// # Errors
/// When a file of either record cannot be read.
pub fn unlike_runs(first: &Run, second: &Run) -> Result<Option<String>, RecordError> {
    let [a, b] = [Kind::of(first)?, Kind::of(second)?];
    if a != b {
        return Ok(Some(format!(
            "it is {} there and {} here",
            a.name(),
            b.name()
        )));
    }
    Ok(match a {
        Kind::Jobs | Kind::Scale => super::unlike(&first.experiment()?, &second.experiment()?),
        Kind::Series => {
            let [a, b] = [
                first.read::<record::series::SeriesRecord>()?.scenario,
                second.read::<record::series::SeriesRecord>()?.scenario,
            ];
            (a != b).then(|| format!("the scenario is {a} there and {b} here"))
        }
        Kind::Supply | Kind::Isolation | Kind::Files => None,
    })
}

fn conditions(kind: Kind, first: &Run, second: &Run) -> Result<Vec<Difference>, RecordError> {
    let of = |run: &Run| -> Result<Vec<Condition>, RecordError> {
        Ok(match kind {
            Kind::Series => run.read::<record::series::SeriesRecord>()?.conditions,
            Kind::Supply => run.read::<record::supply::SupplyRecord>()?.conditions,
            Kind::Isolation => run.read::<record::isolation::IsolationRecord>()?.conditions,
            Kind::Jobs | Kind::Scale | Kind::Files => Vec::new(),
        })
    };
    if kind == Kind::Scale {
        return Ok(differences::experiment(
            &first.experiment()?,
            &second.experiment()?,
        ));
    }
    let [a, b] = [of(first)?, of(second)?];
    let text = |all: &[Condition], name: &str| {
        let own = all.iter().find(|condition| condition.name == name);
        own.map_or("not recorded".to_owned(), |condition| {
            condition.text.clone()
        })
    };
    let mut names: Vec<&str> = Vec::new();
    for condition in a.iter().chain(&b) {
        if !names.contains(&condition.name.as_str()) {
            names.push(&condition.name);
        }
    }
    Ok(names
        .into_iter()
        .filter_map(|name| Difference::between(name, text(&a, name), text(&b, name)))
        .collect())
}
