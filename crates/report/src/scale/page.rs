//! The report of a scale study as one HTML file.

use super::findings::{crowd, findings, grows};
use super::panels;
use super::picture::{About, draw};
use super::tables;
use crate::figure::Figure;
use crate::html::{
    Extras, Own, Section, absent_table, failure_list, framed, not_measured_table, pictures,
    unmet_table,
};
use maud::{Markup, html};
use model::{Class, Enforcer, EngineKind, Experiment, Pacing, Scale, Work};
use record::RecordError;
use record::run::Run;
use record::scale::{ScalePoint, ScaleSummary};
use text::words::{clean, count, sentence};

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
    let drawn = draw(summary);
    let mut sections = vec![asked(&plan), found(summary)];
    sections.extend(growth(summary, &drawn.growth));
    sections.extend(about(summary, About::Response, &drawn.response));
    sections.extend(about(summary, About::Execution, &drawn.execution));
    sections.extend(cells(&drawn.cells));
    sections.extend([cost(summary), lacking(summary), again(summary, &plan)]);
    let own = Own {
        name: &summary.experiment,
        run: &summary.run,
        of: "trial",
        failures: &summary.failures,
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

fn asked(plan: &Experiment) -> Section {
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
    Section {
        id: "asked",
        heading: "What was asked".to_owned(),
        body: html! {
            p.question { (clean(&plan.question)) }
            dl {
                dt { "engines" } dd { (engines.join(", ")) }
                dt { "cells together" } dd { (counts(cells)) }
                dt { "work of a job" } dd { (work) }
                dt { (pacing) } dd { (text::units::exact(plan.workload.period.ns().unsigned_abs())) }
                dt { "jobs of each cell" } dd {
                    (count(least.into())) @if least != most { " to " (count(most.into())) ", fewer the more cells" }
                }
                dt { "class" } dd { (class) }
                dt { "cpus" } dd { (study::plan::list(&plan.scheduling.cpus)) }
                @if let Some(scale) = &plan.scale {
                    dt { "reservation of each cell" } dd { (reservation(scale.reserve)) }
                    dt { "created at the same time" } dd { (scale.parallel) }
                    dt { "an engine's study ends" } dd {
                        "where more than " (f64::from(scale.failure_limit) / 10.0) "% of the cells fail"
                    }
                }
            }
        },
    }
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

fn found(summary: &ScaleSummary) -> Section {
    let found = findings(summary);
    Section {
        id: "found",
        heading: "What was found".to_owned(),
        body: html! {
            @for (engine, sentences) in &found {
                h3 { (engine) }
                ul.findings { @for text in sentences { li { (sentence(&clean(text))) } } }
            }
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
            (pictures(figures))
        },
    })
}

fn knees(summary: &ScaleSummary) -> Markup {
    let mut rows = Vec::new();
    for engine in &summary.engines {
        for (at, of) in engine.growth.iter().enumerate() {
            rows.extend(grows(of).map(|how| ((at == 0).then_some(engine.engine), of, how)));
        }
    }
    if rows.is_empty() {
        return html! {
            p.quiet { "Fewer than six numbers of cells: too few to say where growth leaves the straight line." }
        };
    }
    html! {
        div.scroll {
            table.stack {
                caption { "Where growth leaves the straight line: two lines that meet against one, by relative least squares" }
                thead { tr { th scope="col" { "engine" } th scope="col" { "what" } th scope="col" { "how it grows" } } }
                tbody { @for (engine, of, how) in &rows {
                    tr {
                        th scope="row" { @if let Some(engine) = engine { (engine) } }
                        td data-label="what" { (of.what) } td data-label="how it grows" { (how) }
                    }
                } }
            }
        }
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
                 a cpu were alike, from batches of consecutive jobs; cells are called uneven from 5% beyond chance. A cell on a fuller \
                 cpu is slower without being treated unfairly. Cells that are not pinned (SCHED_DEADLINE) are compared all together."
            }
            (pictures(figures))
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
                @if at == 0 { (pictures(figures)) } @else {
                    details { summary { "The same of " (engine) } (pictures(figures)) }
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

fn lacking(summary: &ScaleSummary) -> Section {
    let gave_out: Vec<(&ScalePoint, _)> = summary
        .points
        .iter()
        .filter_map(|point| Some((point, crowd(point)?.gave_out.as_ref()?)))
        .collect();
    let nothing =
        summary.failures.is_empty() && summary.not_measured.is_empty() && summary.unmet.is_empty();
    let whats: Vec<String> = gave_out
        .iter()
        .map(|(_, out)| {
            let value = out
                .value
                .as_ref()
                .map_or(String::new(), |value| format!(": {value}"));
            format!("{} ({}{value})", out.what, out.limit)
        })
        .collect();
    let out: Vec<[&str; 3]> = gave_out
        .iter()
        .zip(&whats)
        .map(|((point, out), what)| [point.trial.as_str(), what.as_str(), out.fix.as_str()])
        .collect();
    Section {
        id: "lacking",
        heading: "What is missing".to_owned(),
        body: html! {
            @if nothing { p { "Nothing: every number of cells was measured and every requirement was met." } }
            @if !out.is_empty() { (absent_table("What ran out", ["trial", "what", "fix"], &out)) }
            (not_measured_table("trial", &summary.not_measured))
            (unmet_table(&summary.unmet))
            (failure_list(&summary.failures))
        },
    }
}

fn again(summary: &ScaleSummary, plan: &Experiment) -> Section {
    let run = clean(&summary.run);
    let lines: Vec<String> = plan.to_toml().lines().map(clean).collect();
    Section {
        id: "rerun",
        heading: "Again".to_owned(),
        body: html! {
            p { "The first line repeats the measurement; the second regenerates this page from the run's samples:" }
            pre { code { "sudo timecell bench " (run) "/experiment.toml\ntimecell report " (run) } }
            details {
                summary { "The experiment file" }
                pre { code { (lines.join("\n")) } }
            }
        },
    }
}
