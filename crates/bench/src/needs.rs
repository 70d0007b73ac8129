//! Requirements of a plan, and trials that are not measured without them.

use model::Requirement;
use record::NotMeasured;

/// Findings of checking a plan against the machine.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    /// Met and unmet, each once.
    pub requirements: Vec<Requirement>,
    pub not_measured: Vec<NotMeasured>,
}

impl Needs {
    /// Notes a trial's needs and returns whether all are met. If not, the first unmet requirement says why the trial is not
    /// measured.
    pub(crate) fn note(&mut self, trial: &str, needs: Vec<Requirement>) -> bool {
        let unmet = needs.iter().find(|need| !need.met);
        let lacking = unmet.map(|unmet| not_measured(trial, unmet));
        for need in needs {
            if !self.requirements.contains(&need) {
                self.requirements.push(need);
            }
        }
        let met = lacking.is_none();
        self.not_measured.extend(lacking);
        met
    }
}

/// A trial that is not measured because of this unmet requirement.
pub(crate) fn not_measured(trial: &str, unmet: &Requirement) -> NotMeasured {
    NotMeasured {
        trial: trial.to_owned(),
        reason: unmet.reason.clone(),
        fix: unmet.fix.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_unmet_need_is_told_and_each_is_kept_once() {
        let (root, crun) = (
            Requirement::unmet("root", "not root", "use sudo"),
            Requirement::unmet("crun", "not installed", "install it"),
        );
        let class = Requirement::met("class", "granted");
        let mut needs = Needs::default();
        assert!(needs.note("bare", vec![class.clone()]));
        assert!(!needs.note("crun", vec![class.clone(), root.clone(), crun.clone()]));
        assert_eq!(needs.requirements, [class, root, crun]);
        let told: Vec<(&str, &str)> = (needs.not_measured.iter())
            .map(|one| (one.trial.as_str(), one.fix.as_str()))
            .collect();
        assert_eq!(told, [("crun", "use sudo")]);
    }
}
