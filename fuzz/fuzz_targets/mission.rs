//! The mission parser: no text panics it, every fault has a line of the file, and what it accepts it writes and reads back
//! unchanged, with an order in which each cell starts behind those it waits for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::mission::MissionFile;

fuzz_target!(|text: &str| {
    match MissionFile::parse("fuzz.toml", text) {
        Ok(file) => {
            let mission = file.into_mission();
            let again = MissionFile::parse("fuzz.toml", &mission.to_toml());
            assert_eq!(again.map(MissionFile::into_mission).as_ref(), Ok(&mission));
            let order = mission.start_order();
            assert_eq!(order.len(), mission.cells.len());
            for (place, at) in order.iter().enumerate() {
                let cell = &mission.cells[*at];
                let started = |name: &String| {
                    (order[..place].iter()).any(|before| mission.cells[*before].name == *name)
                };
                assert!(cell.after.iter().chain(&cell.needs).all(started));
            }
        }
        Err(errors) => {
            let lines = text.lines().count() + 1;
            for error in &errors {
                assert!(error.to_string().starts_with("fuzz.toml:"));
                assert!(error.line.is_some_and(|line| (1..=lines).contains(&line)));
            }
        }
    }
});
