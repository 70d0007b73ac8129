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

/// Error numbers as the driver answered on the emulated ZCU102.
#[test]
fn every_error_of_the_driver_has_its_sentence() {
    let all = [
        (
            Request::Enable,
            2,
            true,
            "the driver finds no jailhouse.bin in /lib/firmware",
        ),
        (
            Request::Enable,
            16,
            true,
            "Jailhouse runs already, or something else has the memory of its hypervisor",
        ),
        (
            Request::Enable,
            22,
            false,
            "the system configuration is refused: signature",
        ),
        (
            Request::Enable,
            19,
            false,
            "the kernel was not started in the processor's mode of hypervisors",
        ),
        (Request::Disable, 22, false, "Jailhouse is not enabled"),
        (Request::Create, 22, false, "Jailhouse is not enabled"),
        (Request::Start, 22, false, "Jailhouse is not enabled"),
        (Request::Create, 17, true, "there is a cell `beat` already"),
        (
            Request::Create,
            16,
            true,
            "a cpu of cell `beat` is another cell's",
        ),
        (
            Request::Create,
            22,
            true,
            "the configuration of cell `beat` is refused",
        ),
        (
            Request::Create,
            7,
            true,
            "the configuration of cell `beat` is too long",
        ),
        (Request::Load, 2, true, "there is no cell `beat`"),
        (
            Request::Load,
            22,
            true,
            "an image of cell `beat` lies outside",
        ),
        (
            Request::Load,
            1,
            true,
            "cell `beat`, or another one, denies it",
        ),
        (
            Request::Start,
            22,
            true,
            "start of cell `beat`: Invalid argument",
        ),
        (
            Request::Destroy,
            1,
            true,
            "cell `beat`, or another one, denies it",
        ),
    ];
    for (request, errno, runs, says) in all {
        let source = io::Error::from_raw_os_error(errno);
        let error = DriverError::of(request, "beat", source, runs).to_string();
        assert!(error.starts_with(says), "{error}");
    }
}

/// The driver's directory as it was on the emulated ZCU102, with a cell that has written outside of its memory.
fn recorded(dir: &Path) {
    let files = [
        ("enabled", "1\n"),
        ("cells/0/name", "zcu\n"),
        ("cells/0/state", "running\n"),
        ("cells/0/cpus_assigned_list", "0-2\n"),
        ("cells/0/cpus_failed_list", "\n"),
        ("cells/0/statistics/vmexits_total", "1599\n"),
        ("cells/1/name", "beat\n"),
        ("cells/1/state", "failed\n"),
        ("cells/1/cpus_assigned_list", "3\n"),
        ("cells/1/cpus_failed_list", "3\n"),
        ("cells/1/statistics/vmexits_total", "3\n"),
    ];
    for (file, text) in files {
        let path = dir.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn cells_are_read_from_sysfs() {
    let dir = tempfile::tempdir().unwrap();
    recorded(dir.path());
    assert!(cells::is_enabled(dir.path()).unwrap());
    let root = CellStatus {
        id: 0,
        name: "zcu".to_owned(),
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
        exits: 3,
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
    assert_eq!(error.to_string(), "it is longer than 512 MiB");
}
