//! The conditions of an isolation study, for the record.

use record::Condition;

use super::IsolationPlan;
use super::contest::HONEST_PERMILLE;
use super::draw::{PERIODS_MS, TASKS};
use super::setting::{Part, Setting};
use crate::held::{self, Spot};

impl IsolationPlan {
    /// The conditions of the measurement, for the report.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let Setting {
            spot: Spot { cpu, priority, .. },
            contest_ns,
            received_ns,
            ..
        } = &self.setting;
        let overrun = f64::from(self.setting.overrun_permille) / 1_000.0;
        let seconds = |ns: i64| ns as f64 / 1e9;
        let mut all = vec![
            Condition::new(
                "cells",
                format!(
                    "two plain processes on cpu {cpu}, {TASKS} periodic threads each, released together"
                ),
            ),
            Condition::new(
                "tasks",
                format!(
                    "half of the utilisation for each cell, shared out by RandFixedSum; periods of {} to {} ms, each order of \
                     magnitude as likely; deadlines at the ends of the periods; a job computes for {} of what its task \
                     declares, which is a bound, by a calibration at the start of each trial",
                    PERIODS_MS.0,
                    PERIODS_MS.1,
                    HONEST_PERMILLE as f64 / 1_000.0
                ),
            ),
            Condition::new(
                "attacker",
                format!(
                    "SCHED_FIFO {priority} downwards by period, the victim's threads below; its jobs compute {overrun} times what \
                     they declare where it overruns"
                ),
            ),
        ];
        let holders = (self.enforcers.iter()).filter_map(|enforcer| held::by(*enforcer));
        all.extend(holders.map(|by| Condition::new(by.enforcer().name(), by.in_contest())));
        all.push(Condition::new(
            "contests",
            format!(
                "{} s each; a set that an enforcer cannot hold by analysis is drawn again",
                seconds(*contest_ns)
            ),
        ));
        if self.checked.parts.contains(&Part::Received) {
            let budgets: Vec<String> = (self.checked.reservations.iter())
                .map(ToString::to_string)
                .collect();
            all.push(Condition::new(
                "received",
                format!(
                    "one spinning thread for each budget ({}), on the same cpu and together, {} s; periods counted from the \
                     second on",
                    budgets.join(", "),
                    seconds(*received_ns)
                ),
            ));
        }
        all
    }
}
