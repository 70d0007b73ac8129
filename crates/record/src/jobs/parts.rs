//! Trials that took turns: they ran as one, and each has its own record.

use super::trial::{Arm, CellRecord, TrialRecord, TurnsRecord};

/// One trial's part of a joint record.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The trial's own record.
    pub record: TrialRecord,
    /// The name of each of its cells in the joint record, in their order.
    pub joint_ids: Vec<String>,
}

/// The name of a cell: its place in its trial, from 1, and its engine.
pub fn cell_id(place: usize, cell: &CellRecord) -> String {
    format!("{}-{}", place + 1, cell.engine)
}

impl TrialRecord {
    /// The records of the trials that ran as one; the record itself if none were joined.
    ///
    /// A trial with a failed cell has failed; if no trial has one, all have failed for the reason of the joint one.
    pub fn parts(self) -> Vec<Part> {
        if self.arms.is_empty() {
            let joint_ids = self.cells.iter().map(|cell| cell.id.clone()).collect();
            return vec![Part {
                record: self,
                joint_ids,
            }];
        }
        let mut cells = self.cells.iter();
        let arms = self.arms.iter().zip(0..).map(|(arm, place)| {
            let joint: Vec<CellRecord> = cells.by_ref().take(arm.cells).cloned().collect();
            self.part(arm, place, joint)
        });
        arms.collect()
    }

    fn part(&self, arm: &Arm, place: u32, joint: Vec<CellRecord>) -> Part {
        let joint_ids: Vec<String> = joint.iter().map(|cell| cell.id.clone()).collect();
        let failed =
            |cell: &CellRecord| Some(format!("{}: {}", cell.engine, cell.failure.as_ref()?));
        let own_failure = joint.iter().find_map(failed);
        let some_arm_failed = self.cells.iter().any(|cell| cell.failure.is_some());
        let joint_failure = self.failure.clone().filter(|_| !some_arm_failed);
        let cells: Vec<CellRecord> = (joint.into_iter().enumerate())
            .map(|(place, cell)| CellRecord {
                id: cell_id(place, &cell),
                ..cell
            })
            .collect();
        let own = |id: &String| joint_ids.iter().position(|joint| joint == id);
        let counters = (self.counters.iter())
            .filter_map(|counters| {
                let mut counters = counters.clone();
                counters.cell = cells[own(&counters.cell)?].id.clone();
                Some(counters)
            })
            .collect();
        let record = TrialRecord {
            number: arm.number,
            name: arm.name.clone(),
            continues: arm.continues,
            failure: own_failure.or(joint_failure),
            turns: self.turns.map(|turns| TurnsRecord {
                arm: place,
                ..turns
            }),
            arms: Vec::new(),
            cells,
            counters,
            ..self.clone()
        };
        Part { record, joint_ids }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joint() -> TrialRecord {
        let cell = |id: &str, engine: &str, failure: &str| {
            format!(
                r#"{{"id":"{id}","engine":"{engine}","cpu":1,"class_wanted":"other","class_got":null,"set_by":"cell",
                   "real_time":false,"create_ns":null,"started_ns":null,"notes":[],"failure":{failure}}}"#
            )
        };
        let cells = [
            cell("1-bare", "bare", "null"),
            cell("2-crun", "crun", "null"),
            cell("3-crun", "crun", "\"it died\""),
        ];
        let text = format!(
            r#"{{"schema":1,"number":4,"name":"both","round":2,"go_ns":5,"arming_ns":7,"cells":[{}],"failure":null,
               "turns":{{"jobs":12,"settle":2,"arms":2,"arm":0,"seed":9}},
               "arms":[{{"number":4,"name":"bare","cells":1}},{{"number":5,"name":"two-crun","cells":2}}]}}"#,
            cells.join(",")
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn each_trial_gets_its_own_cells_and_its_own_failure() {
        let [bare, crun] = joint().parts().try_into().unwrap();
        assert_eq!((bare.record.number, bare.record.name.as_str()), (4, "bare"));
        assert_eq!(bare.record.failure, None);
        assert_eq!(bare.joint_ids, ["1-bare"]);
        assert_eq!(
            (crun.record.number, crun.record.name.as_str()),
            (5, "two-crun")
        );
        let ids: Vec<&str> = crun
            .record
            .cells
            .iter()
            .map(|cell| cell.id.as_str())
            .collect();
        assert_eq!(ids, ["1-crun", "2-crun"]);
        assert_eq!(crun.joint_ids, ["2-crun", "3-crun"]);
        assert_eq!(crun.record.failure.as_deref(), Some("crun: it died"));
        assert_eq!(crun.record.turns.unwrap().arm, 1);
        assert!(crun.record.arms.is_empty());
        assert_eq!((crun.record.round, crun.record.go_ns), (2, Some(5)));
    }

    #[test]
    fn what_no_cell_is_to_blame_for_fails_all() {
        let mut joint = joint();
        joint.cells[2].failure = None;
        joint.failure = Some("load cpu: it ended".to_owned());
        let parts = joint.parts();
        assert!(
            parts
                .iter()
                .all(|part| part.record.failure.as_deref() == Some("load cpu: it ended"))
        );
    }

    #[test]
    fn a_trial_of_its_own_is_its_only_part() {
        let mut own = joint();
        own.arms.clear();
        let [part] = own.clone().parts().try_into().unwrap();
        assert_eq!(part.record, own);
        assert_eq!(part.joint_ids, ["1-bare", "2-crun", "3-crun"]);
    }
}
