//! Single measurements as a table, one row per value, in the order of the record.

use super::table::{Column, Sink, Table};
use crate::RecordError;
use crate::run::Run;
use crate::series::SeriesRecord;

pub(super) const TABLE: Table = Table {
    of: "single measurements",
    columns: &[
        Column::Text("scenario"),
        Column::Text("subject"),
        Column::Text("part"),
        Column::Text("share_of"),
        Column::Text("unit"),
        Column::Integer("round"),
        Column::Integer("order"),
        Column::Integer("value"),
        Column::Integer("vcpus"),
        Column::Integer("memory_bytes"),
    ],
    rows,
};

fn rows(run: &Run, row: &mut Sink<'_>) -> Result<(), RecordError> {
    let record = run.read::<SeriesRecord>()?;
    for series in &record.series {
        let swept = record
            .sweep
            .iter()
            .find(|one| one.subject == series.subject);
        let size = swept.map(|one| one.size).unwrap_or_default();
        let vcpus = size.vcpus.map(|vcpus| vcpus.to_string());
        let memory = size.memory_bytes.map(|bytes| bytes.to_string());
        for value in &series.values {
            row(&[
                record.scenario.clone(),
                series.subject.clone(),
                series.part.clone(),
                series.of.clone().unwrap_or_default(),
                series.unit.symbol().to_owned(),
                value.round.to_string(),
                value.order.to_string(),
                value.value.to_string(),
                vcpus.clone().unwrap_or_default(),
                memory.clone().unwrap_or_default(),
            ])?;
        }
    }
    Ok(())
}
