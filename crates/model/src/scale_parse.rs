//! `[scale]` of an experiment file.

use std::fmt::Write as _;

use toml::de::DeValue;

use crate::parse::{choice, quoted};
use crate::reader::Table;
use crate::scale::COUNTS;
use crate::{Duration, EngineKind, InputError, Keep, Limits, Scale, Work};

const SCALE: [&str; 8] = [
    "engines",
    "counts",
    "failure_limit",
    "parallel",
    "total_jobs",
    "reserve",
    "memory_reserve",
    "starvation_limit",
];
const FAILURE_LIMIT: u32 = 10;
const PARALLEL: u32 = 8;
const TOTAL_JOBS: u32 = 100_000;

/// The study that the table asks for; `None` where there is none.
pub(crate) fn scale(top: &Table<'_>, keep: Keep, work: Work) -> Result<Option<Scale>, InputError> {
    let Some(table) = top.table("scale", &SCALE)? else {
        return Ok(None);
    };
    if let Some(key) = ["trial", "matrix"].into_iter().find(|key| top.has(key)) {
        return Err(top.fault(
            key,
            "[scale] makes the trials itself, and none stands beside it",
            "remove one of the two",
        ));
    }
    if keep != Keep::Samples {
        return Err(top.fault(
            "record",
            "the jobs of a scale study are kept one by one",
            "remove the line",
        ));
    }
    if work == Work::Busy {
        return Err(top.fault(
            "scale",
            "a task set has its own number of cells",
            "set kind = \"mac\" or \"timer\"",
        ));
    }
    let engines = table
        .array(
            "engines",
            "a list of engines such as [\"embedded\"]",
            engine,
        )?
        .ok_or_else(|| table.missing("engines", "[\"embedded\"]"))?;
    check_engines(&engines).map_err(|(what, mend)| table.fault("engines", what, mend))?;
    let counts = match table.array("counts", "a list of numbers such as [1, 2, 10]", count)? {
        Some(counts) => {
            check_counts(&counts).map_err(|(what, mend)| table.fault("counts", what, mend))?;
            counts
        }
        None => COUNTS.to_vec(),
    };
    let failure_limit = match table.number("failure_limit")? {
        None => FAILURE_LIMIT,
        Some(share) => {
            thousandths(share).map_err(|(what, mend)| table.fault("failure_limit", what, mend))?
        }
    };
    let starvation_limit = match table.duration("starvation_limit")? {
        None => Scale::STARVATION_LIMIT,
        Some(time) => {
            starvation(time).map_err(|(what, mend)| table.fault("starvation_limit", what, mend))?
        }
    };
    let small = |value: Option<i64>, default: u32| {
        value.map_or(default, |n| u32::try_from(n).unwrap_or(default))
    };
    let reserve = choice(&table, "reserve", &Scale::reserves())?;
    Ok(Some(Scale {
        engines,
        counts,
        failure_limit,
        parallel: small(table.integer("parallel", &Scale::PARALLEL)?, PARALLEL),
        total_jobs: small(table.integer("total_jobs", &Scale::TOTAL_JOBS)?, TOTAL_JOBS),
        reserve: reserve.flatten(),
        memory_reserve: table.bytes("memory_reserve")?,
        starvation_limit,
    }))
}

/// The table as [`scale`] reads it.
pub(crate) fn write(out: &mut String, scale: &Scale) {
    let engines: Vec<String> = scale.engines.iter().map(|e| quoted(e.name())).collect();
    let _ = writeln!(
        out,
        "\n[scale]\nengines = [{}]\ncounts = {:?}\nfailure_limit = {:?}\nparallel = {}\ntotal_jobs = {}\nreserve = \"{}\"\nstarvation_limit = \"{}\"",
        engines.join(", "),
        scale.counts,
        f64::from(scale.failure_limit) / 1000.0,
        scale.parallel,
        scale.total_jobs,
        Scale::reserve_name(scale.reserve),
        scale.starvation_limit,
    );
    if let Some(bytes) = scale.memory_reserve {
        let _ = writeln!(out, "memory_reserve = \"{bytes}\"");
    }
}

/// What is wrong, and what would be right.
pub(crate) type Fault = (String, String);

pub(crate) fn check_engines(engines: &[EngineKind]) -> Result<(), Fault> {
    if engines.is_empty() {
        return Err((
            "no engine is named".to_owned(),
            "name at least one, such as \"embedded\"".to_owned(),
        ));
    }
    let twice = (engines.iter().enumerate()).find(|(at, kind)| engines[..*at].contains(kind));
    match twice {
        Some((_, kind)) => Err((
            format!("the engine {kind} is named twice"),
            "name it once".to_owned(),
        )),
        None => Ok(()),
    }
}

pub(crate) fn check_counts(counts: &[u32]) -> Result<(), Fault> {
    let range = Limits::CELLS;
    let wanted = format!(
        "name ascending numbers of {} to {}, such as 1, 2, 10",
        range.start(),
        range.end()
    );
    if let Some(odd) = counts.iter().find(|n| !range.contains(&i64::from(**n))) {
        return Err((format!("a trial cannot have {odd} cells"), wanted));
    }
    if counts.is_empty() || !counts.is_sorted_by(|a, b| a < b) {
        return Err(("the counts do not ascend".to_owned(), wanted));
    }
    Ok(())
}

/// A share of 0 to 1 in thousandths.
pub(crate) fn thousandths(share: f64) -> Result<u32, Fault> {
    if (0.0..=1.0).contains(&share) {
        Ok((share * 1000.0).round() as u32)
    } else {
        Err((
            format!("the failure limit is {share}"),
            "it is the share of the cells that may fail, 0.0 to 1.0".to_owned(),
        ))
    }
}

/// How long ordinary work may be kept from running.
pub(crate) fn starvation(time: Duration) -> Result<Duration, Fault> {
    if Scale::STARVATION_NS.contains(&time.ns()) {
        Ok(time)
    } else {
        Err((
            format!("the starvation limit is {time}"),
            "ordinary work may be kept from running for 1s to 60s".to_owned(),
        ))
    }
}

fn engine(value: &DeValue<'_>) -> Result<EngineKind, String> {
    match value {
        DeValue::String(name) => name.parse(),
        other => Err(format!("an engine is a text, not {}", other.type_str())),
    }
}

fn count(value: &DeValue<'_>) -> Result<u32, String> {
    (value.as_integer())
        .and_then(|n| i64::from_str_radix(n.as_str(), n.radix()).ok())
        .and_then(|n| u32::try_from(n).ok())
        .ok_or_else(|| "a count is a number of cells, such as 64".to_owned())
}

#[cfg(test)]
mod tests {
    use crate::{Bytes, Duration, Enforcer, EngineKind, Experiment, Overrides, Scale};

    const HEAD: &str =
        "schema = 1\nname = \"x\"\nrounds = 1\n[workload]\nkind = \"mac\"\njobs = 900\n";

    fn parse(scale: &str) -> Result<Experiment, String> {
        Experiment::parse("x.toml", &format!("{HEAD}{scale}")).map_err(|e| e.to_string())
    }

    #[test]
    fn a_study_is_read_and_written_back_to_the_same_value() {
        let text = "[scale]\nengines = [\"crun\", \"bare\"]\ncounts = [1, 3, 64]\nfailure_limit = 0.05\nparallel = 3\n\
                    total_jobs = 1_000\nreserve = \"rt-cgroup\"\nmemory_reserve = \"2GiB\"\nstarvation_limit = \"3s\"\n";
        let experiment = parse(text).unwrap();
        let scale = experiment.scale.clone().unwrap();
        assert_eq!((scale.failure_limit, scale.parallel), (50, 3));
        assert_eq!(
            (scale.total_jobs, scale.reserve),
            (1_000, Some(Enforcer::RtCgroup))
        );
        assert_eq!(scale.memory_reserve, Some(Bytes::new(2 << 30)));
        assert_eq!(scale.starvation_limit, Duration::from_ns(3_000_000_000));
        assert_eq!(experiment.trials.len(), 6);
        assert_eq!(experiment.baseline, "crun-1");
        assert_eq!(experiment.trials[5].jobs, Some(300));
        let again = Experiment::parse("y", &experiment.to_toml()).unwrap();
        assert_eq!(again, experiment);
        for (name, reserve) in Scale::reserves() {
            let text = format!("[scale]\nengines = [\"bare\"]\nreserve = \"{}\"\n", name);
            assert_eq!(parse(&text).unwrap().scale.unwrap().reserve, reserve);
        }
        let all = parse("[scale]\nengines = [\"bare\"]\n").unwrap();
        assert_eq!(all.trials.len(), 15);
        assert_eq!(all.most_cells(), 2_048);
    }

    #[test]
    fn options_change_the_study_and_what_follows_from_it() {
        let mut experiment = parse("[scale]\nengines = [\"embedded\"]\n").unwrap();
        let overrides = Overrides {
            engines: vec![EngineKind::Crun, EngineKind::Bare],
            counts: vec![2, 8],
            parallel: Some(4),
            failure_limit: Some(0.5),
            reserve: Some(Some(Enforcer::RtCgroup)),
            jobs: Some(20),
            ..Overrides::default()
        };
        overrides.apply(&mut experiment).unwrap();
        let names: Vec<&str> = experiment.trials.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["crun-2", "crun-8", "bare-2", "bare-8"]);
        assert_eq!(experiment.baseline, "crun-2");
        assert_eq!(experiment.trials[0].jobs, Some(20));
        let again = Experiment::parse("y", &experiment.to_toml()).unwrap();
        assert_eq!(again, experiment);
    }

    #[test]
    fn faults_name_their_line_and_the_mend() {
        for (text, expected) in [
            (
                "[scale]\nengines = []\n",
                "x.toml:8: no engine is named; name at least one, such as \"embedded\"",
            ),
            (
                "[scale]\nengines = [\"bare\"]\ncounts = [2, 1]\n",
                "x.toml:9: the counts do not ascend; name ascending numbers of 1 to 4096, such as 1, 2, 10",
            ),
            (
                "[scale]\nengines = [\"bare\"]\ncounts = [5000]\n",
                "x.toml:9: a trial cannot have 5000 cells; name ascending numbers of 1 to 4096, such as 1, 2, 10",
            ),
            (
                "[scale]\nengines = [\"bare\"]\nfailure_limit = 2\n",
                "x.toml:9: the failure limit is 2; it is the share of the cells that may fail, 0.0 to 1.0",
            ),
            (
                "[scale]\nengines = [\"bare\", \"bare\"]\n",
                "x.toml:8: the engine bare is named twice; name it once",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), expected);
        }
        let both = parse("[scale]\nengines = [\"bare\"]\n[[trial]]\ncells = [\"bare\"]\n");
        assert!(both.unwrap_err().contains("makes the trials itself"));
    }

    #[test]
    fn options_of_a_study_need_one() {
        let text = format!("{HEAD}[[trial]]\ncells = [\"bare\"]\n");
        let mut experiment = Experiment::parse("x", &text).unwrap();
        let overrides = Overrides {
            counts: vec![2],
            ..Overrides::default()
        };
        let error = overrides.apply(&mut experiment).unwrap_err().to_string();
        assert!(error.starts_with("--counts: only a scale study"), "{error}");
    }
}
