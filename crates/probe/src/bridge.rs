//! The process that a virtual machine is for the coordinator: it takes the machine's part in the barrier. It is the parent of QEMU, boots
//! the machine, passes on what either side says ([`crate::mirror`]), and puts the samples, translated to the host's clock, where the
//! coordinator looks for them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use guest::image::WORK;
use guest::machine::{self, Booted, Boots, Guest, Input, Output};
use guest::{Cache, GuestError};
use host::sched;
use model::{Board, Helpers};
use record::samples::layout::{HEADER_BYTES, Header, RECORD_BYTES, Sample};
use record::trial::{HelperRecord, MachineRecord};

use crate::args::ClassBy;
use crate::cell::{self, EXIT_BAD_ARGS, EXIT_FAILED};
use crate::clock;
use crate::control::{GO, Slot, Stage, State};
use crate::helpers;
use crate::map::ControlMap;
use crate::mirror::{Ask, Payload, Told};

/// How often the clocks are compared; the shortest answer counts.
const COMPARED: usize = 9;
/// Longest wait for the guest's answer.
const ANSWER: Duration = Duration::from_secs(30);

/// Directory of the probe in the guest.
fn inside() -> PathBuf {
    Path::new(WORK).join("cell")
}

/// Boots the machine whose name and board's file are the first two words and runs in it the probe, or the load, of the words behind the
/// fourth. The third is where the threads of its virtual cpus are written, the fourth says what QEMU's others get ([`Helpers`]). Returns the
/// exit code.
pub fn bridge(words: &[String]) -> i32 {
    let [name, board, threads, helpers, words @ ..] = words else {
        return EXIT_BAD_ARGS;
    };
    let Some(mut helpers) = Helpers::from_word(helpers) else {
        return EXIT_BAD_ARGS;
    };
    let (board, threads) = (Path::new(board), Path::new(threads));
    if words.first().is_some_and(|word| word == "load") {
        return match load(name, board, threads, &helpers, words) {
            Ok(status) => status,
            Err(error) => {
                broken(&error);
                EXIT_FAILED
            }
        };
    }
    let payload = match Payload::from_words(words) {
        Ok(payload) => payload,
        Err(error) => {
            eprintln!("{error}");
            return EXIT_BAD_ARGS;
        }
    };
    // QEMU's own threads keep off the cpu of the machine's, which are put there. Those of a set are held wherever they are.
    if let Payload::Run(args) = &payload
        && helpers.cpus.is_empty()
    {
        let own = sched::get_affinity(0).unwrap_or_default();
        helpers.cpus = own.into_iter().filter(|cpu| *cpu != args.cpu).collect();
    }
    match run(name, board, threads, &helpers, payload) {
        Ok(code) => code,
        Err(error) => {
            broken(&error);
            EXIT_FAILED
        }
    }
}

/// Boots the machine whose name and board's file are the first two words, stamps the page at the third when it answers, and switches it
/// off. Returns the exit code.
pub fn boots(words: &[String]) -> i32 {
    let [name, board, page] = words else {
        return EXIT_BAD_ARGS;
    };
    let booted = machine(name, Path::new(board)).and_then(|boots| {
        let guest = machine::boot(&boots, None, |_| ())?.guest;
        let stamped = crate::life::stamp(Path::new(page));
        stamped.map_err(GuestError::file(Path::new(page), "stamp it"))?;
        Ok(guest.off())
    });
    match booted {
        Ok(true) => 0,
        Ok(false) => {
            eprintln!("{NOT_OFF}");
            EXIT_FAILED
        }
        Err(error) => {
            broken(&error);
            EXIT_FAILED
        }
    }
}

/// Boots a machine and runs a load in it, which does not end by itself.
fn load(
    name: &str,
    board: &Path,
    threads: &Path,
    helpers: &Helpers,
    words: &[String],
) -> Result<i32, GuestError> {
    let mut guest = machine::boot(&machine(name, board)?, None, |_| ())?.guest;
    guest.bear_silence(Duration::from_secs(3_600));
    place_threads(&mut guest, threads, helpers)?;
    // The page on which it counts its work is nobody's here.
    let words = words.iter().map(|word| match word.strip_prefix("tally=") {
        Some(_) => format!("tally={WORK}/tally"),
        None => word.clone(),
    });
    let command: Vec<String> = ["timecell".to_owned()].into_iter().chain(words).collect();
    guest.run(&command, false, &mut |_, bytes| {
        eprint!("{}", String::from_utf8_lossy(bytes));
    })
}

/// Gives QEMU's own threads their class and cpus, and writes down those of the virtual cpus, which are returned in their order.
fn place_threads(
    guest: &mut Guest,
    threads: &Path,
    helpers: &Helpers,
) -> Result<Vec<i32>, GuestError> {
    let vcpus = guest.vcpus()?;
    helpers::place(guest, &vcpus, helpers)?;
    let lines: Vec<String> = vcpus.iter().map(ToString::to_string).collect();
    std::fs::write(threads, lines.join("\n")).map_err(GuestError::file(threads, "write it"))?;
    Ok(vcpus)
}

const NOT_OFF: &str = "the guest did not switch itself off, and was ended";

/// The machine of a board's file with this program.
fn machine(name: &str, board: &Path) -> Result<Boots, GuestError> {
    let text = std::fs::read_to_string(board).map_err(GuestError::file(board, "read it"))?;
    let board = Board::parse(name, &text)?;
    let program = guest::program(Path::new("/proc/self/exe"))?;
    Boots::new((board, name.to_owned()), &program, &[], false, &|what| {
        eprintln!("{what}");
    })
}

fn run(
    name: &str,
    board: &Path,
    threads: &Path,
    helpers: &Helpers,
    payload: Payload,
) -> Result<i32, GuestError> {
    let boots = machine(name, board)?;
    let began = clock::now();
    let Booted {
        mut guest,
        ready,
        kvm,
        ..
    } = machine::boot(&boots, None, |_| ())?;
    let boot_ns = clock::now() - began;
    // How long its jobs may take is the coordinator's business.
    guest.bear_silence(Duration::from_secs(3_600));
    let vcpus = place_threads(&mut guest, threads, helpers)?;
    let mut record = MachineRecord {
        board: name.to_owned(),
        kernel: ready.kernel,
        vcpus: boots.board.cpus,
        memory_bytes: boots.board.memory.bytes(),
        kvm,
        why_not_kvm: None,
        boot_ns,
        clock_offset_ns: 0,
        clock_error_ns: 0,
        clock_drift_ns: 0,
        helpers: Vec::new(),
    };
    let first = payload.probes()[0].clone();
    let code = cell::attend(&first.control, first.slot, 0, |control, slot| {
        let slots = Slots::of(control, &payload)?;
        let lived = in_guest(&mut guest, payload, &slots, &mut record).and_then(|()| {
            record.helpers = HelperRecord::of(guest.pid(), &vcpus);
            kept(&mut guest, &boots.cache, &slots.samples, &record).map_err(|error| broken(&error))
        });
        let Err((stage, errno)) = lived else {
            slots.report(State::Done);
            cell::farewell(control);
            return Ok(());
        };
        // The first is told of by the caller.
        for other in slots
            .slots
            .iter()
            .filter(|other| !std::ptr::eq(**other, slot))
        {
            other.stage.store(stage as u32, Relaxed);
            other.errno.store(errno, Relaxed);
            cell::report(control, other, State::Failed);
        }
        Err((stage, errno))
    });
    if guest.lost() > 0 {
        eprintln!(
            "{} messages of the guest were lost on the line",
            guest.lost()
        );
    }
    if !guest.off() {
        eprintln!("{NOT_OFF}");
    }
    Ok(code)
}

/// The payload's part of the control page, and its samples files.
struct Slots<'a> {
    control: &'a ControlMap,
    slots: Vec<&'a Slot>,
    samples: Vec<PathBuf>,
}

impl<'a> Slots<'a> {
    fn of(control: &'a ControlMap, payload: &Payload) -> Result<Slots<'a>, (Stage, i32)> {
        let probes = payload.probes();
        let slots = probes.iter().map(|args| control.slot(args.slot)).collect();
        Ok(Slots {
            control,
            slots: Option::ok_or(slots, (Stage::Machine, libc::EINVAL))?,
            samples: probes
                .iter()
                .filter_map(|args| args.samples.clone())
                .collect(),
        })
    }

    fn report(&self, state: State) {
        for slot in &self.slots {
            cell::report(self.control, slot, state);
        }
    }
}

/// Tells, at the end of the cell's log, why the machine failed.
pub(crate) fn broken(why: &GuestError) -> (Stage, i32) {
    match why {
        GuestError::Guest { what, tail } => eprintln!("{tail}\n{what}"),
        why => eprintln!("{why}"),
    }
    (Stage::Machine, 0)
}

fn fails(why: &str) -> (Stage, i32) {
    eprintln!("{why}");
    (Stage::Machine, 0)
}

/// Runs the payload in the guest, until its jobs are done.
fn in_guest(
    guest: &mut Guest,
    mut payload: Payload,
    slots: &Slots<'_>,
    record: &mut MachineRecord,
) -> Result<(), (Stage, i32)> {
    let of_set = matches!(payload, Payload::Set(_));
    for (slot, probe) in payload.probes_mut().into_iter().enumerate() {
        probe.control = inside().join("control");
        probe.slot = slot;
        probe.samples = probe
            .samples
            .as_ref()
            .map(|_| inside().join(slot.to_string()));
        probe.class_by = ClassBy::Cell;
        probe.deadline = None;
        if !of_set {
            // The first cpu has the interrupts of its devices.
            probe.cpu = record.vcpus - 1;
        }
    }
    let command = ["timecell", "probe", "mirror"].map(str::to_owned);
    let command: Vec<String> = command.into_iter().chain(payload.to_words()).collect();
    let (tell, told) = mpsc::channel();
    let line = Line {
        input: guest.input(),
        told,
    };
    thread::scope(|scope| {
        let ran = scope.spawn(move || {
            let mut rest = Vec::new();
            guest.run(&command, true, &mut |from, bytes| match from {
                Output::Err => eprint!("{}", String::from_utf8_lossy(bytes)),
                Output::Out => {
                    rest.extend_from_slice(bytes);
                    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                        let line: Vec<u8> = rest.drain(..=end).collect();
                        match serde_json::from_slice(&line) {
                            Ok(told) => drop(tell.send((clock::now(), told))),
                            Err(error) => eprintln!("the guest's probe is not understood: {error}"),
                        }
                    }
                }
            })
        });
        let lived = barrier(&line, slots, record);
        // Whatever has happened: the probe is let go, and its line closes.
        let _ = line.ask(Ask::Leave);
        let _ = line.input.send(&[]);
        let ran = ran.join();
        let ran = ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // That the guest fails explains that it does not answer.
        ran.map_err(|error| broken(&error)).and(lived)
    })
}

/// The conversation with the guest.
struct Line {
    input: Input,
    told: Receiver<(i64, Told)>,
}

impl Line {
    fn ask(&self, ask: Ask) -> io::Result<()> {
        let text = serde_json::to_string(&ask)?;
        self.input.send(format!("{text}\n").as_bytes())
    }

    /// What the guest says next, and when that came.
    fn hear(&self) -> Result<(i64, Told), (Stage, i32)> {
        match self.told.recv_timeout(ANSWER) {
            Ok((_, failed @ Told::Failed(..))) => Err(unexpected(failed)),
            Ok(told) => Ok(told),
            // Why its program has ended is told by the one that waits for it.
            Err(RecvTimeoutError::Disconnected) => Err((Stage::Machine, 0)),
            Err(RecvTimeoutError::Timeout) => Err(fails(&format!(
                "the guest does not answer for {} s",
                ANSWER.as_secs()
            ))),
        }
    }

    /// The guest's clock minus the host's, and how far that can be wrong, ns.
    fn offset(&self) -> Result<(i64, i64), (Stage, i32)> {
        let mut nearest = (0, i64::MAX);
        for _ in 0..COMPARED {
            let before = clock::now();
            let _ = self.ask(Ask::Clock);
            let (after, told) = self.hear()?;
            let Told::Clock(there) = told else {
                return Err(unexpected(told));
            };
            let half = (after - before) / 2;
            if half < nearest.1 {
                nearest = (there - before - half, half);
            }
        }
        Ok(nearest)
    }

    /// The end of the jobs: when each thread saw the release, on its own clock. How long they take is the coordinator's business.
    fn done(&self) -> Result<Vec<i64>, (Stage, i32)> {
        loop {
            match self.told.recv_timeout(ANSWER) {
                Ok((_, Told::Done(started))) => return Ok(started),
                Err(RecvTimeoutError::Timeout) => {}
                Ok((_, told)) => return Err(unexpected(told)),
                Err(RecvTimeoutError::Disconnected) => return Err((Stage::Machine, 0)),
            }
        }
    }
}

fn unexpected(told: Told) -> (Stage, i32) {
    match told {
        Told::Failed(0, _) => fails("the probe in the guest ended before its jobs were done"),
        Told::Failed(stage, errno) => {
            let why = io::Error::from_raw_os_error(errno);
            let doing = Stage::doing(stage);
            fails(&format!("the probe in the guest {doing}: {why}"))
        }
        told => fails(&format!("the guest says what nobody asked for: {told:?}")),
    }
}

/// Takes the machine's part in the barrier, until the jobs are done.
fn barrier(line: &Line, slots: &Slots<'_>, record: &mut MachineRecord) -> Result<(), (Stage, i32)> {
    let there = match line.hear()?.1 {
        Told::Present(there) => there,
        told => return Err(unexpected(told)),
    };
    let (offset_ns, error_ns) = line.offset()?;
    (record.clock_offset_ns, record.clock_error_ns) = (offset_ns, error_ns);
    for (slot, present_ns) in slots.slots.iter().zip(there) {
        slot.present_ns.store(present_ns - offset_ns, Relaxed);
    }
    slots.report(State::Present);
    for slot in &slots.slots {
        cell::wait_while(&slot.permit, |permit| permit == 0)?;
    }
    // A line that fails shows in what is heard.
    let _ = line.ask(Ask::Permit);
    let armed = match line.hear()?.1 {
        Told::Armed(armed) => armed,
        told => return Err(unexpected(told)),
    };
    for (slot, armed) in slots.slots.iter().zip(armed) {
        slot.policy.store(armed.policy, Relaxed);
        slot.priority.store(armed.priority, Relaxed);
        slot.memory_locked.store(armed.memory_locked, Relaxed);
        slot.armed_ns.store(armed.armed_ns - offset_ns, Relaxed);
        slot.step_ps.store(armed.step_ps, Relaxed);
        slot.calibrations.store(armed.calibrations, Relaxed);
        slot.spread_ppm.store(armed.spread_ppm, Relaxed);
    }
    slots.report(State::Armed);
    let head = slots.control.head();
    if cell::wait_while(&head.go, |go| go == 0)? != GO {
        return Err((Stage::Abandoned, libc::ECANCELED));
    }
    let _ = line.ask(Ask::Go(head.go_ns.load(Acquire) + offset_ns));
    for (slot, started_ns) in slots.slots.iter().zip(line.done()?) {
        slot.started_ns.store(started_ns - offset_ns, Relaxed);
    }
    record.clock_drift_ns = line.offset()?.0 - offset_ns;
    Ok(())
}

/// Fetches the samples and writes them, on the host's clock, to the files that the coordinator has made for them, and beside the first
/// the record of the machine.
fn kept(
    guest: &mut Guest,
    cache: &Cache,
    samples: &[PathBuf],
    record: &MachineRecord,
) -> Result<(), GuestError> {
    let Some(first) = samples.first() else {
        return Ok(());
    };
    let into = first.with_extension("guest");
    std::fs::create_dir(&into).map_err(GuestError::file(&into, "make it"))?;
    guest.fetch(cache, &inside().to_string_lossy(), &into)?;
    for (slot, samples) in samples.iter().enumerate() {
        let came = into.join(slot.to_string());
        let mut bytes = std::fs::read(&came).map_err(GuestError::file(&came, "read what came"))?;
        translate(&mut bytes, record.clock_offset_ns);
        std::fs::write(samples, bytes).map_err(GuestError::file(samples, "write it"))?;
    }
    std::fs::remove_dir_all(&into).map_err(GuestError::file(&into, "remove it"))?;
    let path = first.with_extension("machine");
    let text = serde_json::to_vec(record).map_err(io::Error::from);
    (text.and_then(|text| std::fs::write(&path, text))).map_err(GuestError::file(&path, "write it"))
}

/// Takes the offset of a guest's clock from every instant of a samples file.
fn translate(bytes: &mut [u8], offset_ns: i64) {
    let (page, records) = bytes.split_at_mut(HEADER_BYTES.min(bytes.len()));
    let Some(head) = page.first_chunk_mut() else {
        return;
    };
    let mut header = Header::from_bytes(head);
    for instant in [
        &mut header.go_ns,
        &mut header.started_ns,
        &mut header.ended_ns,
    ] {
        *instant -= offset_ns;
    }
    *head = header.to_bytes();
    let count = usize::try_from(header.count).unwrap_or(usize::MAX);
    for record in records
        .as_chunks_mut::<RECORD_BYTES>()
        .0
        .iter_mut()
        .take(count)
    {
        let mut sample = Sample::from_bytes(record);
        for instant in [
            &mut sample.release_ns,
            &mut sample.start_ns,
            &mut sample.end_ns,
        ] {
            *instant -= offset_ns;
        }
        *record = sample.to_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_back_on_the_hosts_clock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples");
        crate::prepare_samples(&path, 2).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let mut header = Header::from_bytes(bytes.first_chunk().unwrap());
        (
            header.go_ns,
            header.started_ns,
            header.ended_ns,
            header.count,
        ) = (1_000, 1_100, 1_900, 1);
        bytes[..size_of::<Header>()].copy_from_slice(&header.to_bytes());
        let sample = Sample {
            index: 7,
            skipped: 7,
            release_ns: 1_200,
            start_ns: 1_300,
            end_ns: 1_500,
        };
        bytes[HEADER_BYTES..][..RECORD_BYTES].copy_from_slice(&sample.to_bytes());
        translate(&mut bytes, -500);
        let header = Header::from_bytes(bytes.first_chunk().unwrap());
        assert_eq!(
            (header.go_ns, header.started_ns, header.ended_ns),
            (1_500, 1_600, 2_400)
        );
        let found = Sample::from_bytes(bytes[HEADER_BYTES..].first_chunk().unwrap());
        let late = Sample {
            release_ns: 1_700,
            start_ns: 1_800,
            end_ns: 2_000,
            ..sample
        };
        assert_eq!(found, late);
        // Room that nothing was written to stays empty, and a file that was cut short is left to its reader.
        assert_eq!(
            bytes[HEADER_BYTES + RECORD_BYTES..][..RECORD_BYTES],
            [0; RECORD_BYTES]
        );
        translate(&mut bytes[..9], 1);
    }

    #[test]
    fn payloads_are_one_probe_or_a_set() {
        for words in [
            "run control=/c slot=3 period=0 jobs=0 cpu=1 timer",
            "set cpu=0 -- control=/c slot=0 period=9 jobs=1 cpu=1 timer wcet=5",
        ] {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let mut payload = Payload::from_words(&words).unwrap();
            assert_eq!(payload.to_words(), words);
            payload.probes_mut()[0].slot = 5;
            assert_eq!(payload.probes()[0].slot, 5);
        }
        assert!(Payload::from_words(&["nop".to_owned()]).is_err());
        assert!(Payload::from_words(&[]).is_err());
    }
}
