//! Two runs of one kind side by side, figure by figure, of whatever kind that can be judged. No jobs are paired and no ratio is
//! estimated: a difference is told where the two 95 % intervals do not touch.

use maud::{Markup, html};
use record::RecordError;
use record::run::Run;
use record::series::Condition;

use super::Difference;
use super::{differences, page, text};
use crate::html::{Section, region};
use crate::judge::{Ends, Figure, Measured, Reading, Statistic, Subject, Unit, shown};
use crate::kind::Kind;
use crate::studied::studied;
use crate::style::{Style, Tone};
use crate::table::{Column, Text, render_parts};
use crate::words::{clean, count, ratio};

/// What the verdicts rest on, without a full stop.
const RULE: &str = "A difference is told where the 95% intervals of the two do not touch; largest and smallest values, means and counts \
    are what was seen in each run, and nothing is claimed of them";

/// Two runs of one kind, their figures side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadingsComparison {
    /// What both are.
    pub kind: Kind,
    /// Names of the first and the second.
    pub runs: [String; 2],
    /// Figures that both have, in the second's order.
    pub pairs: Vec<ReadingPair>,
    /// Subjects that only the first has.
    pub only_first: Vec<String>,
    /// Subjects that only the second has.
    pub only_second: Vec<String>,
    /// What differs between the machines.
    pub machine: Vec<Difference>,
    /// What differs between the conditions.
    pub experiment: Vec<Difference>,
    /// What a reader must keep in mind, as sentences with a full stop.
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
    /// What may be said of the two.
    pub change: Change,
}

/// What may be said of a figure in two runs.
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

    /// How the second stands to the first: `1.230x, larger`.
    fn said(&self) -> String {
        let [a, b] = [&self.values[0], &self.values[1]].map(|measured| measured.value);
        let by = match self.unit {
            Unit::Count if b >= a => format!("+{}", count((b - a) as u64)),
            Unit::Count => format!("-{}", count((a - b) as u64)),
            _ if a > 0.0 && b > 0.0 => format!("{}x", ratio(b / a)),
            _ => "-".to_owned(),
        };
        match self.change {
            Change::Larger => format!("{by}, larger"),
            Change::Smaller => format!("{by}, smaller"),
            Change::NotTold => format!("{by}, not told apart"),
            Change::Same => "the same".to_owned(),
            Change::Seen => format!("{by}, as seen"),
        }
    }

    fn tone(&self) -> Tone {
        match self.change {
            Change::Larger => Tone::Caution,
            Change::Smaller => Tone::Good,
            Change::NotTold | Change::Same | Change::Seen => Tone::Plain,
        }
    }

    fn row(&self) -> [String; 5] {
        let [a, b] = [&self.values[0], &self.values[1]].map(|measured| match measured.ends {
            Ends::AtMost => format!("at most {}", shown(measured.value, None, self.unit)),
            Ends::AtLeast(_) => format!("at least {}", shown(measured.value, None, self.unit)),
            _ => shown(measured.value, measured.interval(), self.unit),
        });
        [
            clean(&self.label),
            self.figure.to_string(),
            a,
            b,
            self.said(),
        ]
    }
}

/// Whether a figure is among those that are set side by side: of a distribution its middle, its tail and its end.
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

/// Compares two runs of one kind, of any that holds no periodic jobs to pair.
///
/// # Errors
/// When a file of either record cannot be read.
pub fn compare_readings(first: &Run, second: &Run) -> Result<ReadingsComparison, RecordError> {
    let [a, b] = [studied(first)?.readings(), studied(second)?.readings()];
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
    let mut cautions = vec![super::NOT_INTERLEAVED.to_owned()];
    if !experiment.is_empty() {
        cautions.push("The conditions differ, and differences may come from that.".to_owned());
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

/// Why figures of the same name in these runs of one kind would mean different things, if they would. One clause.
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
        own.map_or("not told".to_owned(), |condition| condition.text.clone())
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

impl ReadingsComparison {
    fn runs(&self) -> [&String; 2] {
        [&self.runs[0], &self.runs[1]]
    }

    fn only(&self) -> [&[String]; 2] {
        [&self.only_first, &self.only_second]
    }

    fn differ(&self) -> [(&'static str, &[Difference]); 2] {
        [("machine", &self.machine), ("conditions", &self.experiment)]
    }
}

/// What to keep in mind, the table, then what differs. Ends with a line break.
pub(super) fn table(compared: &ReadingsComparison, style: Style) -> String {
    let mut out = text::opening(compared.runs(), &compared.cautions, style);
    if compared.pairs.is_empty() {
        out += &format!("no {} is in both runs\n", compared.kind.subject());
    } else {
        let rows: Vec<[String; 5]> = compared.pairs.iter().map(ReadingPair::row).collect();
        let plain = |place: usize| rows.iter().map(|row| row[place].clone()).collect();
        let said = compared.pairs.iter().zip(&rows);
        let said = said.map(|(pair, row)| Text(row[4].clone(), pair.tone()));
        let columns = [
            Column::plain(compared.kind.subject(), plain(0)),
            Column::plain("figure", plain(1)),
            Column::plain("first (95% interval)", plain(2)),
            Column::plain("second (95% interval)", plain(3)),
            Column::new("second against first", said.collect()),
        ];
        out += &render_parts(&columns, style);
        out += &format!("\n{}\n", style.wrap(&format!("note: {RULE}"), 4));
    }
    out.push('\n');
    let differ = [
        ("condition", compared.experiment.as_slice()),
        ("machine", &compared.machine),
    ];
    out + &text::closing(compared.only(), differ, style)
}

/// The comparison as a page of its own.
pub(super) fn html(compared: &ReadingsComparison) -> String {
    let section = Section {
        id: "figures",
        heading: "Figures that both have".to_owned(),
        body: figures(compared),
    };
    page::whole(
        compared.runs(),
        &compared.cautions,
        section,
        compared.differ(),
    )
}

/// The comparison as a section of the second run's page.
pub(super) fn section(compared: &ReadingsComparison) -> Section {
    let first = &compared.runs[0];
    let body = html! {
        p.quiet { (page::comparison_of(first)) "." }
        (figures(compared))
    };
    page::within(first, &compared.cautions, &body, compared.differ())
}

fn figures(compared: &ReadingsComparison) -> Markup {
    let class = |pair: &ReadingPair| match pair.change {
        Change::Larger => "slower",
        Change::Smaller => "faster",
        Change::NotTold | Change::Same | Change::Seen => "quiet",
    };
    html! {
        @if compared.pairs.is_empty() { p { "No " (compared.kind.subject()) " is in both runs." } }
        @else {
            (region("Figures of both runs", html! {
                thead { tr {
                    th scope="col" { (compared.kind.subject()) } th scope="col" { "figure" }
                    th scope="col" { "first (95% interval)" } th scope="col" { "second (95% interval)" }
                    th scope="col" { "second against first" }
                } }
                tbody { @for pair in &compared.pairs {
                    @let [label, figure, first, second, said] = pair.row();
                    tr {
                        th scope="row" { (label) } td { code { (figure) } } td { (first) } td { (second) }
                        td.verdict { span class=(class(pair)) { (said) } }
                    }
                } }
            }))
            p.quiet { (RULE) "." }
        }
        (page::only(compared.only()))
    }
}
