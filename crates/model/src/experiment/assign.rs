//! `--set KEY=VALUE`: any key of an experiment, from the command line.

use toml::{Table, Value};

use super::Experiment;
use crate::InputError;

impl Experiment {
    /// Sets a key as if it stood in the file: `KEY=VALUE`, such as `workload.deadline=5ms`, `scale.parallel=4` or
    /// `trial.crun.jobs=100`, where a table of several is found by its name. The value is TOML, or text where it is not; without
    /// one, the key is removed.
    ///
    /// ```
    /// # let text = "schema = 1\nname = \"x\"\n[workload]\nkind = \"timer\"\n[[trial]]\ncells = [\"bare\"]\n";
    /// let mut experiment = timecell_model::Experiment::parse("x.toml", text).unwrap();
    /// experiment.assign("trial.bare.jobs=7").unwrap();
    /// assert_eq!(experiment.trials[0].jobs, Some(7));
    /// let fault = experiment.assign("workload.peroid=1ms").unwrap_err().to_string();
    /// assert!(fault.starts_with("--set workload.peroid=1ms: unknown key `peroid` in [workload]; did you mean"));
    /// ```
    ///
    /// # Errors
    /// What the file with this key would be refused for, and tables that there are none of.
    pub fn assign(&mut self, assignment: &str) -> Result<(), InputError> {
        let place = format!("--set {assignment}");
        let fault = |what: String, fix: &str| InputError::new(&place, what, fix);
        let Some((key, text)) = assignment.split_once('=') else {
            return Err(fault("there is no value".to_owned(), "write KEY=VALUE"));
        };
        let read = self.to_toml().parse::<Table>();
        let mut file = Value::Table(read.map_err(|error| fault(error.to_string(), ""))?);
        let first = self.trials.first().map(|trial| &trial.name);
        if let (Some(top), true) = (file.as_table_mut(), first == Some(&self.baseline)) {
            // It follows the trials, which may change.
            top.remove("baseline");
        }
        let (path, last) = key.rsplit_once('.').unwrap_or(("", key));
        let mut parts = path.split('.').filter(|part| !part.is_empty());
        let table = parts.try_fold(&mut file, below);
        let Some(table) = table.and_then(Value::as_table_mut) else {
            let fix = "name a table of the file; one of several is found by its `name`";
            return Err(fault(format!("there is no table `{path}`"), fix));
        };
        match text.trim() {
            "" => table.remove(last),
            text => table.insert(last.to_owned(), value(text)),
        };
        let text = toml::to_string(&file).map_err(|error| fault(error.to_string(), ""))?;
        let read = Experiment::parse(&place, &text);
        // The lines are those of a text that nobody has written, and one key has one fault first of all.
        *self = read.map_err(|faults| {
            let first = faults.iter().next().cloned();
            first.map_or_else(
                || fault("it cannot be read".to_owned(), ""),
                |first| InputError {
                    line: None,
                    ..first
                },
            )
        })?;
        Ok(())
    }
}

/// A value as TOML, or as the text that it is.
fn value(text: &str) -> Value {
    let read = format!("value = {text}").parse::<Table>();
    let value = read.ok().and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// The value of this key, a new table where there is none; of a list of tables, the one of this name.
fn below<'a>(value: &'a mut Value, part: &str) -> Option<&'a mut Value> {
    let is_named = |item: &&mut Value| {
        let name = |key: &str| item.get(key).and_then(Value::as_str) == Some(part);
        name("name") || name("cell")
    };
    match value {
        Value::Table(table) => {
            let new = || Value::Table(Table::new());
            Some(table.entry(part).or_insert_with(new))
        }
        Value::Array(items) => items.iter_mut().find(is_named),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Duration, Experiment};

    fn experiment(rest: &str) -> Experiment {
        let head = "schema = 1\nname = \"x\"\n[workload]\nkind = \"timer\"\n";
        Experiment::parse("x.toml", &format!("{head}{rest}")).unwrap()
    }

    const TWO: &str = "[[trial]]\ncells = [\"bare\"]\n[[trial]]\ncells = [\"crun\"]\n";

    #[test]
    fn keys_of_any_depth_are_set_and_removed() {
        let mut one = experiment(TWO);
        for assignment in [
            "rounds=7",
            "workload.deadline=5ms",
            "turns.length=20ms",
            "trial.crun.cells=[\"crun\", \"bare\"]",
            "question=how fast?",
        ] {
            one.assign(assignment).unwrap();
        }
        assert_eq!((one.rounds, one.question.as_str()), (7, "how fast?"));
        assert_eq!(one.workload.deadline, Some(Duration::from_ns(5_000_000)));
        assert_eq!(one.turns.unwrap().length, Duration::from_ns(20_000_000));
        assert_eq!(
            (one.trials[0].cells.len(), one.trials[1].cells.len()),
            (1, 2)
        );
        one.assign("turns=").unwrap();
        assert_eq!(one.turns, None);
    }

    #[test]
    fn trials_follow_from_the_numbers_of_cells() {
        let mut study = experiment("[scale]\nengines = [\"bare\"]\n");
        study.assign("scale.counts=[2, 3]").unwrap();
        let names: Vec<&str> = study.trials.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(
            (names, study.baseline.as_str()),
            (vec!["bare-2", "bare-3"], "bare-2")
        );
    }

    #[test]
    fn faults_name_the_option_and_change_nothing() {
        let mut one = experiment(TWO);
        let before = one.clone();
        for (assignment, expected) in [
            ("rounds", "--set rounds: there is no value; write KEY=VALUE"),
            (
                "rounds=0",
                "--set rounds=0: `rounds` is 0; it must be a whole number of 1 to",
            ),
            ("name=", "--set name=: the top level has no `name`"),
            (
                "trial.runc.jobs=1",
                "--set trial.runc.jobs=1: there is no table `trial.runc`",
            ),
            (
                "trial.jobs=1",
                "--set trial.jobs=1: there is no table `trial`",
            ),
            (
                "rounds.x.y=1",
                "--set rounds.x.y=1: there is no table `rounds.x`",
            ),
        ] {
            let said = one.assign(assignment).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{said}");
        }
        assert_eq!(one, before);
    }
}
