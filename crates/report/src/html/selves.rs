//! The cells themselves: class, cpus, activations, costs and remarks.

use super::section::{Page, Section};
use crate::grid::{Cell, Table, lost, name};
use maud::html;
use study::plan::list;
use text::words::count;

pub(super) fn section(page: &Page) -> Option<Section> {
    let cells = &page.data.summary.cells;
    let table = Table::new(
        "Planned = executed + skipped + lost, trials that failed included",
        cells,
    )
    .detail()
    .head("cell", |cell| name(cell))
    .text("engine", |cell| cell.engine.name())
    .text("class", |cell| cell.class.as_str())
    .text("cpus", |cell| list(&cell.cpus))
    .number("rounds", |cell| cell.rounds)
    .number("planned", |cell| cell.planned)
    .number("executed", |cell| cell.executed)
    .number("skipped", |cell| lost(cell.skipped))
    .number("lost", |cell| lost(text::words::lost(cell)))
    .times("creation", |cell| Some(cell.create_median_ns? as f64))
    .times("cpu time\nper job", |cell| cell.cpu_time_per_activation_ns)
    .number("probe cost\nclock; record", |cell| {
        format!(
            "{}; {} ns",
            count(cell.clock_cost_ns),
            count(cell.loop_cost_ns)
        )
    })
    .text("remarks", |cell| Cell::lines(cell.notes.iter().cloned()))
    .if_any();
    (!cells.is_empty()).then(|| Section {
        id: "selves",
        heading: "The cells themselves".to_owned(),
        body: html! { (table) },
    })
}
