//! What the supervisor's housekeeping costs: a look at a page without and with news, an entry of the journal that outlives the
//! supervisor and one that outlives a power cut.
//!
//! `cargo bench -p benches --bench supervisor`. The last figure is the disk's: the journal lies in the directory for temporary files.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use criterion::{Criterion, criterion_group, criterion_main};
use supervise::journal::Journal;
use supervise::page::{Declared, Page};
use supervise::state::{Entry, Hold, Record};
use supervise::{End, Stamp};
use timecell_client::Client;

fn pages(criterion: &mut Criterion) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("page");
    let tasks = ["a", "b", "c"].map(|name| Declared {
        name: name.to_owned(),
        deadline_ns: Some(1_000_000),
    });
    let mut page = Page::create(&path, &tasks, 1, None).unwrap();
    let client = Client::open(&CString::new(path.as_os_str().as_bytes()).unwrap()).unwrap();
    let mut task = client.task("b").unwrap();
    let mut group = criterion.benchmark_group("page of three tasks");
    group.bench_function("scan without news", |bench| {
        bench.iter(|| page.scan().unwrap());
    });
    group.bench_function("scan after one job", |bench| {
        bench.iter(|| {
            task.begin_at(1, 2);
            task.end_at(3);
            page.scan().unwrap()
        });
    });
    group.finish();
}

fn journals(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::<Record>::open(dir.path()).unwrap();
    let record = |entry| Record {
        at: Stamp::now(),
        entry,
    };
    let cell = || "control".to_owned();
    let of_process = record(Entry::CellEnded {
        cell: cell(),
        generation: 1,
        end: End::Exited { code: 0 },
        cause: None,
    });
    let durable = record(Entry::CellHeld {
        cell: cell(),
        why: Hold::ByHand,
    });
    let mut group = criterion.benchmark_group("journal");
    group.sample_size(50);
    for (name, record) in [
        ("append, outlives the supervisor", of_process),
        ("append, outlives a power cut", durable),
    ] {
        group.bench_function(name, |bench| {
            bench.iter(|| {
                journal.append(&record).unwrap();
                if journal.should_be_compacted() {
                    journal.compact(std::slice::from_ref(&record)).unwrap();
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, pages, journals);
criterion_main!(benches);
