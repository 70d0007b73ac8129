//! The tables of the page: fairness (the zcu102 thesis's Table 4.4), growth, and costs of cells.

use super::findings::{crowd, memory, part, rate};
use super::picture::About;
use super::table::{even, megabytes};
use crate::grid::{Cell, NOT_REAL_TIME, Table};
use model::EngineKind;
use record::crowd::CrowdRecord;
use record::scale::{ScalePoint, ScaleSummary};
use stats::BoxPlot;
use study::median_of;
use text::style::Tone;
use text::units::{Scale, percent, time};
use text::words::{count, ratio};

/// A row of an engine: the engine's name stands in the first only.
pub(super) type Row<'s> = (Option<EngineKind>, &'s ScalePoint);

/// A table with a row for every number of cells of every engine.
fn table<'s>(
    summary: &'s ScaleSummary,
    caption: &str,
    keep: impl Fn(&ScalePoint) -> bool,
) -> Table<Row<'s>> {
    let rows = summary.engines.iter().flat_map(|engine| {
        let points: Vec<&ScalePoint> = summary.of(engine.engine).filter(|p| keep(p)).collect();
        let named = points.into_iter().enumerate();
        named.map(|(at, point)| ((at == 0).then_some(point.engine), point))
    });
    Table::new(caption, rows)
        .detail()
        .head("engine", |(engine, _)| engine.map_or("", EngineKind::name))
        .number("cells", |(_, point)| {
            let label = if point.real_time || point.rounds == 0 {
                ""
            } else {
                NOT_REAL_TIME
            };
            Cell::from(point.count).noted(label, Tone::Caution)
        })
}

/// How alike the cells of each number of cells are.
pub(super) fn fairness(summary: &ScaleSummary, about: About) -> Table<Row<'_>> {
    let caption = format!(
        "Between cells that ran together: their mean {}",
        about.title()
    );
    let keep = |point: &ScalePoint| about.of(point).is_some() && point.cells.number.len() > 1;
    let spread = |point| Some(about.of(point)?.spread);
    let fairness = |point| about.of(point)?.fairness;
    table(summary, &caption, keep)
        .number("CV\nbetween all cells", |(_, point)| {
            spread(point)?.coefficient_of_variation.map(percent)
        })
        .number("Gini index", |(_, point)| {
            spread(point)?.gini.map(|gini| format!("{gini:.4}"))
        })
        .number("CV\nof cells of a cpu", |(_, point)| {
            Some(percent(fairness(point)?.within))
        })
        .number("by chance", |(_, point)| {
            Some(percent(fairness(point)?.chance))
        })
        .number("beyond chance", |(_, point)| {
            Some(percent(fairness(point)?.beyond_chance))
        })
        .text("so cells of a cpu were", |(_, point)| {
            fairness(point).as_ref().map(even)
        })
}

/// The medians over cells, and the prediction of cpu sharing.
pub(super) fn growth(summary: &ScaleSummary) -> Table<Row<'_>> {
    let middle = |plot: Option<&BoxPlot>| plot.map(|plot| time(plot.median_ns as f64));
    let caption = "Execution time of the median cell; response time over all jobs that ran while all cells ran";
    table(summary, caption, |point| point.execution.is_some())
        .number("mean", |(_, point)| {
            middle(Some(&point.execution.as_ref()?.mean))
        })
        .number("sd", |(_, point)| {
            middle(point.execution.as_ref()?.sd.as_ref())
        })
        .number("p95", |(_, point)| {
            middle(point.execution.as_ref()?.p95.as_ref())
        })
        .number("p99", |(_, point)| {
            middle(point.execution.as_ref()?.p99.as_ref())
        })
        .number("cpu time\nof a job", |(_, point)| {
            Some(time(point.sharing?.demand_ns))
        })
        .number(
            "mean response\nshare of the jobs",
            |(_, point)| match point.sharing {
                Some(s) => Some(Cell::from(time(s.response_ns)).below(percent(s.jobs_in_window))),
                None => {
                    let all = point.response.as_ref()?.spread.mean;
                    Some(Cell::from(time(all)).below("all jobs"))
                }
            },
        )
        .number("sharing predicts\nleast..most possible", |(_, point)| {
            let s = point.sharing?;
            let scale = Scale::of([s.floor_ns, s.sharing_ns, s.ceiling_ns]);
            let (sharing, bounds) = scale.with_ends(s.sharing_ns, [s.floor_ns, s.ceiling_ns]);
            Some(Cell::from(sharing).below(bounds))
        })
        .number("measured / predicted", |(_, point)| {
            let s = point.sharing?;
            let off = s.response_ns > 1.02 * s.ceiling_ns;
            let label = if off { "more than possible" } else { "" };
            Some(Cell::from(ratio(s.response_ns / s.sharing_ns)).noted(label, Tone::Caution))
        })
        .number("cpus used\npredicted", |(_, point)| {
            let s = point.sharing?;
            Some(Cell::from(percent(s.utilization)).below(percent(s.predicted_utilization)))
        })
}

/// Creation, memory, waiting and the release.
pub(super) fn cost(summary: &ScaleSummary) -> Table<Row<'_>> {
    let keep = |point: &ScalePoint| !point.crowds.is_empty() || !point.skew_ns.is_empty();
    table(summary, "Starting the cells", keep)
        .number("reserved\nby", |(_, point)| {
            let by = crowd(point)?.reservation?.enforcer;
            Some(Cell::from(part(point)?).below(by.name()))
        })
        .if_any()
        .number("created, armed, finished", |(_, point)| {
            match crowd(point) {
                Some(crowd) => counts(crowd),
                None => (point.cells.number.len() as u64).into(),
            }
        })
        .number("creation\nin a second", |(_, point)| {
            let crowd = crowd(point)?;
            let rate = rate(crowd).map(|rate| format!("{rate:.0}"));
            Some(Cell::from(time(crowd.creation_ns as f64)).below(rate.unwrap_or_default()))
        })
        .number("removal", |(_, point)| {
            Some(time(crowd(point)?.removal_ns? as f64))
        })
        .number("memory of a cell\nhelpers / kernel", |(_, point)| {
            memory_of(crowd(point)?)
        })
        .number("cpu while waiting\nall cells, in", |(_, point)| {
            let waiting = crowd(point)?.waiting?;
            Some(Cell::from(time(waiting.cpu_ns as f64)).below(time(waiting.window_ns as f64)))
        })
        .number("start skew\nfirst of each cpu", |(_, point)| {
            let first = median_of(&point.first_of_cpu_skew_ns).map(time);
            Some(Cell::from(time(median_of(&point.skew_ns)?)).below(first.unwrap_or_default()))
        })
        .number("ordinary work late\nlimit", |(_, point)| {
            let watchdog = crowd(point)?.watchdog?;
            let worst = time(watchdog.worst_delay_ns as f64);
            Some(match watchdog.froze {
                true => Cell::new(format!("{worst}, froze"), Tone::Bad),
                false => Cell::from(worst).below(time(watchdog.limit_ns as f64)),
            })
        })
}

fn memory_of(crowd: &CrowdRecord) -> Option<Cell> {
    let [payload, helpers] = memory(crowd)?;
    let sums = crowd.memory?;
    let kernel = sums
        .kernel_bytes
        .map(|kernel| megabytes(kernel as f64 / f64::from(sums.cells)));
    let kernel = kernel.unwrap_or_else(|| "unknown".to_owned());
    let below = format!("{} / {kernel}", megabytes(helpers));
    Some(Cell::from(megabytes(payload + helpers)).below(below))
}

fn counts(crowd: &CrowdRecord) -> Cell {
    let all = [crowd.created, crowd.armed, crowd.finished];
    match all.iter().all(|&cells| cells == crowd.asked) {
        true => "all".into(),
        false => Cell::new(all.map(|cells| count(cells.into())).join(", "), Tone::Bad),
    }
}
