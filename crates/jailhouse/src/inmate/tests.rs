//! Against answers as the driver gave them on the emulated ZCU102.

use std::collections::VecDeque;

use super::*;

/// Requests to a machine with its answers, in this order; and at which times which heartbeat is seen.
struct Recorded {
    answers: VecDeque<(String, Result<&'static str, i32>)>,
    beats: Vec<(u64, u64)>,
    now: Duration,
}

const MS: Duration = Duration::from_millis(1);

impl Recorded {
    /// `record`: a line for each request, ` = ` and `ok`, a state or an error number; `beats`: each from which millisecond on.
    fn new(record: &'static str, beats: &[(u64, u64)]) -> Recorded {
        let lines = record
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let answers = lines.map(|line| {
            let (request, answer) = line.split_once(" = ").unwrap();
            let answer = answer.parse().map_or(Ok(answer), Err);
            (request.to_owned(), answer)
        });
        Recorded {
            answers: answers.collect(),
            beats: beats.to_vec(),
            now: Duration::ZERO,
        }
    }

    fn answer(&mut self, request: &str) -> Result<&'static str, i32> {
        let (asked, answer) = (self.answers.pop_front()).unwrap_or_else(|| panic!("{request}"));
        assert_eq!(asked, request);
        answer
    }
}

fn refused(request: crate::driver::Request, name: &str, errno: i32) -> DriverError {
    let source = std::io::Error::from_raw_os_error(errno);
    DriverError::of(request, name, source, true)
}

impl Calls for Recorded {
    fn cell(&mut self, name: &str) -> Result<Option<CellStatus>, DriverError> {
        let state = match self.answer(&format!("state {name}")).unwrap() {
            "running" => State::Running,
            "failed" => State::Failed,
            "shut down" => State::ShutDown,
            other => panic!("{other}"),
        };
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
            .map_err(|errno| refused(crate::driver::Request::Start, name, errno))
    }

    fn beats(&mut self) -> Option<u64> {
        let now = self.now.as_millis() as u64;
        self.beats
            .iter()
            .rfind(|(from, _)| *from <= now)
            .map(|(_, count)| *count)
    }

    fn now(&mut self) -> Duration {
        self.now
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }
}

fn inmate() -> Inmate {
    Inmate {
        name: "beat".to_owned(),
        cell: b"a configuration".to_vec(),
        images: vec![Image {
            bytes: vec![1, 2, 3],
            address: 0,
        }],
        boot_time: 500 * MS,
    }
}

/// The result of an inmate's step with a recorded machine, which must have been asked all that is on record.
fn with<T>(
    record: &'static str,
    beats: &[(u64, u64)],
    done: impl FnOnce(&Inmate, &mut Recorded) -> Result<T, InmateError>,
) -> Result<T, InmateError> {
    let mut machine = Recorded::new(record, beats);
    let result = done(&inmate(), &mut machine);
    assert!(machine.answers.is_empty(), "{:?}", machine.answers);
    result
}

const BEGUN: &str = "load beat 1 = ok\nstart beat = ok";

#[test]
fn it_has_begun_when_its_first_heartbeat_comes() {
    let began = with(BEGUN, &[(0, 976), (30, 1)], Inmate::run).unwrap();
    assert_eq!((began.lost_starts, began.first_beat), (0, Some(10 * MS)));
    let began = with(BEGUN, &[], Inmate::run).unwrap();
    assert_eq!((began.lost_starts, began.first_beat), (0, None));
}

#[test]
fn a_lost_start_is_repeated() {
    let record = "load beat 1 = ok\nstart beat = ok\nstate beat = running\nstart beat = ok";
    let began = with(record, &[(0, 976), (544, 1)], Inmate::run).unwrap();
    assert_eq!((began.lost_starts, began.first_beat), (1, Some(24 * MS)));
}

#[test]
fn one_that_never_beats_is_given_up() {
    let record = "load beat 1 = ok
        start beat = ok\nstate beat = running\nstart beat = ok\nstate beat = running
        start beat = ok\nstate beat = running\nstart beat = ok\nstate beat = running
        start beat = ok\nstate beat = running";
    let silent = with(record, &[(0, 0)], Inmate::run).unwrap_err();
    let says = "cell `beat` gave no heartbeat within 500ms of any of 5 starts";
    assert_eq!(silent.to_string(), says);
}

#[test]
fn one_that_fails_before_its_first_heartbeat_is_not_started_again() {
    let record = "load beat 1 = ok\nstart beat = ok\nstate beat = failed";
    let failed = with(record, &[(0, 0)], Inmate::run).unwrap_err();
    assert!(matches!(failed, InmateError::Failed(name) if name == "beat"));
}

#[test]
fn a_restart_stops_and_loads_and_creates_nothing() {
    let record = "load beat 0 = ok\nload beat 1 = ok\nstart beat = ok";
    let began = with(record, &[(0, 2000), (25, 1)], Inmate::restart).unwrap();
    assert_eq!(began.first_beat, Some(6 * MS));
}

#[test]
fn a_refusal_of_the_driver_ends_the_start() {
    // EINVAL, ENOENT, and EPERM of a cell that is active and denies.
    for (record, says) in [
        (
            "load beat 1 = 22",
            "an image of cell `beat` lies outside of its loadable memory",
        ),
        ("load beat 1 = 2", "there is no cell `beat`"),
        (
            "load beat 1 = ok\nstart beat = 1",
            "cell `beat`, or another one, denies it: it is not passive, and only a reset ends it",
        ),
    ] {
        assert_eq!(
            with(record, &[], Inmate::run).unwrap_err().to_string(),
            says
        );
    }
}
