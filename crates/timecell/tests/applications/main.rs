//! Cells that run applications, in every engine available here: their view and their rights, how they are created,
//! stopped, adopted and removed, and every known way out of them.

mod attacks;
mod counts;
mod escapes;
mod life;
#[path = "../../../host/tests/needs/mod.rs"]
mod needs;
mod program;
mod support;
mod swaps;
mod things;
mod traced;

use std::sync::{Arc, Mutex, PoisonError};

use engine::app::{AppSpec, Image};
use libtest_mimic::Trial;
use model::EngineKind::{self, Bare, Crun, Embedded, Podman, Runc};

type Behaviour = fn(EngineKind);

/// The name of a behaviour, which is that of its function, and the function.
macro_rules! behaviours {
    ($($room:ident :: $name:ident),* $(,)?) => {
        &[$((stringify!($name), $room::$name as Behaviour)),*]
    };
}

/// The behaviours in every engine that makes containers.
const CONTAINERS: &[(&str, Behaviour)] = behaviours![
    things::says_hello_and_leaves_nothing,
    things::command_environment_directory_and_user_are_as_asked,
    things::nobody_in_a_cell_of_its_own_is_the_default,
    things::a_cell_has_no_network_unless_it_is_the_hosts,
    things::a_writable_root_is_lost_with_the_cell,
    things::mounts_are_what_they_were_asked_to_be,
    things::granted_devices_and_no_others_are_there,
    things::a_static_program_needs_nothing_else,
    life::class_and_cpus_are_given_before_the_first_instruction,
    life::the_callers_class_is_not_inherited,
    life::a_waiting_cell_is_removed,
    life::a_program_that_is_not_there_is_named,
    life::signals_reach_a_program_that_handles_them,
    life::a_frozen_cell_stands_still,
    life::a_frozen_cell_is_swept,
    life::an_enclosed_cell_is_held_from_outside,
    life::a_cell_is_frozen_while_its_program_is_executed,
    life::a_log_stays_within_its_bounds,
    life::a_cell_outlives_its_supervisor_and_is_taken_over,
    life::a_recycled_pid_is_not_taken,
    life::a_bad_specification_makes_nothing,
    escapes::every_attack_is_refused,
    escapes::every_attack_is_refused_whatever_capability_there_is,
    escapes::calls_of_other_architectures_are_deadly,
    escapes::no_file_leads_out,
    escapes::nothing_is_inherited,
    escapes::bombs_stay_inside,
    escapes::names_of_groups_stay_outside,
    escapes::threads_and_shells_work,
    escapes::what_would_lead_out_is_not_mounted,
    escapes::nothing_leads_to_the_program_that_makes_cells,
    escapes::a_program_named_through_proc_is_refused,
    swaps::a_source_that_leads_elsewhere_is_refused,
    traced::an_image_is_looked_up_once_whatever_its_owner_exchanges,
    escapes::a_granted_priority_is_not_exceeded,
];

/// The behaviours where an OCI runtime, linked or not, is driven directly.
const OCI: &[(&str, Behaviour)] = behaviours![
    things::a_bundle_says_what_to_run_and_grants_nothing,
    counts::pseudo_terminals_are_bounded,
    life::streams_are_those_that_the_caller_gives,
    life::killed_at_any_moment,
    swaps::a_source_is_mounted_as_it_was_looked_at,
];

/// The further behaviours of the embedded engine.
const EMBEDDED: &[(&str, Behaviour)] = behaviours![
    life::a_program_without_its_interpreter_is_explained,
    escapes::without_the_filter_the_attacks_work,
    escapes::a_program_behind_proc_is_not_executed,
    counts::one_cell_does_not_take_all_there_are,
];

const PODMAN: &[(&str, Behaviour)] = behaviours![things::an_image_is_run_by_its_name];

/// The behaviours of processes that are no containers.
const BARE: &[(&str, Behaviour)] = behaviours![
    things::a_bare_cell_is_a_process_in_the_same_cage,
    life::an_enclosed_cell_is_held_from_outside,
    life::class_and_cpus_are_given_before_the_first_instruction,
    life::the_callers_class_is_not_inherited,
    escapes::every_attack_is_refused,
    escapes::every_attack_is_refused_whatever_capability_there_is,
    escapes::calls_of_other_architectures_are_deadly,
    escapes::a_granted_priority_is_not_exceeded,
    escapes::bombs_stay_inside,
    escapes::nothing_leads_to_the_program_that_makes_cells,
];

fn main() {
    // The program that the cells run is this one, and so are the supervisors that are killed.
    program::run_if_asked();
    // The programs of cells are handed to this process, which learns how they end.
    engine::app::become_subreaper().expect("any process may become a subreaper");
    let mut trials: Vec<Trial> = Vec::new();
    for (kind, lists) in [
        (Embedded, &[CONTAINERS, OCI, EMBEDDED][..]),
        (Crun, &[CONTAINERS, OCI]),
        (Runc, &[CONTAINERS, OCI]),
        (Podman, &[CONTAINERS, PODMAN]),
        (Bare, &[BARE]),
    ] {
        let any = AppSpec::new("x", kind, Image::Rootfs("/".into()), "/".as_ref());
        let unmet = engine::app::requirements(&any)
            .into_iter()
            .find(|need| !need.met)
            .map(|need| need.reason)
            .or_else(support::no_busybox);
        // One cell of each engine at a time.
        let turn = Arc::new(Mutex::new(()));
        for (behaviour, run) in lists.iter().copied().flatten().copied() {
            let name = format!("{kind}::{behaviour}");
            let turn = Arc::clone(&turn);
            trials.push(needs::trial(&name, unmet.as_deref(), move || {
                let _own = turn.lock().unwrap_or_else(PoisonError::into_inner);
                run(kind);
            }));
        }
    }
    needs::run(trials, needs::Threads::OneEach);
}
