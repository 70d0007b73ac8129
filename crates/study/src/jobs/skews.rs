//! How far apart the cells of a trial started.

use super::source::Source;
use record::summary::SkewSummary;
use record::trial::TrialRecord;
use std::collections::BTreeMap;

/// The skews of every trial with several cells that has at least one good round.
pub(super) fn study(source: &Source) -> Vec<SkewSummary> {
    let plans = source.plan.trials.iter().filter(|t| t.cells.len() > 1);
    plans
        .filter_map(|plan| {
            let mut skew = SkewSummary {
                trial: plan.name.clone(),
                cells: plan.cells.len() as u32,
                skew_ns: Vec::new(),
                first_of_cpu_skew_ns: Vec::new(),
                first_start_after_go_ns: Vec::new(),
            };
            for record in source.good(&plan.name) {
                add(&mut skew, record);
            }
            (!skew.skew_ns.is_empty()).then_some(skew)
        })
        .collect()
}

fn add(skew: &mut SkewSummary, record: &TrialRecord) {
    let mut starts = Vec::new();
    let mut first_of_cpu = BTreeMap::<u32, i64>::new();
    for cell in &record.cells {
        if let Some(start) = cell.started_ns {
            starts.push(start);
            let first = first_of_cpu.entry(cell.cpu).or_insert(start);
            *first = start.min(*first);
        }
    }
    if starts.len() < 2 {
        return;
    }
    skew.skew_ns.extend(stats::skew_ns(&starts));
    if first_of_cpu.len() > 1 {
        let firsts: Vec<i64> = first_of_cpu.into_values().collect();
        skew.first_of_cpu_skew_ns.extend(stats::skew_ns(&firsts));
    }
    let first = starts.iter().min().copied();
    let after = first
        .zip(record.go_ns)
        .map(|(first, go)| first.saturating_sub(go));
    skew.first_start_after_go_ns.extend(after);
}
