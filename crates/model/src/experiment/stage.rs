//! The stage on which the tasks of an experiment run: in band, as threads of Linux, or out of band, as threads of EVL.

use std::collections::HashSet;

use super::{Class, Experiment, TrialPlan, Work};
use crate::InputError;
use crate::file::is_name;

choice! {
    /// The stage on which a thread runs, as Dovetail calls it.
    #[derive(Default)]
    pub enum ExecutionStage {
        /// As any thread of Linux.
        #[default]
        InBand = "inband",
        /// As a thread of EVL, which nothing of Linux holds up.
        OutOfBand = "oob",
    }
}

impl Experiment {
    /// Puts all trials on this stage. Out of band, each that repeats no other gets another one beside it, which is the same but for the stage; a scale study,
    /// whose trials follow from its table, changes as a whole.
    pub(super) fn set_stage(&mut self, stage: ExecutionStage) {
        if stage == ExecutionStage::InBand || self.scale.is_some() {
            self.workload.stage = stage;
            for trial in &mut self.trials {
                trial.stage = None;
            }
            return;
        }
        let trials = std::mem::take(&mut self.trials);
        for trial in trials {
            let is_in_band = self.workload_of(&trial).stage == ExecutionStage::InBand;
            let is_machine = trial.cells.iter().any(|engine| engine.is_machine());
            let is_again = self.trials.iter().any(|other| trial.repeats(other));
            let beside = (is_in_band && !is_machine && !is_again).then(|| TrialPlan {
                name: format!("{}-oob", trial.name),
                stage: Some(stage),
                ..trial.clone()
            });
            self.trials.push(trial);
            self.trials.extend(beside);
        }
    }

    /// The reason why the tasks of a trial cannot run on its stage, and the remedy; `None` if they can.
    pub(super) fn stage_fault(&self, trial: &TrialPlan) -> Option<(String, String)> {
        if self.workload_of(trial).stage == ExecutionStage::InBand {
            return None;
        }
        let fits = |work: Work| matches!(work, Work::Mac { .. } | Work::Timer);
        let mut works = (trial.own.iter()).filter_map(|own| own.work);
        let (what, fix) = if !fits(self.workload.work) || !works.all(fits) {
            (
                "only tasks of kind `mac` and `timer` run out of band",
                "remove `stage`, or let the program attach itself",
            )
        } else if self.scheduling.class == Class::Other {
            ("a thread of EVL has a priority", "set class = \"fifo\"")
        } else if self.counts_activations() {
            (
                "reading a counter would be a system call",
                "remove `counters`, or set it to \"window\"",
            )
        } else if trial.cells.iter().any(|engine| engine.is_machine()) {
            (
                "the machine of a cell of engine `qemu` has no devices of EVL",
                "name another engine",
            )
        } else {
            return None;
        };
        Some((format!("trial `{}`: {what}", trial.name), fix.to_owned()))
    }

    /// As [`Experiment::stage_fault`] for all trials, of an option, and whether those that it has added have names.
    pub(super) fn check_stages(&self) -> Result<(), InputError> {
        let mut names = HashSet::new();
        for TrialPlan { name, .. } in &self.trials {
            let (what, fix) = match (is_name(name), names.insert(name)) {
                (true, true) => continue,
                (true, false) => ("which is there already", "another"),
                (false, _) => ("which is too long", "a shorter"),
            };
            return Err(InputError::new(
                "--stage",
                format!("it adds a trial named `{name}`, {what}"),
                format!("give one in the file {fix} `name`, or set `stage` there"),
            ));
        }
        match (self.trials.iter()).find_map(|trial| self.stage_fault(trial)) {
            Some((what, fix)) => Err(InputError::new("--stage", what, fix)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Overrides;

    const HEAD: &str = "schema = 1\nname = \"x\"\n";
    const TRIALS: &str = "[[trial]]\ncells = [\"bare\"]\n[[trial]]\ncells = [\"qemu\"]\n";

    fn with_stage(text: &str) -> Result<Experiment, String> {
        let mut experiment = Experiment::parse("x.toml", text).map_err(|e| e.to_string())?;
        let options = Overrides {
            stage: Some(ExecutionStage::OutOfBand),
            ..Overrides::default()
        };
        options
            .apply(&mut experiment)
            .map_err(|e| e.to_string())
            .map(|()| experiment)
    }

    #[test]
    fn the_option_measures_out_of_band_beside_what_there_is() {
        let text = format!("{HEAD}[workload]\nkind = \"mac\"\n{TRIALS}");
        let experiment = with_stage(&text).unwrap();
        let stages: Vec<_> = (experiment.trials.iter())
            .map(|trial| (&*trial.name, experiment.workload_of(trial).stage.name()))
            .collect();
        assert_eq!(
            stages,
            [("bare", "inband"), ("bare-oob", "oob"), ("qemu", "inband")]
        );
        assert_eq!(experiment.baseline, "bare");
        // Written and read again it is the same.
        let read = Experiment::parse("x.toml", &experiment.to_toml()).unwrap();
        assert_eq!(read.trials, experiment.trials);
    }

    #[test]
    fn tasks_that_cannot_run_out_of_band_are_refused() {
        let oob = "stage = \"oob\"\n";
        for (text, why) in [
            (
                format!("{HEAD}[workload]\nkind = \"mac\"\n{oob}{TRIALS}"),
                "has no devices of EVL",
            ),
            (
                format!(
                    "{HEAD}[workload]\nkind = \"program\"\nprogram = [\"/a\"]\n{oob}[[trial]]\ncells = [\"bare\"]\n"
                ),
                "only tasks of kind `mac` and `timer`",
            ),
            (
                format!(
                    "{HEAD}[workload]\nkind = \"mac\"\n{oob}[scheduling]\nclass = \"other\"\n[[trial]]\ncells = [\"bare\"]\n"
                ),
                "has a priority",
            ),
            (
                format!(
                    "{HEAD}counters = \"activation\"\n[workload]\nkind = \"mac\"\n[[trial]]\ncells = [\"bare\"]\n{oob}"
                ),
                "would be a system call",
            ),
        ] {
            let said = Experiment::parse("x.toml", &text).unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
        let text =
            format!("{HEAD}[workload]\nkind = \"mac\"\n[scheduling]\nclass = \"other\"\n{TRIALS}");
        let said = with_stage(&text).unwrap_err();
        assert!(
            said.starts_with("--stage: trial `bare-oob`: a thread of EVL has a priority"),
            "{said}"
        );
    }

    #[test]
    fn a_trial_beside_another_has_a_name_by_which_its_run_can_be_read() {
        let named = |names: &[&str]| {
            let trial = |name: &&str| format!("[[trial]]\nname = \"{name}\"\ncells = [\"bare\"]\n");
            let trials: String = names.iter().map(trial).collect();
            with_stage(&format!("{HEAD}[workload]\nkind = \"mac\"\n{trials}"))
        };
        let long = "n".repeat(61);
        assert!(named(&[&long[1..]]).is_ok());
        let said = named(&[&long]).unwrap_err();
        let added =
            format!("--stage: it adds a trial named `{long}-oob`, which is too long; give one");
        assert!(said.starts_with(&added), "{said}");
        let said = named(&["a", "a-oob"]).unwrap_err();
        assert!(said.contains("`a-oob`, which is there already"), "{said}");
    }
}
