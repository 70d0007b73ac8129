//! Made-up limits, and their texts.

use super::*;

fn limit(kind: Kind, name: &str, used: u64, most: u64) -> Limit {
    Limit {
        kind,
        what: format!("things of {name}"),
        name: name.to_owned(),
        used: Some(used),
        most,
        unit: "",
        fix: "raise it".to_owned(),
    }
}

/// A cell like one of podman's.
const CELL: Footprint = Footprint {
    processes: 2,
    processes_beside: 0,
    files: 36,
    inotify_v2: 1,
    keys: 0,
    namespaces: 1,
    mount_namespaces: 1,
    user_namespaces: 0,
    memory_groups: 3,
    memory_kib: 9 << 10,
};

fn machine() -> Vec<Limit> {
    vec![
        limit(
            Kind::Processes,
            "/proc/sys/kernel/pid_max",
            1_000,
            1_000_000,
        ),
        limit(Kind::Processes, "/cg/pids.max", 5, 6),
        limit(Kind::Files, "RLIMIT_NOFILE", 12, 20_000),
        limit(
            Kind::Inotify,
            "/proc/sys/fs/inotify/max_user_instances",
            8,
            128,
        ),
        limit(Kind::Keys, "/proc/sys/kernel/keys/root_maxkeys", 200, 200),
        limit(Kind::Memory, "/proc/meminfo", 4_000, 24_000),
    ]
}

#[test]
fn the_limit_that_comes_first_is_named_before_the_first_cell() {
    let limits = machine();
    // conmon's inotify instance is one of cgroup v2; keys and the coordinator's group hold nobody here.
    let first = First::of(&limits, &CELL, None, true).unwrap();
    let said = sentence("podman", &first, 256);
    assert_eq!(
        said,
        "podman: the first limit reached will be things of /proc/sys/fs/inotify/max_user_instances \
         (/proc/sys/fs/inotify/max_user_instances), at about 120 cells: 8 of 128, 1 for each cell; raise it"
    );
    assert!(sentence("podman", &first, 120).starts_with("podman: 120 cells reach no known limit"));
    // On v1 it is memory: 20,000 MB less a twentieth of 24,000, at 9 MB each.
    let first = First::of(&limits, &CELL, None, false).unwrap();
    assert_eq!((first.limit.kind, first.cells), (Kind::Memory, 2_088));
    let first = First::of(&limits, &CELL, Some(Bytes::new(11_000 << 20)), false).unwrap();
    assert_eq!((first.limit.kind, first.cells), (Kind::Memory, 1_000));
    let beside = Footprint {
        processes_beside: 2,
        ..CELL
    };
    let first = First::of(&limits, &beside, None, true).unwrap();
    assert_eq!(
        (first.limit.name.as_str(), first.cells),
        ("/cg/pids.max", 0)
    );
    let keyring = Footprint { keys: 1, ..CELL };
    assert_eq!(First::of(&limits, &keyring, None, true).unwrap().cells, 0);
}

#[test]
fn a_trial_that_fits_is_begun_without_a_word() {
    let limits = [limit(Kind::Files, "RLIMIT_NOFILE", 12, 40)];
    assert_eq!(certain(&limits, &CELL, None, 28), None);
    let said = certain(&limits, &CELL, None, 29).unwrap();
    assert!(
        said.contains("at about 28 cells: 12 of 40, 1 for each cell; raise it"),
        "{said}"
    );
}

#[test]
fn what_cells_took_tells_which_limit_ends_larger_ones() {
    let with = |values: [u64; 3]| {
        let names = ["pids", "keys", "files"];
        let most = [32_768, 200, 9];
        let all = names.iter().zip(values).zip(most);
        all.map(|((name, used), most)| limit(Kind::Processes, name, used, most))
            .collect::<Vec<_>>()
    };
    let (before, after) = (with([100, 10, 5]), with([116, 18, 6]));
    let said = forecast(&before, &after, 8).unwrap();
    assert!(
        said.contains("keys (keys), at about 190 cells: 18 of 200, 1.0 for each"),
        "{said}"
    );
    assert_eq!(forecast(&before, &before, 8), None);
    assert_eq!(forecast(&before, &after, 0), None);
}

/// A machine with so much memory, MB, and so many threads of 32,768.
fn tree(total: u64, available: u64, threads: u64) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("proc/sys/kernel")).unwrap();
    let write = |name: &str, text: String| {
        std::fs::write(dir.path().join("proc").join(name), text).unwrap();
    };
    write(
        "meminfo",
        format!(
            "MemTotal: {} kB\nMemAvailable: {} kB\n",
            total << 10,
            available << 10
        ),
    );
    write("loadavg", format!("0.00 0.00 0.00 1/{threads} 77\n"));
    write("sys/kernel/pid_max", "32768\n".to_owned());
    dir
}

#[test]
fn a_reserve_of_memory_is_kept() {
    let with = |total, available, asked: Option<u64>| {
        let dir = tree(total, available, 100);
        short(&Root::at(dir.path()), asked.map(|mb| Bytes::new(mb << 20)))
    };
    assert_eq!(with(8_000, 500, None), None);
    let said = with(8_000, 300, None).unwrap();
    assert_eq!(
        said.value.unwrap(),
        "300 of 8,000 MiB are available, 400 are kept in reserve"
    );
    assert!(said.fix.contains("scale.memory_reserve"), "{}", said.fix);
    assert!(with(1_000, 127, None).is_some() && with(1_000, 129, None).is_none());
    assert_eq!(with(100, 60, None), None, "a small machine keeps half");
    assert!(with(8_000, 500, Some(501)).is_some() && with(8_000, 500, Some(500)).is_none());
    assert_eq!(with(8_000, 1, Some(0)), None, "nothing is kept");
}

#[test]
fn a_reserve_of_process_ids_is_kept() {
    let with = |threads| {
        let dir = tree(8_000, 5_000, threads);
        short(&Root::at(dir.path()), None)
    };
    assert_eq!(with(31_000), None);
    let said = with(31_200).unwrap();
    assert_eq!(said.what, "process ids of the machine");
    assert_eq!(
        said.value.unwrap(),
        "1,568 of 32,768 are available, 1,638 are kept in reserve"
    );
}
