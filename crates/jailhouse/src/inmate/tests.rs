//! Against answers of the driver as they were recorded on both emulated boards.

use std::collections::VecDeque;

use super::*;
use crate::driver::answers::{RECORDS, section};

/// Requests to a machine with its answers, in this order. Where the inmate is said to beat, it does so 10 ms behind its start.
struct Recorded<'r> {
    answers: VecDeque<(&'r str, &'r str)>,
    has_heartbeat: bool,
    beats_from: Option<Duration>,
    now: Duration,
    ends_at: Duration,
}

const MS: Duration = Duration::from_millis(1);

impl<'r> Recorded<'r> {
    fn answer(&mut self, request: &str) -> Result<&'r str, i32> {
        let (asked, answer) = (self.answers.pop_front()).unwrap_or_else(|| panic!("{request}"));
        // Behind it, the record has the kind of the inmate.
        assert!(
            format!("{asked} ").starts_with(&format!("{request} ")),
            "{asked}: {request}"
        );
        match answer.parse() {
            Ok(errno) if errno != 0 => Err(errno),
            _ => Ok(answer),
        }
    }
}

fn refused(request: crate::driver::Request, name: &str, errno: i32) -> DriverError {
    let source = std::io::Error::from_raw_os_error(errno);
    DriverError::of(request, name, source, true)
}

impl Calls for Recorded<'_> {
    fn cell(&mut self, name: &str) -> Result<Option<CellStatus>, DriverError> {
        let state = State::of(self.answer(&format!("state {name}")).unwrap());
        Ok(Some(CellStatus {
            id: 1,
            name: name.to_owned(),
            state,
            cpus: vec![3],
            failed_cpus: Vec::new(),
            exits: 3,
        }))
    }

    fn load(&mut self, name: &str, images: &[Image]) -> Result<(), DriverError> {
        let answer = self.answer(&format!("load {name} {}", images.len()));
        answer
            .map(drop)
            .map_err(|errno| refused(crate::driver::Request::Load, name, errno))
    }

    fn start(&mut self, name: &str) -> Result<(), DriverError> {
        let answer = self.answer(&format!("start {name}"));
        answer
            .map(drop)
            .map_err(|errno| refused(crate::driver::Request::Start, name, errno))?;
        if let Some((_, beats)) = (self.answers).pop_front_if(|(asked, _)| *asked == "beats") {
            self.beats_from = (beats == "yes").then_some(self.now + 10 * MS);
        }
        Ok(())
    }

    fn beats(&mut self) -> Option<u64> {
        let beats = self.beats_from.is_some_and(|from| from <= self.now);
        self.has_heartbeat.then_some(976 + u64::from(beats))
    }

    fn now(&mut self) -> Duration {
        self.now
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    fn is_to_end(&mut self) -> bool {
        self.now >= self.ends_at
    }
}

/// The result of an inmate's step with a recorded machine, which must have been asked all that is on record.
fn with<'r, T>(
    answers: impl IntoIterator<Item = (&'r str, &'r str)>,
    has_heartbeat: bool,
    done: impl FnOnce(&Inmate, &mut Recorded<'r>) -> Result<T, InmateError>,
) -> Result<T, InmateError> {
    let mut machine = Recorded {
        answers: answers.into_iter().collect(),
        has_heartbeat,
        beats_from: None,
        now: Duration::ZERO,
        ends_at: Duration::MAX,
    };
    let asked = machine.answers[0].0.split(' ').nth(1).unwrap();
    let image = Image {
        bytes: vec![1, 2, 3],
        address: 0,
    };
    let inmate = Inmate {
        name: asked.to_owned(),
        cell: b"a configuration".to_vec(),
        images: vec![image.clone(), image],
        boot_time: 500 * MS,
    };
    let result = done(&inmate, &mut machine);
    assert!(machine.answers.is_empty(), "{:?}", machine.answers);
    result
}

#[test]
fn it_has_begun_when_its_first_heartbeat_comes() {
    for record in RECORDS {
        for kind in ["begins", "hangs", "ends", "fails"] {
            let began = with(section(record, kind), true, Inmate::run).unwrap();
            assert_eq!((began.lost_starts, began.first_beat), (0, Some(10 * MS)));
        }
        let began = with(section(record, "begins"), false, Inmate::run).unwrap();
        assert_eq!((began.lost_starts, began.first_beat), (0, None));
    }
}

/// As it was seen on both boards, once in some hundred times, without the wait behind `load`: no record has one.
#[test]
fn a_lost_start_is_repeated() {
    let lost = [("load beat 2", "0"), ("start beat", "0"), ("beats", "no")];
    let again = [
        ("state beat", "running"),
        ("load beat 2", "0"),
        ("start beat", "0"),
        ("beats", "yes"),
    ];
    let began = with(lost.into_iter().chain(again), true, Inmate::run).unwrap();
    assert_eq!((began.lost_starts, began.first_beat), (1, Some(10 * MS)));
}

#[test]
fn one_that_never_beats_is_given_up() {
    for record in RECORDS {
        let silent = with(section(record, "unheard"), true, Inmate::run).unwrap_err();
        let says = "cell `beat` gave no heartbeat within 500ms of any of 5 starts";
        assert_eq!(silent.to_string(), says);
    }
}

#[test]
fn one_that_is_to_end_is_not_waited_for() {
    let begins = [("load beat 2", "0"), ("start beat", "0"), ("beats", "no")];
    let ended = with(begins, true, |inmate, machine| {
        machine.ends_at = 100 * MS;
        let ended = inmate.run(machine);
        assert_eq!(machine.now, 100 * MS);
        ended
    });
    assert!(matches!(ended, Err(InmateError::Ended(name)) if name == "beat"));
}

#[test]
fn one_that_fails_before_its_first_heartbeat_is_not_started_again() {
    for record in RECORDS {
        let failed = with(section(record, "blind"), true, Inmate::run).unwrap_err();
        assert!(matches!(failed, InmateError::Failed(name) if name == "beat"));
    }
}

#[test]
fn a_restart_stops_and_loads_and_creates_nothing() {
    for record in RECORDS {
        let began = with(section(record, "restarted"), true, Inmate::restart).unwrap();
        assert_eq!(began.first_beat, Some(10 * MS));
    }
}

#[test]
fn a_refusal_of_the_driver_ends_the_start() {
    let errors = |answers| with(answers, true, Inmate::run).unwrap_err().to_string();
    for record in RECORDS {
        assert_eq!(
            errors(section(record, "unknown")),
            "there is no cell `nobody`"
        );
        assert_eq!(
            errors(section(record, "beyond")),
            "an image of cell `beat` lies outside of its loadable memory"
        );
    }
    // EPERM of a cell that is active and denies, which only a reset of the board ends, so that no record has it.
    let denied = vec![("load beat 2", "0"), ("start beat", "1")];
    let says =
        "cell `beat`, or another one, denies it: it is not passive, and only a reset ends it";
    assert_eq!(errors(denied), says);
}
