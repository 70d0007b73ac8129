//! How often a job takes at least a given time: the complementary distribution on logarithmic axes.

use super::plot::{Plot, Side};
use super::{Figure, name, time_axis, with_omission};
use crate::chart::Axis;
use study::JobsStudy;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    let points = || data.drawing.cells.iter().flat_map(|cell| &cell.ccdf);
    let least = points().map(|&(_, p)| p).fold(1.0, f64::min);
    let x = time_axis(data, points().map(|&(ns, _)| ns as f64));
    if data.drawing.cells.is_empty() {
        return None;
    }
    let metric = data.summary.primary.title();
    let y = Side::plain(Axis::probability(least), "share of jobs, log scale");
    let mut plot = Plot::new(Side::time(x, metric), y, 300.0);
    for cell in &data.drawing.cells {
        plot.steps(cell.look, cell.ccdf.iter().map(|&(ns, p)| (ns as f64, p)));
        plot.marks(cell.look, cell.ccdf.last().map(|&(ns, p)| (ns as f64, p)));
    }
    for (look, name) in entries(data) {
        plot.name(look, name);
    }
    let caption = "The share of jobs that took at least the time on the horizontal axis, both axes logarithmic; the mark at the end of each \
                   curve is the largest value seen. A steep fall is predictable; a long, flat stretch to the right is a heavy tail. The \
                   lowest step is one job, so the last decade rests on few jobs.";
    let title = format!("How often the {metric} is at least x");
    Some(plot.figure("ccdf", title, with_omission(data, caption.to_owned())))
}

/// One entry for each look in use: the cell's name, or the trial's where a look stands for a trial.
fn entries(data: &JobsStudy) -> Vec<(usize, String)> {
    let mut entries: Vec<(usize, String)> = Vec::new();
    for cell in &data.drawing.cells {
        match entries.iter_mut().find(|entry| entry.0 == cell.look) {
            Some(entry) => entry.1.clone_from(&data.summary_of(cell).trial),
            None => entries.push((cell.look, name(cell))),
        }
    }
    entries
}
