//! Runs of several devices side by side: the largest values by load and period as bars, and the quantiles of each device.

use host::virt::NOT_REPRESENTATIVE;
use maud::{Markup, html};
use record::summary::{CellSummary, MetricSummary};
use record::trial::EMULATED;
use study::JobsStudy;
use study::conditions::period;
use study::judge::Judged;
use text::style::Style;
use text::units::{Unit, time};
use text::words::{capital, clean, count, plural};

use crate::chart::{Axis, Band, LOOKS, n, title_left, y_axis};
use crate::figure::{Figure, WIDTH, documents, time_title};
use crate::grid::{Cell, Table, named};
use crate::html::{First, Section, document, drawn, failures, missing};

/// A run of one device.
pub struct Device {
    /// The name of the device among the others.
    pub name: String,
    /// Its run.
    pub study: JobsStudy,
    /// Verdicts on thresholds, if there are any.
    pub judged: Option<Judged>,
}

impl Device {
    /// Its name where its figures are: with a caution if it is emulated.
    fn shown(&self) -> String {
        self.name.clone() + self.caution()
    }

    fn caution(&self) -> &'static str {
        match self.study.provenance.virtualization.emulated {
            Some(_) => EMULATED,
            None => "",
        }
    }

    /// The cells of a trial, with the metric that the run is about.
    fn cells<'a>(
        &'a self,
        trial: &'a str,
    ) -> impl Iterator<Item = (&'a CellSummary, &'a MetricSummary)> {
        let cells = self.study.summary.cells.iter();
        cells
            .filter(move |cell| cell.trial == trial)
            .filter_map(|cell| Some((cell, cell.metrics.first()?)))
    }

    /// The largest value in a trial, ns.
    fn max_ns(&self, trial: &str) -> Option<i64> {
        let values = self.cells(trial).map(|(_, metric)| metric.summary.max_ns);
        values.max()
    }

    /// The interval of the largest p99 of the cells of a trial, ns.
    fn p99(&self, trial: &str) -> Option<(i64, i64)> {
        let quantiles = self.cells(trial).map(|(_, metric)| {
            let p99 = metric.summary.quantile(0.99)?;
            p99.low_ns.zip(p99.high_ns)
        });
        let all = quantiles.collect::<Option<Vec<_>>>()?;
        let low = all.iter().map(|(low, _)| *low).max()?;
        Some((low, all.iter().map(|(_, high)| *high).max()?))
    }

    /// The trial with the largest value of all, and the value, ns.
    fn worst(&self) -> Option<(String, i64)> {
        let cells = self.study.summary.cells.iter();
        let values = cells.filter_map(|cell| {
            let metric = cell.metrics.first()?;
            Some((cell.trial.clone() + cell.caution(), metric.summary.max_ns))
        });
        values.max_by_key(|(_, ns)| *ns)
    }

    fn sum(&self, of: fn(&CellSummary) -> u64) -> u64 {
        self.study.summary.cells.iter().map(of).sum()
    }
}

/// A trial that at least one device has run.
struct Row {
    trial: String,
    /// [`EMULATED`] where cells of it are emulated machines, on one device at least.
    caution: &'static str,
    /// Load, and engine where there are several.
    group: String,
    /// Period, and whether the cpus were kept free.
    panel: String,
}

/// The trials of all devices, in the order of the first that has them.
fn rows(devices: &[Device]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let engines = devices
        .iter()
        .any(|device| device.study.plan.engines().len() > 1);
    for device in devices {
        let plan = &device.study.plan;
        for trial in &plan.trials {
            let has = device.cells(&trial.name).next().is_some();
            if !has || rows.iter().any(|row| row.trial == trial.name) {
                continue;
            }
            let ns = trial.period.unwrap_or(plan.workload.period).ns();
            let of = trial.cells.first().filter(|_| engines);
            let mut group = of.map_or_else(String::new, |engine| format!("{engine} "));
            group += &trial.load_name();
            let free = if trial.isolate {
                ", cpus kept free"
            } else {
                ""
            };
            let mut cells = devices.iter().flat_map(|other| other.cells(&trial.name));
            let caution =
                cells.find_map(|(cell, _)| Some(cell.caution()).filter(|said| !said.is_empty()));
            rows.push(Row {
                trial: trial.name.clone(),
                caution: caution.unwrap_or_default(),
                group,
                panel: format!("period {}{free}", period(ns)),
            });
        }
    }
    rows
}

/// In how many trials of several devices a device's p99 is lower than that of every other, intervals included, and of how many.
fn lowest(devices: &[Device], at: usize, rows: &[Row]) -> (usize, usize) {
    let of = |device: &Device, row: &Row| device.p99(&row.trial);
    let shared = rows.iter().filter_map(|row| {
        let mine = of(&devices[at], row)?;
        let others = devices.iter().enumerate().filter(|(place, _)| *place != at);
        let others: Vec<_> = others.filter_map(|(_, other)| of(other, row)).collect();
        (!others.is_empty()).then(|| others.iter().all(|other| mine.1 < other.0))
    });
    let shared: Vec<bool> = shared.collect();
    (
        shared.iter().filter(|is_lowest| **is_lowest).count(),
        shared.len(),
    )
}

fn title(devices: &[Device]) -> &'static str {
    let first = devices.first();
    first.map_or("time", |device| device.study.summary.primary.title())
}

/// The answer: the largest value of each device.
fn answer(devices: &[Device]) -> String {
    let worst = devices.iter().filter_map(|device| {
        let (trial, ns) = device.worst()?;
        Some(format!("{} {} ({trial})", device.shown(), time(ns as f64)))
    });
    let worst: Vec<String> = worst.collect();
    format!("The largest {} seen: {}.", title(devices), worst.join(", "))
}

fn about<'a>(devices: &'a [Device], rows: &[Row]) -> Table<(usize, &'a Device)> {
    let judged = devices.iter().any(|device| device.judged.is_some());
    Table::new("devices", devices.iter().enumerate())
        .head("device", |(_, device)| device.name.as_str())
        .text("machine", |(_, device)| {
            let cells = &device.study.summary.cells;
            let some_are = cells.iter().any(|cell| !cell.caution().is_empty());
            let caution = some_are.then(|| format!("; some cells are {NOT_REPRESENTATIVE}"));
            device.study.provenance.one_line() + &caution.unwrap_or_default()
        })
        .number("jobs", |(_, device)| {
            count(device.sum(|cell| cell.executed))
        })
        .number("late", |(_, device)| {
            // Jobs without a deadline are none.
            let cells = device.study.summary.cells.iter();
            let late = cells.map(|cell| cell.late).sum::<Option<u64>>();
            late.map(count).map(Cell::from)
        })
        .number("lost", |(_, device)| {
            count(device.sum(|cell| cell.lost + cell.unexplained))
        })
        .number("skipped", |(_, device)| {
            count(device.sum(|cell| cell.skipped))
        })
        .times("largest", |(_, device)| Some(device.worst()?.1 as f64))
        .number("lowest p99\nof the trials of several devices", |(at, _)| {
            let (lowest, shared) = lowest(devices, *at, rows);
            format!("{lowest} of {shared}")
        })
        .when(judged, |table| {
            table.text("thresholds", |(_, device)| {
                (device.judged.as_ref()).map(|judged| judged.outcome().to_string())
            })
        })
}

fn maxima<'a>(devices: &'a [Device], rows: &'a [Row]) -> Table<&'a Row> {
    let all = || {
        rows.iter()
            .flat_map(|row| devices.iter().filter_map(|d| d.max_ns(&row.trial)))
    };
    let unit = Unit::common(all().map(|ns| ns as f64));
    let table = Table::new(format!("largest {} of each trial", title(devices)), rows)
        .unit(unit)
        .head("trial", |row| row.trial.clone() + row.caution);
    devices.iter().fold(table, |table, device| {
        table.times(&device.shown(), |row| {
            Some(device.max_ns(&row.trial)? as f64)
        })
    })
}

fn quantiles<'a>(
    devices: &'a [Device],
    rows: &'a [Row],
) -> Table<(&'a Device, &'a CellSummary, &'a MetricSummary)> {
    let cells = rows.iter().flat_map(|row| {
        devices.iter().flat_map(|device| {
            let cells = device.cells(&row.trial);
            cells.map(move |(cell, metric)| (device, cell, metric))
        })
    });
    let table = Table::new(format!("quantiles of the {}", title(devices)), cells)
        .head("cell", |(_, cell, _)| named(&cell.label, cell.real_time))
        .text("device", |(device, ..)| device.shown());
    let of = |p: f64| {
        move |row: &(&'a Device, &'a CellSummary, &'a MetricSummary)| row.2.summary.quantile(p)
    };
    (table.quantile("median", of(0.5)).quantile("p99", of(0.99)))
        .quantile("p99.9", of(0.999))
        .quantile("p99.99", of(0.9999))
        .times("max", |(_, _, metric)| Some(metric.summary.max_ns as f64))
        .number("late", |(_, cell, _)| cell.late.map(count).map(Cell::from))
}

/// The devices for a terminal.
pub fn devices_table(devices: &[Device], style: Style) -> String {
    let rows = rows(devices);
    let tables = [
        about(devices, &rows).block(style),
        maxima(devices, &rows).block(style),
    ];
    tables.concat() + &answer(devices) + "\n"
}

/// The pictures as SVG files: name and content.
pub fn devices_figures(devices: &[Device]) -> Vec<(String, String)> {
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    let note = format!("timecell runs of {}", names.join(", "));
    documents(picture(devices, &rows(devices)), &note)
}

/// The devices as one HTML page, without network or script.
pub fn devices_html(devices: &[Device]) -> String {
    let rows = rows(devices);
    let figure = picture(devices, &rows);
    let first = First {
        question: "How late is the same work on each device?",
        answer: Some(answer(devices)),
        picture: drawn(figure.as_slice()),
    };
    let facts = devices.iter().map(|device| {
        let plan = study::plan::line(&device.study.plan);
        (
            device.name.as_str(),
            format!("run {}: {plan}", device.study.summary.run),
        )
    });
    let head = html! {
        p.kicker { "timecell report, several devices" }
        h1 { (plural(devices.len() as u64, "device")) }
        @for device in devices {
            (failures(&device.study.summary.failures))
            @if device.study.plan.trials != devices[0].study.plan.trials || device.study.plan.workload != devices[0].study.plan.workload {
                p.banner role="note" {
                    strong { "Caution:" } " " (clean(&device.name)) " ran another experiment than " (clean(&devices[0].name))
                    "; only trials of one name stand side by side."
                }
            }
        }
    };
    let mut sections = vec![
        first.section(facts, &[]),
        Section {
            id: "devices",
            heading: "Devices".to_owned(),
            body: html! { (about(devices, &rows)) (verdicts(devices)) },
        },
        Section {
            id: "maxima",
            heading: format!("Largest {}", title(devices)),
            body: html! {
                p.quiet {
                    "The largest value over all cpus and rounds is what was seen, a lower bound of the worst case that grows with the number \
                     of jobs."
                }
                (maxima(devices, &rows))
            },
        },
    ];
    sections.push(Section {
        id: "cells",
        heading: "Quantiles".to_owned(),
        body: html! {
            p.quiet {
                "Below each quantile stands its 95 % interval; \"needs n\" is the number of jobs needed to bound it. A device has the lowest p99 \
                 of a trial if the interval of its worst cell lies below those of all others."
            }
            (quantiles(devices, &rows))
        },
    });
    sections.push(lacking(devices));
    document("Several devices - timecell", &head, &sections)
}

/// The failures of each device, and all that it has not measured.
fn lacking(devices: &[Device]) -> Section {
    Section {
        id: "lacking",
        heading: "What is missing".to_owned(),
        body: html! {
            @for device in devices {
                @let s = &device.study.summary;
                h3 { (clean(&device.name)) }
                (missing("trial", (&s.failures, &s.not_measured, &s.unmet), &html! {}).body)
            }
        },
    }
}

fn verdicts(devices: &[Device]) -> Markup {
    html! {
        @for device in devices {
            @if let Some(section) = device.judged.as_ref().and_then(crate::judge::section) {
                h3 { (clean(&device.name)) ": " (section.heading) }
                (section.body)
            }
        }
    }
}

const LEFT: f64 = 62.0;
const TOP: f64 = 44.0;
const PANEL: f64 = 150.0;
const GAP: f64 = 72.0;
/// The width of a letter of the names of groups.
const LETTER: f64 = 7.0;

/// One panel for each period, in it a group of bars for each load, in it one bar for each device.
fn picture(devices: &[Device], rows: &[Row]) -> Option<Figure> {
    let values = rows
        .iter()
        .flat_map(|row| devices.iter().filter_map(|d| d.max_ns(&row.trial)));
    let values: Vec<f64> = values.map(|ns| ns as f64).filter(|ns| *ns > 0.0).collect();
    if values.is_empty() {
        return None;
    }
    let axis = Axis::log(values);
    let mut panels: Vec<&str> = rows.iter().map(|row| row.panel.as_str()).collect();
    panels.sort_unstable();
    panels.dedup();
    panels.sort_by_key(|panel| rows.iter().position(|row| row.panel == *panel));
    let bottom = |place: usize| TOP + GAP / 2.0 + PANEL + place as f64 * (PANEL + GAP);
    let emulated = (rows.iter().map(|row| row.caution))
        .chain(devices.iter().map(Device::caution))
        .any(|caution| !caution.is_empty());
    let caution = match emulated {
        true => format!(" Some bars are {NOT_REPRESENTATIVE}."),
        false => String::new(),
    };
    let (unit, axis_title) = time_title(&axis, &format!("largest {}", title(devices)));
    Some(Figure {
        name: "max-by-device".into(),
        title: format!("Largest {} by load and period", title(devices)),
        caption: "One bar for each device, over all its cpus and rounds. It is what was seen, a lower bound of the worst case, and grows with \
                  the number of jobs."
            .to_owned()
            + &caution,
        size: (WIDTH, bottom(panels.len() - 1) + 40.0),
        body: html! {
            @for (place, device) in devices.iter().enumerate() {
                @let x = LEFT + (place % 4) as f64 * 190.0;
                @let y = 4.0 + (place / 4) as f64 * 18.0;
                rect class=(format!("bar f{}", place % LOOKS)) x=(n(x)) y=(n(y)) width="14" height="14" {}
                text x=(n(x + 20.0)) y=(n(y + 12.0)) {
                    (text::words::short_among(&clean(&device.name), &[], 24 - device.caution().len())) (device.caution())
                }
            }
            @for (place, panel) in panels.iter().enumerate() {
                @let low = bottom(place);
                @let axis = axis.clone().between(low, low - PANEL);
                (title_left(8.0, low - PANEL, &format!("{axis_title}: {panel}")))
                (y_axis(&axis, Band(LEFT, WIDTH - 8.0), unit))
                (bars(devices, &rows.iter().filter(|row| row.panel == *panel).collect::<Vec<_>>(), &axis, low))
            }
        },
    })
}

fn bars(devices: &[Device], rows: &[&Row], axis: &Axis, low: f64) -> Markup {
    let group = (WIDTH - 8.0 - LEFT) / rows.len().max(1) as f64;
    let width = (group * 0.8 / devices.len().max(1) as f64).min(30.0);
    let gap = (width * 0.2).min(2.0);
    let names: Vec<&str> = rows.iter().map(|row| row.group.as_str()).collect();
    let letters = |lines: f64| ((group * lines / LETTER) as usize).clamp(4, 14);
    let longest = names.iter().map(|name| name.chars().count()).max();
    // Names too long for their group stand on two lines in turn.
    let lines = if longest.is_some_and(|longest| longest > letters(1.0)) {
        2
    } else {
        1
    };
    let shortened = text::words::shortened_apart(&names, letters(f64::from(lines)));
    html! {
        @for (at, (row, short)) in rows.iter().zip(shortened).enumerate() {
            @let middle = LEFT + group * (at as f64 + 0.5);
            @let begin = middle - width * devices.len() as f64 / 2.0;
            @let line = (at % lines as usize) as f64;
            text class="mid" x=(n(middle)) y=(n(low + 18.0 + 14.0 * line)) { (clean(&short)) }
            @for (place, device) in devices.iter().enumerate() {
                @if let Some(max) = device.max_ns(&row.trial).filter(|ns| *ns > 0) {
                    @let top = axis.at(max as f64);
                    rect class=(format!("bar f{}", place % LOOKS)) x=(n(begin + width * place as f64 + gap / 2.0)) y=(n(top))
                        width=(n(width - gap)) height=(n((low - top).max(1.0))) {
                        title { (clean(&device.shown())) ", " (clean(&row.trial)) (row.caution) ": " (capital(&time(max as f64))) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of an attribute of an element.
    fn number(element: &str, name: &str) -> f64 {
        let (_, rest) = element.split_once(&format!(" {name}=\"")).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    }

    #[test]
    fn names_of_many_groups_do_not_overlap() {
        for count in 1..=16 {
            let rows: Vec<Row> = (0..count)
                .map(|at| Row {
                    trial: at.to_string(),
                    caution: "",
                    group: format!("load-{at}+{}", "disk-write".repeat(at % 3)),
                    panel: "period 1 ms".to_owned(),
                })
                .collect();
            let axis = Axis::log(vec![10.0, 1e6]).between(200.0, 50.0);
            let all = bars(&[], &rows.iter().collect::<Vec<_>>(), &axis, 200.0).into_string();
            let names: Vec<(f64, f64, f64)> = all
                .split("<text ")
                .skip(1)
                .map(|text| {
                    let shown = text.split(['>', '<']).nth(1).unwrap().chars().count();
                    let text = format!(" {text}");
                    let (x, y) = (number(&text, "x"), number(&text, "y"));
                    (x, y, shown as f64 * LETTER / 2.0)
                })
                .collect();
            assert_eq!(names.len(), count);
            for (at, (x, y, half)) in names.iter().enumerate() {
                for (other_x, other_y, other) in &names[..at] {
                    assert!(
                        y != other_y || x - half >= other_x + other,
                        "{count} groups: {all}"
                    );
                }
            }
        }
    }
}
