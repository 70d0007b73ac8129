//! How exact the process was that held budgets from outside the kernel: rows and sentences.

use analysis::Ns;
use analysis::linux::{FreezerSupply, Reaction};
use record::supply::{MeasuredReaction, MeasuredSupply, Share, Spread, SupplySummary};
use study::{reservation, supply_reaction};

use crate::grid::{Cell, Table};
use text::style::Tone;
use text::units::{percent, time};

/// A supply with the reaction of its freezer.
type Row<'s> = (&'s MeasuredSupply, &'s MeasuredReaction);

/// Every supply that the kernel itself did not hold.
fn rows(summary: &SupplySummary) -> impl Iterator<Item = Row<'_>> {
    (summary.supplies.iter()).filter_map(|supply| Some((supply, supply.reaction.as_ref()?)))
}

/// How exact it was.
pub(super) fn table(summary: &SupplySummary) -> Table<Row<'_>> {
    Table::new("how exact the freezer was", rows(summary))
        .head("reservation", |(supply, _)| reservation(&supply.held))
        .number("of the grant", |(supply, _)| {
            let held = &supply.held;
            let granted = held.budget_ns as f64 / held.period_ns.max(1) as f64;
            let billed = supply.billed.map_or(0.0, Share::ratio) / granted;
            format!("{billed:.4}")
        })
        .number("checked late: median, 99 %, most", |(_, r)| spread(&r.late))
        .number("ran on: median, 99 %, most", |(_, r)| spread(&r.overruns))
        .number("used up", |(_, r)| r.overruns.count)
        .number("longest gap", |(supply, r)| {
            let gap = supply.longest_gap_ns.most;
            let tone = match gap <= r.textbook_gap_ns {
                true => Tone::Good,
                false => Tone::Caution,
            };
            Cell::new(time(gap as f64), tone)
        })
        .number("2(P-Q) and reaction", |(_, r)| {
            time(r.textbook_gap_ns as f64)
        })
        .number("holding it takes", |(_, r)| {
            let share = r.cost.map(|cost| percent(cost.ratio()));
            share.map(|share| format!("{share} of a cpu"))
        })
}

/// By how much it overran, in how many periods.
pub(super) fn overruns(summary: &SupplySummary) -> Table<Row<'_>> {
    let time = |ns: u64| time(ns as f64);
    Table::new(
        "Overruns: how many periods were overrun by how much",
        rows(summary),
    )
    .head("reservation", |(supply, _)| reservation(&supply.held))
    .number("half", |(_, r)| time(r.overruns.median_ns))
    .number("90 of 100", |(_, r)| time(r.overruns.p90_ns))
    .number("99 of 100", |(_, r)| time(r.overruns.p99_ns))
    .number("999 of 1,000", |(_, r)| time(r.overruns.p999_ns))
    .number("all", |(_, r)| time(r.overruns.most_ns))
    .number("periods", |(_, r)| r.overruns.count)
}

/// `27.1 us, 73.7 us, 1.54 ms`.
fn spread(of: &Spread) -> String {
    if of.count == 0 {
        return "none".to_owned();
    }
    let times = [of.median_ns, of.p99_ns, of.most_ns].map(|ns| time(ns as f64));
    times.join(", ")
}

/// Sentences on it: the worst reaction, its effects, and the promises it broke.
pub(super) fn findings(summary: &SupplySummary) -> Vec<String> {
    let Some(worst) = supply_reaction(&summary.supplies) else {
        return Vec::new();
    };
    let noticed = if worst.noticed { "/noticed" } else { "" };
    let us = |ns: Ns| ns.div_ceil(1_000);
    let reactions = summary
        .supplies
        .iter()
        .filter_map(|supply| supply.reaction.as_ref());
    let overrun = reactions.map(|reaction| reaction.overruns.most_ns).max();
    let mut all = vec![format!(
        "the freezer checked up to {} late, and cells ran on for up to {} beyond their budgets; admission assumes nothing better \
         (`--supply`), nor overruns shorter than the lateness, and neither does `analyze` with `--reaction {}us/{}us{noticed}`",
        time(worst.late as f64),
        time(overrun.unwrap_or(0) as f64),
        us(worst.late),
        us(worst.overrun)
    )];
    let named = |wanted: &dyn Fn(&MeasuredSupply, &MeasuredReaction) -> bool| {
        let with = summary.supplies.iter().filter_map(|supply| {
            let reaction = supply.reaction.as_ref()?;
            wanted(supply, reaction).then(|| reservation(&supply.held))
        });
        let names: Vec<String> = with.collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let nothing = |supply: &MeasuredSupply, _: &MeasuredReaction| supply.by_reaction.is_none();
    if let Some(names) = named(&nothing) {
        all.push(format!(
            "nothing is certain then for {names}: a check came later than the whole period"
        ));
    }
    let behind = |supply: &MeasuredSupply, _: &MeasuredReaction| {
        let of = FreezerSupply::new(supply.held.budget_ns, supply.held.period_ns, worst);
        supply.by_reaction.is_some() && of.is_err()
    };
    if let Some(names) = named(&behind) {
        all.push(format!(
            "nothing is certain then for {names} beside other cells, as admission counts them: the lateness takes the whole budget"
        ));
    }
    let off = |supply: &MeasuredSupply, _: &MeasuredReaction| {
        let Some(billed) = supply.billed else {
            return false;
        };
        let granted = supply.held.budget_ns as f64 / supply.held.period_ns.max(1) as f64;
        (billed.ratio() / granted - 1.0).abs() > EXACT
    };
    all.push(match named(&off) {
        None => format!(
            "what the kernel billed to the thread under the freezer is within {} of what was granted",
            percent(EXACT)
        ),
        Some(names) => format!(
            "what the kernel billed to the thread under the freezer is off by more than {} of what was granted: for {names}",
            percent(EXACT)
        ),
    });
    let dear = |supply: &MeasuredSupply, reaction: &MeasuredReaction| {
        let in_period = reaction
            .cost
            .map(|cost| cost.ratio() * supply.held.period_ns as f64);
        in_period.is_some_and(|ns| ns > Reaction::COST as f64)
    };
    if let Some(names) = named(&dear) {
        all.push(format!(
            "holding a cell took more than the {} in each period that admission assumes: for {names}",
            time(Reaction::COST as f64)
        ));
    }
    let long = |supply: &MeasuredSupply, reaction: &MeasuredReaction| {
        supply.longest_gap_ns.most > reaction.textbook_gap_ns
    };
    if let Some(names) = named(&long) {
        all.push(format!(
            "gaps under the freezer were longer than 2(P-Q), lateness and overrun together: for {names}; an overrun of more than a budget \
             is repaid in whole periods, and what the host takes comes on top"
        ));
    }
    all
}

/// Tolerance of a share, as part of the grant.
const EXACT: f64 = 0.005;
