//! The supervisor's own reservation, and its effect. `-- missions_reserve --nocapture` prints the reaction to a
//! crash with and without it, in turns; `TIMECELL_ROUNDS=24` sets how many of each.

use std::path::Path;
use std::time::{Duration, Instant};

use host::sched::{Class, get_class};

use crate::control::ask;
use crate::missions::{Up, busybox, mission, nothing_is_left, pid_of, shell};
use crate::support::{Need, say};

pub const NEEDS: &[Need] = &[
    Need::Root,
    Need::RealTime,
    Need::TwoCpus,
    Need::Program("busybox"),
    Need::GroupBudget(950),
];

/// With a reservation, an end is noticed within this time, however busy the cpus are with granted work.
pub const TOLD: Duration = Duration::from_secs(1);

/// Kills in one mission.
const KILLS: usize = 4;

/// The supervisor's reservation, ms per ms: a large one, and that of a mission that declares none.
pub const GENEROUS: [u32; 2] = [10, 50];
const DEFAULT: [u32; 2] = [1, 20];

/// A cell that uses all that it was granted.
fn spins(cpu: u32) -> String {
    let held = format!("cpus = [{cpu}]\nreservation = {{ budget = \"36ms\", period = \"100ms\" }}");
    shell(&format!("spin{cpu}"), "while :; do :; done", &held)
}

#[case(..NEEDS)]
fn the_supervisor_has_a_reservation_beside_cells_that_use_theirs() {
    let rounds = std::env::var("TIMECELL_ROUNDS").ok();
    let rounds: usize = rounds.and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let kinds = [None, Some(GENEROUS), Some(DEFAULT)];
    let mut took = kinds.map(|_| Vec::new());
    while took[0].len() < rounds {
        for (budget, took) in kinds.into_iter().zip(&mut took) {
            took.extend(killed(budget));
        }
    }
    let median = |of: &dyn Fn(&(Duration, Duration)) -> Duration, all: &[(Duration, Duration)]| {
        let mut all: Vec<f64> = all.iter().map(|one| of(one).as_secs_f64() * 1e3).collect();
        all.sort_by(f64::total_cmp);
        (all[all.len() / 2], all[all.len() - 1])
    };
    for (budget, took) in kinds.iter().zip(&took) {
        let (seen, most_seen) = median(&|one| one.0, took);
        let (runs, most_runs) = median(&|one| one.1, took);
        let which = budget.map_or("an ordinary process".to_owned(), |[ms, every]| {
            format!("with {ms} ms every {every} ms")
        });
        println!(
            "{which}, {} kills: told after {seen:.1} ms (longest {most_seen:.1}), runs again after {runs:.1} ms (longest {most_runs:.1})",
            took.len()
        );
    }
    for took in &took[1..] {
        let late = took.iter().find(|(told, _)| *told > TOLD);
        assert_eq!(late, None, "with a reservation: {took:?}");
    }
}

/// The cpus on which each thread of a process may run.
fn cpus_of(pid: i32) -> Vec<Vec<u32>> {
    let threads = host::process::threads(pid).into_iter();
    threads
        .filter_map(|tid| host::sched::get_affinity(tid).ok())
        .collect()
}

#[case(..NEEDS)]
fn the_supervisor_keeps_off_the_cpu_of_a_fast_loop(dir: &Path) {
    let loops = |period: &str| {
        let task = format!("[[cell.task]]\nname = \"t\"\nwcet = \"20us\"\nperiod = \"{period}\"");
        let fast = shell(
            "fast",
            "exec /busybox sleep 1000",
            &format!("cpus = [1]\n{task}"),
        );
        let ordinary = shell("ordinary", "exec /busybox sleep 1000", "class = \"other\"");
        mission(dir, &format!("enforcer = \"rt-cgroup\"\n{fast}{ordinary}"))
    };
    loops("100us");
    let said = say(dir, &["admit", "mission.toml"]).ends_with(0).out;
    for part in [
        "responds within 20 us",
        "admitted for its tasks only",
        "keeps off cpu 1, for the sake of the cells",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let mut up = Up::start(dir);
    let ordinary = pid_of(&up.until("ordinary: runs (pid"));
    let own = up.pid().cast_signed();
    let of = |cpus: &Vec<Vec<u32>>| cpus.iter().all(|cpus| *cpus == [0]);
    let supervisor = cpus_of(own);
    assert!(supervisor.len() > 1 && of(&supervisor), "{supervisor:?}");
    // Programs that it starts are not kept off anything.
    let ordinary = host::sched::get_affinity(ordinary).unwrap();
    assert_eq!(ordinary, host::cpus::online().unwrap());
    // Where there is room for it again, it is where it was.
    loops("100ms");
    ask(dir, &["update", "mission.toml", "--window", "100ms"]).ends_with(0);
    let supervisor = cpus_of(own);
    assert!(
        !supervisor.iter().any(|cpus| *cpus == [0]),
        "{supervisor:?}"
    );
    up.end();
    // A command line says it, too.
    let program = busybox();
    let words = "run --task loop=200us/1ms --cpu 1 --enforcer rt-cgroup --";
    let words: Vec<&str> = words
        .split(' ')
        .chain([program.to_str().unwrap(), "true"])
        .collect();
    let said = say(dir, &words).ends_with(0).err;
    assert!(said.contains(": admitted for its tasks only"), "{said}");
    nothing_is_left(dir);
}

/// Times until the end of a killed cell was noticed, and until it ran again,
/// beside a supervisor with this reservation, ms per ms; `None` is an ordinary process.
pub fn killed(reservation: Option<[u32; 2]>) -> Vec<(Duration, Duration)> {
    let dir = tempfile::tempdir().unwrap();
    let class = reservation.map_or("other", |_| "fifo");
    let [budget, period] = reservation.unwrap_or(GENEROUS);
    let good = "cpus = [1]\npriorities = { lowest = 95, highest = 95 }\nreservation = { budget = \"8ms\", period = \"100ms\" }\n\
                restart = { limit = 1000000, backoff_min = \"0ms\", backoff_max = \"0ms\" }";
    let good = shell("good", "/busybox sleep 1000", good);
    let cells = format!(
        "supervisor = {{ class = \"{class}\", budget = \"{budget}ms\", period = \"{period}ms\" }}\n{}{}{good}",
        spins(0),
        spins(1)
    );
    mission(dir.path(), &cells);
    let mut up = Up::start(dir.path());
    let mut pid = pid_of(&up.until("good: runs"));
    up.told("spin0: runs");
    up.told("spin1: runs");
    stands_in_the_tables(&up, dir.path(), reservation);
    let mut took = Vec::new();
    for round in 0..KILLS {
        std::thread::sleep(Duration::from_millis(300 + 17 * round as u64));
        let began = Instant::now();
        // SAFETY: no memory is involved; the cell's first process.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
        up.until("good: killed by signal 9");
        let told = began.elapsed();
        pid = pid_of(&up.until("good: runs"));
        took.push((told, began.elapsed()));
    }
    up.end();
    nothing_is_left(dir.path());
    took
}

/// A time in ms, as printed in tables.
fn three_digits(ms: u32) -> String {
    format!("{ms}.{}", if ms < 10 { "00" } else { "0" })
}

fn stands_in_the_tables(up: &Up, dir: &std::path::Path, reservation: Option<[u32; 2]>) {
    let with = reservation.is_some();
    let [budget, period] = reservation.unwrap_or(GENEROUS);
    let said = say(dir, &["ps", "--dir", "state", "--json"]).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let own = &json["supervisor"];
    let priority = own["priority"].as_u64();
    assert_eq!(priority, with.then_some(98), "{own}");
    let table = say(dir, &["ps", "--dir", "state"]).ends_with(0).out;
    assert_eq!(
        table.contains(&format!("{} ms every {period}.0 ms", three_digits(budget))),
        with,
        "{table}"
    );
    let machine = say(dir, &["ps", "--machine"]).ends_with(0).out;
    let entered = machine.contains(&format!("{budget} ms every {period} ms, itself, FIFO 98"));
    assert_eq!(entered, with, "{machine}");
    // Its loop has the class whenever budget is left; nothing that it starts ever has it.
    let supervisor = up.child.id().cast_signed();
    let fifo = Class::Fifo { priority: 98 };
    let seen = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        get_class(supervisor).unwrap() == fifo
    });
    assert_eq!(seen, with);
    for cell in json["cells"].as_array().unwrap() {
        let pid = i32::try_from(cell["pid"].as_i64().unwrap()).unwrap();
        assert_ne!(get_class(pid).unwrap(), fifo, "{cell}");
    }
}
