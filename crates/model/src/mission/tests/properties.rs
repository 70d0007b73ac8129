//! Properties of every mission that was read.

use std::collections::HashSet;

use proptest::prelude::*;

use super::full::FULL;
use super::{json, made, parse, shipped, validator};
use crate::mission::{Mission, MissionFile};

/// Properties of every mission that was read from any file.
fn holds(mission: &Mission) -> Result<(), TestCaseError> {
    let names: HashSet<&str> = mission
        .cells
        .iter()
        .map(|cell| cell.name.as_str())
        .collect();
    prop_assert_eq!(names.len(), mission.cells.len());
    prop_assert!(!mission.cells.is_empty());

    let order = mission.start_order();
    let mut started = HashSet::new();
    for at in &order {
        let cell = &mission.cells[*at];
        for before in cell.after.iter().chain(&cell.needs) {
            prop_assert!(
                started.contains(before.as_str()),
                "{before} after {}",
                cell.name
            );
        }
        prop_assert!(started.insert(cell.name.as_str()));
    }
    prop_assert_eq!(order.len(), mission.cells.len());

    let shed: HashSet<usize> = mission.shed_order().into_iter().collect();
    prop_assert_eq!(shed.len(), mission.shed_order().len());
    for (at, cell) in mission.cells.iter().enumerate() {
        prop_assert_eq!(shed.contains(&at), !cell.is_high());
        for rule in &cell.health {
            prop_assert!(rule.window.is_some() || (rule.times == 1 && rule.escalate.is_empty()));
        }
        for task in &cell.tasks {
            prop_assert_eq!(task.timing.fault(), None);
            prop_assert_eq!(task.timing.wcet_high.is_some(), cell.is_high());
        }
        if let Some(reservation) = &cell.reservation {
            prop_assert_eq!(reservation.fault_on(cell.cpu_count()), None);
        }
        if cell.is_real_time() {
            prop_assert!(!cell.tasks.is_empty() || cell.reservation.is_some());
        }
        for other in &mission.cells[..at] {
            let meet = cell.cpus.is_empty()
                || other.cpus.is_empty()
                || cell.cpus.iter().any(|cpu| other.cpus.contains(cpu));
            // Those of tasks alone are moved by admission to where they are free.
            if let (Some(mine), Some(theirs), true) = (cell.priorities, other.priorities, meet) {
                prop_assert!(!mine.overlaps(theirs), "{} and {}", cell.name, other.name);
            }
        }
    }
    Ok(())
}

/// A text with some of its lines left out, doubled, exchanged or spoiled.
fn mutilated(text: &str, edits: &[(u8, u16, u16, String)]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (how, from, to, word) in edits {
        if lines.is_empty() {
            break;
        }
        let from = usize::from(*from) % lines.len();
        let to = usize::from(*to) % lines.len();
        match how % 6 {
            0 => drop(lines.remove(from)),
            1 => {
                let line = lines[from].clone();
                lines.insert(to, line);
            }
            2 => lines.swap(from, to),
            3 => {
                // The value of one key becomes that of another.
                let value = lines[to]
                    .split_once(" = ")
                    .map(|(_, value)| value.to_owned());
                if let (Some((key, _)), Some(value)) = (lines[from].split_once(" = "), value) {
                    lines[from] = format!("{key} = {value}");
                }
            }
            4 => {
                let line = &mut lines[from];
                let at = line
                    .char_indices()
                    .nth(to % (line.len() + 1))
                    .map_or(line.len(), |(at, _)| at);
                line.insert_str(at, word);
            }
            _ => {
                let digits =
                    lines[from].replace(|c: char| c.is_ascii_digit(), &(to % 10).to_string());
                lines[from] = digits;
            }
        }
    }
    lines.join("\n")
}

fn edits() -> impl Strategy<Value = Vec<(u8, u16, u16, String)>> {
    let word = prop_oneof!["\\PC{0,3}", "[\"'{}=,\\[\\]\\.\n#-]{1,2}"];
    prop::collection::vec((any::<u8>(), any::<u16>(), any::<u16>(), word), 0..5)
}

proptest! {
    #[test]
    fn writing_and_reading_give_the_same(bytes in prop::collection::vec(any::<u8>(), 0..900)) {
        let mission = made::mission(&bytes);
        let text = mission.to_toml();
        let read = parse(&text);
        prop_assert_eq!(read.as_ref(), Ok(&mission), "{}", text);
        holds(&mission)?;
    }

    #[test]
    fn what_the_parser_reads_fits_the_schema(bytes in prop::collection::vec(any::<u8>(), 0..900)) {
        let text = made::mission(&bytes).to_toml();
        let validator = validator();
        let instance = json(&text);
        let errors: Vec<String> = validator.iter_errors(&instance).map(|e| e.to_string()).collect();
        prop_assert_eq!(errors, Vec::<String>::new(), "{}", text);
    }

    #[test]
    fn no_mutilated_file_panics_and_what_is_read_holds(which in 0usize..4, edits in edits()) {
        let mut texts: Vec<String> = shipped().into_iter().map(|(_, text)| text).collect();
        texts.push(FULL.to_owned());
        let text = mutilated(&texts[which % texts.len()], &edits);
        let lines = text.lines().count() + 1;
        match MissionFile::parse("m.toml", &text) {
            Ok(file) => {
                let mission = file.into_mission();
                holds(&mission)?;
                prop_assert_eq!(parse(&mission.to_toml()), Ok(mission));
                prop_assert!(validator().is_valid(&json(&text)), "{}", text);
            }
            Err(errors) => {
                for error in &errors {
                    prop_assert!(!error.what.is_empty());
                    prop_assert!(error.line.is_some_and(|line| (1..=lines).contains(&line)));
                }
            }
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = MissionFile::parse("m.toml", &text);
    }
}
