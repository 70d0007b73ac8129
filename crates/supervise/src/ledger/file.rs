//! The ledger's file: JSON with a version, replaced as a whole. Others may have damaged it, so nothing in it is trusted
//! before it is checked.

use serde::{Deserialize, Serialize};

use super::Entry;

/// Version of the file.
const SCHEMA: u32 = 1;
/// Longest file that is read, bytes.
pub(super) const MOST_BYTES: u64 = 16 << 20;

#[derive(Serialize, Deserialize)]
struct File {
    schema: u32,
    entries: Vec<Entry>,
}

/// The entries of a ledger's file; an empty file has none.
///
/// # Errors
/// Why it cannot be understood, a clause.
pub fn parse(bytes: &[u8]) -> Result<Vec<Entry>, String> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("it has more than {} MiB", MOST_BYTES >> 20));
    }
    let file: File = host::versioned::parse(bytes, SCHEMA).map_err(|error| error.to_string())?;
    for entry in &file.entries {
        for cell in &entry.cells {
            cell.check()
                .map_err(|why| format!("{}: {why}", entry.holder))?;
        }
    }
    Ok(file.entries)
}

/// The file of these entries.
pub(super) fn text(entries: &[Entry]) -> Result<Vec<u8>, serde_json::Error> {
    let file = File {
        schema: SCHEMA,
        entries: entries.to_vec(),
    };
    serde_json::to_vec_pretty(&file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admit::{HeldCell, HeldMemory, HeldTask, Hold};
    use crate::ledger::Holder;
    use model::Enforcer;
    use model::mission::CellClass;

    pub fn entry(name: &str) -> Entry {
        let cell = HeldCell {
            supervisor: false,
            only_tasks: false,
            cell: "spin".to_owned(),
            enforcer: Enforcer::RtCgroup,
            holds: vec![Hold {
                threads: None,
                cpus: vec![0],
                budget_ns: Some(40_000_000),
                period_ns: Some(100_000_000),
                reservation_ns: None,
                class: CellClass::Fifo,
                priorities: Some((89, 89)),
            }],
            tasks: vec![HeldTask {
                name: "t".to_owned(),
                task: analysis::Task::new(1_000_000, 100_000_000),
            }],
        };
        let mut entry = Entry::own(Holder::Mission {
            name: name.to_owned(),
            dir: "/nowhere".into(),
        })
        .unwrap();
        entry.cells.push(cell);
        entry.memory = HeldMemory {
            declared_bytes: 1 << 20,
            limits_bytes: 2 << 20,
        };
        entry
    }

    #[test]
    fn what_is_written_is_read() {
        let all = vec![entry("a"), entry("b")];
        assert_eq!(parse(&text(&all).unwrap()).unwrap(), all);
        assert_eq!(parse(b"").unwrap(), []);
    }

    #[test]
    fn an_entry_of_an_earlier_timecell_holds_no_memory() {
        let mut file: serde_json::Value =
            serde_json::from_slice(&text(&[entry("a")]).unwrap()).unwrap();
        let entry = file["entries"][0].as_object_mut().unwrap();
        assert!(entry.remove("memory").is_some());
        let read = parse(file.to_string().as_bytes()).unwrap();
        assert_eq!(read[0].memory, HeldMemory::default());
        assert_eq!(read[0].cells.len(), 1);
    }

    #[test]
    fn a_cell_of_an_earlier_timecell_has_one_hold() {
        let mut file: serde_json::Value =
            serde_json::from_slice(&text(&[entry("a")]).unwrap()).unwrap();
        let cell = file["entries"][0]["cells"][0].as_object_mut().unwrap();
        let mut holds = cell.remove("holds").unwrap();
        let mut hold = holds[0].take().as_object().unwrap().clone();
        hold.remove("threads");
        cell.append(&mut hold);
        let read = parse(file.to_string().as_bytes()).unwrap();
        assert_eq!(read[0].cells, entry("a").cells);
    }

    #[test]
    fn no_cut_and_no_change_of_a_byte_panics_or_is_taken_for_nothing() {
        let whole = text(&[entry("a")]).unwrap();
        for cut in 1..whole.len() {
            assert!(parse(&whole[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            // Read as something or refused; never a panic, never no entry.
            assert!(parse(&bytes).map_or(true, |entries| entries.len() == 1));
        }
    }

    #[test]
    fn what_cannot_have_been_granted_is_refused() {
        let refused = |change: &dyn Fn(&mut HeldCell)| {
            let mut entry = entry("a");
            change(&mut entry.cells[0]);
            parse(&text(&[entry]).unwrap()).unwrap_err()
        };
        assert!(refused(&|cell| cell.holds[0].budget_ns = Some(0)).contains("mission `a`"));
        assert!(refused(&|cell| cell.holds[0].period_ns = Some(1)).contains("budget"));
        assert!(refused(&|cell| cell.holds[0].priorities = Some((9, 3))).contains("priorities"));
        assert!(refused(&|cell| cell.holds[0].cpus.clear()).contains("cpus"));
        assert!(refused(&|cell| cell.holds.clear()).contains("no hold"));
        let relative = |cell: &mut HeldCell| cell.holds[0].threads = Some("a".into());
        assert!(refused(&relative).contains("control group"));
        assert!(refused(&|cell| cell.tasks[0].task.wcet = 0).contains("task `t`"));
        assert!(parse(b"{\"schema\": 2}").unwrap_err().contains("version 2"));
    }
}
