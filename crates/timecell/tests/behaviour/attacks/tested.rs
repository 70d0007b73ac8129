//! Attacks that a test elsewhere shows to be held: it asserts more than a line of the table can say, and a failure of it fails the
//! row. `no-death` and `full-load` were held on 7338fa0, too: they show that this stays so.

use std::time::Duration;

use super::{Attack, Before, Now};
use crate::missions_reaction::{self as reaction, Fault, Reaction, Watched};
use crate::support::Need;
use crate::{
    missions_disk, missions_ground, missions_health, missions_mounts, missions_reserve,
    missions_seen,
};

/// Without a program for the cell, which the test brings along.
const fn tested(
    name: &'static str,
    tries: &'static str,
    got: &'static str,
    needs: &'static [Need],
    run: fn(u64) -> Now,
) -> Attack {
    Attack {
        name,
        tries,
        before: Before {
            got,
            neighbour: "-",
        },
        needs,
        deed: |_| (),
        run,
    }
}

fn held(got: impl Into<String>) -> Now {
    Now {
        got: got.into(),
        held: true,
        neighbour: None,
    }
}

pub const FULL_DISK: Attack = tested(
    "full-disk",
    "no room for the journal, while cells are stopped and started; then another supervisor, on the disk that is still full",
    "journal ENOSPC, exit 1, the next `up` fails too",
    missions_disk::NEEDS,
    |_| {
        let ended = missions_disk::next_on_a_full_disk();
        held(format!("both go on in memory; {ended}"))
    },
);

pub const FORGED_JOBS: Attack = tested(
    "forged-jobs",
    "a cell of high criticality reports jobs in time that were none, while its child uses up the cpu",
    "the overrun hidden",
    missions_health::FORGERY,
    |_| {
        missions_health::jobs_made_up_for_a_child();
        held("the overrun found: the mission changes to high mode")
    },
);

pub const ESCAPES: Attack = tested(
    "escapes",
    "a cell writes, and is named with, codes that clear a terminal and give its window a title, shown by logs, events and ps",
    "the terminal obeyed",
    missions_seen::ON_A_TERMINAL,
    |_| {
        missions_seen::what_a_cell_says_reaches_a_terminal_as_text();
        held("text in logs, events and ps; the terminal unchanged")
    },
);

pub const TAKEN_NAME: Attack = tested(
    "taken-name",
    "a process in a group that has the name of a cell's: whether the start that fails takes it along",
    "not tried",
    missions_seen::NEEDS,
    |_| {
        missions_seen::a_group_that_somebody_else_uses_is_left_alone();
        held("refused by name; the process neither ended nor moved")
    },
);

pub const MOUNT_LINK: Attack = tested(
    "mount-link",
    "a cell that may write to a directory of the host puts a link in place of one in it, which another cell is shown",
    "followed",
    &[Need::Root, Need::Program("busybox")],
    |_| {
        missions_mounts::a_link_is_not_followed("embedded");
        held("refused by name, by the next supervisor too")
    },
);

pub const USERS_MISSION: Attack = tested(
    "users-mission",
    "links and a mission's forged state in a user's directory, which root names with `--dir`; a record that names another process",
    "not tried; at 6b62040 root's file truncated, the process killed",
    missions_ground::NEEDS,
    |_| {
        missions_ground::a_users_directory_is_refused_by_every_verb();
        missions_ground::a_record_that_names_a_stranger_ends_nobody();
        held("refused by every verb; the process lives")
    },
);

pub const IMAGE_LINK: Attack = tested(
    "image-link",
    "an image whose `/dev`, `/proc`, `/sys` or `/cell` is a link to a directory of root's; embedded, crun and runc",
    "not tried; at 6b62040 runc and podman made and replaced files there",
    missions_ground::NEEDS,
    |_| {
        missions_ground::a_link_in_an_image_is_refused();
        held("refused at `admit` and at the next start; nothing made there")
    },
);

pub const HUNG_START: Attack = tested(
    "hung-start",
    "a cell whose engine hangs for 20 s in its start; when another cell that is killed runs again",
    "the other cell first started after 20.3 s",
    &[
        Need::Root,
        Need::Program("busybox"),
        Need::Program("crun"),
        Need::TwoCpus,
        Need::AnyEnforcer(400),
    ],
    |seconds| again(seconds, reaction::hangs_in_its_start),
);

pub const NO_DEATH: Attack = tested(
    "no-death",
    "a cell that ignores SIGTERM, with two minutes to end; when another cell that is killed runs again",
    "runs again after 63.9 ms at most, 5 times",
    BESIDE,
    |seconds| again(seconds, reaction::does_not_die),
);

pub const DISK_FILLER: Attack = tested(
    "disk-filler",
    "a cell that fills the disk of the journal; when another cell that is killed runs again",
    "not started again while the disk is full",
    BESIDE,
    |seconds| again(seconds, reaction::fills_the_disk),
);

/// Of the three above: a cell that is killed, and a critical one.
const BESIDE: &[Need] = &[
    Need::Root,
    Need::Program("busybox"),
    Need::TwoCpus,
    Need::AnyEnforcer(400),
];

fn again(seconds: u64, beside: fn(Watched) -> Reaction) -> Now {
    let reaction = beside(Fault::Crashes.beside_a_critical_cell(seconds));
    let (times, longest) = (reaction.took.len(), reaction.took[reaction.took.len() - 1]);
    let neighbour = reaction.critical.expect("a critical cell beside it");
    Now {
        // Two seconds at least are a hundred jobs; a machine under test is slow.
        held: neighbour.jobs > 0,
        neighbour: Some(neighbour),
        ..held(format!(
            "runs again after {:.1} ms at most, {times} times",
            ms(longest)
        ))
    }
}

pub const FULL_LOAD: Attack = tested(
    "full-load",
    "cells that use all they are granted, on every cpu; how long the end of another cell goes unnoticed",
    "told after 73 to 88 ms at most",
    missions_reserve::NEEDS,
    |_| {
        let kills = missions_reserve::killed(Some(missions_reserve::GENEROUS)).into_iter();
        let longest = kills.map(|(told, _)| told).max().expect("kills");
        Now {
            held: longest <= missions_reserve::TOLD,
            ..held(format!("told after {:.1} ms at most", ms(longest)))
        }
    },
);

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
