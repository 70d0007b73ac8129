//! What a report costs the application: begin and end of a job with and without the two readings of the clock, a heartbeat,
//! and, to compare, the clock alone and one cheap system call. The page is a file on tmpfs, as in a cell.
//!
//! `cargo bench -p benches --bench report`.

use std::ffi::CString;
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt;

use criterion::{Criterion, criterion_group, criterion_main};
use timecell_client::{Client, layout, now_ns};

/// A page of one slot that nobody has declared.
fn client(dir: &std::path::Path) -> Client {
    let path = dir.join("page");
    let mut page = vec![0u8; layout::page_bytes(1)];
    page[..8].copy_from_slice(&layout::MAGIC.to_ne_bytes());
    page[8..12].copy_from_slice(&layout::VERSION.to_ne_bytes());
    page[12..16].copy_from_slice(&1u32.to_ne_bytes());
    std::fs::write(&path, page).unwrap();
    Client::open(&CString::new(path.as_os_str().as_bytes()).unwrap()).unwrap()
}

fn report(criterion: &mut Criterion) {
    let shm = std::path::Path::new("/dev/shm");
    let dir = tempfile::tempdir_in(shm).unwrap();
    let mut task = client(dir.path()).task("control").unwrap();
    let mut group = criterion.benchmark_group("report");
    group.bench_function("begin_at + end_at", |bench| {
        let mut at_ns = now_ns();
        bench.iter(|| {
            at_ns += 2;
            task.begin_at(black_box(at_ns), black_box(at_ns));
            task.end_at(black_box(at_ns + 1));
        });
    });
    group.bench_function("begin + end", |bench| {
        bench.iter(|| {
            task.begin();
            task.end();
        });
    });
    group.bench_function("heartbeat", |bench| bench.iter(|| task.heartbeat()));
    group.bench_function("two readings of the clock", |bench| {
        bench.iter(|| (now_ns(), now_ns()));
    });
    group.bench_function("one system call (getppid)", |bench| {
        // SAFETY: no memory is involved.
        bench.iter(|| unsafe { libc::getppid() });
    });
    group.finish();
}

criterion_group!(benches, report);
criterion_main!(benches);
