//! The arms of a contest.

use model::Enforcer;
use serde::{Deserialize, Serialize};

model::choice! {
    /// The attacker's conduct.
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Attacker {
        /// It is absent: the victim's misses are due to the machine.
        Absent = "absent",
        /// It runs as long as it declared.
        Honest = "honest",
        /// It runs longer than it declared.
        Overruns = "overruns",
    }
}

/// One kind of contest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Arm {
    /// The attacker's conduct.
    pub attacker: Attacker,
    /// Enforcer that holds the cells to their budgets; `None`: none.
    pub enforcer: Option<Enforcer>,
}

impl Arm {
    /// The machine's own noise: the victim alone, without an enforcer.
    pub const NOISE: Arm = Arm {
        attacker: Attacker::Absent,
        enforcer: None,
    };

    /// Its name: `attacker overruns, rt-cgroup`.
    pub fn name(self) -> String {
        let held = self.enforcer.map_or("no enforcer", Enforcer::name);
        match self.attacker {
            Attacker::Absent => format!("victim alone, {held}"),
            Attacker::Honest => format!("attacker honest, {held}"),
            Attacker::Overruns => format!("attacker overruns, {held}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_comes_back_by_its_names() {
        let arm = Arm {
            attacker: Attacker::Overruns,
            enforcer: Some(Enforcer::RtCgroup),
        };
        let text = serde_json::to_string(&arm).unwrap();
        assert_eq!(text, r#"{"attacker":"overruns","enforcer":"rt-cgroup"}"#);
        assert_eq!(serde_json::from_str::<Arm>(&text).unwrap(), arm);
        let noise = serde_json::to_string(&Arm::NOISE).unwrap();
        assert_eq!(serde_json::from_str::<Arm>(&noise).unwrap(), Arm::NOISE);
        let wrong = text.replace("rt-cgroup", "rt-group");
        let error = serde_json::from_str::<Arm>(&wrong).unwrap_err().to_string();
        assert!(
            error.contains("expected one of `rt-cgroup`, `deadline`"),
            "{error}"
        );
        assert_eq!(Arm::NOISE.name(), "victim alone, no enforcer");
    }
}
