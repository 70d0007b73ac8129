//! How often a report opens a samples file.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use model::EngineKind::Bare;
use study::study;
use timecell_report::{Style, figures, html, table};

use crate::synthetic::{Synthetic, cell, taking};

/// Opens of files below directories, as the kernel tells them.
struct Opens(OwnedFd);

impl Opens {
    fn of(dirs: impl IntoIterator<Item = std::path::PathBuf>) -> Opens {
        // SAFETY: no pointer is passed, and the descriptor is nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(libc::inotify_init1(libc::IN_NONBLOCK)) };
        for dir in dirs {
            let path = CString::new(dir.into_os_string().into_encoded_bytes()).unwrap();
            // Consecutive opens would be reported as one; between them the file is closed.
            let mask = libc::IN_OPEN | libc::IN_CLOSE_NOWRITE;
            // SAFETY: the path is a string that ends with 0.
            let watch = unsafe { libc::inotify_add_watch(fd.as_raw_fd(), path.as_ptr(), mask) };
            assert!(watch >= 0, "{path:?}");
        }
        Opens(fd)
    }

    /// So far, by watch and name.
    fn count(&self) -> BTreeMap<(i32, String), u32> {
        let mut opens = BTreeMap::new();
        let mut buffer = [0u8; 1 << 16];
        loop {
            let (into, room) = (buffer.as_mut_ptr().cast(), buffer.len());
            // SAFETY: the buffer is as long as is said.
            let Ok(read) = usize::try_from(unsafe { libc::read(self.0.as_raw_fd(), into, room) })
            else {
                return opens;
            };
            let mut events = &buffer[..read];
            while let Some((head, rest)) = events.split_at_checked(16) {
                let word = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().unwrap());
                let (name, rest) = rest.split_at(word(12) as usize);
                let name =
                    CStr::from_bytes_until_nul(name).map_or("", |name| name.to_str().unwrap());
                if word(4) & libc::IN_OPEN != 0 {
                    *opens.entry((word(0) as i32, name.to_owned())).or_insert(0) += 1;
                }
                events = rest;
            }
        }
    }
}

#[test]
fn a_report_opens_each_samples_file_once() {
    let dir = tempfile::tempdir().unwrap();
    let plan = |name: &str| format!("[[trial]]\nname = \"{name}\"\ncells = [\"bare\"]\n");
    let toml = format!(
        "schema = 1\nname = \"once\"\nrounds = 3\nbaseline = \"alone\"\ncounters = true\n[workload]\nkind = \"mac\"\nsteps = 1000\njobs = 100\n\
         period = \"1ms\"\n[scheduling]\nclass = \"fifo\"\npriority = 80\ncpus = [1]\n{}{}loads = [\"cpu\"]\n{}loads = [\"cpu\"]\nisolate = true\n",
        plan("alone"),
        plan("beside"),
        plan("apart"),
    );
    let mut run = Synthetic::new(dir.path(), &toml);
    for round in 1..=3 {
        for name in ["alone", "beside", "apart"] {
            let times: Vec<i64> = (0..100).map(|job| 200_000 + job * 100).collect();
            run.trial(name, round, vec![cell("1-bare", Bare, &taking(&times))]);
        }
    }
    run.finish();
    let trials = std::fs::read_dir(run.run.dir().join("trials")).unwrap();
    let opens = Opens::of(trials.map(|trial| trial.unwrap().path()));
    let summary = study(&run.run).unwrap();
    assert!(summary.cells[1].against_baseline.is_some());
    assert!(summary.points[2].against_shared.is_some());
    table(&summary, Style::default());
    assert!(html(&summary).len() > 10_000 && !figures(&summary).is_empty());
    let mut opens = opens.count();
    opens.retain(|(_, name), _| name.ends_with(".samples"));
    assert_eq!(opens.len(), 9, "{opens:?}");
    assert!(opens.values().all(|&times| times == 1), "{opens:?}");
}
