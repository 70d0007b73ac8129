//! What a row of the table says, for terminal and page alike.

use record::supply::{Kept, MeasuredSupply, Promise, Share, SupplyHost};

use super::{line, percent};
use study::reservation;
use text::grid::Text;
use text::style::Tone;
use text::units::time;

/// Headings of a row.
pub(super) const HEADINGS: [&str; 8] = [
    "enforcer",
    "reservation",
    "granted",
    "billed",
    "received",
    "longest gap",
    "received at least",
    "textbook's bound",
];

/// One supply.
pub(super) fn row(supply: &MeasuredSupply) -> [Text; 8] {
    let plain = |text: String| Text(text, Tone::Plain);
    let granted = supply.held.budget_ns as f64 / supply.held.period_ns.max(1) as f64;
    let share = |share: Option<Share>| share.map_or("-".to_owned(), |s| percent(s.ratio()));
    [
        plain(supply.held.enforcer.name().to_owned()),
        plain(reservation(&supply.held)),
        plain(percent(granted)),
        plain(share(supply.billed)),
        plain(percent(supply.received.ratio())),
        plain(time(supply.longest_gap_ns.most as f64)),
        plain(supply.points.first().map_or("-".to_owned(), line)),
        kept(&supply.textbook),
    ]
}

/// The host, in the columns that it has something for.
pub(super) fn host_row(host: &SupplyHost) -> [Text; 8] {
    let plain = |text: String| Text(text, Tone::Plain);
    let none = || plain(String::new());
    [
        plain("none".to_owned()),
        plain("the whole cpu".to_owned()),
        plain(percent(1.0)),
        none(),
        plain(percent(host.received.ratio())),
        plain(time(host.longest_gap_ns.most as f64)),
        plain(line(&host.point)),
        none(),
    ]
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
        } => Text(
            format!(
                "broken: {} of {} in {}",
                zero_or(received_ns),
                time(promised_ns as f64),
                time(window_ns as f64)
            ),
            Tone::Bad,
        ),
    }
}

pub(super) fn zero_or(ns: u64) -> String {
    match ns {
        0 => "nothing".to_owned(),
        ns => time(ns as f64),
    }
}
