//! The median of every round: drift of the machine while it was measured.

use super::{Figure, WIDTH, name, time_title, with_omission};
use crate::chart::{
    Axis, Band, Entry, LOOKS, Mark, legend, legend_height, marks, n, title_below, title_left,
    y_axis,
};
use maud::html;
use study::JobsStudy;

const LEFT: f64 = 74.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 230.0;
/// More rounds than this are not numbered one by one.
const NUMBERED: u32 = 20;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    let all = || data.drawing.cells.iter().flat_map(|cell| &cell.rounds);
    let most = all().map(|round| round.number).max()?;
    if most < 2 || data.drawing.cells.len() > LOOKS {
        return None;
    }
    let y = Axis::linear(all().map(|round| round.median_ns as f64)).between(BOTTOM, TOP);
    let (unit, title) = time_title(
        &y,
        &format!("median {} of a round", data.summary.primary.title()),
    );
    let right = WIDTH - 24.0;
    let step = (right - LEFT) / f64::from(most);
    let x = |number: u32| LEFT + (f64::from(number) - 0.5) * step;
    let across = Axis::linear([0.0, 1.0]).between(LEFT, right);
    let names: Vec<String> = data.drawing.cells.iter().map(name).collect();
    let entries: Vec<Entry> = data
        .drawing
        .cells
        .iter()
        .zip(&names)
        .map(|(cell, name)| Entry {
            look: cell.look,
            name,
        })
        .collect();
    let every = most.div_ceil(NUMBERED);
    Some(Figure {
        name: "rounds".into(),
        title: "Did the machine drift?".to_owned(),
        caption: with_omission(
            data,
            "The median of each round. Trials are interleaved, so lines that rise or fall together are drift of the \
             machine, which the comparisons cancel; a line that moves alone is a cell that does not repeat itself."
                .to_owned(),
        ),
        height: BOTTOM + 56.0 + legend_height(&entries, WIDTH - LEFT),
        body: html! {
            (title_left(8.0, TOP, &title))
            (y_axis(&y, Band(LEFT, right), unit))
            path class="rule" d=(format!("M{LEFT} {BOTTOM}H{right}")) {}
            @for round in (1..=most).step_by(every as usize) {
                text class="faint mid" x=(n(x(round))) y=(n(BOTTOM + 17.0)) { (round) }
            }
            (title_below(&across, BOTTOM, "round"))
            @for cell in &data.drawing.cells {
                @let look = cell.look % LOOKS;
                @let points = cell.rounds.iter()
                    .map(|round| (x(round.number), y.at(round.median_ns as f64))).collect::<Vec<_>>();
                @let line = points.iter().map(|(x, y)| format!("{} {}", n(*x), n(*y))).collect::<Vec<_>>();
                path class=(format!("line s{look} d{look}")) d=(format!("M{}", line.join("L"))) {}
                path class=(format!("mark s{look}")) d=(marks(Mark::of(look), points)) {}
            }
            (legend(&entries, LEFT, BOTTOM + 60.0, WIDTH - LEFT))
        },
    })
}
