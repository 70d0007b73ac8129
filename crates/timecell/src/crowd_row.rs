//! One line for each trial of a scale study, printed while the study runs.

use record::trial::TrialRecord;
use report::grouped;

/// The heads of the columns of [`row`].
pub const HEAD: &str = "engine            cells    armed  finished   created/s    memory/cell  cpu while waiting   start skew";

/// The line of a trial; `None` if it does not belong to a scale study.
pub fn row(record: &TrialRecord) -> Option<String> {
    let crowd = record.crowd.as_ref()?;
    let engine = record.cells.first()?.engine;
    let rate = match crowd.creation_ns {
        0 => "-".to_owned(),
        ns => format!("{:.0}", f64::from(crowd.created) * 1e9 / ns as f64),
    };
    let memory = match &crowd.memory {
        Some(memory) if memory.cells > 0 => {
            let bytes = memory.payload_pss_bytes + memory.helpers_pss_bytes;
            format!("{:.2} MB", bytes as f64 / f64::from(memory.cells) / 1e6)
        }
        _ => "-".to_owned(),
    };
    let waiting = crowd.waiting.map_or("-".to_owned(), |waiting| {
        format!(
            "{} in {:.0} s",
            report::time(waiting.cpu_ns as f64),
            waiting.window_ns as f64 / 1e9
        )
    });
    let starts = || record.cells.iter().filter_map(|cell| cell.started_ns);
    let skew = match (starts().min(), starts().max()) {
        (Some(first), Some(last)) => report::time((last - first) as f64),
        _ => "-".to_owned(),
    };
    Some(format!(
        "{:<16}{:>7}{:>9}{:>10}{rate:>12}{memory:>15}{waiting:>19}{skew:>13}",
        engine.name(),
        grouped(crowd.asked),
        grouped(crowd.armed),
        grouped(crowd.finished),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::crowd::{CrowdMemory, CrowdRecord, Waiting};

    #[test]
    fn a_line_stands_under_its_heads() {
        let text = r#"{"schema":1,"number":1,"name":"embedded-2","round":1,"go_ns":1000,"arming_ns":null,"failure":null,
            "cells":[{"id":"1-embedded","engine":"embedded","cpu":0,"class_wanted":"FIFO 80","class_got":null,
            "set_by":"cell","real_time":true,"create_ns":1,"started_ns":2000,"notes":[],"failure":null}]}"#;
        let mut record: TrialRecord = serde_json::from_str(text).unwrap();
        assert_eq!(row(&record), None);
        record.cells.push(record.cells[0].clone());
        record.cells[1].started_ns = Some(14_000);
        record.crowd = Some(CrowdRecord {
            asked: 2_048,
            created: 2_048,
            armed: 2_048,
            finished: 2_047,
            creation_ns: 8_000_000_000,
            memory: Some(CrowdMemory {
                cells: 2,
                payload_pss_bytes: 1_500_000,
                helpers_pss_bytes: 100_000,
                ..CrowdMemory::default()
            }),
            waiting: Some(Waiting {
                window_ns: 10_000_000_000,
                cpu_ns: 3_000_000,
            }),
            ..CrowdRecord::default()
        });
        let line = row(&record).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let wanted = "embedded 2,048 2,048 2,047 256 0.80 MB 3.00 ms in 10 s 12.0 us";
        assert_eq!(words.join(" "), wanted);
        assert_eq!(line.chars().count(), HEAD.chars().count());
    }
}
