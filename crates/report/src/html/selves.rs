//! The cells themselves: class, cpus, activations, costs and remarks.

use super::section::{Page, Section};
use super::tables::{detail, lost, name};
use super::time_cell;
use maud::html;
use study::plan::list;
use text::units::Scale;
use text::words::{clean, count};

pub(super) fn section(page: &Page) -> Option<Section> {
    let cells = &page.data.summary.cells;
    let create = cells.iter().filter_map(|c| c.create_median_ns);
    let create = Scale::of(create.map(|ns| ns as f64));
    let used = Scale::of(cells.iter().filter_map(|c| c.cpu_time_per_activation_ns));
    let remarks = cells.iter().any(|cell| !cell.notes.is_empty());
    let table = html! {
        thead { tr {
            th scope="col" { "cell" } th scope="col" { "engine" } th scope="col" { "class" }
            th scope="col" { "cpus" } th.num scope="col" { "rounds" } th.num scope="col" { "planned" }
            th.num scope="col" { "executed" } th.num scope="col" { "missed" } th.num scope="col" { "lost" }
            th.num scope="col" { "creation" } th.num scope="col" { "cpu time" br; span.below { "per job" } }
            th.num scope="col" { "probe cost" br; span.below { "clock; record" } }
            @if remarks { th scope="col" { "remarks" } }
        } }
        tbody { @for cell in cells { tr {
            th scope="row" { (name(cell)) }
            td.whole { (cell.engine.to_string()) } td.whole { (clean(&cell.class)) } td { (list(&cell.cpus)) }
            (time_cell(&cell.rounds.to_string(), "")) (time_cell(&count(cell.planned), ""))
            (time_cell(&count(cell.executed), "")) (lost(cell.missed)) (lost(cell.unexplained.saturating_add(cell.lost)))
            (time_cell(&cell.create_median_ns.map_or("-".to_owned(), |ns| create.show(ns as f64)), ""))
            (time_cell(&cell.cpu_time_per_activation_ns.map_or("-".to_owned(), |ns| used.show(ns)), ""))
            (time_cell(&format!("{}; {} ns", count(cell.clock_cost_ns), count(cell.loop_cost_ns)), ""))
            @if remarks { td.remark { @for note in &cell.notes { div { (clean(note)) } } } }
        } } }
    };
    (!cells.is_empty()).then(|| Section {
        id: "selves",
        heading: "The cells themselves".to_owned(),
        body: detail(
            "Planned = executed + missed + lost, trials that failed included",
            cells.len(),
            table,
        ),
    })
}
