//! Measurements of cells outlive a measuring process that is killed, interrupted, or faces a full disk.

use record::summary::RunSummary;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use record::run::{Run, Status};

use crate::support::{begun, eventually, experiment, only_run, payloads, say, timecell, traces_of};

const JOBS: u64 = 1_500;

/// Starts a bench of one trial with two cells side by side.
fn started(dir: &Path, out: &str, keep: &str) -> Child {
    let text = format!(
        "schema = 1\nname = \"pair\"\nrounds = 1\n{keep}[workload]\nkind = \"timer\"\nperiod = \"1ms\"\njobs = {JOBS}\n\
         [[trial]]\nname = \"pair\"\ncells = [\"bare\", \"embedded\"]\n"
    );
    fs::write(dir.join("pair.toml"), text).unwrap();
    timecell()
        .current_dir(dir)
        .args(["bench", "pair.toml", "--out", out])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The samples files in the shared memory of coordinator `pid`, in the order of the cells.
fn shared(pid: u32) -> Vec<PathBuf> {
    let place = format!("-{pid}");
    let places = fs::read_dir("/dev/shm").unwrap().flatten();
    let place = places
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().ends_with(&place));
    let files = place.map(|place| fs::read_dir(place.join("trials/1/shared")));
    let mut files: Vec<PathBuf> = (files.into_iter().flatten().flatten().flatten())
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "samples"))
        .collect();
    files.sort();
    files
}

/// Records that the cell of this samples file has written, 0 before its release.
fn records(file: &Path) -> u64 {
    let whole = record::samples::read(file);
    whole.map_or(0, |samples| match samples.header.go_ns {
        0 => 0,
        _ => samples.header.count,
    })
}

/// Lets the first cell finish while the second is stopped half-way.
fn one_finished(child: &Child) {
    eventually("both cells measure", || {
        let files = shared(child.id());
        files.len() == 2 && files.iter().all(|file| records(file) > 20)
    });
    let held = payloads(child.id())
        .into_iter()
        .find(|(_, environment)| environment.contains("2-embedded"))
        .expect("the second cell has a payload");
    // SAFETY: a process that the bench under test started.
    unsafe { libc::kill(held.0, libc::SIGSTOP) };
    let first = shared(child.id()).remove(0);
    eventually("the first cell has finished", || {
        record::samples::read(&first).is_ok_and(|samples| samples.header.complete == 1)
    });
}

/// One cell with all its jobs, the other with those that it had done.
fn one_is_whole(run: &Run, why: &str) {
    let trial = run.trial(1).unwrap();
    assert_eq!(trial.failure, None);
    let cut_off = trial.cut_off.as_deref().unwrap();
    assert!(cut_off.contains(why), "{cut_off}");
    let whole = run.samples(1, "1-bare").unwrap().unwrap();
    assert_eq!(whole.header.complete, 1);
    assert_eq!(whole.header.count + whole.header.skipped, JOBS);
    let part = run.samples(1, "2-embedded").unwrap().unwrap();
    assert_eq!(part.header.complete, 0);
    assert!(part.samples.len() > 20 && part.unexplained() > 0);
}

#[case(Root, GroupsOfItsOwn(120))]
fn clean_writes_what_a_killed_coordinator_measured(dir: &Path) {
    let mut child = started(dir, "runs", "");
    one_finished(&child);
    child.kill().unwrap();
    child.wait().unwrap();
    let said = say(dir, &["clean"]).ends_with(0);
    let salvaged = "salvaged trial 1 (pair): 1 of 2 cells had finished";
    assert!(said.out.contains(salvaged), "{}", said.out);
    eventually("no trace is left", || traces_of(child.id()).is_empty());
    let path = only_run(dir);
    let run = Run::open(&path).unwrap();
    one_is_whole(&run, "was killed when 1 of 2 cells had finished");
    let manifest = run.manifest().unwrap();
    assert_eq!((manifest.status, manifest.trials_done), (Status::Killed, 1));
    let cells = run.trial(1).unwrap().cells;
    assert!(cells[0].notes.iter().all(|note| !note.contains("finished")));
    assert!(
        cells[1]
            .notes
            .iter()
            .any(|note| note.contains("it had not finished"))
    );

    let path = path.to_string_lossy().into_owned();
    let said = say(dir, &["report", &path]).ends_with(0);
    assert!(said.out.contains("was killed"), "{}", said.out);
    let summary = run.read::<RunSummary>().unwrap();
    let executed: Vec<u64> = summary.cells.iter().map(|cell| cell.executed).collect();
    assert!(
        executed.iter().all(|executed| *executed > 20),
        "{executed:?}"
    );
    assert!(summary.cells.iter().all(|cell| cell.unexplained == 0));
    assert!(!say(dir, &["clean"]).ends_with(0).out.contains("salvaged"));

    say(dir, &["bench", "--resume", &path]).ends_with(0);
    for cell in run.read::<RunSummary>().unwrap().cells {
        // A cell that is done keeps running beside the others for one more job.
        let more = u64::from(cell.label.contains("bare"));
        assert_eq!(cell.executed + cell.skipped, JOBS + more, "{}", cell.label);
    }
    assert_eq!(run.manifest().unwrap().status, Status::Complete);
}

/// If nothing is left of a coordinator, nobody can find out any more that its run does not say how it ended.
#[case]
fn a_run_says_how_it_ended_before_its_place_is_gone(dir: &Path) {
    let file = experiment(dir, &["bare"], 20);
    // SAFETY: no arguments, cannot fail.
    let user = unsafe { libc::geteuid() };
    for _ in 0..3 {
        let mut child = begun(dir, &["bench", &file]);
        let place = PathBuf::from(format!("/dev/shm/timecell-{user}-{}", child.id()));
        // Polled without pause: it exists for a few tens of milliseconds.
        let until = Instant::now() + Duration::from_secs(60);
        for is_there in [true, false] {
            while place.exists() != is_there {
                assert!(Instant::now() < until, "it has no place, or keeps it");
            }
        }
        let _ = child.kill();
        child.wait().unwrap();
        let manifest = Run::open(&only_run(dir)).unwrap().manifest();
        assert_eq!(manifest.unwrap().status, Status::Complete);
        fs::remove_dir_all(dir.join("runs")).unwrap();
    }
}

/// No interval closes while it lasts, so that everything is in the rings and in the memory of the coordinator.
const HISTOGRAMS: &str = "record = \"histogram\"\ninterval = \"1min\"\n";

#[case(Root, GroupsOfItsOwn(120))]
fn histograms_lose_nothing_of_a_cell_that_has_finished(dir: &Path) {
    let mut child = started(dir, "runs", HISTOGRAMS);
    one_finished(&child);
    child.kill().unwrap();
    child.wait().unwrap();
    let held = records(&shared(child.id())[1]);
    say(dir, &["clean"]).ends_with(0);
    let path = only_run(dir);
    let run = Run::open(&path).unwrap();
    assert!(
        run.trial(1)
            .unwrap()
            .cut_off
            .unwrap()
            .contains("was killed")
    );
    let whole = run.histograms(1, "1-bare").unwrap().unwrap();
    assert!(whole.end.is_some());
    assert_eq!((whole.counts.accounted(), whole.counts.lost), (JOBS, 0));
    let part = run.histograms(1, "2-embedded").unwrap().unwrap();
    assert_eq!((part.end, part.counts.executed), (None, held));
    let path = path.to_string_lossy().into_owned();
    say(dir, &["bench", "--resume", &path]).ends_with(0);
    assert_eq!(run.manifest().unwrap().status, Status::Complete);
    assert!(
        run.read::<RunSummary>()
            .unwrap()
            .cells
            .iter()
            .all(|cell| cell.unexplained == 0)
    );
}

#[case(Root, GroupsOfItsOwn(120))]
fn a_full_disk_loses_nothing_of_histograms(dir: &Path) {
    let disk = Disk::mounted(&dir.join("runs"));
    let child = started(dir, "runs", HISTOGRAMS);
    let pid = child.id();
    eventually("both cells measure", || {
        let files = shared(pid);
        files.len() == 2 && files.iter().all(|file| records(file) > 20)
    });
    // Nobody notices before a log is closed.
    disk.fill();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    say(dir, &["clean"]).ends_with(1);
    disk.free();
    say(dir, &["clean"]).ends_with(0);
    assert!(traces_of(pid).is_empty());
    let runs = fs::read_dir(&disk.0).unwrap().flatten();
    let run = Run::open(&runs.map(|entry| entry.path()).next().unwrap()).unwrap();
    assert_eq!(run.manifest().unwrap().status, Status::Failed);
    let whole = run.histograms(1, "1-bare").unwrap().unwrap();
    assert_eq!((whole.counts.accounted(), whole.counts.lost), (JOBS, 0));
    let part = run.histograms(1, "2-embedded").unwrap().unwrap();
    assert!(part.counts.executed > 20);
}

#[case(Root, GroupsOfItsOwn(120))]
fn ctrl_c_keeps_what_finished_cells_measured(dir: &Path) {
    let mut child = started(dir, "runs", "");
    one_finished(&child);
    // SAFETY: our own child.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(traces_of(child.id()).is_empty());
    let run = Run::open(&only_run(dir)).unwrap();
    one_is_whole(&run, "interrupted");
    assert_eq!(run.manifest().unwrap().status, Status::Interrupted);
}

/// A disk of 4 MB, unmounted on drop.
struct Disk(PathBuf);

impl Disk {
    fn mounted(at: &Path) -> Disk {
        fs::create_dir_all(at).unwrap();
        let words = ["-t", "tmpfs", "-o", "size=4m", "timecell-test"];
        let done = std::process::Command::new("mount")
            .args(words)
            .arg(at)
            .status()
            .unwrap();
        assert!(done.success());
        Disk(at.to_owned())
    }

    /// Leaves less than a page free.
    fn fill(&self) {
        use std::io::Write;
        let mut file = fs::File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[case(Root, GroupsOfItsOwn(120))]
fn a_full_disk_loses_nothing(dir: &Path) {
    let disk = Disk::mounted(&dir.join("runs"));
    let child = started(dir, "runs", "");
    let pid = child.id();
    eventually("both cells measure", || {
        let files = shared(pid);
        files.len() == 2 && files.iter().all(|file| records(file) > 20)
    });
    disk.fill();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("the disk is full"), "{said}");
    assert!(said.contains("the samples of trial 1 stay in"), "{said}");
    assert_eq!(shared(pid).len(), 2);

    let said = say(dir, &["clean"]).ends_with(1);
    assert!(said.out.contains("the disk is full"), "{}", said.out);
    assert!(
        said.out.contains("timecell clean --discard"),
        "{}",
        said.out
    );
    assert_eq!(shared(pid).len(), 2, "nothing is thrown away unasked");

    disk.free();
    say(dir, &["clean"]).ends_with(0);
    assert!(traces_of(pid).is_empty());
    let runs = fs::read_dir(&disk.0).unwrap().flatten();
    let path = runs.map(|entry| entry.path()).next().unwrap();
    let run = Run::open(&path).unwrap();
    let trial = run.trial(1).unwrap();
    assert_eq!(
        (trial.failure, trial.cut_off),
        (None, None),
        "it had ended in order"
    );
    for cell in ["1-bare", "2-embedded"] {
        let samples = run.samples(1, cell).unwrap().unwrap();
        assert_eq!(samples.header.count + samples.header.skipped, JOBS);
    }
    let manifest = run.manifest().unwrap();
    assert_eq!((manifest.status, manifest.trials_done), (Status::Failed, 1));
    say(dir, &["report", &path.to_string_lossy()]).ends_with(0);
}

#[case(Root, GroupsOfItsOwn(120))]
fn a_run_whose_disk_is_gone_keeps_its_samples_until_they_are_discarded(dir: &Path) {
    let disk = Disk::mounted(&dir.join("disk"));
    let mut child = started(dir, "disk/runs", "");
    eventually("both cells measure", || {
        let files = shared(child.id());
        files.len() == 2 && files.iter().all(|file| records(file) > 20)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    drop(disk);
    let said = say(dir, &["clean"]).ends_with(1);
    assert!(said.out.contains("does not exist"), "{}", said.out);
    assert_eq!(shared(child.id()).len(), 2);
    let said = say(dir, &["clean", "--discard"]).ends_with(0);
    assert!(said.out.contains("discarded"), "{}", said.out);
    assert!(traces_of(child.id()).is_empty());
}
