//! The control socket with well-behaved and misbehaving clients.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;
use timecell_client::layout;

use super::*;
use crate::stamp::Stamp;
use crate::state::{Entry, Mode, Record, Text};

fn any_names() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(".{0,20}", 0..5)
}

fn any_ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        Just(Ask::Status),
        Just(Ask::Metrics),
        Just(Ask::Down),
        Just(Ask::Events),
        any_names().prop_map(|cells| Ask::Stop { cells }),
        any_names().prop_map(|cells| Ask::Start { cells }),
        any_names().prop_map(|cells| Ask::Restart { cells }),
        (".{0,40}", any_names(), any::<i64>()).prop_map(|(file, anew, window_ns)| Ask::Update {
            file: PathBuf::from(file),
            anew,
            window_ns,
        }),
    ]
}

proptest! {
    #[test]
    fn a_request_is_read_as_it_was_written(ask in any_ask()) {
        let request = Request::new(ask);
        let line = message::line(&request);
        prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        prop_assert_eq!(Request::read(&line[..line.len() - 1]), Ok(request));
    }

    #[test]
    fn no_bytes_are_more_than_a_sentence(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Err(why) = Request::read(&bytes) {
            prop_assert!(!why.is_empty());
        }
    }

    #[test]
    fn lines_do_not_depend_on_how_they_come(
        lines in proptest::collection::vec("[a-z]{0,12}", 1..8),
        cuts in proptest::collection::vec(1usize..6, 0..80),
    ) {
        let bytes: Vec<u8> = lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
        let mut buffer = LineBuffer::default();
        let (mut found, mut rest) = (Vec::new(), bytes.as_slice());
        let mut cuts = cuts.into_iter();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(cuts.next().unwrap_or(rest.len()).min(rest.len()));
            buffer.push(now);
            rest = later;
            while let Some(line) = buffer.take(13).unwrap() {
                found.push(String::from_utf8(line).unwrap());
            }
        }
        prop_assert_eq!(found, lines);
        prop_assert!(buffer.is_empty());
    }
}

#[test]
fn a_line_is_no_longer_than_it_may_be() {
    let mut buffer = LineBuffer::default();
    buffer.push(b"12345");
    assert_eq!(buffer.take(6), Ok(None));
    buffer.push(b"6");
    assert_eq!(buffer.take(6), Err(TooLong { most_bytes: 6 }));
    let mut buffer = LineBuffer::default();
    buffer.push(b"12345\n");
    assert_eq!(buffer.take(6), Ok(Some(b"12345".to_vec())));
    buffer.push(b"123456\n");
    assert_eq!(buffer.take(6), Err(TooLong { most_bytes: 6 }));
}

#[test]
fn root_and_the_supervisors_own_user_may() {
    assert!(peer::may(0, 1000) && peer::may(1000, 1000) && peer::may(0, 0));
    assert!(!peer::may(1001, 1000) && !peer::may(1000, 0));
}

fn asks(server: &mut Server) -> Vec<(u64, Ask)> {
    // The kernel has delivered data to a Unix socket when the write returns.
    server.turn().into_iter().chain(server.turn()).collect()
}

fn happening(sequence: u64) -> Happening {
    Happening::of(
        sequence,
        &Record {
            at: Stamp::default(),
            entry: Entry::MissionAdmitted {
                name: "rover".to_owned(),
                file: Text::new("x".repeat(1_000)).at("/m.toml"),
                unaccounted: Vec::new(),
                sources: BTreeMap::new(),
            },
        },
    )
}

#[test]
fn a_client_asks_and_is_answered_over_a_path_of_any_length() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("d".repeat(100)).join("e".repeat(100));
    std::fs::create_dir_all(&dir).unwrap();
    let mut server = Server::open(&dir).unwrap();
    let place = dir.clone();
    let client = std::thread::spawn(move || {
        let mut client = Client::connect(&place).unwrap();
        let mut notices = Vec::new();
        let said = client.ask(&place, Ask::Metrics, &mut |text| {
            notices.push(text.to_owned())
        });
        (said.unwrap(), notices)
    });
    let asked = loop {
        if let Some(asked) = server.turn().pop() {
            break asked;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(asked.1, Ask::Metrics);
    let text = "t".repeat(3 << 20);
    let notice = "in a moment".to_owned();
    server.answer(asked.0, Say::Notice { text: notice }, false);
    server.answer(asked.0, Say::Metrics { text: text.clone() }, true);
    while !client.is_finished() {
        server.turn();
        std::thread::sleep(Duration::from_millis(1));
    }
    let (said, notices) = client.join().unwrap();
    assert_eq!(
        (said, notices),
        (Say::Metrics { text }, vec!["in a moment".to_owned()])
    );
    // A second supervisor, whose predecessor was killed, takes the place over; the first has no file any more.
    std::mem::forget(server);
    assert!(Server::open(&dir).is_ok());
    assert!(matches!(
        Client::connect(&dir),
        Err(ControlError::NoMission { .. })
    ));
    std::fs::write(dir.join("journal"), "").unwrap();
    assert!(matches!(
        Client::connect(&dir),
        Err(ControlError::NobodyListens { .. })
    ));
    std::fs::write(dir.join("control"), "precious").unwrap();
    assert!(Server::open(&dir).is_err());
    assert_eq!(std::fs::read(dir.join("control")).unwrap(), b"precious");
}

#[test]
fn a_slow_subscriber_is_told_from_where_on_to_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::open(dir.path()).unwrap();
    let mut slow = UnixStream::connect(dir.path().join("control")).unwrap();
    slow.write_all(&message::line(&Request::new(Ask::Events)))
        .unwrap();
    let asked = asks(&mut server);
    let [(client, Ask::Events)] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    server.subscribe(*client, 0);
    const ALL: u64 = 20_000;
    for sequence in 1..=ALL {
        server.publish(&happening(sequence));
    }
    // It reads at last; nothing is told twice, nothing in the wrong order, and gaps are told.
    slow.set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let (mut input, mut told, mut behind) = (LineBuffer::default(), 0, None);
    let mut bytes = vec![0; 64 << 10];
    loop {
        while let Some(line) = input.take(1 << 20).unwrap() {
            let answer: Answer = serde_json::from_slice(&line).unwrap();
            match answer.say {
                Say::Subscribed { sequence } => assert_eq!(sequence, 0),
                Say::Happened(happening) => {
                    assert_eq!(happening.sequence, told + 1);
                    told += 1;
                }
                Say::Behind { sequence } => behind = Some(sequence),
                other => panic!("{other:?}"),
            }
        }
        if behind.is_some() {
            break;
        }
        match slow.read(&mut bytes) {
            Ok(count) => input.push(&bytes[..count]),
            Err(_) => panic!("it is not told that it is behind"),
        }
        server.turn();
    }
    assert!(told < ALL, "all of it was kept for one that does not read");
    assert_eq!(behind, Some(ALL));
    server.publish(&happening(ALL + 1));
    let count = slow.read(&mut bytes).unwrap();
    assert!(String::from_utf8_lossy(&bytes[..count]).contains("\"happened\""));
}

#[test]
fn the_silent_make_room_and_the_number_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::open(dir.path()).unwrap();
    let connect = || UnixStream::connect(dir.path().join("control")).unwrap();
    let silent: Vec<UnixStream> = (0..3 * MOST_CLIENTS)
        .map(|_| {
            let client = connect();
            server.turn();
            client
        })
        .collect();
    let mut waits = Vec::new();
    for _ in 0..MOST_CLIENTS {
        let mut client = connect();
        client
            .write_all(&message::line(&Request::new(Ask::Down)))
            .unwrap();
        assert_eq!(asks(&mut server).len(), 1);
        waits.push(client);
    }
    // All of them wait for an answer: one more has to be refused.
    let mut late = connect();
    server.turn();
    let mut said = String::new();
    late.read_to_string(&mut said).unwrap();
    assert!(said.contains("already has 32 clients"), "{said}");
    drop((silent, waits));
    server.turn();
    let mut client = connect();
    client
        .write_all(&message::line(&Request::new(Ask::Status)))
        .unwrap();
    assert_eq!(asks(&mut server).len(), 1);
}

#[test]
fn the_only_mission_that_runs_is_found() {
    let base = tempfile::tempdir().unwrap();
    let ones = base.path().join("ones");
    let base = base.path().join("usual");
    let bases = [base.clone(), ones.clone()];
    assert!(matches!(
        find(Place::Only, &[base.join("none")]),
        Err(ControlError::NoneRuns { .. })
    ));
    for name in ["rover", "lander", "ended"] {
        std::fs::create_dir_all(base.join(name)).unwrap();
        std::fs::write(base.join(name).join("journal"), "").unwrap();
    }
    assert!(matches!(
        find(Place::Only, &bases),
        Err(ControlError::NoneRuns { .. })
    ));
    // Of one program that nobody has written down.
    std::fs::create_dir_all(ones.join("run-7")).unwrap();
    std::fs::write(ones.join("run-7/journal"), "").unwrap();
    let one = Server::open(&ones.join("run-7")).unwrap();
    assert_eq!(find(Place::Only, &bases).unwrap(), ones.join("run-7"));
    assert_eq!(
        find(Place::Name("run-7"), &bases).unwrap(),
        ones.join("run-7")
    );
    drop(one);
    std::fs::remove_dir_all(&ones).unwrap();
    let _rover = Server::open(&base.join("rover")).unwrap();
    assert_eq!(find(Place::Only, &bases).unwrap(), base.join("rover"));
    let _lander = Server::open(&base.join("lander")).unwrap();
    let several = find(Place::Only, &bases).unwrap_err();
    assert!(
        several
            .to_string()
            .ends_with("here: lander, rover; name one with -m NAME, or write NAME/CELL for CELL"),
        "{several}"
    );
    assert_eq!(
        find(Place::Name("ended"), &bases).unwrap(),
        base.join("ended")
    );
    let unknown = find(Place::Name("rovre"), &bases).unwrap_err();
    assert!(
        unknown
            .to_string()
            .ends_with("the missions here are ended (ended), lander (ended), rover (ended)"),
        "{unknown}"
    );
    assert!(find(Place::Name("../rover"), &bases).is_err());
}

#[test]
fn metrics_are_in_the_text_format() {
    let mut cell = CellStatus::of("a", None, PathBuf::from("/d"));
    cell.state = CellState::Running;
    cell.budget_ns = Some(2_500_000);
    let life = |jobs, late, responses: &[u64]| TaskStatus {
        task: "odd\"name\\".to_owned(),
        jobs,
        late,
        worst_response_ns: Some(7_000_000),
        skipped: 1,
        responses: Responses {
            counts: responses.to_vec(),
            sum_ns: 2_500_000_000,
        },
    };
    let mut responses = [0; layout::BUCKETS];
    (responses[0], responses[2]) = (4, 3);
    // An earlier life, whose application did not count its response times, and the one of now.
    let mut earlier = life(5, 2, &[]);
    earlier.responses = Responses::default();
    cell.tasks = vec![life(7, 1, &responses)];
    cell.total.add(Some(2_000_000_000), &[earlier]);
    cell.total.add(Some(500_000_000), &cell.tasks);
    // One that does not run now keeps its counts.
    let gone = CellStatus {
        cell: "gone".to_owned(),
        tasks: Vec::new(),
        ..cell.clone()
    };
    let status = Status {
        schema: SCHEMA,
        at_utc: String::new(),
        mission: Some("m".to_owned()),
        dir: PathBuf::from("/d"),
        caution: None,
        supervisor: None,
        mode: Mode::High,
        update: None,
        cells: vec![cell.clone(), CellStatus { starts: 9, ..cell }, gone],
    };
    let text = prometheus(&status);
    for line in [
        "timecell_mission_high_mode{mission=\"m\"} 1",
        "timecell_cell_up{mission=\"m\",cell=\"a\"} 1",
        "timecell_cell_starts_total{mission=\"m\",cell=\"a\"} 0",
        "timecell_cell_budget_seconds{mission=\"m\",cell=\"a\"} 0.0025",
        "timecell_cell_cpu_seconds_total{mission=\"m\",cell=\"a\"} 2.5",
        "timecell_task_jobs_total{mission=\"m\",cell=\"gone\",task=\"odd\\\"name\\\\\"} 12",
        "timecell_task_deadline_misses_total{mission=\"m\",cell=\"a\",task=\"odd\\\"name\\\\\"} 3",
        "timecell_task_skipped_releases_total{mission=\"m\",cell=\"a\",task=\"odd\\\"name\\\\\"} 2",
        "timecell_task_worst_response_seconds{mission=\"m\",cell=\"a\",task=\"odd\\\"name\\\\\"} 0.007",
        "# TYPE timecell_task_response_seconds histogram",
        "timecell_task_response_seconds_bucket{mission=\"m\",cell=\"a\",task=\"odd\\\"name\\\\\",le=\"0.000001024\"} 4",
        "timecell_task_response_seconds_bucket{mission=\"m\",cell=\"a\",task=\"odd\\\"name\\\\\",le=\"0.000002048\"} 4",
        "timecell_task_response_seconds_bucket{mission=\"m\",cell=\"a\",task=\"odd\\\"name\\\\\",le=\"0.000004096\"} 7",
        "timecell_task_response_seconds_bucket{mission=\"m\",cell=\"a\",task=\"odd\\\"name\\\\\",le=\"+Inf\"} 7",
        "timecell_task_response_seconds_sum{mission=\"m\",cell=\"a\",task=\"odd\\\"name\\\\\"} 2.5",
        "timecell_task_response_seconds_count{mission=\"m\",cell=\"a\",task=\"odd\\\"name\\\\\"} 7",
    ] {
        let times = text.lines().filter(|found| *found == line).count();
        assert_eq!(times, 1, "`{line}` in:\n{text}");
    }
    // Each series once, each family under its type.
    let mut series: Vec<&str> = (text.lines().filter(|line| !line.starts_with('#')))
        .map(|line| line.rsplit_once(' ').unwrap().0)
        .collect();
    let count = series.len();
    series.sort_unstable();
    series.dedup();
    assert_eq!(series.len(), count, "{text}");
}

#[test]
fn a_health_window_is_at_most_a_day() {
    for good in [0, 1, 86_400_000_000_000] {
        assert_eq!(super::check_window(good), Ok(()));
    }
    for bad in [-1, 86_400_000_000_001, i64::MAX, i64::MIN] {
        assert!(super::check_window(bad).unwrap_err().contains("a day"));
    }
}
