//! The data file of published figures.

use serde::{Deserialize, Serialize};

/// The data file, as it is shipped.
const DATA: &str = include_str!("../../data/published.toml");

/// All published figures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// 1.
    pub schema: u32,
    /// Where they come from.
    #[serde(rename = "document")]
    pub documents: Vec<Document>,
    /// The figures, by table or passage.
    #[serde(rename = "group")]
    pub groups: Vec<Group>,
}

/// A document that prints figures.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Its id in groups.
    pub id: String,
    /// Author or authors.
    pub author: String,
    /// Its title.
    pub title: String,
    /// Its type and where it appeared.
    pub source: String,
    /// Year of publication; `None`: undated.
    pub year: Option<u32>,
    /// Author and year in a few words.
    pub short: String,
}

model::choice! {
    /// A published figure's metric.
    #[derive(Deserialize, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum About: title {
        /// How late a periodic thread began.
        WakeupLatency = "wake-up latency",
        /// How long a job's work took.
        ExecutionTime = "execution time",
        /// How far apart cells started that should have started together.
        StartSkew = "start skew",
        /// Creating a cell, running a program that ends at once, removing the cell.
        Startup = "start-up",
        /// From a failure until the work goes on.
        Recovery = "recovery",
        /// Memory of the host.
        Memory = "memory",
        /// How long a computation took.
        Computation = "computation",
        /// Coefficient of variation of the mean execution times of cells that ran together.
        BetweenCells = "coefficient of variation between cells",
        /// A statistic of the execution time, of the median of the cells that ran together.
        MedianCell = "execution time of the median cell",
        /// How many times as long a start-up takes in a cell of a larger size.
        SizeEffect = "effect of size on start-up",
    }
}

model::choice! {
    /// Which number of a distribution it is.
    #[derive(Deserialize, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Kind: title {
        /// Smallest.
        Min = "min",
        /// Median.
        Median = "median",
        /// Arithmetic mean.
        Mean = "mean",
        /// Standard deviation.
        Sd = "sd",
        /// 95th percentile.
        P95 = "p95",
        /// 99th percentile.
        P99 = "p99",
        /// Largest.
        Max = "max",
        /// A single number.
        Value = "value",
    }
}

model::choice! {
    /// Unit in which a figure is printed.
    #[derive(Deserialize)]
    pub enum PrintedIn {
        /// Microseconds.
        #[serde(rename = "us")]
        Us = "us",
        /// Milliseconds.
        #[serde(rename = "ms")]
        Ms = "ms",
        /// Seconds.
        #[serde(rename = "s")]
        S = "s",
        /// 10^6 bytes.
        #[serde(rename = "MB")]
        Mb = "MB",
        /// No unit.
        #[serde(rename = "ratio")]
        Ratio = "",
    }
}

impl PrintedIn {
    /// Nanoseconds, or bytes, in one; a ratio is itself.
    pub const fn base(self) -> f64 {
        match self {
            PrintedIn::Us => 1e3,
            PrintedIn::Ms | PrintedIn::Mb => 1e6,
            PrintedIn::S => 1e9,
            PrintedIn::Ratio => 1.0,
        }
    }
}

/// Figures of one table or passage, measured under the same conditions.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// [`Document::id`].
    pub document: String,
    /// Table, figure or section.
    pub place: String,
    /// Their metric.
    pub metric: About,
    /// The unit of every value.
    pub unit: PrintedIn,
    /// The hardware, as the document names it.
    pub board: String,
    /// The kernel, as the document names it.
    pub kernel: String,
    /// How it was measured.
    pub conditions: String,
    /// The load beside the measured work.
    pub load: Option<String>,
    /// Cells that ran together; 1 where not said.
    pub cells: Option<u32>,
    /// The size of the cells; of a sweep only those have a counterpart.
    pub size: Option<model::Size>,
    /// The figures.
    pub values: Vec<Figure>,
}

/// One published number.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The subject, as the document calls it.
    pub subject: String,
    /// The engine of timecell that it corresponds to, if any.
    pub engine: Option<model::EngineKind>,
    /// Its name in a run of single measurements; the engine's where not said.
    pub series: Option<String>,
    /// Which figure of such a run it is; without an engine and a name of a series, that of every subject.
    pub part: Option<String>,
    /// Which figure it is of a run of another scenario.
    pub or_part: Option<String>,
    /// Which number.
    pub kind: Kind,
    /// The number as printed; 0 where there are [words](Figure::says) instead.
    #[serde(default)]
    pub value: f64,
    /// The words of the document where it prints no number.
    pub says: Option<String>,
    /// Whether the document gives it as approximate.
    #[serde(default)]
    pub about: bool,
    /// Period of the measuring thread, us.
    pub period_us: Option<u64>,
    /// Threads of the computation.
    pub threads: Option<u32>,
    /// Whether the kernel of the guest is a PREEMPT_RT one; of virtual machines.
    pub preempt_rt: Option<bool>,
    /// The engines of all cells that ran together, sorted by name; empty where not said.
    #[serde(default)]
    pub mix: Vec<model::EngineKind>,
    /// Cells that ran together, where it differs within the group.
    pub cells: Option<u32>,
    /// The load, where it differs within the group.
    pub load: Option<String>,
}

impl Group {
    /// Cells that ran together for this figure.
    pub fn cells_of(&self, figure: &Figure) -> u32 {
        match figure.mix.len() {
            0 => figure.cells.or(self.cells).unwrap_or(1),
            cells => cells as u32,
        }
    }

    /// The load during this figure.
    pub fn load_of<'a>(&'a self, figure: &'a Figure) -> Option<&'a str> {
        figure.load.as_deref().or(self.load.as_deref())
    }

    /// The number with its unit, as printed, or the words.
    pub fn printed(&self, figure: &Figure) -> String {
        if let Some(says) = &figure.says {
            return says.clone();
        }
        let about = if figure.about { "about " } else { "" };
        let printed = format!("{about}{} {}", figure.value, self.unit.name());
        printed.trim_end().to_owned()
    }
}

impl Published {
    /// The document of a group.
    pub fn document(&self, group: &Group) -> Option<&Document> {
        self.documents
            .iter()
            .find(|document| document.id == group.document)
    }
}

/// The published figures that this timecell ships.
pub fn published() -> Published {
    // A test reads the file that is compiled in, so it cannot fail here.
    toml::from_str(DATA).expect("the data file of published figures is tested")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_whole() {
        let all = published();
        assert_eq!(all.schema, 1);
        for document in &all.documents {
            let groups = all
                .groups
                .iter()
                .filter(|group| group.document == document.id);
            assert!(groups.count() > 0, "{} has no figure", document.id);
        }
        for group in &all.groups {
            assert!(all.document(group).is_some(), "{}", group.document);
            for text in [&group.place, &group.board, &group.kernel, &group.conditions] {
                assert!(!text.is_empty(), "{}", group.place);
            }
            for figure in &group.values {
                let is_number = figure.value > 0.0 && figure.value.is_finite();
                assert!(is_number != figure.says.is_some(), "{}", figure.subject);
                let memory = group.metric == About::Memory;
                assert_eq!(memory, group.unit == PrintedIn::Mb, "{}", group.place);
                let ratio = [About::BetweenCells, About::SizeEffect].contains(&group.metric);
                assert_eq!(ratio, group.unit == PrintedIn::Ratio, "{}", group.place);
            }
            let key = |figure: &Figure| {
                (
                    figure.subject.clone(),
                    figure.kind.title(),
                    figure.period_us,
                )
            };
            for (at, figure) in group.values.iter().enumerate() {
                let again = group.values[at + 1..]
                    .iter()
                    .any(|other| key(other) == key(figure));
                assert!(!again, "{}: {} twice", group.place, figure.subject);
            }
        }
    }

    /// Within a table, order statistics of one subject stand in order: a slip of the pen would break it.
    #[test]
    fn minimum_median_p99_and_maximum_are_in_order() {
        for group in published().groups {
            let of = |figure: &Figure, kind| {
                let same = |other: &&Figure| {
                    other.subject == figure.subject
                        && other.period_us == figure.period_us
                        && other.kind == kind
                };
                group.values.iter().find(same).map(|found| found.value)
            };
            for figure in &group.values {
                let order = [Kind::Min, Kind::Median, Kind::P95, Kind::P99, Kind::Max];
                let values: Vec<f64> = order
                    .into_iter()
                    .filter_map(|kind| of(figure, kind))
                    .collect();
                assert!(values.is_sorted(), "{}: {}", group.place, figure.subject);
                if let (Some(mean), Some(max)) = (of(figure, Kind::Mean), of(figure, Kind::Max)) {
                    assert!(mean <= max, "{}: {}", group.place, figure.subject);
                }
            }
        }
    }
}
