//! What a row of the tables says, for terminal and page alike.

use record::isolation::{Against, ArmSummary, Misses, ReceivedSummary, ReceivedVerdict, Standing};

use crate::supply::percent;
use study::reservation;
use text::grid::Text;
use text::style::Tone;
use text::units::time;
use text::words::count;

/// Headings of an arm's row.
pub(super) const ARM: [&str; 8] = [
    "utilisation",
    "load",
    "attacker",
    "enforcer",
    "victim missed",
    "trials with a miss",
    "latest job",
    "attacker missed",
];

/// Headings of an enforcer's row.
pub(super) const STANDING: [&str; 7] = [
    "enforcer",
    "load",
    "utilisations",
    "victim missed",
    "the same sets alone",
    "pairs with more, fewer misses",
    "against the host's own noise",
];

/// Headings of a budget's row.
pub(super) const RECEIVED: [&str; 8] = [
    "enforcer",
    "granted",
    "received",
    "billed",
    "least in a period",
    "median",
    "most",
    "verdict",
];

fn plain(text: impl Into<String>) -> Text {
    Text(text.into(), Tone::Plain)
}

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

/// One arm.
pub(super) fn arm(arm: &ArmSummary) -> [Text; 8] {
    let victim = &arm.victim;
    let tone = if victim.missed() > 0 {
        Tone::Caution
    } else {
        Tone::Plain
    };
    let latest = victim.worst_lateness_ns.map_or("-".to_owned(), lateness);
    [
        plain(utilisation(arm.utilisation_permille)),
        plain(load(arm.load.as_ref())),
        plain(arm.arm.attacker.name()),
        plain(arm.arm.enforcer.map_or("none", model::Enforcer::name)),
        Text(missed(victim), tone),
        plain(format!("{} of {}", victim.trials_with, victim.trials)),
        plain(latest),
        plain(arm.attacker.as_ref().map_or("-".to_owned(), missed)),
    ]
}

/// `12.3 ms late` or `4.56 ms early`.
pub(crate) fn lateness(ns: i64) -> String {
    let size = time(ns.unsigned_abs() as f64);
    match ns {
        1.. => format!("{size} late"),
        _ => format!("{size} early"),
    }
}

/// One enforcer over all utilisations.
pub(super) fn standing(standing: &Standing) -> [Text; 7] {
    let utilisations: Vec<String> = (standing.utilisations_permille.iter())
        .map(|permille| utilisation(*permille))
        .collect();
    [
        plain(standing.enforcer.map_or("none", model::Enforcer::name)),
        plain(load(standing.load.as_ref())),
        plain(utilisations.join(", ")),
        plain(missed(&standing.victim)),
        plain(missed(&standing.alone)),
        plain(format!("{}, {}", standing.pairs.0, standing.pairs.1)),
        against(&standing.against),
    ]
}

/// The verdict in few words.
pub(super) fn against(against: &Against) -> Text {
    match *against {
        Against::NoMiss { at_most } => Text(
            format!("no miss (below {} of trials)", percent(at_most)),
            Tone::Good,
        ),
        Against::WithinNoise { probability } => Text(
            format!("no more than alone (p = {probability:.2})"),
            Tone::Caution,
        ),
        Against::Beyond { probability } => Text(
            match probability {
                p if p < 0.001 => "more than alone (p < 0.001)".to_owned(),
                p => format!("more than alone (p = {p:.3})"),
            },
            Tone::Bad,
        ),
        Against::TooFew => Text("some; too few trials to tell".to_owned(), Tone::Caution),
    }
}

/// One budget.
pub(super) fn received(received: &ReceivedSummary) -> [Text; 8] {
    let each = &received.each;
    let verdict = match received.verdict {
        ReceivedVerdict::Within => Text("within 2 %".to_owned(), Tone::Good),
        ReceivedVerdict::TakenByTheHost => {
            Text("billed, but taken by the host".to_owned(), Tone::Caution)
        }
        ReceivedVerdict::TooShort => Text("too short to tell".to_owned(), Tone::Caution),
        ReceivedVerdict::Less => Text("less than granted".to_owned(), Tone::Bad),
        ReceivedVerdict::More => Text("more than granted".to_owned(), Tone::Bad),
    };
    [
        plain(received.held.enforcer.name()),
        plain(reservation(&received.held)),
        plain(percent(received.received)),
        plain(percent(received.billed)),
        plain(percent(each.least)),
        plain(percent(each.median)),
        plain(percent(each.most)),
        verdict,
    ]
}
