//! Builders of records for tests.

use record::trial::{CellRecord, SetBy, TaskRecord};

/// The name of a thread that competes with its set.
pub(crate) const RIVAL: &str = "rival";

/// A thread of a task set on cpu 1 with this name and requested class, its worst-case execution time and its period, which is its
/// deadline, ns.
pub(crate) fn thread(cell: u32, id: &str, class: &str, times_ns: [i64; 2]) -> CellRecord {
    let [wcet_ns, period_ns] = times_ns;
    CellRecord {
        id: id.to_owned(),
        engine: model::EngineKind::Bare,
        cpu: 1,
        cpus: Vec::new(),
        class_wanted: class.to_owned(),
        class_got: None,
        set_by: SetBy::Cell,
        real_time: true,
        create_ns: None,
        started_ns: None,
        machine: None,
        notes: Vec::new(),
        failure: None,
        task: Some(TaskRecord {
            name: id.to_owned(),
            cell: format!("cell-{cell}"),
            cell_number: cell,
            competes: id == RIVAL,
            wcet_ns,
            period_ns,
            deadline_ns: period_ns,
            jobs: 1,
            cpus: vec![1],
            calibration: None,
        }),
        reported: Vec::new(),
    }
}
