//! The median of every round: drift of the machine while it was measured.

use super::plot::{Plot, Side};
use super::{Figure, name, with_omission};
use crate::chart::{Axis, LOOKS};
use study::JobsStudy;

/// More rounds than this are not numbered one by one.
const NUMBERED: u32 = 20;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    let all = || data.drawing.cells.iter().flat_map(|cell| &cell.rounds);
    let most = all().map(|round| round.number).max()?;
    if most < 2 || data.drawing.cells.len() > LOOKS {
        return None;
    }
    let y = Axis::linear(all().map(|round| round.median_ns as f64));
    let y = Side::time(
        y,
        &format!("median {} of a round", data.summary.primary.title()),
    );
    let every = most.div_ceil(NUMBERED) as usize;
    let number = |round: u32| match (round as usize - 1).is_multiple_of(every) {
        true => round.to_string(),
        false => String::new(),
    };
    let x = Side::places((1..=most).map(number).collect(), "round");
    let mut plot = Plot::new(x, y, 200.0);
    for cell in &data.drawing.cells {
        let points = cell.rounds.iter();
        let points = points.map(|round| (f64::from(round.number) - 0.5, round.median_ns as f64));
        plot.line(cell.look, points.clone());
        plot.marks(cell.look, points);
        plot.name(cell.look, name(cell));
    }
    let caption = "The median of each round. Trials are interleaved, so lines that rise or fall together are drift of the machine, which \
                   the comparisons cancel; a line that moves alone is a cell that does not repeat itself.";
    Some(plot.figure(
        "rounds",
        "Did the machine drift?",
        with_omission(data, caption.to_owned()),
    ))
}
