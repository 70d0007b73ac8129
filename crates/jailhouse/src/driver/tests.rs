use std::fs;

use super::*;

#[test]
fn requests_are_the_bytes_that_the_driver_reads() {
    assert_eq!(
        request::create(0x1122_3344_5566_7788, 236),
        [
            0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 236, 0, 0, 0, 0, 0, 0, 0
        ]
    );
    let mut beat = vec![0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, b'b', b'e', b'a', b't'];
    beat.extend([0; 28]);
    assert_eq!(request::cell("beat"), beat);
    let longest = request::cell(&"x".repeat(40));
    assert_eq!((longest.len(), longest[38], longest[39]), (40, b'x', 0));
    let mut load = beat;
    load.extend([2, 0, 0, 0, 0, 0, 0, 0]);
    for number in [0x1000_u64, 432, 0, 0, 0x2000, 32, 0x1_0000_1000, 0] {
        load.extend(number.to_le_bytes());
    }
    let images = [(0x1000, 432, 0), (0x2000, 32, 0x1_0000_1000)];
    assert_eq!(request::load("beat", &images), load);
    // The length of its head is in the request's number.
    assert_eq!(request::load("beat", &[]).len(), 0x30);
}

/// The requests of the records that were refused, in their order, and how each refusal begins.
#[test]
fn every_recorded_refusal_has_its_sentence() {
    let all = [
        ("create beat 3", "Jailhouse is not enabled"),
        ("load beat 0", "Jailhouse is not enabled"),
        ("start beat", "Jailhouse is not enabled"),
        ("destroy beat", "Jailhouse is not enabled"),
        ("disable", "Jailhouse is not enabled"),
        ("enable", "Jailhouse runs already, or something else has"),
        ("load nobody 0", "there is no cell `nobody`"),
        ("start nobody", "there is no cell `nobody`"),
        ("destroy nobody", "there is no cell `nobody`"),
        ("create beat 3", "there is a cell `beat` already"),
        ("create other 3", "a cpu of cell `other` is another cell's"),
        ("create other 9", "a cpu of cell `other` is another cell's"),
        ("load beat 2 beyond", "an image of cell `beat` lies outside"),
        ("load nobody 2 steady", "there is no cell `nobody`"),
    ];
    for record in answers::RECORDS {
        let mut left = all.iter();
        for (title, answers) in answers::sections(record) {
            for (request, answer) in answers {
                let errno = answer.parse().unwrap_or(0);
                let words: Vec<&str> = request.split(' ').collect();
                let kind = match words[0] {
                    "enable" => Request::Enable,
                    "disable" => Request::Disable,
                    "create" => Request::Create,
                    "load" => Request::Load,
                    "start" => Request::Start,
                    "destroy" => Request::Destroy,
                    _ => continue,
                };
                if errno != 0 {
                    let (asked, says) = left.next().unwrap();
                    let refused = io::Error::from_raw_os_error(errno);
                    let name = words.get(1).unwrap_or(&"");
                    let runs = title != "not enabled";
                    let error = DriverError::of(kind, name, refused, runs).to_string();
                    assert_eq!(*asked, request);
                    assert!(error.starts_with(says), "{request}: {error}");
                }
            }
        }
        assert_eq!(left.next(), None);
    }
}

/// Error numbers of requests that no record has, as seen on the emulated ZCU102.
#[test]
fn every_other_error_of_the_driver_has_its_sentence() {
    let all = [
        (
            Request::Enable,
            2,
            "the driver finds no jailhouse.bin in /lib/firmware",
        ),
        (
            Request::Enable,
            22,
            "the system configuration is refused: signature",
        ),
        (
            Request::Enable,
            19,
            "the kernel was not started in the processor's mode of",
        ),
        (
            Request::Create,
            22,
            "the configuration of cell `beat` is refused",
        ),
        (
            Request::Create,
            7,
            "the configuration of cell `beat` is too long",
        ),
        (Request::Load, 1, "cell `beat`, or another one, denies it"),
        (Request::Start, 22, "start of cell `beat`: Invalid argument"),
        (
            Request::Destroy,
            1,
            "cell `beat`, or another one, denies it",
        ),
    ];
    for (request, errno, says) in all {
        let source = io::Error::from_raw_os_error(errno);
        let error = DriverError::of(request, "beat", source, true).to_string();
        assert!(error.starts_with(says), "{error}");
    }
}

#[test]
fn cells_are_read_from_sysfs() {
    for record in answers::RECORDS {
        // The driver's directory with a cell that has written outside of its memory.
        let dir = tempfile::tempdir().unwrap();
        let strayed = ["enabled", "strayed"].map(|title| answers::section(record, title));
        let strayed = strayed.concat();
        for (request, text) in &strayed {
            if let Some(file) = request.strip_prefix("sysfs ") {
                let path = dir.path().join(file);
                let text = text.replace("a number", "1599");
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text + "\n").unwrap();
            }
        }
        assert!(cells::is_enabled(dir.path()).unwrap());
        let root = CellStatus {
            id: 0,
            name: strayed[3].1.to_owned(),
            state: State::Running,
            cpus: vec![0, 1, 2],
            failed_cpus: Vec::new(),
            exits: 1599,
        };
        let beat = CellStatus {
            id: 1,
            name: "beat".to_owned(),
            state: State::Failed,
            cpus: vec![3],
            failed_cpus: vec![3],
            exits: 1599,
        };
        assert_eq!(cells::all(dir.path()).unwrap(), [root, beat]);
        for (word, state) in [
            ("running/locked", State::RunningLocked),
            ("shut down", State::ShutDown),
            ("invalid", State::Other("invalid".to_owned())),
        ] {
            fs::write(dir.path().join("cells/1/state"), format!("{word}\n")).unwrap();
            assert_eq!(cells::all(dir.path()).unwrap()[1].state, state);
        }
        let cpus = dir.path().join("cells/1/cpus_assigned_list");
        fs::write(&cpus, "three\n").unwrap();
        let error = cells::all(dir.path()).unwrap_err().to_string();
        assert!(error.starts_with(cpus.to_str().unwrap()), "{error}");
    }
}

#[test]
fn an_image_is_a_file_with_its_address() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("image");
    fs::write(&file, [1, 2, 3]).unwrap();
    let image = Image::read(&file, 0x1000).unwrap();
    assert_eq!(
        (image.bytes.as_slice(), image.address),
        (&[1, 2, 3][..], 0x1000)
    );
    // It is too long, and has no bytes on the disk.
    let long = fs::File::create(&file).unwrap();
    long.set_len(MOST_IMAGE_BYTES + 1).unwrap();
    let error = Image::read(&file, 0).unwrap_err();
    assert_eq!(error.to_string(), "the file is larger than 512 MiB");
    // One whose reading would never end.
    let error = Image::read(Path::new("/dev/zero"), 0).unwrap_err();
    assert_eq!(error.to_string(), "it is not a regular file");
}
