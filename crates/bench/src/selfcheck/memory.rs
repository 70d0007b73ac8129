//! The coordinator's own cost: the binary's size, and the peak memory of a bench with many cells.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::probe_process::reap;
use super::section::{Finding, Section, Setup};
use crate::BenchError;
use crate::error::failed;
use crate::sweep::new_place;

const CELLS: usize = 32;

pub(super) fn run(setup: Setup, say: &mut dyn FnMut(&str)) -> Result<Section, BenchError> {
    let jobs = if setup.quick { 500 } else { 5_000 };
    say(&format!("memory, {CELLS} cells of {jobs} jobs"));
    let place = new_place()?;
    let file = place.dir().join("memory.toml");
    // 100 steps: the coordinator is measured, and 32 cells of the thesis's job would need 9 cpus.
    let text = format!(
        "schema = 1\nname = \"memory\"\nrounds = 1\n[workload]\nkind = \"mac\"\nsteps = 100\njobs = {jobs}\n\
         [scheduling]\npriority = {}\ncpus = [{}]\n[[trial]]\nname = \"cells\"\ncells = [\"embedded\"]\ncopies = {CELLS}\n",
        setup.priority, setup.cpu
    );
    std::fs::write(&file, text).map_err(failed(&file, "write"))?;
    let log = place.dir().join("memory.log");
    let sink = std::fs::File::create(&log).map_err(failed(&log, "create"))?;
    let child = Command::new("/proc/self/exe")
        .args(["bench", &file.to_string_lossy()])
        .args(["--out", &place.dir().join("runs").to_string_lossy()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(sink)
        .spawn()
        .map_err(failed(Path::new("/proc/self/exe"), "start"))?;
    let usage = reap(&child);
    if !usage.ok {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        return Err(BenchError::Failed(format!(
            "the bench being measured failed: {}",
            said.lines().last().unwrap_or_default()
        )));
    }
    let exe = Path::new("/proc/self/exe");
    let binary = std::fs::metadata(exe)
        .map_err(failed(exe, "inspect"))?
        .len();
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let stripped = if cfg!(debug_assertions) {
        " (debug build)"
    } else {
        ""
    };
    Ok(Section {
        part: "memory",
        method: format!(
            "peak resident set of `timecell bench` (measuring, study and report) with {CELLS} embedded cells of \
             {jobs} jobs, from wait4; the cells' samples are in shared memory of their own"
        ),
        table: Vec::new(),
        findings: vec![
            Finding::goal(
                format!("peak memory of bench with {CELLS} cells of {jobs} jobs"),
                megabytes(usage.peak_bytes),
                "under 64 MB",
                usage.peak_bytes < 64_000_000,
            ),
            Finding::goal(
                format!("size of the binary{stripped}"),
                megabytes(binary),
                "under 15 MB stripped",
                binary < 15_000_000,
            ),
        ],
        data: json!({"peak_bytes": usage.peak_bytes, "binary_bytes": binary}),
        unmet: Vec::new(),
    })
}
