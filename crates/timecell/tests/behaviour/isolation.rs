//! Cpus kept free of other work, and the machine as before: after the run, and after `kill -9` and
//! `timecell clean`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command};

use host::sched;
use record::run::Run;

use crate::support::{begun, eventually, only_run, say};

fn all_cpus() -> Vec<u32> {
    sched::get_affinity(0).unwrap()
}

/// An experiment with one cell on the last cpu, which is kept free.
fn write(dir: &Path, jobs: u32) {
    let text = format!(
        "schema = 1\nname = \"free\"\nrounds = 1\n[workload]\nkind = \"timer\"\njobs = {jobs}\n[scheduling]\ncpus = [{}]\n\
         [[trial]]\ncells = [\"bare\"]\nisolate = true\n",
        all_cpus().last().unwrap()
    );
    std::fs::write(dir.join("free.toml"), text).unwrap();
}

/// A process that may use every cpu.
fn bystander() -> Child {
    let child = Command::new("sleep").arg("600").spawn().unwrap();
    sched::set_affinity(child.id().cast_signed(), &all_cpus()).unwrap();
    child
}

/// Every mask that isolation may touch, by its file.
fn masks() -> BTreeMap<String, String> {
    let mut files = vec![
        "/proc/irq/default_smp_affinity".to_owned(),
        "/sys/devices/virtual/workqueue/cpumask".to_owned(),
        "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance".to_owned(),
    ];
    for entry in std::fs::read_dir("/proc/irq")
        .into_iter()
        .flatten()
        .flatten()
    {
        files.push(format!("{}/smp_affinity_list", entry.path().display()));
    }
    files
        .into_iter()
        .filter_map(|file| Some((file.clone(), std::fs::read_to_string(file).ok()?)))
        .collect()
}

#[case(Root, TwoCpus, Alone)]
fn a_task_is_moved_and_comes_back_and_the_record_tells(dir: &Path) {
    write(dir, 20);
    let before = masks();
    let mut bystander = bystander();
    say(dir, &["bench", "free.toml"]).ends_with(0);
    let pid = bystander.id().cast_signed();
    assert_eq!(sched::get_affinity(pid).unwrap(), all_cpus());
    assert_eq!(masks(), before);
    let trial = Run::open(&only_run(dir)).unwrap().trial(1).unwrap();
    let isolated = trial.isolation.unwrap();
    assert_eq!(isolated.cpus, [*all_cpus().last().unwrap()]);
    assert!(isolated.tasks_moved > 0);
    // Each cpu has kernel threads of its own, which stay.
    assert!(isolated.kernel_threads_left > 0 && !isolated.kernel_threads.is_empty());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[case(Root, TwoCpus, Alone)]
fn clean_puts_back_what_a_killed_coordinator_moved(dir: &Path) {
    write(dir, 60_000);
    let before = masks();
    // This process is moved, too: its cpus are asked for before.
    let every = all_cpus();
    let mut bystander = bystander();
    let pid = bystander.id().cast_signed();
    let mut bench = begun(dir, &["bench", "free.toml"]);
    eventually("the bystander is moved", || {
        sched::get_affinity(pid).unwrap() != every
    });
    bench.kill().unwrap();
    bench.wait().unwrap();
    assert_ne!(sched::get_affinity(pid).unwrap(), every);
    say(dir, &["clean"]).ends_with(0);
    assert_eq!(sched::get_affinity(pid).unwrap(), every);
    assert_eq!(masks(), before);
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[case(Root, TwoCpus, Alone)]
fn all_cpus_for_cells_is_refused(dir: &Path) {
    let cpus = all_cpus();
    let text = format!(
        "schema = 1\nname = \"full\"\n[workload]\nkind = \"timer\"\n[scheduling]\ncpus = {cpus:?}\n[[trial]]\nname = \"full\"\ncells = [\"bare\"]\n\
         copies = {}\nisolate = true\n",
        cpus.len()
    );
    std::fs::write(dir.join("full.toml"), text).unwrap();
    let said = say(dir, &["bench", "full.toml"]).ends_with(4);
    assert!(
        said.err
            .contains("so no cpu is left for the work that isolate = true moves away"),
        "{}",
        said.err
    );
}
