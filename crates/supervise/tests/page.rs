//! The page between real writers and the supervisor's reader: the Rust client and the C header, in threads and processes,
//! and a cell that damages it.

#[path = "../../host/tests/needs/mod.rs"]
mod needs;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use timecell_client::{Client, OpenError, TaskError, layout, now_ns};
use timecell_supervise::page::{Declared, Nonsense, Page, PageError, Place};

fn main() {
    // SAFETY: no memory is involved.
    let root = unsafe { libc::geteuid() } == 0;
    let mounts = (!root).then_some("mounting needs root");
    let plain: [(&str, fn()); 14] = [
        (
            "no_job_is_torn_lost_or_invented",
            no_job_is_torn_lost_or_invented,
        ),
        ("c_writes_what_rust_reads", c_writes_what_rust_reads),
        (
            "a_writer_killed_at_any_moment_leaves_whole_jobs",
            a_writer_killed_at_any_moment_leaves_whole_jobs,
        ),
        ("c_compiles_without_a_warning", c_compiles_without_a_warning),
        (
            "the_examples_of_the_documentation_are_programs",
            the_examples_of_the_documentation_are_programs,
        ),
        (
            "c_outside_of_a_cell_reports_to_nobody",
            c_outside_of_a_cell_reports_to_nobody,
        ),
        ("c_beats_in_a_partition", c_beats_in_a_partition),
        (
            "a_program_that_takes_over_goes_on_counting",
            a_program_that_takes_over_goes_on_counting,
        ),
        ("names_are_checked", names_are_checked),
        (
            "a_cell_without_tasks_names_its_slots",
            a_cell_without_tasks_names_its_slots,
        ),
        (
            "a_page_cut_short_is_an_error_and_no_signal",
            a_page_cut_short_is_an_error_and_no_signal,
        ),
        (
            "a_damaged_page_is_refused_by_the_client",
            a_damaged_page_is_refused_by_the_client,
        ),
        (
            "response_times_are_counted_where_there_is_room",
            response_times_are_counted_where_there_is_room,
        ),
        (
            "an_adopted_page_tells_only_what_is_new",
            an_adopted_page_tells_only_what_is_new,
        ),
    ];
    let mut trials: Vec<_> = plain
        .into_iter()
        .map(|(name, run)| needs::trial(name, None, run))
        .collect();
    trials.push(needs::trial(
        "root_a_page_in_its_place_cannot_grow",
        mounts,
        root_a_page_in_its_place_cannot_grow,
    ));
    needs::run(trials, needs::Threads::Cpus);
}

fn control(deadline_ns: i64) -> Vec<Declared> {
    vec![Declared {
        name: "control".to_owned(),
        deadline_ns: Some(deadline_ns),
    }]
}

fn page(tasks: &[Declared]) -> (TempDir, PathBuf, Page) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("page");
    let page = Page::create(&path, tasks, 1, None).unwrap();
    (dir, path, page)
}

fn client(path: &Path) -> Result<Client, OpenError> {
    Client::open(&CString::new(path.as_os_str().as_bytes()).unwrap())
}

fn response_times_are_counted_where_there_is_room() {
    let (_dir, path, page) = page(&[]);
    let mut task = client(&path).unwrap().task("a").unwrap();
    let mut report = |response_ns: i64| {
        task.begin_at(0, 0);
        task.end_at(response_ns);
    };
    for response_ns in [-5, 1_024, 1_025, 3_000_000, i64::MAX] {
        report(response_ns);
    }
    let mut expected = [0; layout::BUCKETS];
    for (bucket, jobs) in [(0, 2), (1, 1), (12, 1), (layout::BUCKETS - 1, 1)] {
        expected[bucket] = jobs;
    }
    assert_eq!(page.responses().unwrap()[0], expected);
    let sum_ns = page.totals().unwrap()[0].responses_ns;
    assert_eq!(sum_ns, 1_024 + 1_025 + 3_000_000 + i64::MAX.unsigned_abs());
    drop(task);

    // A page as an earlier timecell made it; all else is as before.
    let short = layout::least_bytes(8);
    assert!(short < layout::page_bytes(8));
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(short as u64).unwrap();
    let mut task = client(&path).unwrap().task("a").unwrap();
    task.begin_at(0, 0);
    task.end_at(7);
    assert!(matches!(page.responses(), Err(PageError::Cut { .. })));
    let totals = page.totals().unwrap()[0];
    assert_eq!((totals.ended, totals.responses_ns), (6, sum_ns));
}

fn no_job_is_torn_lost_or_invented() {
    let (_dir, path, mut page) = page(&control(50));
    let jobs = 3_000_000u64;
    let done = AtomicBool::new(false);
    let (mut next, mut unseen, mut late) = (0u64, 0u64, 0u64);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut task = client(&path).unwrap().task("control").unwrap();
            for job in 0..jobs.cast_signed() {
                task.begin_at(job * 7, job * 7 + 3);
                task.end_at(job * 7 + 5 + job % 61);
            }
            done.store(true, Ordering::Release);
        });
        loop {
            let last = done.load(Ordering::Acquire);
            for news in page.scan().unwrap() {
                assert_eq!(news.nonsense, None, "an honest writer");
                unseen += news.unseen;
                late += news.unseen_late;
                let mut seen = None;
                for job in &news.jobs {
                    let number = job.number.cast_signed();
                    assert_eq!(job.release_ns, number * 7, "torn: {job:?}");
                    assert_eq!(job.begin_ns, number * 7 + 3, "torn: {job:?}");
                    assert_eq!(
                        job.end_ns,
                        Some(number * 7 + 5 + number % 61),
                        "torn: {job:?}"
                    );
                    assert!(
                        job.number >= next + news.unseen && seen < Some(job.number),
                        "{job:?}"
                    );
                    seen = Some(job.number);
                }
                next += news.unseen + news.jobs.len() as u64;
                assert!(news.running.is_none_or(|running| {
                    running.number == next && running.release_ns == running.number.cast_signed() * 7
                }));
            }
            if last {
                break;
            }
        }
    });
    assert_eq!(next, jobs);
    assert!(late <= unseen && unseen < jobs, "{late} {unseen}");
}

fn compile(dir: &Path, compiler: &str, standard: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reporter.c");
    compile_file(&source, dir, compiler, standard)
}

fn compile_file(source: &Path, dir: &Path, compiler: &str, standard: &str) -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = dir.join(format!("reporter-{standard}"));
    let language = if standard.starts_with("c++") {
        "c++"
    } else {
        "c"
    };
    let output = Command::new(compiler)
        .args([
            "-x",
            language,
            "-O2",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Wconversion",
            "-Werror",
        ])
        .arg(format!("-std={standard}"))
        .arg("-I")
        .arg(crates.join("../client/include"))
        .arg(source)
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}; install a C compiler"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && said.is_empty(),
        "{compiler}: {said}"
    );
    program
}

fn report(program: &Path, page: Option<&Path>, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(args).env_remove("TIMECELL_PAGE");
    if let Some(page) = page {
        command.env("TIMECELL_PAGE", page);
    }
    command.output().unwrap()
}

fn c_compiles_without_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    compile(dir.path(), "gcc", "c11");
    compile(dir.path(), "gcc", "gnu17");
    compile(dir.path(), "g++", "c++11");
    compile(dir.path(), "g++", "c++20");
}

fn c_writes_what_rust_reads() {
    let (dir, path, mut page) = page(&control(500));
    let program = compile(dir.path(), "gcc", "c11");
    let output = report(&program, Some(&path), &["control", "20", "1"]);
    assert!(output.status.success(), "{output:?}");
    let [news] = page.scan().unwrap().try_into().unwrap();
    let expected: Vec<(u64, i64, Option<i64>)> = (0..20)
        .map(|k: u64| {
            let response = if k % 10 == 9 { 1900 } else { 300 };
            (k, 1000 * k.cast_signed() + 1, Some(response))
        })
        .collect();
    let jobs: Vec<_> = (news.jobs.iter())
        .map(|job| (job.number, job.release_ns, job.response_ns()))
        .collect();
    assert_eq!(jobs, expected);
    assert!(
        news.jobs
            .iter()
            .all(|job| job.begin_ns == job.release_ns + 10)
    );
    assert_eq!((news.totals.late, news.totals.worst_response_ns), (2, 1900));
    let counted = page.responses().unwrap()[0];
    assert_eq!(
        (&counted[..3], news.totals.responses_ns),
        (&[18, 2, 0][..], 18 * 300 + 2 * 1900)
    );
    assert_eq!((news.heartbeats, news.nonsense, news.unseen), (2, None, 0));
    // The last job was begun and not ended.
    let running = news.running.unwrap();
    assert_eq!(running.number, 20);
    assert!((0..=now_ns()).contains(&running.begin_ns));

    // Its next process finds the job and gives it up; the ring has been written over once and more.
    let output = report(&program, Some(&path), &["control", "100", "0"]);
    assert!(output.status.success(), "{output:?}");
    let [news] = page.scan().unwrap().try_into().unwrap();
    assert_eq!(news.totals.abandoned, 1);
    assert_eq!(news.unseen + news.jobs.len() as u64, 101);
    assert_eq!(news.unseen_late, 10);
    assert_eq!(news.nonsense, None);

    let output = report(&program, Some(&path), &["contrl", "1", "0"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        said,
        "the mission declares no task of this name for this cell\n"
    );
}

fn the_examples_of_the_documentation_are_programs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let text = read("docs/src/client.md");
    let block = |language: &str| {
        let (_, from) = text.split_once(&format!("```{language}\n")).unwrap();
        from.split_once("```").unwrap().0.to_owned()
    };
    assert!(read("crates/client/examples/control.rs").ends_with(&block("rust")));
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("control.c");
    std::fs::write(&source, block("c")).unwrap();
    compile_file(&source, dir.path(), "gcc", "c11");
}

fn a_writer_killed_at_any_moment_leaves_whole_jobs() {
    let (dir, path, mut page) = page(&control(500));
    let program = compile(dir.path(), "gcc", "c11");
    let (mut over, mut abandoned) = (0, 0);
    for _ in 0..40 {
        let mut child = Command::new(&program)
            .args(["control", "1000000000000", "0"])
            .env("TIMECELL_PAGE", &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // The death comes at some instruction of a loop that does nothing but report.
        while page.scan().unwrap().is_empty() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        page = Page::open(&path, 1).unwrap();
        let mut task = client(&path).unwrap().task("control").unwrap();
        task.heartbeat();
        let [news] = page.scan().unwrap().try_into().unwrap();
        assert_eq!(
            (news.nonsense, news.totals.begun),
            (None, news.totals.ended)
        );
        assert!(news.totals.ended > over, "{news:?}");
        over = news.totals.ended;
        // The job that it was killed in, if it was in one: whole, or told to be abandoned.
        assert!(news.jobs.len() <= 1, "{news:?}");
        let left = news.jobs.iter().filter(|job| job.end_ns.is_none()).count() as u64;
        abandoned += left;
        assert_eq!(news.totals.abandoned, abandoned);
    }
}

fn c_outside_of_a_cell_reports_to_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "gcc", "c11");
    let output = report(&program, None, &["anything", "1000", "1"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "attached 0\n");
    let absent = dir.path().join("absent");
    let output = report(&program, Some(&absent), &["anything", "1", "1"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), said.as_str()),
        (Some(1), "No such file or directory\n")
    );
}

fn c_beats_in_a_partition() {
    let dir = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/heartbeat.c");
    let program = compile_file(&source, dir.path(), "gcc", "gnu17");
    let memory = dir.path().join("memory");
    std::fs::write(&memory, [0xff; 8192]).unwrap();
    let beat = |memory: &Path, address: &str| {
        let output = Command::new(&program).arg(memory).arg(address).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    assert_eq!(beat(&memory, "0x1010"), (Some(0), String::new()));
    let bytes = std::fs::read(&memory).unwrap();
    assert_eq!(bytes[0x1010..0x1018], 1_u64.to_le_bytes());
    let others = [&bytes[..0x1010], &bytes[0x1018..]].concat();
    assert!(others.iter().all(|byte| *byte == 0xff));
    let invalid = (Some(1), "Invalid argument\n".to_owned());
    assert_eq!(beat(&memory, "0x1012"), invalid);
    assert_eq!(beat(&memory, "0x8000000000000000"), invalid);
    let absent = (Some(1), "No such file or directory\n".to_owned());
    assert_eq!(beat(&dir.path().join("absent"), "0x1010"), absent);
}

fn a_program_that_takes_over_goes_on_counting() {
    let (_dir, path, mut page) = page(&control(50));
    let open = || client(&path).unwrap().task("control");
    let mut task = open().unwrap();
    assert_eq!(task.deadline_ns(), Some(50));
    assert_eq!(open().unwrap_err(), TaskError::AlreadyOpen);
    task.begin_at(10, 11);
    task.end_at(100);
    task.begin_at(200, 201);
    drop(task);
    let mut task = open().unwrap();
    task.end_at(300);
    task.begin_at(400, 401);
    task.begin_at(500, 501);
    task.end_at(510);
    let [news] = page.scan().unwrap().try_into().unwrap();
    let responses: Vec<_> = news.jobs.iter().map(|job| job.response_ns()).collect();
    assert_eq!(responses, [Some(90), None, None, Some(10)]);
    assert_eq!((news.totals.abandoned, news.totals.late), (2, 1));
    assert_eq!((news.running, news.nonsense), (None, None));
    assert_eq!(page.scan().unwrap(), []);
}

fn names_are_checked() {
    let (_dir, path, _page) = page(&control(50));
    let client = client(&path).unwrap();
    let names: Vec<String> = client.names().map(|name| name.to_string()).collect();
    assert_eq!(names, ["control"]);
    assert_eq!(client.task("contro").unwrap_err(), TaskError::Unknown);
    assert_eq!(client.task("").unwrap_err(), TaskError::BadName);
    assert_eq!(client.task("a\nb").unwrap_err(), TaskError::BadName);
    assert!(Client::detached().task("anything").is_ok());

    let dir = tempfile::tempdir().unwrap();
    let named = |name: String| Declared {
        name,
        deadline_ns: None,
    };
    let create = |tasks: &[Declared]| Page::create(&dir.path().join("page"), tasks, 1, None);
    assert!(create(&[named("\u{10ffff}".repeat(64))]).is_ok());
    assert!(matches!(
        create(&[named("x".repeat(257))]),
        Err(PageError::BadName { .. })
    ));
    let many = vec![named("x".to_owned()); layout::MAX_SLOTS + 1];
    assert!(matches!(
        create(&many),
        Err(PageError::TooManyTasks { tasks: 4097 })
    ));
}

fn a_cell_without_tasks_names_its_slots() {
    let (_dir, path, mut page) = page(&[]);
    let client = client(&path).unwrap();
    let mut tasks: Vec<_> = (0..8)
        .map(|index| client.task(&format!("t{index}")).unwrap())
        .collect();
    assert_eq!(client.task("t8").unwrap_err(), TaskError::NoSlotLeft);
    assert_eq!(client.task("t3").unwrap_err(), TaskError::AlreadyOpen);
    let names = page.claimed_names().unwrap();
    assert_eq!(names[7].as_deref(), Some("t7"));
    tasks[7].heartbeat();
    let [news] = page.scan().unwrap().try_into().unwrap();
    assert_eq!((news.slot, news.heartbeats), (7, 1));
}

fn a_page_cut_short_is_an_error_and_no_signal() {
    let (_dir, path, mut page) = page(&control(50));
    let mut task = client(&path).unwrap().task("control").unwrap();
    task.begin();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    // Between the counters and the ring, and before the counters.
    for length in [200, 70, 0] {
        file.set_len(length).unwrap();
        let error = page.scan().unwrap_err();
        assert!(matches!(error, PageError::Cut { .. }), "{error}");
    }
    // Long enough again, but empty.
    file.set_len(layout::page_bytes(1) as u64).unwrap();
    let mut page = Page::open(&path, 1).unwrap();
    assert_eq!(page.scan().unwrap(), []);
    task.end();
    let [news] = page.scan().unwrap().try_into().unwrap();
    let (begun, ended) = (0, 1);
    assert_eq!(news.nonsense, Some(Nonsense::Counters { begun, ended }));

    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert!(matches!(
        Page::open(&path, 1),
        Err(PageError::System { .. })
    ));
    std::fs::remove_file(&path).unwrap();
    let fifo = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the path ends with a NUL.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    assert!(matches!(
        Page::open(&path, 1),
        Err(PageError::NotAFile { .. })
    ));
}

fn a_damaged_page_is_refused_by_the_client() {
    let (_dir, path, _page) = page(&control(50));
    let whole = std::fs::read(&path).unwrap();
    let opened = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        client(&path).map(|client| client.is_attached())
    };
    assert_eq!(opened(&|_| ()), Ok(true));
    assert_eq!(opened(&|page| page[0] ^= 1), Err(OpenError::NotAPage));
    assert_eq!(
        opened(&|page| page[8] = 9),
        Err(OpenError::OtherVersion { found: 9 })
    );
    assert_eq!(
        opened(&|page| page[12..16].fill(0)),
        Err(OpenError::NotAPage)
    );
    assert_eq!(
        opened(&|page| page[12..16].fill(255)),
        Err(OpenError::NotAPage)
    );
    assert_eq!(
        opened(&|page| page[12] = 40),
        Err(OpenError::TooShort { bytes: 4096 })
    );
    assert_eq!(
        opened(&|page| page.truncate(4095)),
        Err(OpenError::TooShort { bytes: 4095 })
    );
}

fn an_adopted_page_tells_only_what_is_new() {
    let (_dir, path, first) = page(&control(50));
    let mut task = client(&path).unwrap().task("control").unwrap();
    for job in 0..100 {
        task.begin_at(job, job);
        task.end_at(job);
    }
    drop(first);
    let mut adopted = Page::open(&path, 1).unwrap();
    assert_eq!(adopted.scan().unwrap(), []);
    task.begin_at(100, 100);
    task.end_at(100);
    let [news] = adopted.scan().unwrap().try_into().unwrap();
    assert_eq!(news.jobs.len(), 1);
    assert_eq!((news.jobs[0].number, news.unseen), (100, 0));
}

fn root_a_page_in_its_place_cannot_grow() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("cell");
    let place = Place::mount(&dir, Page::slots(3).unwrap()).unwrap();
    let tasks: Vec<Declared> = (0..3)
        .map(|index| Declared {
            name: format!("t{index}"),
            deadline_ns: None,
        })
        .collect();
    // Twice: the next start of a cell makes it anew.
    Page::create(&place.page(), &tasks, 1, Some((1000, 1000))).unwrap();
    // A process between fork and exec still has the one before.
    let before = std::fs::File::open(place.page()).unwrap();
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        drop(before);
    });
    let mut page = Page::create(&place.page(), &tasks, 2, Some((1000, 1000))).unwrap();
    let mut task = client(&place.page()).unwrap().task("t2").unwrap();
    task.heartbeat();
    assert_eq!(page.scan().unwrap().len(), 1);

    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options()
        .write(true)
        .open(place.page())
        .unwrap();
    let beyond = file.write_all_at(&[1; 4096], layout::page_bytes(3) as u64);
    assert_eq!(beyond.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    let second = std::fs::File::create(dir.join("second"));
    assert_eq!(second.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    Place::at(&dir).remove().unwrap();
    assert!(!dir.exists());
    Place::at(&dir).remove().unwrap();
}
