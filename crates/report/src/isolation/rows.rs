//! The tables, for terminal and page alike.

use model::Enforcer;
use record::isolation::{
    Against, ArmSummary, IsolationSummary, Misses, ReceivedSummary, ReceivedVerdict, Standing,
};

use crate::grid::{Cell, Table};
use study::reservation;
use text::style::Tone;
use text::units::{percent, time};
use text::words::count;

fn load(load: Option<&String>) -> String {
    load.map_or("idle".to_owned(), Clone::clone)
}

pub(crate) fn missed(misses: &Misses) -> String {
    format!("{} of {}", count(misses.missed()), count(misses.jobs))
}

/// A utilisation in thousandths: `0.45`.
pub(super) fn utilisation(permille: u32) -> String {
    format!("{}", f64::from(permille) / 1_000.0)
}

fn name(enforcer: Option<Enforcer>) -> &'static str {
    enforcer.map_or("none", Enforcer::name)
}

/// The deadlines of each arm.
pub(super) fn arms(summary: &IsolationSummary) -> Table<&ArmSummary> {
    let caption = format!(
        "deadlines of a cell beside one of higher priority that runs {} times as long as it declared",
        summary.overrun
    );
    Table::new(caption, &summary.arms)
        .head("utilisation", |arm| utilisation(arm.utilisation_permille))
        .text("load", |arm| load(arm.load.as_ref()))
        .text("attacker", |arm| arm.arm.attacker.name())
        .text("enforcer", |arm| name(arm.arm.enforcer))
        .number("victim missed", |arm| {
            let tone = match arm.victim.missed() {
                0 => Tone::Plain,
                _ => Tone::Caution,
            };
            Cell::new(missed(&arm.victim), tone)
        })
        .number("trials with a miss", |arm| {
            format!("{} of {}", arm.victim.trials_with, arm.victim.trials)
        })
        .number("latest job", |arm| {
            arm.victim.worst_lateness_ns.map(lateness)
        })
        .number("attacker missed", |arm| arm.attacker.as_ref().map(missed))
}

/// `12.3 ms late` or `4.56 ms early`.
pub(crate) fn lateness(ns: i64) -> String {
    let size = time(ns.unsigned_abs() as f64);
    match ns {
        1.. => format!("{size} late"),
        _ => format!("{size} early"),
    }
}

/// Each enforcer over all utilisations.
pub(super) fn standings(summary: &IsolationSummary) -> Table<&Standing> {
    let rows = summary
        .standings
        .iter()
        .filter(|_| !summary.arms.is_empty());
    Table::new("the attacker overrunning, against the victim alone", rows)
        .head("enforcer", |one| name(one.enforcer))
        .text("load", |one| load(one.load.as_ref()))
        .text("utilisations", |one| {
            let all = one
                .utilisations_permille
                .iter()
                .map(|&permille| utilisation(permille));
            all.collect::<Vec<_>>().join(", ")
        })
        .number("victim missed", |one| missed(&one.victim))
        .number("the same sets alone", |one| missed(&one.alone))
        .number("pairs with more, fewer misses", |one| {
            format!("{}, {}", one.pairs.0, one.pairs.1)
        })
        .text("against the host's own noise", |one| against(&one.against))
}

/// The verdict in few words.
fn against(against: &Against) -> Cell {
    match *against {
        Against::NoMiss { at_most } => Cell::new(
            format!("no miss (below {} of trials)", percent(at_most)),
            Tone::Good,
        ),
        Against::WithinNoise { probability } => Cell::new(
            format!("no more than alone (p = {probability:.2})"),
            Tone::Caution,
        ),
        Against::Beyond { probability } => Cell::new(
            match probability {
                p if p < 0.001 => "more than alone (p < 0.001)".to_owned(),
                p => format!("more than alone (p = {p:.3})"),
            },
            Tone::Bad,
        ),
        Against::TooFew => Cell::new("some; too few trials to tell", Tone::Caution),
    }
}

/// Each budget.
pub(super) fn budgets(summary: &IsolationSummary) -> Table<&ReceivedSummary> {
    let caption = "cpu time received by cells that always want it, side by side, as a share of what they were granted";
    Table::new(caption, &summary.received)
        .head("enforcer", |one| one.held.enforcer.name())
        .text("granted", |one| reservation(&one.held))
        .number("received", |one| percent(one.received))
        .number("billed", |one| percent(one.billed))
        .number("least in a period", |one| percent(one.each.least))
        .number("median", |one| percent(one.each.median))
        .number("most", |one| percent(one.each.most))
        .text("verdict", |one| match one.verdict {
            ReceivedVerdict::Within => Cell::new("within 2 %", Tone::Good),
            ReceivedVerdict::TakenByTheHost => {
                Cell::new("billed, but taken by the host", Tone::Caution)
            }
            ReceivedVerdict::TooShort => Cell::new("too short to tell", Tone::Caution),
            ReceivedVerdict::Less => Cell::new("less than granted", Tone::Bad),
            ReceivedVerdict::More => Cell::new("more than granted", Tone::Bad),
        })
}
