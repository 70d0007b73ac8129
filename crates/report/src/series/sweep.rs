//! A sweep over the size of cells: a picture for each kind of cell, with the mean and the worst value of the first part over one axis and a
//! look for each value of the other.

use model::{Bytes, Size};
use record::series::{SeriesFigure, SeriesSummary, Swept};
use text::amount::axis_unit;
use text::words::{capital, clean};

use super::{of_part, wholes};
use crate::chart::Axis;
use crate::figure::Figure;
use crate::figure::plot::{Plot, Side};

const HEIGHT: f64 = 260.0;
/// Where the looks of one place begin and end, as a share of its width.
const SPREAD: f64 = 0.6;

pub(super) fn draw(summary: &SeriesSummary) -> Vec<Figure> {
    let Some(part) = wholes(summary).first().copied() else {
        return Vec::new();
    };
    let figures = of_part(summary, part);
    let mut kinds: Vec<&str> = summary.sweep.iter().map(|one| one.of.as_str()).collect();
    kinds.dedup();
    (kinds.into_iter())
        .filter_map(|of| picture(summary, part, of, &figures))
        .collect()
}

/// A value of a size along an axis: its order, and its name.
type Along = (u64, String);
/// An axis; `None` of a size that has no value along it.
type Direction = fn(Size) -> Option<Along>;

fn along_cpus(size: Size) -> Option<Along> {
    (size.vcpus).map(|vcpus| (vcpus.into(), Size::cpus_text(vcpus)))
}

fn along_memory(size: Size) -> Option<Along> {
    (size.memory_bytes).map(|bytes| (bytes, Bytes::new(bytes).to_string()))
}

fn picture(
    summary: &SeriesSummary,
    part: &str,
    of: &str,
    figures: &[&SeriesFigure],
) -> Option<Figure> {
    let found: Vec<(&Swept, &SeriesFigure)> = (summary.sweep.iter())
        .filter(|one| one.of == of)
        .filter_map(|one| {
            let figure = figures
                .iter()
                .find(|figure| figure.subject == one.subject)?;
            Some((one, *figure))
        })
        .collect();
    let values = |along: Direction| {
        let mut all: Vec<Along> = (found.iter())
            .filter_map(|(one, _)| along(one.size))
            .collect();
        all.sort();
        all.dedup();
        all
    };
    let (across, other): (Direction, Direction) = match values(along_cpus).is_empty() {
        true => (along_memory, |_| None),
        false => (along_cpus, along_memory),
    };
    let (places, looks) = (values(across), values(other));
    let most = found.iter().map(|(_, f)| f.worst).max()? as f64;
    let (unit, unit_name) = axis_unit(found.first()?.1.unit, most);
    let side = Side::plain(
        Axis::linear([0.0, most / unit]),
        format!("{part} in {unit_name}"),
    );
    let names = places.iter().map(|(_, name)| name.clone()).collect();
    let mut plot = Plot::new(Side::places(names, ""), side, HEIGHT);
    let count = looks.len().max(1);
    for look in 0..count {
        let mut means = Vec::new();
        for (one, figure) in &found {
            if other(one.size).as_ref() != looks.get(look) {
                continue;
            }
            let place = places
                .iter()
                .position(|place| Some(place) == across(one.size).as_ref())?;
            let shift = SPREAD * ((look as f64 + 0.5) / count as f64 - 0.5);
            let x = place as f64 + 0.5 + shift;
            let (mean, worst) = (figure.mean / unit, figure.worst as f64 / unit);
            means.push((x, mean));
            // From the mean to the worst value, which has a mark.
            plot.line(look, [(x, mean), (x, worst)]);
            plot.marks(look, [(x, worst)]);
        }
        plot.line(look, means);
        if let Some((_, name)) = looks.get(look) {
            plot.name(look, name.clone());
        }
    }
    let caption = "Lines join the means over rounds; above each mean the mark is the worst value seen. Look for lines that rise or fall: \
                   those that stay level are not affected by the size.";
    let title = format!("{of}: {part} by size");
    let stem = super::file_name("sweep", of);
    Some(plot.figure(stem, capital(&clean(&title)), caption))
}
