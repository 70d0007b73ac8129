//! The numbers of a run that can be shown beside published figures.

use model::{Bytes, EngineKind, Experiment, Machine, Size, TrialPlan, Work};
use record::series::{Quantity, SeriesFigure, SeriesSummary, Swept};
use record::summary::{Metric, RunSummary};
use text::units::time;
use text::words::plural;

use super::source::{About, Kind};

/// One number of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Own {
    pub about: About,
    pub kind: Kind,
    /// The cell's or trial's name in tables.
    pub label: String,
    /// `None` where any engine corresponds.
    pub engine: Option<EngineKind>,
    /// Its name in a run of single measurements.
    pub subject: Option<String>,
    /// Which figure of that run it is, where it has several of the same metric.
    pub part: Option<String>,
    /// Threads of the computation.
    pub threads: Option<u32>,
    /// Whether the kernel of its guest is a PREEMPT_RT one; `None`: it has no guest, or that is not known.
    pub preempt_rt: Option<bool>,
    /// Cells of the trial.
    pub cells: u32,
    /// Their engines, sorted by name; empty where there is no trial.
    pub mix: Vec<EngineKind>,
    pub load: String,
    pub period_us: Option<u64>,
    /// The size of the cell in a sweep.
    pub size: Option<Size>,
    pub real_time: bool,
    /// ns, or bytes, or without a unit.
    pub value: f64,
}

/// The numbers of a run, cell by cell.
pub(super) fn numbers(summary: &RunSummary, plan: &Experiment) -> Vec<Own> {
    let mut all = Vec::new();
    for cell in &summary.cells {
        let Some(trial) = plan.trials.iter().find(|trial| trial.name == cell.trial) else {
            continue;
        };
        let place = trial.place_of(&cell.cell).unwrap_or(usize::MAX);
        let task = plan.task_of(trial, place);
        let period_us = u64::try_from(task.period.ns() / 1_000).ok();
        for metric in &cell.metrics {
            let about = match metric.metric {
                Metric::WakeupLatency => About::WakeupLatency,
                // The published jobs are multiply-accumulate steps too.
                Metric::ExecutionTime if matches!(task.work, Work::Mac { .. }) => {
                    About::ExecutionTime
                }
                _ => continue,
            };
            let s = &metric.summary;
            let quantile = |p| s.quantile(p).and_then(|q| q.value_ns).map(|ns| ns as f64);
            for (kind, value) in [
                (Kind::Min, Some(s.min_ns as f64)),
                (Kind::Median, Some(s.median_ns as f64)),
                (Kind::Mean, Some(s.mean_ns)),
                (Kind::Sd, s.sd_ns),
                (Kind::P95, quantile(0.95)),
                (Kind::P99, quantile(0.99)),
                (Kind::Max, Some(s.max_ns as f64)),
            ] {
                all.extend(value.map(|value| {
                    Own {
                        about,
                        kind,
                        label: cell.label.clone(),
                        engine: Some(cell.engine),
                        subject: None,
                        part: None,
                        threads: None,
                        preempt_rt: (cell.engine.is_machine())
                            .then(|| has_rt_guest(&plan.machine_of(trial)))
                            .flatten(),
                        cells: trial.cells.len() as u32,
                        mix: mix(trial),
                        load: trial.load_name(),
                        period_us,
                        size: None,
                        real_time: cell.real_time,
                        value,
                    }
                }));
            }
        }
    }
    for skew in &summary.skews {
        let trial = plan.trials.iter().find(|trial| trial.name == skew.trial);
        let values: Vec<i64> = skew
            .skew_ns
            .iter()
            .filter_map(|&ns| i64::try_from(ns).ok())
            .collect();
        all.extend(stats::median_of(&values).map(|median| Own {
            about: About::StartSkew,
            kind: Kind::Value,
            label: format!("{} (median of {} rounds)", skew.trial, values.len()),
            engine: None,
            subject: None,
            part: None,
            threads: None,
            preempt_rt: None,
            cells: skew.cells,
            mix: trial.map(mix).unwrap_or_default(),
            load: trial.map_or_else(|| "idle".to_owned(), |trial| trial.load_name()),
            period_us: None,
            size: None,
            real_time: true,
            value: median as f64,
        }));
    }
    all
}

/// Whether the kernel of a machine is a PREEMPT_RT one, by its name; the boards that come with timecell have one. `None`: its name does
/// not tell.
fn has_rt_guest(machine: &Machine) -> Option<bool> {
    match &machine.kernel {
        Some(kernel) if kernel.contains('/') => None,
        Some(package) => Some(package.contains("-rt")),
        None => (!machine.board().contains('/')).then_some(true),
    }
}

fn mix(trial: &TrialPlan) -> Vec<EngineKind> {
    let mut engines: Vec<EngineKind> = trial.cells.clone();
    engines.sort_by_key(|engine| engine.name());
    engines
}

/// The numbers of a run of single measurements that stand for themselves; shares of them are left out.
pub(super) fn single(summary: &SeriesSummary) -> Vec<Own> {
    // In the other scenarios nothing is in a real-time class, by intent.
    let refused = (summary.unmet.iter()).any(|need| need.what.starts_with("SCHED_FIFO"));
    let real_time = summary.scenario != "nqueens" || !refused;
    let mut all = Vec::new();
    for figure in summary.figures.iter().filter(|figure| figure.of.is_none()) {
        let Some(what) = what(&summary.scenario, figure) else {
            continue;
        };
        let swept = (summary.sweep.iter()).find(|one| one.subject == figure.subject);
        let subject = swept.map_or(&figure.subject, |one| &one.of).as_str();
        let named = if what.about == About::Startup {
            figure.subject.clone()
        } else {
            format!("{}, {}", figure.subject, figure.part)
        };
        for (kind, value) in [
            (Kind::Median, Some(figure.median as f64)),
            (Kind::Mean, Some(figure.mean)),
            (Kind::Sd, figure.sd),
            (Kind::Max, Some(figure.worst as f64)),
            (Kind::Value, Some(figure.median as f64)),
        ] {
            let median = if kind == Kind::Value {
                "median of "
            } else {
                ""
            };
            all.extend(value.map(|value| Own {
                about: what.about,
                kind,
                label: format!("{named}, {median}{}", plural(figure.count, "round")),
                engine: engine_of(&figure.subject),
                subject: Some(subject.to_owned()),
                part: Some(figure.part.clone()),
                threads: what.threads,
                preempt_rt: None,
                cells: 1,
                mix: Vec::new(),
                load: what.load.to_owned(),
                period_us: None,
                size: swept.map(|one| one.size),
                real_time,
                value,
            }));
        }
    }
    all.extend(effects(summary));
    all
}

/// The engine that the name of a subject tells: its machines have names of their own.
fn engine_of(subject: &str) -> Option<EngineKind> {
    let is_machine = subject.starts_with(&format!("{}-", EngineKind::Qemu.name()));
    is_machine.then_some(EngineKind::Qemu)
}

/// How many times as long a start-up takes on average in a cell of a larger size, of any two sizes that differ along one axis.
fn effects(summary: &SeriesSummary) -> Vec<Own> {
    type Axis = (&'static str, fn(Size) -> Option<u64>, fn(Size) -> Size);
    let axes: [Axis; 2] = [
        (
            "vcpus",
            |size| size.vcpus.map(u64::from),
            |size| Size {
                vcpus: None,
                ..size
            },
        ),
        (
            "memory",
            |size| size.memory_bytes,
            |size| Size {
                memory_bytes: None,
                ..size
            },
        ),
    ];
    let mean = |one: &Swept| {
        let mut all = summary.figures.iter();
        let whole = all.find(|f| f.subject == one.subject && f.part == START_UP);
        whole.map(|figure| figure.mean)
    };
    let mut all = Vec::new();
    for ((axis, along, without), from, to) in axes.into_iter().flat_map(|axis| {
        let sweep = summary.sweep.iter();
        sweep.flat_map(move |from| summary.sweep.iter().map(move |to| (axis, from, to)))
    }) {
        let (Some(smaller), Some(larger)) = (along(from.size), along(to.size)) else {
            continue;
        };
        let rest = without(from.size);
        if from.of != to.of || smaller >= larger || without(to.size) != rest {
            continue;
        }
        let (Some(short), Some(long)) = (mean(from), mean(to)) else {
            continue;
        };
        let same = summary.sweep.iter().filter(|one| one.of == from.of);
        let values = || same.clone().filter_map(|one| along(one.size));
        let whole = values().min() == Some(smaller) && values().max() == Some(larger);
        let at = match rest == Size::default() {
            true => from.of.clone(),
            false => format!("{}, {rest}", from.of),
        };
        let label = format!(
            "{at}: {} at {}, {} at {}",
            time(short),
            shown(axis, smaller),
            time(long),
            shown(axis, larger)
        );
        let parts = [
            Some(format!("{axis} {smaller} to {larger}")),
            whole.then(|| axis.to_owned()),
        ];
        all.extend(parts.into_iter().flatten().map(|part| Own {
            about: About::SizeEffect,
            kind: Kind::Value,
            label: label.clone(),
            engine: engine_of(&from.of),
            subject: Some(from.of.clone()),
            part: Some(part),
            preempt_rt: None,
            threads: None,
            cells: 1,
            mix: Vec::new(),
            load: "idle".to_owned(),
            period_us: None,
            size: None,
            real_time: true,
            value: long / short,
        }));
    }
    all
}

fn shown(axis: &str, value: u64) -> String {
    match axis {
        "vcpus" => Size::cpus_text(u32::try_from(value).unwrap_or(u32::MAX)),
        _ => Bytes::new(value).to_string(),
    }
}

/// The part of a start-up run that documents print.
const START_UP: &str = "request to gone";

/// A figure of a run of single measurements, in the words of published ones.
struct What {
    about: About,
    threads: Option<u32>,
    load: &'static str,
}

/// `None` for figures that no document could print.
fn what(scenario: &str, figure: &SeriesFigure) -> Option<What> {
    let idle = |about| What {
        about,
        threads: None,
        load: "idle",
    };
    match (scenario, figure.unit) {
        ("startup", Quantity::Ns) if figure.part == START_UP => Some(idle(About::Startup)),
        ("recovery" | "mission", Quantity::Ns) => Some(idle(About::Recovery)),
        ("footprint", Quantity::Bytes) => Some(idle(About::Memory)),
        ("nqueens", Quantity::Ns) => {
            let (threads, load) = match figure.part.strip_suffix(", cpu load elsewhere") {
                Some(threads) => (threads, "cpu"),
                None => (figure.part.as_str(), "idle"),
            };
            // Cpu times and temperatures begin with other words.
            let (number, _) = threads.split_once(" thread")?;
            Some(What {
                about: About::Computation,
                threads: Some(number.parse().ok()?),
                load,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::series::SERIES_SUMMARY_SCHEMA;

    #[test]
    fn the_kernel_of_a_guest_is_told_by_its_package() {
        let machine = |board: Option<&str>, kernel: Option<&str>| Machine {
            board: board.map(str::to_owned),
            kernel: kernel.map(str::to_owned),
            ..Machine::default()
        };
        let of = |board, kernel| has_rt_guest(&machine(board, kernel));
        assert_eq!(of(None, None), Some(true));
        assert_eq!(of(Some("q35"), Some("linux-image-amd64")), Some(false));
        assert_eq!(
            of(Some("./own.toml"), Some("linux-image-rt-arm64")),
            Some(true)
        );
        assert_eq!(of(Some("./own.toml"), None), None);
        assert_eq!(of(None, Some("/boot/vmlinuz-rt")), None);
    }

    #[test]
    fn of_a_start_up_run_the_whole_counts_and_its_shares_do_not() {
        let figure = |part: &str, of: Option<&str>| SeriesFigure {
            subject: "podman, rootfs".to_owned(),
            part: part.to_owned(),
            of: of.map(str::to_owned),
            unit: Quantity::Ns,
            count: 5,
            failed: 0,
            least: 1,
            median: 2,
            median_interval: None,
            mean: 2.5,
            sd: None,
            p90: None,
            p99: None,
            worst: 9,
            against_baseline: None,
            rounds_compared: 0,
        };
        let mut summary = SeriesSummary {
            schema: SERIES_SUMMARY_SCHEMA,
            run: "r".to_owned(),
            scenario: "startup".to_owned(),
            baseline_subject: None,
            figures: vec![
                figure("request to gone", None),
                figure("create", Some("request to gone")),
                figure("request to first instruction", None),
            ],
            not_measured: Vec::new(),
            unmet: Vec::new(),
            notes: Vec::new(),
            sweep: Vec::new(),
            failures: Vec::new(),
        };
        let all = single(&summary);
        let values: Vec<(Kind, f64)> = all.iter().map(|own| (own.kind, own.value)).collect();
        assert_eq!(
            values,
            [
                (Kind::Median, 2.0),
                (Kind::Mean, 2.5),
                (Kind::Max, 9.0),
                (Kind::Value, 2.0)
            ]
        );
        assert_eq!(all[0].subject.as_deref(), Some("podman, rootfs"));
        summary.scenario = "other".to_owned();
        assert!(single(&summary).is_empty());
    }
}
