//! A payload that always wants the cpu and notes when it did not have it: it reads the clock without a pause, and two
//! readings that are too far apart have a gap between them.
//!
//! It does so in stretches, with rests between them. Each stretch begins at an instant of its own between two ticks, so
//! that the tick falls into the budget in every way; a rest is long enough for the kernel to forget the stretch before.

mod args;

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use host::sched::bandwidth::{GIVEN_BACK, set_class_when_free};
use host::sched::{self, Class};
use record::gaps::{
    Gap, HEADER_BYTES, Header, MOST_STRETCHES, RECORD_BYTES, STRETCHES_AT, Stretch, file_bytes,
};

use crate::cell::{attend, farewell, report, wait_while};
use crate::control::{GO, Slot, Stage, State};
use crate::crowd::Crowd;
use crate::map::{ControlMap, Map, preallocated};
use crate::{EXIT_BAD_ARGS, arm, clock, oob};

pub use args::{SpinClass, SupplyArgs};

/// Gaps that a file has room for: ten times those of a minute on a restless virtual machine.
const CAPACITY: u64 = 1 << 18;
/// The least gap, ns: below it are cache misses and the clock's own unevenness.
const LEAST_GAP_NS: i64 = 1_000;
/// A gap takes at least so many clock readings, where reading is slow.
const LEAST_READINGS: u64 = 16;

/// Makes the gaps file at `path`, on tmpfs, for so many stretches; an old one is replaced.
///
/// # Errors
/// When shared memory is full or the place is not writable.
pub fn prepare_gaps(path: &Path, stretches: usize) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = preallocated(path, file_bytes(CAPACITY))?;
    let header = Header {
        planned: u32::try_from(stretches).unwrap_or(u32::MAX),
        capacity: CAPACITY,
        ..Header::new()
    };
    std::os::unix::fs::FileExt::write_all_at(&file, &header.to_bytes(), 0)
}

/// Where gaps go: the file, mapped.
struct Sheet<'a> {
    map: &'a Map,
    header: Header,
    /// Records written.
    count: usize,
    /// Records that there are to be by the end of this stretch at most; one is kept for each later stretch.
    room: usize,
    capacity: usize,
}

impl<'a> Sheet<'a> {
    fn new(map: &'a Map, stretches: usize) -> Option<Sheet<'a>> {
        let room = map.len().checked_sub(HEADER_BYTES)?;
        // SAFETY: the mapping is page-aligned and longer than a header; every bit pattern is one.
        let header: Header = unsafe { map.as_ptr().cast::<Header>().read() };
        let capacity = room / RECORD_BYTES;
        let fits = header.planned as usize == stretches
            && stretches <= MOST_STRETCHES
            && usize::try_from(header.capacity) == Ok(capacity)
            && capacity >= stretches;
        fits.then_some(Sheet {
            map,
            header,
            count: 0,
            room: capacity,
            capacity,
        })
    }

    /// Begins a stretch; so many follow it.
    fn begin(&mut self, later: usize) {
        self.room = self.capacity - later;
    }

    /// Notes a gap; where there is no room left, the last record of the stretch grows to hold it.
    #[inline(always)]
    fn put(&mut self, gap: Gap) {
        // SAFETY: the place is below the room, which is within the mapping; records of 16 bytes follow the page. A
        // stretch that finds its room taken has written a record, as one was kept for it.
        unsafe {
            let records = self.map.as_ptr().add(HEADER_BYTES).cast::<Gap>();
            if self.count < self.room {
                records.add(self.count).write(gap);
                self.count += 1;
            } else {
                (*records.add(self.count - 1)).end_ns = gap.end_ns;
                self.header.merged += 1;
            }
        }
    }

    /// Adds a stretch to the table, and says so in the header.
    fn end(&mut self, stretch: &Stretch) {
        let place = self.header.stretches as usize;
        self.header.stretches += 1;
        self.header.count = self.count as u64;
        let at = STRETCHES_AT + place * size_of::<Stretch>();
        // SAFETY: the table has room for the stretches planned (checked when opened) and lies within the first page.
        unsafe {
            let table = self.map.as_ptr().add(at).cast::<Stretch>();
            table.write_unaligned(*stretch);
            std::sync::atomic::fence(Release);
        }
        self.write_header();
    }

    fn write_header(&self) {
        // SAFETY: as in `new`; written by this process only.
        unsafe { self.map.as_ptr().cast::<Header>().write(self.header) };
    }
}

/// Reads the clock without a pause for `length_ns`; the first reading, the last, and their number.
#[inline(never)]
fn spin(sheet: &mut Sheet<'_>, length_ns: i64, least_gap_ns: i64) -> (i64, i64, u64) {
    let begin = clock::now();
    let until_ns = begin + length_ns;
    let mut last = begin;
    let mut readings = 1;
    while last < until_ns {
        let now = clock::now();
        readings += 1;
        if now - last > least_gap_ns {
            sheet.put(Gap {
                begin_ns: last,
                end_ns: now,
            });
        }
        last = now;
    }
    (begin, last, readings)
}

/// The payload; `words` are those behind `timecell probe supply`. Returns the process's exit code.
pub fn supply(words: &[String]) -> i32 {
    let present_ns = clock::now();
    let args = match SupplyArgs::from_words(words) {
        Ok(args) => args,
        Err(error) => {
            eprintln!("{error}");
            return EXIT_BAD_ARGS;
        }
    };
    let control = Path::new(&args.control);
    attend(control, args.slot, present_ns, |control, slot| {
        live(&args, control, slot)
    })
}

fn live(args: &SupplyArgs, control: &ControlMap, slot: &Slot) -> Result<(), (Stage, i32)> {
    let errno = |error: io::Error| {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        (Stage::MapSamples, errno)
    };
    let file = OpenOptions::new().read(true).write(true).open(&args.gaps);
    let map = file.and_then(|file| Map::of(&file)).map_err(errno)?;
    let mut sheet =
        Sheet::new(&map, args.stretches.len()).ok_or((Stage::MapSamples, libc::EFBIG))?;
    arm::touch_stack();
    let locked = arm::lock_memory(Some(&map)) as u32;
    map.touch();
    arm::least_timer_slack();
    slot.memory_locked.store(locked, Relaxed);
    let clock_cost_ns = clock::reading_cost_ns();
    let slow = i64::try_from(LEAST_READINGS * clock_cost_ns).unwrap_or(i64::MAX);
    sheet.header.clock_cost_ns = clock_cost_ns;
    sheet.header.least_gap_ns = LEAST_GAP_NS.max(slow);
    sheet.header.memory_locked = locked;

    report(control, slot, State::Present);
    wait_while(&slot.permit, |permit| permit == 0)?;
    take(args)?;
    let thread = oob::in_group(args.group, args.class)?;
    let crowd = crowd(args)?;
    let (policy, priority) = arm::class_got();
    (sheet.header.policy, sheet.header.priority) = (policy, priority);
    slot.policy.store(policy, Relaxed);
    slot.priority.store(priority, Relaxed);
    slot.cpu.store(arm::current_cpu(), Relaxed);
    slot.armed_ns.store(clock::now(), Relaxed);
    report(control, slot, State::Armed);
    if wait_while(&control.head().go, |go| go == 0)? != GO {
        return Err((Stage::Abandoned, libc::ECANCELED));
    }
    let go_ns = control.head().go_ns.load(Acquire);
    stretches(args, &mut sheet, (&crowd, thread.as_ref()), go_ns, slot);
    drop(crowd);
    if let Some(thread) = thread {
        thread.detach();
    }
    let _ = arm::take_class(&Class::Other);
    report(control, slot, State::Done);
    farewell(control);
    Ok(())
}

/// The threads beside it, which have its cpus.
fn crowd(args: &SupplyArgs) -> Result<Crowd, (Stage, i32)> {
    let class = args.crowds_class().unwrap_or(Class::Other);
    Crowd::of(args.beside, &class).map_err(|errno| (Stage::Class, errno))
}

/// Gives the calling thread its cpus and its class.
fn take(args: &SupplyArgs) -> Result<(), (Stage, i32)> {
    sched::set_affinity(0, &args.cpus).map_err(|error| (Stage::Affinity, error.errno()))?;
    let class = match args.class {
        SpinClass::Fifo { priority } => Class::Fifo { priority },
        SpinClass::Deadline {
            budget_ns,
            period_ns,
        } => Class::Deadline {
            runtime_ns: budget_ns,
            deadline_ns: period_ns,
            period_ns,
        },
    };
    // The kernel keeps the bandwidth of threads that have ended until their period is over.
    set_class_when_free(0, &class, GIVEN_BACK).map_err(|error| (Stage::Class, error.errno()))
}

fn stretches(
    args: &SupplyArgs,
    sheet: &mut Sheet<'_>,
    (crowd, thread): (&Crowd, Option<&evl::Thread>),
    go_ns: i64,
    slot: &Slot,
) {
    let mut earliest = go_ns;
    let before = arm::usage();
    for (place, &(length_ns, at_ns)) in args.stretches.iter().enumerate() {
        sheet.begin(args.stretches.len() - place - 1);
        clock::sleep_until(next_at(earliest, at_ns, args.grid_ns));
        crowd.spin();
        let cpu_first = arm::current_cpu();
        // Its state is asked out of band: it goes there after the sleep.
        let billed_so_far = || thread.map_or_else(clock::thread_cpu_time, oob::cpu_ns);
        let billed = billed_so_far();
        let (begin_ns, end_ns, readings) = spin(sheet, length_ns, sheet.header.least_gap_ns);
        let billed = billed_so_far() - billed;
        crowd.rest();
        if place == 0 {
            slot.started_ns.store(begin_ns, Release);
        }
        if place + 1 == args.stretches.len() {
            let after = arm::usage();
            sheet.header.minor_faults = after.minor_faults - before.minor_faults;
            sheet.header.major_faults = after.major_faults - before.major_faults;
            sheet.header.complete = 1;
        }
        sheet.end(&Stretch {
            begin_ns,
            end_ns,
            gaps: sheet.count as u64,
            billed_ns: billed.unsigned_abs(),
            readings,
            cpu_first,
            cpu_last: arm::current_cpu(),
        });
        earliest = end_ns + args.rest_ns;
    }
}

/// The first instant from `earliest` on that lies `at` behind a multiple of `grid`.
fn next_at(earliest: i64, at: i64, grid: i64) -> i64 {
    earliest + (at - earliest).rem_euclid(grid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Barrier;
    use proptest::prelude::*;
    use record::gaps;

    fn args(dir: &Path) -> SupplyArgs {
        SupplyArgs {
            control: dir.join("control").display().to_string(),
            slot: 0,
            gaps: dir.join("gaps").display().to_string(),
            class: SpinClass::Fifo { priority: 1 },
            beside: 0,
            group: None,
            cpus: vec![host::cpus::default_rt_cpu()],
            stretches: vec![(2_000_000, 0), (1_000_000, 700_000)],
            rest_ns: 500_000,
            grid_ns: 4_000_000,
        }
    }

    #[test]
    fn words_and_back() {
        let dir = Path::new("/cell");
        let (budget_ns, period_ns) = (3_000_000, 10_000_000);
        let deadline = SpinClass::Deadline {
            budget_ns,
            period_ns,
        };
        for (slot, class) in [SpinClass::Fifo { priority: 80 }, deadline]
            .into_iter()
            .enumerate()
        {
            let args = SupplyArgs {
                class,
                slot,
                ..args(dir)
            };
            assert_eq!(SupplyArgs::from_words(&args.to_words()[2..]), Ok(args));
        }
        let crowded = SupplyArgs {
            class: SpinClass::Fifo { priority: 2 },
            beside: 7,
            ..args(dir)
        };
        assert_eq!(
            SupplyArgs::from_words(&crowded.to_words()[2..]),
            Ok(crowded)
        );
        let grouped = SupplyArgs {
            group: Some((evl::Kind::Partition, 3)),
            ..args(dir)
        };
        let words = grouped.to_words()[2..].to_vec();
        assert_eq!(SupplyArgs::from_words(&words), Ok(grouped));
        let beside = words
            .iter()
            .map(|word| word.replace("beside=0", "beside=1"));
        let beside: Vec<String> = beside
            .map(|word| word.replace("fifo=1", "fifo=2"))
            .collect();
        assert!(SupplyArgs::from_words(&beside).is_err());
        let good = args(dir).to_words()[2..].to_vec();
        for (from, to) in [
            ("fifo=1", "fifo=0"),
            ("grid=4000000", "grid=0"),
            ("stretches=2000000@0,1000000@700000", "stretches=1@2,x"),
            ("stretches=2000000@0,1000000@700000", "stretches=0@0"),
            ("rest=500000", "knights=1"),
            ("beside=0", "beside=7"),
        ] {
            let bad: Vec<String> = (good.iter())
                .map(|word| {
                    if word == from {
                        to.to_owned()
                    } else {
                        word.clone()
                    }
                })
                .collect();
            assert_ne!(bad, good);
            assert!(SupplyArgs::from_words(&bad).is_err(), "{to}");
        }
    }

    #[test]
    fn a_payload_spins_in_stretches_and_notes_its_gaps() {
        let dir = tempfile::tempdir().unwrap();
        let args = args(dir.path());
        prepare_gaps(Path::new(&args.gaps), args.stretches.len()).unwrap();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&args.gaps)
            .unwrap();
        let map = Map::of(&file).unwrap();
        let mut sheet = Sheet::new(&map, args.stretches.len()).unwrap();
        assert!(Sheet::new(&map, 3).is_none(), "another number of stretches");
        sheet.header.least_gap_ns = LEAST_GAP_NS;
        let barrier = Barrier::create(Path::new(&args.control), 1).unwrap();
        let go_ns = clock::now();
        let crowd = Crowd::of(1, &Class::Other).unwrap();
        stretches(&args, &mut sheet, (&crowd, None), go_ns, barrier.slot(0));
        let read = gaps::read(Path::new(&args.gaps)).unwrap();
        assert_eq!((read.header.complete, read.header.merged), (1, 0));
        assert_eq!(read.stretches.len(), 2);
        for ((stretch, gaps), (length, at)) in read.stretches.iter().zip(&args.stretches) {
            assert!(stretch.begin_ns >= go_ns && stretch.end_ns - stretch.begin_ns >= *length);
            assert!((stretch.begin_ns - at).rem_euclid(args.grid_ns) >= 0);
            assert!(stretch.readings > 1 && stretch.billed_ns > 0);
            for gap in gaps {
                assert!(gap.end_ns - gap.begin_ns > LEAST_GAP_NS);
            }
        }
        let [(first, _), (second, _)] = &read.stretches[..] else {
            panic!("two stretches");
        };
        assert!(second.begin_ns - first.end_ns >= args.rest_ns);
    }

    #[test]
    fn a_full_file_says_that_less_was_received() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gaps");
        prepare_gaps(&path, 2).unwrap();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        let map = Map::of(&file).unwrap();
        let mut sheet = Sheet::new(&map, 2).unwrap();
        sheet.count = sheet.capacity - 2;
        for (place, begin_ns) in [10, 50].into_iter().enumerate() {
            sheet.begin(1 - place);
            for at in [begin_ns, begin_ns + 10, begin_ns + 20] {
                sheet.put(Gap {
                    begin_ns: at,
                    end_ns: at + 5,
                });
            }
        }
        // SAFETY: the last two records of the mapping.
        let last = unsafe {
            let records = map.as_ptr().add(HEADER_BYTES).cast::<Gap>();
            [2, 1].map(|back| records.add(sheet.capacity - back).read())
        };
        let ends = last.map(|gap| (gap.begin_ns, gap.end_ns));
        assert_eq!(ends, [(10, 35), (50, 75)]);
        assert_eq!((sheet.header.merged, sheet.count), (4, sheet.capacity));
    }

    #[test]
    fn what_is_not_understood_ends_at_once() {
        assert_eq!(supply(&[]), EXIT_BAD_ARGS);
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(supply(&args(dir.path()).to_words()[2..]), EXIT_BAD_ARGS);
    }

    proptest! {
        #[test]
        fn a_stretch_begins_where_it_should_between_ticks(
            earliest in 0i64..1 << 50, at in 0i64..1 << 30, grid in 1i64..1 << 30,
        ) {
            let next = next_at(earliest, at, grid);
            prop_assert!(next >= earliest && next - earliest < grid);
            prop_assert_eq!((next - at).rem_euclid(grid), 0);
        }
    }
}
