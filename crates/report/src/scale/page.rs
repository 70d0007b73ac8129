//! The report of a scale study as one HTML file.

use super::findings::{crowd, findings, grows};
use super::panels;
use super::picture::{About, draw};
use super::tables;
use crate::figure::Figure;
use crate::grid::Table;
use crate::html::{
    Extras, First, Own, Section, absences, again, drawn, found, framed, with_experiment,
};
use maud::{Markup, html};
use model::{Class, Enforcer, EngineKind, Experiment, Pacing, Scale, Work};
use record::RecordError;
use record::run::Run;
use record::scale::ScaleSummary;
use text::words::{count, sentences};

/// The report as one HTML file, with the sections of `extras`.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn scale_html(
    run: &Run,
    summary: &ScaleSummary,
    extras: Extras,
) -> Result<String, RecordError> {
    let plan = run.experiment()?;
    let all = draw(summary);
    let (picture, further) = all.growth.split_at(all.growth.len().min(1));
    let said = findings(summary);
    let first = First {
        question: &plan.question,
        answer: answer(&said),
        picture: drawn(picture),
    };
    let mut sections = vec![question(&plan, first), findings_of(said)];
    sections.extend(growth(summary, further));
    sections.extend(about(summary, About::Response, &all.response));
    sections.extend(about(summary, About::Execution, &all.execution));
    sections.extend(cells(&all.cells));
    sections.push(cost(summary));
    let repeat = again(
        &summary.run,
        &format!("{}/experiment.toml", summary.run),
        None,
    );
    let own = Own {
        name: &summary.experiment,
        run: &summary.run,
        of: "trial",
        what: "trial",
        lacks: (&summary.failures, &summary.not_measured, &summary.unmet),
        more: gave_out(summary),
        again: with_experiment(repeat, &plan),
        banners: not_real_time(summary),
        sections,
    };
    framed(run, own, extras)
}

fn not_real_time(summary: &ScaleSummary) -> Markup {
    html! {
        @if !summary.real_time && summary.points.iter().any(|point| point.rounds > 0) {
            p.banner role="note" {
                strong { "Not real-time:" } " the cells, or some of them, ran in no real-time class. Their numbers say \
                nothing about real-time work."
            }
        }
    }
}

/// The first finding about each engine.
fn answer(said: &[(EngineKind, Vec<String>)]) -> Option<String> {
    let each = said
        .iter()
        .filter_map(|(engine, all)| Some(format!("{engine}: {}", all.first()?)));
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| each.join("; ") + ".")
}

fn question(plan: &Experiment, first: First<'_>) -> Section {
    let counts = |cells: Vec<u32>| {
        let mut counts: Vec<u32> = cells;
        counts.dedup();
        counts
            .iter()
            .map(|&c| count(c.into()))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let cells = plan.trials.iter().map(|trial| trial.cells.len() as u32);
    let mut cells: Vec<u32> = cells.collect();
    cells.sort_unstable();
    let engines: Vec<String> = plan.engines().iter().map(ToString::to_string).collect();
    let work = match plan.workload.work {
        Work::Mac { steps } => format!("mac, {} multiply-accumulate steps", count(steps.into())),
        _ => study::plan::work(&plan.workload),
    };
    let pacing = match plan.workload.pacing {
        Pacing::Relative => "rest between the end of a job and the next release",
        Pacing::Periodic => "period of the releases",
    };
    let reserve = plan.scale.as_ref().and_then(|scale| scale.reserve);
    let class = match plan.scheduling.class {
        Class::Fifo { .. } if reserve == Some(Enforcer::Deadline) => {
            "SCHED_DEADLINE, on every cpu".to_owned()
        }
        Class::Fifo { priority } => format!("SCHED_FIFO {priority}"),
        Class::Other => "SCHED_OTHER, best effort".to_owned(),
    };
    let jobs = plan.trials.iter().map(|trial| plan.workload_of(trial).jobs);
    let (least, most) = (jobs.clone().min().unwrap_or(0), jobs.max().unwrap_or(0));
    let fewer = match least == most {
        true => String::new(),
        false => format!(" to {}, fewer the more cells", count(most.into())),
    };
    let period = plan.workload.period.ns().unsigned_abs();
    let mut facts = vec![
        ("engines", engines.join(", ")),
        ("cells together", counts(cells)),
        ("work of a job", work),
        (pacing, text::units::exact(period)),
        ("jobs of each cell", count(least.into()) + &fewer),
        ("class", class),
        ("cpus", study::plan::list(&plan.scheduling.cpus)),
    ];
    if let Some(scale) = &plan.scale {
        let limit = f64::from(scale.failure_limit) / 10.0;
        facts.extend([
            ("reservation of each cell", reservation(scale.reserve)),
            ("created at the same time", scale.parallel.to_string()),
            (
                "an engine's study ends",
                format!("where more than {limit} % of the cells fail"),
            ),
        ]);
    }
    first.section(facts, &[])
}

fn reservation(reserve: Option<Enforcer>) -> String {
    let name = Scale::reserve_name(reserve);
    let of = match reserve.filter(|enforcer| enforcer.has_budgets()) {
        None => return name.to_owned(),
        Some(enforcer) if enforcer.is_by_thread() => {
            "what the kernel admits in every second, on any cpu"
        }
        Some(_) => "the real-time budget of every second, on each cpu",
    };
    format!("{name}: an equal part of {of}")
}

fn findings_of(said: Vec<(EngineKind, Vec<String>)>) -> Section {
    Section {
        id: "found",
        heading: "What was found".to_owned(),
        body: html! {
            @for (engine, all) in said { h3 { (engine) } (found(&sentences(all.into_iter().skip(1).collect()))) }
        },
    }
}

fn growth(summary: &ScaleSummary, figures: &[Figure]) -> Option<Section> {
    let some = summary.points.iter().any(|point| point.execution.is_some());
    some.then(|| Section {
        id: "growth",
        heading: "Growth and saturation".to_owned(),
        body: html! {
            p {
                "Cells that rest between jobs and share cpus are a closed queueing system. With demand E, rest Z, m cpus \
                 and N cells no order of service gives a mean response time below max(E, N E / m - Z) (Denning and \
                 Buzen 1978), none that keeps the cpus busy one above E (1 + (N - 1) / m); processor sharing lies \
                 between. E is the cpu time of a job in the smallest trial. The cpus saturate at N = m (E + Z) / E."
            }
            (tables::growth(summary))
            (knees(summary))
            (drawn(figures))
        },
    })
}

fn knees(summary: &ScaleSummary) -> Markup {
    let rows = summary.engines.iter().flat_map(|engine| {
        let growth = engine.growth.iter().enumerate();
        growth.filter_map(|(at, of)| {
            let name = if at == 0 { engine.engine.name() } else { "" };
            Some((name, of.what.as_str(), grows(of)?))
        })
    });
    let caption = "Where growth leaves the straight line: two lines that meet against one, by relative least squares";
    let table = Table::new(caption, rows)
        .stacked()
        .head("engine", |row| row.0)
        .text("what", |row| row.1)
        .text("how it grows", |row| row.2.clone());
    html! {
        @if table.is_empty() {
            p.quiet { "Fewer than six numbers of cells: too few to say where growth leaves the straight line." }
        }
        (table)
    }
}

fn about(summary: &ScaleSummary, about: About, figures: &[Figure]) -> Option<Section> {
    (!figures.is_empty()).then(|| Section {
        id: about.tag(),
        heading: format!("Between cells: {}", about.title()),
        body: html! {
            p { @match about {
                About::Response => {
                    "From release to end, the wait for a cpu included. In class FIFO, cells of one priority queue, so this is where their \
                     number shows."
                }
                About::Execution => {
                    "From start to end, preemption included: the figure of the zcu102 thesis (its Table 4.4 and \
                     Figs. 4.21 to 4.24)."
                }
            } }
            (tables::fairness(summary, about))
            p.quiet {
                "CV is the standard deviation of the cells' means over their mean. Chance is what so many jobs would give if all cells of \
                 a cpu were alike, from batches of consecutive jobs; cells are called uneven from 5 % beyond chance. A cell on a fuller \
                 cpu is slower without being treated unfairly. Cells that are not pinned (SCHED_DEADLINE) are compared all together."
            }
            (drawn(figures))
        },
    })
}

fn cells(engines: &[(EngineKind, Vec<Figure>)]) -> Option<Section> {
    (!engines.is_empty()).then(|| Section {
        id: "cells",
        heading: "Cell by cell".to_owned(),
        body: html! {
            p { (panels::EXPLAINED) }
            @for (at, (engine, figures)) in engines.iter().enumerate() {
                @if at == 0 { (drawn(figures)) } @else {
                    details { summary { "The same of " (engine) } (drawn(figures)) }
                }
            }
        },
    })
}

fn cost(summary: &ScaleSummary) -> Section {
    Section {
        id: "cost",
        heading: "What cells cost".to_owned(),
        body: html! {
            (tables::cost(summary))
            p.quiet {
                "Memory is the proportional set size while armed and idle. The cpu time while waiting is that of all \
                 armed cells together. Start skew is the latest minus the earliest start. How late the coordinator was \
                 scheduled is what the watchdog saw."
            }
        },
    }
}

/// The limits that ended an engine's trials.
fn gave_out(summary: &ScaleSummary) -> Markup {
    let rows = summary.points.iter().filter_map(|point| {
        let out = crowd(point)?.gave_out.as_ref()?;
        let value = out.value.as_ref().map(|value| format!(": {value}"));
        let what = format!("{} ({}{})", out.what, out.limit, value.unwrap_or_default());
        Some((point.trial.as_str(), what, out.fix.as_str()))
    });
    let rows: Vec<(&str, String, &str)> = rows.collect();
    let rows = rows
        .iter()
        .map(|(trial, what, fix)| (*trial, what.as_str(), *fix));
    absences("What ran out", ["trial", "what"], rows)
}
