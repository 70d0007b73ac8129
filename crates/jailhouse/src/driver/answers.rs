//! Requests with the driver's answers, as it gave them on emulated boards; with a driver at hand, whether it gives them still.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::Heartbeat;
use crate::config::System;
use crate::partition::{Partition, PartitionMemory};
use crate::register::ARCHITECTURE;
use crate::span::{PAGE, Span};

/// Each line of a record is a request, ` = ` and its answer: an error number (0: done), or the text of a file of the driver. They are in sections
/// behind a line with `#`. The requests are:
///
/// - `enable`, `disable`, `create CELL CPU`, `start CELL`, `destroy CELL`;
/// - `load CELL IMAGES INMATE`: with none, or an inmate and its parameters, or those at an address that is not the cell's;
/// - `beats`, `stops`: whether the heartbeat changes within some seconds, or comes to an end; `state CELL`; `sysfs FILE`.
pub(crate) const RECORDS: [&str; 2] = [
    include_str!("recorded/zcu102"),
    include_str!("recorded/virt"),
];

/// The sections of a record: the title of each, and its requests with their answers.
pub(crate) fn sections(record: &str) -> impl Iterator<Item = (&str, Vec<(&str, &str)>)> {
    record.split("# ").skip(1).map(|part| {
        let (title, lines) = part.split_once('\n').unwrap();
        let answered = lines.lines().map(|line| line.split_once(" =").unwrap());
        (
            title,
            answered
                .map(|(request, answer)| (request, answer.trim()))
                .collect(),
        )
    })
}

/// The requests and answers of one section.
pub(crate) fn section<'r>(record: &'r str, title: &str) -> Vec<(&'r str, &'r str)> {
    let mut all = sections(record);
    all.find(|(other, _)| *other == title).unwrap().1
}

/// The inmate of `tests/guest/inmate.S` and its parameters: how it fails, after how many heartbeats, ticks between two, and where it beats.
fn inmate(program: &[u8], base: u64, kind: &str) -> Vec<Image> {
    let page = base + 0x40_0010;
    let (failure, beats_at, at) = match kind {
        "steady" => (0, page, 0),
        "strays" => (1, page, 0),
        "hangs" => (2, page, 0),
        "ends" => (3, page, 0),
        "fails" => (4, page, 0),
        // It beats where nobody looks, or where it may not.
        "unheard" => (0, 0x2000, 0),
        "blind" => (0, 0x6000_0000, 0),
        "beyond" => (0, page, 0x20000),
        _ => panic!("{kind}"),
    };
    let parameters = [failure, 250, 125_000, beats_at].map(u64::to_le_bytes);
    let images = [(program.to_vec(), at), (parameters.concat(), at + 0x1000)];
    images
        .map(|(bytes, address)| Image { bytes, address })
        .into()
}

/// Asks the driver what a record asks, and returns the record with its answers.
fn asked(record: &str, system: &[u8], program: &[u8]) -> String {
    let driver = Driver::open().unwrap();
    let read = System::read(system, ARCHITECTURE).unwrap();
    let base = read.hypervisor.at;
    let configuration = |name: &str, cpu: &str| {
        let flags = 0x4f; // Read, write, execute, direct access by devices, loadable.
        let partition = Partition {
            name: name.to_owned(),
            cpus: vec![cpu.parse().unwrap()],
            memory: vec![PartitionMemory {
                span: Span::new(base + 0x60_0000, 16 * PAGE),
                virtual_at: Some(0),
                flags,
            }],
            heartbeat: Some(base + 0x40_0000),
            ..Partition::default()
        };
        partition.cell(&read).to_bytes().unwrap()
    };
    let errno = |done: io::Result<()>| match done {
        Ok(()) => "0".to_owned(),
        Err(error) => error.raw_os_error().unwrap().to_string(),
    };
    let text = |file: &str| match host::file::text(Path::new(SYSFS).join(file)) {
        Ok(text) => text.trim_end().to_owned(),
        Err(error) => error.to_string(),
    };
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let heartbeat = Heartbeat::at(base + 0x40_0010).unwrap();
    let mut before = 0;
    let mut answer = |request: &str| {
        let words: Vec<&str> = request.split(' ').collect();
        let of = |request: Request, name: &str| driver.ask(request, request::cell(name).as_ptr());
        match words[..] {
            ["enable"] => errno(driver.ask(Request::Enable, system.as_ptr())),
            ["disable"] => errno(driver.ask(Request::Disable, std::ptr::null())),
            ["create", name, cpu] => {
                let bytes = configuration(name, cpu);
                let words = request::create(bytes.as_ptr() as u64, bytes.len());
                errno(driver.ask(Request::Create, words.as_ptr()))
            }
            ["start", name] => errno(of(Request::Start, name)),
            ["destroy", name] => errno(of(Request::Destroy, name)),
            ["load", name, "0"] => errno(of_load(&driver, name, &[])),
            ["load", name, "2", kind] => {
                let done = of_load(&driver, name, &inmate(program, base, kind));
                before = heartbeat.read();
                // A start right behind it can be lost.
                std::thread::sleep(Duration::from_millis(50));
                errno(done)
            }
            ["beats"] => {
                let beats = within(20, &mut || heartbeat.read() != before);
                before = heartbeat.read();
                yes(beats)
            }
            ["stops"] => yes(within(100, &mut || {
                let seen = heartbeat.read();
                std::thread::sleep(Duration::from_millis(500));
                heartbeat.read() == seen
            })),
            ["state", name] => match driver.cell(name).unwrap() {
                Some(cell) => text(&format!("cells/{}/state", cell.id)),
                None => "none".to_owned(),
            },
            // It differs from time to time.
            ["sysfs", file] if file.ends_with("_total") => text(file)
                .parse::<u64>()
                .map(|_| "a number")
                .unwrap()
                .to_owned(),
            ["sysfs", file] => text(file),
            _ => panic!("{request}"),
        }
    };
    let mut answered = String::new();
    for line in record.lines() {
        match line.split_once(" =") {
            Some((request, _)) => {
                writeln!(
                    answered,
                    "{}",
                    format!("{request} = {}", answer(request)).trim_end()
                )
            }
            None => writeln!(answered, "{line}"),
        }
        .unwrap();
    }
    answered
}

/// Whether something comes true while it is looked at, ten times in a second.
fn within(looks: u32, is: &mut dyn FnMut() -> bool) -> bool {
    (0..looks).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        is()
    })
}

fn of_load(driver: &Driver, name: &str, images: &[Image]) -> io::Result<()> {
    driver.ask(Request::Load, request::images(name, images).as_ptr())
}

/// Runs in the guest of `tests/guest/jailhouse`, in a directory with the system configuration and the inmate.
#[test]
#[ignore = "needs a board with Jailhouse, which is not enabled"]
fn the_driver_answers_as_recorded() {
    let system = host::file::read("system.cell").unwrap();
    let name = System::read(&system, ARCHITECTURE).unwrap().root.name;
    let root = format!("sysfs cells/0/name = {name}\n");
    let record = RECORDS.iter().find(|record| record.contains(&root));
    let record = record.unwrap_or(&RECORDS[0]);
    let program = host::file::read("inmate.bin").unwrap();
    let answered = asked(record, &system, &program);
    assert!(&answered == record, "it answers otherwise:\n{answered}");
}
