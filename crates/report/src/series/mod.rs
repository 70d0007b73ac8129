//! Runs of single measurements (`series.json`): their table, page and pictures.

mod dots;
mod page;
mod stacks;
mod sweep;
mod table;

pub use page::series_html;
pub use table::series_table;

use record::RecordError;
use record::run::Run;
use record::series::{SeriesFigure, SeriesRecord, SeriesSummary};

use text::amount::Amount;
use text::words::{capital, clean};

use crate::figure::Figure;

/// The parts that stand for themselves, in the order of the record; shares are shown with the part they belong to.
fn wholes(summary: &SeriesSummary) -> Vec<&str> {
    let mut parts: Vec<&str> = Vec::new();
    for figure in summary.figures.iter().filter(|f| f.of.is_none()) {
        if !parts.contains(&figure.part.as_str()) {
            parts.push(&figure.part);
        }
    }
    parts
}

/// The figures of this part, in the order of subjects.
fn of_part<'a>(summary: &'a SeriesSummary, part: &str) -> Vec<&'a SeriesFigure> {
    let all = summary.figures.iter();
    all.filter(|f| f.part == part && f.of.is_none()).collect()
}

/// The name of a subject beside its row of a picture: shortened names keep their end, which tells sizes apart.
fn row_name(summary: &SeriesSummary, subject: &str) -> String {
    let swept = summary.sweep.iter().find(|one| one.subject == subject);
    let name = swept.map(|one| format!("{} {}", one.of, one.size.short()));
    clean(name.as_deref().unwrap_or(subject))
}

/// The shares of this part of this subject.
fn shares<'a>(summary: &'a SeriesSummary, subject: &str, part: &str) -> Vec<&'a SeriesFigure> {
    let all = summary.figures.iter();
    all.filter(|f| f.subject == subject && f.of.as_deref() == Some(part))
        .collect()
}

/// The first part of the record in a sentence: the subjects with the least and the largest value.
fn answer(summary: &SeriesSummary) -> Option<String> {
    let part = *wholes(summary).first()?;
    let figures = of_part(summary, part);
    let few = figures.iter().any(|f| f.median_interval.is_none());
    let value = |f: &SeriesFigure| if few { f.mean } else { f.median as f64 };
    let amount = Amount::of(figures.first()?.unit, figures.iter().map(|f| value(f)));
    let shown = |f: &SeriesFigure| format!("{} ({})", amount.show(value(f)), f.subject);
    let least = figures
        .iter()
        .min_by(|a, b| value(a).total_cmp(&value(b)))?;
    let most = figures
        .iter()
        .max_by(|a, b| value(a).total_cmp(&value(b)))?;
    let kind = if few { "mean" } else { "median" };
    let values = match least.subject == most.subject {
        true => shown(least),
        false => format!("from {} to {}", shown(least), shown(most)),
    };
    Some(format!("{}, {kind}: {values}.", capital(part)))
}

/// The stem of a figure's file name.
fn file_name(kind: &str, part: &str) -> std::borrow::Cow<'static, str> {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let part: String = part.chars().map(plain).collect();
    format!("{kind}-{}", part.trim_matches('-')).into()
}

/// Draws all pictures that have something to show.
fn draw(record: &SeriesRecord, summary: &SeriesSummary) -> Vec<Figure> {
    let mut figures = Vec::new();
    figures.extend(sweep::draw(summary));
    for part in wholes(summary) {
        figures.extend(dots::draw(record, summary, part));
        figures.extend(stacks::draw(summary, part));
    }
    figures
}

/// The figures as SVG files of their own: file name and content.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn series_figures(
    run: &Run,
    summary: &SeriesSummary,
) -> Result<Vec<(String, String)>, RecordError> {
    let record: SeriesRecord = run.read()?;
    let note = format!("timecell run {}", summary.run);
    Ok(crate::figure::documents(draw(&record, summary), &note))
}
