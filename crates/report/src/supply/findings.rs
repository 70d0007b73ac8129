//! The sentences of a supply study.

use record::supply::{Kept, MeasuredSupply, Promise, SupplySummary};

use super::{reaction, tried};
use study::reservation;
use text::units::{percent, time};
use text::words::plural;

/// The sentences, without full stops, the most important first.
pub(super) fn findings(summary: &SupplySummary) -> Vec<String> {
    let mut all = Vec::new();
    all.extend(textbook(summary));
    all.extend(reaction::findings(summary));
    all.extend(tried::findings(summary));
    all.extend(host(summary));
    for (what, pick) in BOUNDS {
        all.extend(bound(summary, what, pick));
    }
    all.extend(few(summary));
    all
}

/// A bound of a supply.
type Pick = fn(&MeasuredSupply) -> Option<Promise>;

const BOUNDS: [(&str, Pick); 4] = [
    ("the bound from the length of the tick", |s| {
        s.by_tick.filter(|_| !s.held.enforcer.is_out_of_band())
    }),
    ("the bound from EVL's timer, which needs no tick", |s| {
        s.by_tick.filter(|_| s.held.enforcer.is_out_of_band())
    }),
    ("the bound from the worst reaction of the freezer", |s| {
        s.by_reaction
    }),
    ("what is assumed without a measurement", |s| s.cautious),
];

fn name(supply: &MeasuredSupply) -> String {
    format!(
        "{} {}",
        supply.held.enforcer.name(),
        reservation(&supply.held)
    )
}

fn names(supplies: &[&MeasuredSupply]) -> String {
    let names: Vec<String> = supplies.iter().map(|supply| name(supply)).collect();
    names.join(", ")
}

fn textbook(summary: &SupplySummary) -> Option<String> {
    let all = &summary.supplies;
    let of = |wanted: fn(Kept) -> bool| -> Vec<&MeasuredSupply> {
        all.iter()
            .filter(|supply| wanted(supply.textbook.kept))
            .collect()
    };
    let broken = of(|kept| matches!(kept, Kept::Broken { .. }));
    let but_for = of(|kept| matches!(kept, Kept::HeldButForTheHost { .. }));
    let excused = match but_for.as_slice() {
        [] => String::new(),
        but_for => format!(
            ", except for what the host can take (for {})",
            names(but_for)
        ),
    };
    match (all.len(), broken.as_slice()) {
        (0, _) => None,
        (_, []) => Some(format!(
            "the textbook's bound (periodic resource model) held in every window examined{excused}"
        )),
        (_, broken) => Some(format!(
            "the textbook's bound (periodic resource model) does not hold on this kernel: not for {}",
            names(broken)
        )),
    }
}

fn host(summary: &SupplySummary) -> Option<String> {
    let host = summary.host.as_ref()?;
    let lost = 1.0 - host.received.ratio();
    Some(format!(
        "without a budget the same thread lost {} of its time to interrupts and the host, up to {} at once; the kernel bills \
         that to the cell, which therefore receives less than it is billed for",
        percent(lost.max(0.0)),
        time(host.longest_gap_ns.most as f64)
    ))
}

fn bound(summary: &SupplySummary, what: &str, pick: Pick) -> Option<String> {
    let known: Vec<&MeasuredSupply> = (summary.supplies.iter())
        .filter(|supply| pick(supply).is_some())
        .collect();
    if known.is_empty() {
        return None;
    }
    let kept = |supply: &&&MeasuredSupply, wanted: fn(Kept) -> bool| {
        pick(supply).is_some_and(|promise| wanted(promise.kept))
    };
    let of = |wanted: fn(Kept) -> bool| -> Vec<&MeasuredSupply> {
        known
            .iter()
            .filter(|supply| kept(supply, wanted))
            .copied()
            .collect()
    };
    let broken = of(|kept| matches!(kept, Kept::Broken { .. }));
    let but_for = of(|kept| matches!(kept, Kept::HeldButForTheHost { .. }));
    let mut said = match broken.as_slice() {
        [] => format!("{what} held everywhere"),
        broken => format!("{what} did not hold for {}", names(broken)),
    };
    if !but_for.is_empty() {
        said += &format!(", except for what the host took (for {})", names(&but_for));
    }
    Some(said)
}

/// Too few rounds.
fn few(summary: &SupplySummary) -> Option<String> {
    let rounds = summary.supplies.iter().map(|supply| supply.rounds).min()?;
    (rounds < 3).then(|| {
        format!(
            "these figures rest on {}; measure 3 or more before relying on a budget",
            plural(rounds.into(), "round")
        )
    })
}
