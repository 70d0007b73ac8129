//! The trials of an experiment file: `[[trial]]` and `[matrix]`.

use toml::Spanned;
use toml::de::DeValue;

use crate::loads::{self, LOADS_WANTED};
use crate::own;
use crate::parse::{is_name, period_of};
use crate::reader::Table;
use crate::task_load::MOST_COMPETITION;
use crate::{Duration, EngineKind, InputError, Keep, Limits, LoadPlan, TrialPlan, task_held};

const TRIAL: [&str; 13] = [
    "name",
    "cells",
    "copies",
    "load",
    "loads",
    "period",
    "jobs",
    "isolate",
    "cpus",
    "per_cpu",
    "competitors",
    "reserve",
    "parts",
];
const MATRIX: [&str; 6] = [
    "cells", "loads", "periods", "isolate", "per_cpu", "duration",
];

/// Every trial, those of the matrix after those written out.
pub(crate) fn trials(top: &Table<'_>, keep: Keep) -> Result<Vec<TrialPlan>, InputError> {
    let tables = top.tables("trial", &TRIAL)?;
    let matrix = top.table("matrix", &MATRIX)?;
    if tables.is_empty() && matrix.is_none() {
        return Err(InputError {
            line: Some(1),
            ..top.missing("trial", "[[trial]]")
        });
    }
    let mut trials: Vec<TrialPlan> = Vec::with_capacity(tables.len());
    for table in &tables {
        let trial = trial(table, keep)?;
        if trials.iter().any(|other| other.name == trial.name) {
            return Err(table.fault(
                "name",
                format!("there are two trials named `{}`", trial.name),
                "give each its own name",
            ));
        }
        trials.push(trial);
    }
    if let Some(table) = &matrix {
        for trial in points(table)? {
            if trials.iter().any(|other| other.name == trial.name) {
                return Err(table.fault(
                    "cells",
                    format!("there are two trials named `{}`", trial.name),
                    "leave out what stands twice, or give a load its own `name`",
                ));
            }
            trials.push(trial);
        }
    }
    Ok(trials)
}

fn trial(table: &Table<'_>, keep: Keep) -> Result<TrialPlan, InputError> {
    let (engines, own) = own::cells(table, keep)?;
    let copies = table.integer("copies", &Limits::CELLS)?.unwrap_or(1);
    let count = engines.len() as i64 * copies;
    if !Limits::CELLS.contains(&count) {
        return Err(table.fault(
            "cells",
            format!("this trial has {count} cells"),
            format!("a trial has 1 to {} cells", Limits::CELLS.end()),
        ));
    }
    let loads = loads::of_trial(table)?;
    let name = match table.text("name")? {
        Some(name) if is_name(name) => name.to_owned(),
        Some(name) => {
            return Err(table.fault(
                "name",
                format!("`{name}` is no name for a trial"),
                "use 1 to 64 letters, digits, `-` and `_`",
            ));
        }
        None if count == 1 => {
            let mut name = engines[0].name().to_owned();
            for load in &loads {
                name = format!("{name}-{}", load.name);
            }
            name
        }
        None => return Err(table.missing("name", "\"two-rootful\"")),
    };
    let jobs = table.integer("jobs", &keep.jobs())?;
    let (reserve, parts) = task_held::of_trial(table)?;
    Ok(TrialPlan {
        name,
        cells: engines.repeat(usize::try_from(copies).unwrap_or(1)),
        own: vec![own; usize::try_from(copies).unwrap_or(1)].concat(),
        loads,
        period: period_of(table, "period")?,
        jobs: jobs.and_then(|jobs| u32::try_from(jobs).ok()),
        isolate: table.boolean("isolate")?.unwrap_or(false),
        competitors: competitors(table)?,
        reserve,
        parts,
        cpus: table.cpus("cpus")?.unwrap_or_default(),
        per_cpu: table.boolean("per_cpu")?.unwrap_or(false),
    })
}

/// Utilisation of the competing cells, written as a fraction of a cpu.
fn competitors(table: &Table<'_>) -> Result<u32, InputError> {
    let Some(share) = table.number("competitors")? else {
        return Ok(0);
    };
    let per_mille = (share * 1000.0).round();
    if !(0.0..=f64::from(MOST_COMPETITION)).contains(&per_mille) {
        return Err(table.fault(
            "competitors",
            format!("`competitors` is {share}"),
            "it is the share of a cpu that a competing cell takes, 0.0 to 0.9",
        ));
    }
    Ok(per_mille as u32)
}

fn engine(value: &DeValue<'_>) -> Result<EngineKind, String> {
    match value {
        DeValue::String(name) => name.parse(),
        other => Err(format!("an engine is a text, not {}", other.type_str())),
    }
}

/// The cross product of the matrix: cells outermost, so that what is compared first runs close together in time.
fn points(table: &Table<'_>) -> Result<Vec<TrialPlan>, InputError> {
    let cells = cells(table)?;
    let loads = match table.items("loads", LOADS_WANTED)? {
        None => vec![None],
        Some(items) => (items.iter())
            .map(|item| loads::point(table, item).map(Some))
            .collect::<Result<_, _>>()?,
    };
    let periods = match table.items("periods", "a list of durations such as [\"1ms\"]")? {
        None => vec![None],
        Some(items) => (items.iter())
            .map(|item| period(table, item).map(Some))
            .collect::<Result<_, _>>()?,
    };
    let isolate = table
        .array("isolate", "a list such as [false, true]", |item| {
            item.as_bool()
                .ok_or_else(|| format!("`isolate` is true or false, not {}", item.type_str()))
        })?
        .unwrap_or_else(|| vec![false]);
    for (key, empty) in [
        ("cells", cells.is_empty()),
        ("loads", loads.is_empty()),
        ("periods", periods.is_empty()),
        ("isolate", isolate.is_empty()),
    ] {
        if empty {
            return Err(table.fault(
                key,
                format!("`{key}` of [matrix] is empty"),
                "name at least one, or leave the line out",
            ));
        }
    }
    let count = (cells.len() as i64)
        .saturating_mul(loads.len() as i64)
        .saturating_mul(periods.len() as i64)
        .saturating_mul(isolate.len() as i64);
    if !Limits::TRIALS.contains(&count) {
        return Err(table.fault(
            "cells",
            format!("the matrix has {count} trials"),
            format!("a matrix has 1 to {} trials", Limits::TRIALS.end()),
        ));
    }
    let per_cpu = table.boolean("per_cpu")?.unwrap_or(false);
    let duration = table.duration("duration")?;
    if duration.is_some() && table.item("periods").is_none() {
        return Err(table.fault(
            "duration",
            "`duration` of [matrix] goes with `periods`",
            "add `periods`, or set `jobs` of [workload]",
        ));
    }
    let mut trials = Vec::new();
    for engines in &cells {
        for load in &loads {
            for period in &periods {
                for &isolate in &isolate {
                    let name = point_name(engines, load.as_deref(), *period, isolate);
                    if !is_name(&name) {
                        return Err(table.fault(
                            "cells",
                            format!("the matrix has a trial named `{name}`, which is too long"),
                            "write the trial out as a [[trial]] with a `name` of up to 64 characters",
                        ));
                    }
                    trials.push(TrialPlan {
                        name,
                        cells: engines.clone(),
                        own: Vec::new(),
                        loads: load.clone().unwrap_or_default(),
                        period: *period,
                        jobs: match (duration, period) {
                            (Some(duration), Some(period)) => {
                                Some(jobs_of(table, duration, *period)?)
                            }
                            _ => None,
                        },
                        isolate,
                        competitors: 0,
                        reserve: None,
                        parts: Vec::new(),
                        cpus: Vec::new(),
                        per_cpu,
                    });
                }
            }
        }
    }
    Ok(trials)
}

/// The activations of this period that take so long.
fn jobs_of(table: &Table<'_>, duration: Duration, period: Duration) -> Result<u32, InputError> {
    let jobs = duration.ns() / period.ns().max(1);
    u32::try_from(jobs)
        .ok()
        .filter(|_| Limits::JOBS.contains(&jobs))
        .ok_or_else(|| {
            table.fault(
                "duration",
                format!("{duration} hold {jobs} periods of {period}"),
                format!(
                    "a trial has {} to {} jobs",
                    Limits::JOBS.start(),
                    Limits::JOBS.end()
                ),
            )
        })
}

fn cells(table: &Table<'_>) -> Result<Vec<Vec<EngineKind>>, InputError> {
    const WANTED: &str = "a list of lists of engines such as [[\"bare\"], [\"crun\"]]";
    let items = table
        .items("cells", WANTED)?
        .ok_or_else(|| table.missing("cells", "[[\"bare\"], [\"crun\"]]"))?;
    (items.iter())
        .map(|item| {
            let at = |what: String| table.fault_at(item, what, "");
            let list = item.get_ref().as_array().ok_or_else(|| {
                at(format!(
                    "an entry of `cells` is of type {}; it must be a list of engines such as [\"crun\"]",
                    item.get_ref().type_str()
                ))
            })?;
            if !Limits::CELLS.contains(&(list.len() as i64)) {
                return Err(at(format!("this entry has {} cells", list.len())));
            }
            list.iter()
                .map(|name| engine(name.get_ref()).map_err(|what| table.fault_at(name, what, "")))
                .collect()
        })
        .collect()
}

fn period(table: &Table<'_>, item: &Spanned<DeValue<'_>>) -> Result<Duration, InputError> {
    let fault = |what: String| table.fault_at(item, what, "a period is a text such as \"100us\"");
    let text = item
        .get_ref()
        .as_str()
        .ok_or_else(|| fault(format!("a period is of type {}", item.get_ref().type_str())))?;
    let period: Duration = text.parse().map_err(|error| fault(format!("{error}")))?;
    if Limits::PERIOD_NS.contains(&period.ns()) {
        Ok(period)
    } else {
        Err(table.fault_at(
            item,
            format!("the period is {period}"),
            "it must be 10us to 1h",
        ))
    }
}

/// Such as `crun-ipc-100us` or `2xpodman_docker-idle-isolated`.
fn point_name(
    engines: &[EngineKind],
    loads: Option<&[LoadPlan]>,
    period: Option<Duration>,
    isolate: bool,
) -> String {
    let cells: Vec<String> = engines
        .chunk_by(|a, b| a == b)
        .map(|same| match same.len() {
            1 => same[0].name().to_owned(),
            n => format!("{n}x{}", same[0]),
        })
        .collect();
    let mut parts = vec![cells.join("_")];
    parts.extend(
        loads
            .map(crate::load::names)
            .map(|name| name.replace('+', "_")),
    );
    parts.extend(period.map(|period| period.to_string()));
    parts.extend(isolate.then(|| "isolated".to_owned()));
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use crate::{EngineKind, Experiment, LoadForm, LoadKind};

    fn parse(trials: &str) -> Result<Experiment, String> {
        let head = "schema = 1\nname = \"x\"\n[workload]\nkind = \"timer\"\n";
        Experiment::parse("x.toml", &format!("{head}{trials}")).map_err(|e| e.to_string())
    }

    fn refused(trials: &str) -> String {
        parse(trials).expect_err("must be refused")
    }

    #[test]
    fn a_matrix_is_the_cross_product_with_names_that_speak() {
        let experiment = parse(
            "[matrix]\ncells = [[\"bare\"], [\"crun\", \"crun\", \"podman\"]]\nloads = [\"idle\", [\"cpu\", \"disk\"]]\n\
             periods = [\"100us\", \"1.5ms\"]\nisolate = [false, true]\n",
        )
        .unwrap();
        let names: Vec<&str> = experiment.trials.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names.len(), 16);
        assert_eq!(names[0], "bare-idle-100us");
        assert_eq!(names[1], "bare-idle-100us-isolated");
        assert_eq!(names[6], "bare-cpu_disk-1500us");
        assert_eq!(names[15], "2xcrun_podman-cpu_disk-1500us-isolated");
        let last = &experiment.trials[15];
        assert_eq!(last.load_name(), "cpu+disk");
        assert_eq!(experiment.workload_of(last).period.ns(), 1_500_000);
        assert!(last.isolate && experiment.trials[0].loads.is_empty());
        assert_eq!(experiment.baseline, "bare-idle-100us");
    }

    #[test]
    fn a_matrix_stands_beside_trials_and_only_speaks_of_what_it_varies() {
        let experiment = parse(
            "[[trial]]\ncells = [\"crun\"]\nload = \"ipc\"\n[matrix]\ncells = [[\"bare\"]]\n",
        )
        .unwrap();
        let names: Vec<&str> = experiment.trials.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["crun-ipc", "bare"]);
    }

    #[test]
    fn a_duration_gives_every_period_its_own_number_of_jobs() {
        let experiment = parse(
            "[matrix]\ncells = [[\"bare\"]]\nperiods = [\"100us\", \"10ms\"]\nduration = \"2s\"\nper_cpu = true\n",
        )
        .unwrap();
        let jobs: Vec<Option<u32>> = experiment.trials.iter().map(|t| t.jobs).collect();
        assert_eq!(jobs, [Some(20_000), Some(200)]);
        assert!(experiment.trials.iter().all(|trial| trial.per_cpu));
        let message =
            refused("[matrix]\ncells = [[\"bare\"]]\nperiods = [\"10ms\"]\nduration = \"1ms\"\n");
        assert!(message.contains("1ms hold 0 periods of 10ms"), "{message}");
        let message = refused("[matrix]\ncells = [[\"bare\"]]\nduration = \"1s\"\n");
        assert!(
            message.contains("`duration` of [matrix] goes with `periods`"),
            "{message}"
        );
    }

    #[test]
    fn a_load_is_a_name_or_a_table() {
        let experiment = parse(
            "[[trial]]\ncells = [\"bare\"]\nloads = [\"net-icmp\", { kind = \"custom\", name = \"mine\", \
             command = [\"sh\", \"-c\", \"x\"], cpus = [0, 1] }, { kind = \"cpu\", in = \"cell\" }]\nperiod = \"100us\"\n\
             jobs = 7\nisolate = true\n",
        )
        .unwrap();
        let trial = &experiment.trials[0];
        assert_eq!(trial.name, "bare-net-icmp-mine-cpu");
        assert_eq!(trial.loads[0].kind, LoadKind::NetIcmp);
        assert_eq!(trial.loads[1].command, ["sh", "-c", "x"]);
        assert_eq!(trial.loads[1].cpus, [0, 1]);
        assert_eq!(trial.loads[2].cell, Some(EngineKind::Embedded));
        assert_eq!(trial.loads[2].form, None::<LoadForm>);
        let workload = experiment.workload_of(trial);
        assert_eq!((workload.period.ns(), workload.jobs), (100_000, 7));
    }

    #[test]
    fn a_faulty_load_or_matrix_names_its_line_and_the_mend() {
        let trial = |line: &str| refused(&format!("[[trial]]\ncells = [\"bare\"]\n{line}\n"));
        for (message, expected) in [
            (
                trial("load = \"icp\""),
                "x.toml:7: unknown load `icp`; did you mean `ipc`? the loads are idle, cpu, ipc, memory, disk, \
                 net-icmp, net-tcp, net-dev, video, custom",
            ),
            (
                trial("loads = [\"cpu\", \"idle\"]"),
                "x.toml:7: `idle` is the absence of load and cannot stand beside others; remove it or the others",
            ),
            (
                trial("loads = [\"cpu\", \"cpu\"]"),
                "x.toml:7: there are two loads named `cpu` in one trial; give one a `name` of its own",
            ),
            (
                trial("load = \"custom\""),
                "x.toml:7: the load `custom` needs a command; write { kind = \"custom\", command = [\"stress\", \
                 \"-c\", \"1\"] }",
            ),
            (
                trial("load = { kind = \"cpu\", command = [\"x\"] }"),
                "x.toml:7: the load `cpu` has no command; remove the line or set kind = \"custom\"",
            ),
            (
                trial("load = { kind = \"cpu\", form = \"program\", in = \"cell\" }"),
                "x.toml:7: a cell holds nothing but timecell, so only built-in loads run in one; set form = \
                 \"built-in\" or in = \"host\"",
            ),
            (
                trial("load = { kind = \"cpu\", cpu = [1] }"),
                "x.toml:7: unknown key `cpu` in a load; did you mean `cpus`?",
            ),
            (
                trial("isolate = 1"),
                "x.toml:7: `isolate` is of type integer; it must be true or false",
            ),
            (
                refused("[matrix]\ncells = [\"bare\"]"),
                "x.toml:6: an entry of `cells` is of type string; it must be a list of engines such as [\"crun\"]",
            ),
            (
                refused("[matrix]\ncells = [[\"bare\"]]\nperiods = [\"1us\"]"),
                "x.toml:7: the period is 1us; it must be 10us to 1h",
            ),
            (
                refused("[matrix]\ncells = [[\"bare\"]]\nloads = []"),
                "x.toml:7: `loads` of [matrix] is empty; name at least one, or leave the line out",
            ),
            (
                refused("[matrix]\ncells = [[\"bare\"], [\"bare\"]]"),
                "x.toml:6: there are two trials named `bare`; leave out what stands twice, or give a load its own \
                 `name`",
            ),
        ] {
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn a_huge_matrix_is_refused_before_it_takes_memory() {
        let many = "\"1ms\", ".repeat(5_000);
        let message = refused(&format!(
            "[matrix]\ncells = [[\"bare\"]]\nperiods = [{many}]"
        ));
        assert!(message.contains("the matrix has 5000 trials"), "{message}");
    }
}
