//! A run's numbers beside published ones: matched by metric, engine, mixture of engines or number of cells, period and load, and nothing
//! else is done with them.

use record::RecordError;
use record::run::Run;
use record::series::SeriesSummary;
use record::summary::RunSummary;
use serde::Serialize;

use super::ours::{Own, numbers, single};
use super::source::{About, Figure, Group, Kind, Published, published};

/// A run beside the published figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Beside {
    /// The machine that measured the run.
    pub machine: String,
    /// Published figures with a counterpart in the run.
    pub blocks: Vec<Block>,
    /// Those without one.
    pub without: Vec<Without>,
}

/// Figures of one table or passage of a document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Block {
    /// Author and year.
    pub published_by: String,
    /// Where in the document.
    pub place: String,
    /// Their metric.
    pub metric: About,
    /// The hardware that they were measured on, not by us.
    pub board: String,
    /// Its kernel.
    pub kernel: String,
    /// How they were measured.
    pub conditions: String,
    /// The figures.
    pub lines: Vec<Line>,
}

/// One published figure, and ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// The subject, as the document calls it.
    pub subject: String,
    /// Which number of the distribution.
    pub kind: Kind,
    /// As printed, with its unit.
    pub published: String,
    /// The same in ns, or bytes, or without a unit; `None` where the document has words.
    pub published_base: Option<f64>,
    /// The run's numbers that correspond.
    pub ours: Vec<Ours>,
}

/// A number of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ours {
    /// The cell or trial.
    pub label: String,
    /// ns, or bytes, or without a unit.
    pub value: f64,
    /// Whether it ran in a real-time class.
    pub real_time: bool,
}

/// Published figures without a counterpart in the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Without {
    /// Author and year.
    pub published_by: String,
    /// Where in the document.
    pub place: String,
    /// Their metric.
    pub metric: About,
    /// How many.
    pub figures: usize,
    /// Why the run has none.
    pub reason: String,
}

/// Sets a run beside the published figures.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn beside(run: &Run, summary: &RunSummary) -> Result<Beside, RecordError> {
    let machine = run.provenance()?.one_line();
    let own = numbers(summary, &run.experiment()?);
    Ok(set_beside(&published(), &own, machine))
}

/// Sets a run of single measurements beside the published figures.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn series_beside(run: &Run, summary: &SeriesSummary) -> Result<Beside, RecordError> {
    let machine = run.provenance()?.one_line();
    Ok(set_beside(&published(), &single(summary), machine))
}

/// Sets numbers of a run beside the published figures.
pub(crate) fn beside_own(own: &[Own], machine: String) -> Beside {
    set_beside(&published(), own, machine)
}

const NO_ENGINE: &str = "timecell has no engine that corresponds";

fn set_beside(all: &Published, own: &[Own], machine: String) -> Beside {
    let (mut blocks, mut without) = (Vec::new(), Vec::new());
    for group in &all.groups {
        let by = all
            .document(group)
            .map_or_else(String::new, |document| document.short.clone());
        let mut lines = Vec::new();
        let mut reasons: Vec<(String, usize)> = Vec::new();
        for figure in &group.values {
            match counterparts(group, figure, own) {
                Ok(ours) => lines.push(Line {
                    subject: figure.subject.clone(),
                    kind: figure.kind,
                    published: group.printed(figure),
                    published_base: (figure.says.is_none())
                        .then(|| figure.value * group.unit.base()),
                    ours,
                }),
                Err(reason) => match reasons.iter_mut().find(|known| known.0 == reason) {
                    Some(known) => known.1 += 1,
                    None => reasons.push((reason, 1)),
                },
            }
        }
        if !lines.is_empty() {
            // A reader of the others misses these.
            for (reason, _) in reasons.iter_mut().filter(|known| known.0 == NO_ENGINE) {
                let without = group.values.iter().filter(|figure| figure.engine.is_none());
                let named: Vec<String> = without
                    .map(|figure| {
                        let (kind, printed) = (figure.kind.title(), group.printed(figure));
                        format!("{}: {kind} {printed}", figure.subject)
                    })
                    .collect();
                *reason = format!("{NO_ENGINE} to {}", named.join(", "));
            }
            blocks.push(Block {
                published_by: by.clone(),
                place: group.place.clone(),
                metric: group.metric,
                board: group.board.clone(),
                kernel: group.kernel.clone(),
                conditions: group.conditions.clone(),
                lines,
            });
        }
        without.extend(reasons.into_iter().map(|(reason, figures)| Without {
            published_by: by.clone(),
            place: group.place.clone(),
            metric: group.metric,
            figures,
            reason,
        }));
    }
    Beside {
        machine,
        blocks,
        without,
    }
}

/// The run's numbers that correspond to a figure, or a clause on the run's lack.
fn counterparts(group: &Group, figure: &Figure, own: &[Own]) -> Result<Vec<Ours>, String> {
    let mut left: Vec<&Own> = own.iter().filter(|o| o.about == group.metric).collect();
    if left.is_empty() {
        return Err(format!("the run measured no {}", group.metric.title()));
    }
    let of_every_subject =
        figure.engine.is_none() && figure.series.is_none() && figure.part.is_some();
    if group.metric != About::StartSkew && !of_every_subject {
        let Some(engine) = figure.engine else {
            return Err(NO_ENGINE.to_owned());
        };
        let subject = figure.series.as_deref().unwrap_or(engine.name());
        // A virtual machine that was emulated says so behind its name.
        let name = |o: &Own| Some(o.subject.as_deref()?.trim_end_matches(" (emulated)") == subject);
        let is_engine = |o: &Own| figure.series.is_none() && o.engine == Some(engine);
        left.retain(|o| is_engine(o) || name(o) == Some(true));
        if left.is_empty() {
            return Err(format!("the run has no cell of {subject}"));
        }
    }
    if let Some(part) = figure.part.as_deref() {
        let parts = [Some(part), figure.or_part.as_deref()];
        left.retain(|o| o.part.is_some() && parts.contains(&o.part.as_deref()));
        if left.is_empty() {
            return Err(format!("the run has no figure `{part}`"));
        }
    }
    if let Some(threads) = figure.threads {
        left.retain(|o| o.threads == Some(threads));
        if left.is_empty() {
            let plural = if threads == 1 { "" } else { "s" };
            return Err(format!(
                "the run has no computation on {threads} thread{plural}"
            ));
        }
    }
    if let Some(size) = group.size {
        left.retain(|o| o.size.is_none_or(|own| own == size));
        if left.is_empty() {
            return Err(format!("the sweep has no {size}"));
        }
    }
    if let Some(preempt_rt) = figure.preempt_rt {
        left.retain(|o| o.preempt_rt == Some(preempt_rt));
        if left.is_empty() {
            let kind = if preempt_rt { "a" } else { "no" };
            return Err(format!(
                "the run has no guest with {kind} PREEMPT_RT kernel"
            ));
        }
    }
    let cells = group.cells_of(figure);
    left.retain(|o| o.cells == cells);
    if left.is_empty() {
        let plural = if cells == 1 { "" } else { "s" };
        return Err(format!(
            "the run has no trial of {cells} cell{plural} with that engine"
        ));
    }
    if !figure.mix.is_empty() {
        left.retain(|o| o.mix == figure.mix);
        if left.is_empty() {
            let names: Vec<&str> = figure.mix.iter().map(|engine| engine.name()).collect();
            return Err(format!(
                "the run has no trial of {} together",
                names.join(", ")
            ));
        }
    }
    if let Some(load) = group.load_of(figure) {
        // The document does not define "stress"; any load of ours is shown beside it under its own name.
        left.retain(|o| o.load == load || (load == "stress" && o.load != "idle"));
        if left.is_empty() {
            return Err(format!("the run has no trial under the load {load}"));
        }
    }
    if let Some(period) = figure.period_us {
        left.retain(|o| o.period_us == Some(period));
        if left.is_empty() {
            return Err(format!("the period of the run is not {period} us"));
        }
    }
    left.retain(|o| o.kind == figure.kind);
    if left.is_empty() {
        return Err(format!(
            "the run is too short for a {}",
            figure.kind.title()
        ));
    }
    let ours = left.into_iter().map(|o| Ours {
        label: o.label.clone(),
        value: o.value,
        real_time: o.real_time,
    });
    Ok(ours.collect())
}

#[cfg(test)]
mod tests;
