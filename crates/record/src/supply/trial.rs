//! The trials of a supply study.

use serde::{Deserialize, Serialize};

use crate::ground::{Budget, LoadRecord, Reacted};

/// One trial: one spinning thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SupplyTrial {
    /// Number in the order of execution, from 1; `trials/<number>.gaps`.
    pub number: u32,
    /// Round, from 1.
    pub round: u32,
    /// The enforcer and the budget; `None`: none, to learn the host's own share.
    pub held: Option<Budget>,
    /// The class that it was given, such as `FIFO 80`.
    pub class: String,
    /// Cpus that it was allowed to use.
    pub cpus: Vec<u32>,
    /// Steal time of these cpus during the trial as reported by the hypervisor, ns, mostly in steps of 10 ms; `None` if the
    /// kernel does not report it.
    pub steal_ns: Option<u64>,
    /// How precisely the budget was enforced, if a thread does it and not the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reacted: Option<Reacted>,
    /// The load during the trial; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRecord>,
    /// Why the trial has no gaps; `None` when it is good.
    pub failure: Option<String>,
}

#[cfg(test)]
mod tests {
    use model::Enforcer;

    use super::*;

    #[test]
    fn a_trial_comes_back_and_names_its_enforcer() {
        let trial = SupplyTrial {
            number: 3,
            round: 1,
            held: Some(Budget {
                enforcer: Enforcer::RtCgroup,
                budget_ns: 3_000_000,
                period_ns: 10_000_000,
            }),
            class: "FIFO 80".to_owned(),
            cpus: vec![1],
            steal_ns: None,
            reacted: None,
            load: None,
            failure: None,
        };
        let text = serde_json::to_string(&trial).unwrap();
        assert!(text.contains("\"enforcer\":\"rt-cgroup\""), "{text}");
        assert_eq!(serde_json::from_str::<SupplyTrial>(&text).unwrap(), trial);
        let other = text.replace("rt-cgroup", "rt-group");
        let error = serde_json::from_str::<SupplyTrial>(&other).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("expected one of `rt-cgroup`, `deadline`"),
            "{error}"
        );
    }
}
