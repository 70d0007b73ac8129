//! The attack suite: the gains of hostile cells, formerly and now, and their cost to a critical cell beside them. Each
//! attack is one file, with the program in the cell and its evaluation, and one entry in
//! [`ATTACKS`]; those in [`tested`] rely on a test elsewhere. As tests they are short and assert that each attack is held; the campaign `attacks`
//! prints the table.

mod cpus;
mod descriptors;
mod devices;
mod exe;
mod flood;
mod kernel_locks;
mod memory;
mod missions;
mod places;
mod priority_inheritance;
mod scene;
mod signals;
mod tested;
mod timers;
mod vsock;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use crate::support::{Need, OTHER_BINARY, Said};
pub use scene::{Critical, Neighbour, changed_view, until_admitted};

/// The first word of the programs in the cells.
pub const WORD: &str = "in-an-attack";
/// The line of a hostile program whose attack is under way.
pub const AT_IT: &str = "at it";
/// Its line when it has nothing more to do.
pub const THE_END: &str = "the end";

/// Attacks of which the table is asked for: `all`, or names separated by commas.
const TABLE_SET: &str = "TIMECELL_ATTACKS";
/// How long each attack goes on, s.
const SECONDS_SET: &str = "TIMECELL_ATTACKS_SECONDS";

/// A hostile cell and its outcome.
pub struct Attack {
    /// As the table and the campaign `attacks --only` call it.
    pub name: &'static str,
    /// Its attempt, in a few words.
    pub tries: &'static str,
    /// Its gain on commit 7338fa0; recorded then, not measured again.
    pub before: Before,
    pub needs: &'static [Need],
    /// The program in the cell, called with the words behind the attack's name.
    pub deed: fn(&[&str]),
    /// Makes the cells and observes them, for so many seconds.
    pub run: fn(seconds: u64) -> Now,
}

pub struct Before {
    pub got: &'static str,
    /// The effect on a critical cell beside it.
    pub neighbour: &'static str,
}

/// The gain of an attack.
pub struct Now {
    pub got: String,
    /// Whether that is within its grants.
    pub held: bool,
    pub neighbour: Option<scene::Neighbour>,
}

/// The list of all attacks: one line for each, those last of which the test is another one.
macro_rules! attacks {
    ($($attack:path => $case:ident),*; $($tested:path),* $(,)?) => {
        const ATTACKS: &[&Attack] = &[$(&$attack),*, $(&$tested),*];

        $(#[case($case(&$attack); ..$attack.needs)])*
        fn is_held(attack: &Attack) {
            let now = (attack.run)(2);
            assert!(now.held, "{}: {}", attack.name, now.got);
        }
    };
}

attacks![
    exe::EXE => the_hosts_binary_stays_out_of_reach,
    priority_inheritance::FIFO => a_group_keeps_its_budget_when_threads_wait_for_each_other,
    priority_inheritance::FREEZER => the_freezer_stops_whoever_inherits_a_priority,
    priority_inheritance::DEADLINE => a_reservation_is_kept_when_threads_wait_for_each_other,
    priority_inheritance::DEADLINE_TASK => a_task_keeps_its_runtime_when_threads_wait_for_each_other,
    kernel_locks::LOCKS => a_lock_of_the_kernel_is_not_kept_for_ever,
    timers::TIMERS => timers_for_one_instant_are_few,
    vsock::VSOCK => a_socket_of_the_hypervisor_is_refused,
    flood::FLOOD => a_flood_of_output_costs_no_other_cell_its_supervisor,
    cpus::CPUS => a_best_effort_cell_cannot_take_more_cpus,
    signals::SIGNALS => what_a_user_may_have_is_each_cells_own,
    missions::SECOND_MISSION => a_second_mission_does_not_come_before_a_critical_cell,
    missions::SAME_NAME => a_name_that_looks_alike_is_another_cell,
    devices::DEVICES => a_device_that_may_only_be_read_is_not_written_to,
    memory::MEMORY => a_cell_without_memory_does_not_take_the_machines,
    descriptors::DESCRIPTORS => what_a_cell_has_open_keeps_no_supervisor,
    descriptors::ARGUMENTS => arguments_without_end_are_not_read,
    places::PLACES => a_users_link_gives_the_user_nothing_of_roots,
    tested::DISK_FILLER => a_full_disk_holds_up_no_critical_cell;
    tested::FULL_DISK,
    tested::HUNG_START,
    tested::NO_DEATH,
    tested::FULL_LOAD,
    tested::FORGED_JOBS,
    tested::ESCAPES,
    tested::TAKEN_NAME,
    tested::MOUNT_LINK,
    tested::USERS_MISSION,
    tested::IMAGE_LINK,
];

/// The table, of an attack that lacks its program, of one that a timecell which refuses nothing lets through, and of both.
#[case(Root)]
fn one_that_is_not_tried_is_no_success() {
    let nowhere = tempfile::tempdir().unwrap();
    let ends = |asked: &str, code: i32, says: &[&str]| {
        let said: Said = Command::new(std::env::current_exe().unwrap())
            .env(TABLE_SET, asked)
            .env("PATH", nowhere.path())
            .env(OTHER_BINARY, "/bin/true")
            .output()
            .unwrap()
            .into();
        let said = said.ends_with(code);
        for part in says {
            assert!(said.out.contains(part), "no `{part}` in:\n{}", said.out);
        }
    };
    let not_tried = "1 not tried: mount-link";
    ends("mount-link", NOT_TRIED, &["needs busybox", not_tried]);
    ends("exe", GOT_THROUGH, &["NOT HELD", "1 got through: exe"]);
    let both = ["tried 1 of 2", "1 got through: exe", not_tried];
    ends("exe,mount-link", GOT_THROUGH, &both);
    ends("no-such", UNKNOWN, &[]);
}

/// Ends the process if it was started inside a cell, or to print the table.
pub fn run_if_asked() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let [WORD, name, rest @ ..] = &words[..] {
        let attack = ATTACKS.iter().find(|attack| attack.name == *name);
        (attack.expect("an attack of this name").deed)(rest);
        say(THE_END);
        loop {
            std::thread::sleep(std::time::Duration::from_secs(1_000));
        }
    }
    if let Ok(asked) = std::env::var(TABLE_SET) {
        std::process::exit(table(&asked));
    }
}

/// One line of a program in a cell.
fn say(what: &str) {
    use std::io::Write;
    println!("{what}");
    let _ = std::io::stdout().flush();
}

/// The exit codes of the process that prints the table, if not 0: all were tried, and all are held.
const GOT_THROUGH: i32 = 1;
const UNKNOWN: i32 = 2;
const NOT_TRIED: i32 = 4;

/// Prints a row for each attack that is asked for; returns the exit code of the process.
fn table(asked: &str) -> i32 {
    let seconds = std::env::var(SECONDS_SET).map_or(5, |text| text.parse().expect("seconds"));
    let names: Vec<&str> = asked.split(',').collect();
    let known = |name: &&str| *name == "all" || ATTACKS.iter().any(|a| a.name == *name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let all: Vec<&str> = ATTACKS.iter().map(|attack| attack.name).collect();
        eprintln!(
            "error: no attack is called `{unknown}`; there are {}",
            all.join(", ")
        );
        return UNKNOWN;
    }
    row([
        "attack",
        "before (recorded, 7338fa0)",
        "now (measured)",
        "neighbour before",
        "neighbour now",
    ]);
    let (mut tried, mut not_tried, mut got_through) = (0, Vec::new(), Vec::new());
    let mut late = Vec::new();
    for attack in ATTACKS {
        if !names.contains(&"all") && !names.contains(&attack.name) {
            continue;
        }
        let unmet = attack.needs.iter().find_map(|need| need.unmet());
        let now = match &unmet {
            Some(_) => None,
            None => Some(catch_unwind(AssertUnwindSafe(|| (attack.run)(seconds)))),
        };
        tried += usize::from(now.is_some());
        let (got, neighbour) = match &now {
            None => {
                not_tried.push(attack.name);
                let why = unmet.unwrap_or_default();
                (format!("not tried: {why}"), "-".to_owned())
            }
            Some(Ok(now)) => {
                if !now.held {
                    got_through.push(attack.name);
                }
                if now.neighbour.as_ref().is_some_and(|n| n.late > 0) {
                    late.push(attack.name);
                }
                let mark = if now.held { "" } else { "NOT HELD: " };
                (
                    format!("{mark}{}", now.got),
                    now.neighbour
                        .as_ref()
                        .map_or("-".to_owned(), ToString::to_string),
                )
            }
            Some(Err(panic)) => {
                got_through.push(attack.name);
                let text = panic.downcast_ref::<String>();
                let first = text.and_then(|text| text.lines().next());
                let why = first.unwrap_or("the suite failed, see above");
                (format!("NOT HELD: {why}"), "-".to_owned())
            }
        };
        row([
            attack.name,
            attack.before.got,
            &got,
            attack.before.neighbour,
            &neighbour,
        ]);
        println!("    {}", attack.tries);
    }
    println!("{}", sum(tried, &got_through, &not_tried, &late));
    match (&got_through[..], &not_tried[..]) {
        ([], []) => 0,
        ([], _) => NOT_TRIED,
        _ => GOT_THROUGH,
    }
}

/// The last line of the table. Late jobs are told and fail nothing: a stall of the machine makes a job late as well.
fn sum(tried: usize, got_through: &[&str], not_tried: &[&str], late: &[&str]) -> String {
    let of = |names: &[&str], what: &str| match names {
        [] => format!("none {what}"),
        _ => format!("{} {what}: {}", names.len(), names.join(", ")),
    };
    let all = tried + not_tried.len();
    format!(
        "tried {tried} of {all}; {}; {}; {}",
        of(got_through, "got through"),
        of(not_tried, "not tried"),
        of(late, "with late jobs of the critical cell")
    )
}

fn row(columns: [&str; 5]) {
    let [name, before, now, neighbour_before, neighbour_now] = columns;
    println!("{name:<14} | {before:<47} | {now:<66} | {neighbour_before:<34} | {neighbour_now}");
}
