//! The table of budgets, for terminal and page alike.

use record::supply::{Kept, MeasuredSupply, Promise, Share, SupplySummary};

use super::line;
use crate::grid::Table;
use study::reservation;
use text::grid::Text;
use text::style::Tone;
use text::units::{percent, time};

/// A row for each budget, the host below: `None`.
pub(super) fn table(summary: &SupplySummary) -> Table<Option<&MeasuredSupply>> {
    let host = summary.host.as_ref();
    let load =
        (summary.load.as_ref()).map_or(String::new(), |load| format!(", beside load {load}"));
    let granted = |s: &MeasuredSupply| s.held.budget_ns as f64 / s.held.period_ns.max(1) as f64;
    let share = |share: Share| percent(share.ratio());
    Table::new(
        format!("cpu time of a cell that always wants it and has its cpu to itself{load}"),
        summary.supplies.iter().map(Some).chain(host.map(|_| None)),
    )
    .head("enforcer", |row| {
        row.map_or("none", |s| s.held.enforcer.name())
    })
    .text("reservation", |row| match row {
        Some(supply) => reservation(&supply.held),
        None => "the whole cpu".to_owned(),
    })
    .number("granted", |row| percent(row.map_or(1.0, granted)))
    .number("billed", |row| row.and_then(|s| s.billed).map(share))
    .number("received", |row| {
        let received = row.map(|s| s.received).or(host.map(|host| host.received));
        received.map(share)
    })
    .number("longest gap", |row| {
        let gap = row
            .map(|s| s.longest_gap_ns)
            .or(host.map(|host| host.longest_gap_ns));
        gap.map(|gap| time(gap.most as f64))
    })
    .text("received at least", |row| {
        let own = row.and_then(|s| s.points.first());
        own.or(host.filter(|_| row.is_none()).map(|host| &host.point))
            .map(line)
    })
    .text("textbook's bound", |row| row.map(|s| kept(&s.textbook)))
}

/// Whether a bound was kept, in few words.
pub(super) fn kept(promise: &Promise) -> Text {
    match promise.kept {
        Kept::Held => Text("holds".to_owned(), Tone::Good),
        Kept::HeldButForTheHost { .. } => {
            Text("holds except for the host".to_owned(), Tone::Caution)
        }
        Kept::Broken {
            window_ns,
            promised_ns,
            received_ns,
        } => {
            let [promised, window] = [promised_ns, window_ns].map(|ns| time(ns as f64));
            let received = zero_or(received_ns);
            Text(
                format!("broken: {received} of {promised} in {window}"),
                Tone::Bad,
            )
        }
    }
}

pub(super) fn zero_or(ns: u64) -> String {
    match ns {
        0 => "nothing".to_owned(),
        ns => time(ns as f64),
    }
}
