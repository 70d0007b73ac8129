//! Reading `[scale]`.

use crate::experiment::scale::{COUNTS, check_counts, check_engines};
use crate::file::{Faults, Node};
use crate::{EngineKind, Keep, Scale, Work};

/// The study that the table describes; `None` if there is none.
pub(super) fn scale(
    top: &Node<'_>,
    keep: Keep,
    work: Work,
    faults: &mut Faults<'_>,
) -> Option<Scale> {
    let table = top.table("scale")?;
    for key in ["trial", "matrix"].into_iter().filter(|key| top.says(key)) {
        let what = "[scale] makes the trials itself and cannot be combined with others";
        faults.report(&top.place, &[key], what, "remove one of the two");
    }
    if keep != Keep::Samples {
        let what = "the jobs of a scale study are recorded one by one";
        faults.report(&top.place, &["record"], what, "remove the line");
    }
    if work == Work::Busy {
        let what = "a task set has a fixed number of cells";
        faults.report_at(&table.place, what, "set kind = \"mac\" or \"timer\"");
        faults.doubt(&table.place);
    }
    let engines = table.texts("engines");
    let engines: Vec<EngineKind> = engines
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    if let Err((what, fix)) = check_engines(&engines) {
        faults.report(&table.place, &["engines"], what, fix);
    }
    let counts = match table.says("counts") {
        true => table.counts("counts"),
        false => COUNTS.to_vec(),
    };
    if let Err((what, fix)) = check_counts(&counts) {
        faults.report(&table.place, &["counts"], what, fix);
    }
    let failure_limit = table.number("failure_limit").unwrap_or_default();
    // Values that are no counts of cells were reported, and make no trials.
    let is_clear = faults.is_clear(&table.place.key("counts"));
    Some(Scale {
        engines,
        counts: if is_clear { counts } else { COUNTS.to_vec() },
        failure_limit: (failure_limit * 1000.0).round() as u32,
        parallel: table.count("parallel").unwrap_or(1),
        total_jobs: table.count("total_jobs").unwrap_or(1),
        reserve: table.choice("reserve", &Scale::reserves()).flatten(),
        memory_reserve: table.size("memory_reserve"),
        starvation_limit: table.time_or_zero("starvation_limit"),
    })
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
    fn faults_name_their_line_and_the_fix() {
        for (text, expected) in [
            (
                "[scale]\nengines = []\n",
                "x.toml:8: `engines` is empty; give at least one",
            ),
            (
                "[scale]\nengines = [\"bare\"]\ncounts = [2, 1]\n",
                "x.toml:9: the counts do not ascend; give ascending numbers from 1 to 4096, such as 1, 2, 10",
            ),
            (
                "[scale]\nengines = [\"bare\"]\ncounts = [5000]\n",
                "x.toml:9: an item of `counts` is 5000; it must be a whole number of 1 to 4096",
            ),
            (
                "[scale]\nengines = [\"bare\"]\nfailure_limit = 2\n",
                "x.toml:9: `failure_limit` is 2; it must be a number of 0.0 to 1.0",
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
