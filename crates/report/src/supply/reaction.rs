//! How exact the thread was that held budgets from outside the kernel: what it amounts to, its rows and sentences.

use analysis::Ns;
use analysis::linux::{FreezerSupply, Reaction};
use analysis::reservation::BoundedDelay;
use model::Enforcer;
use record::supply::{
    Budget, MeasuredReaction, MeasuredSupply, Reacted, Share, Spread, SupplySummary, Times,
    WorstReaction,
};

use super::{percent, reservation};
use crate::style::Tone;
use crate::table::Text;
use crate::units::time;
use crate::words::count;

/// The worst reaction of these, as the analysis takes it; `None`: none of them was held by the freezer.
pub fn supply_reaction(supplies: &[MeasuredSupply]) -> Option<Reaction> {
    let all = supplies
        .iter()
        .filter_map(|supply| supply.reaction.as_ref());
    WorstReaction::of(all).map(analysed)
}

fn analysed(worst: WorstReaction) -> Reaction {
    Reaction {
        late: worst.late_ns,
        overrun: worst.overrun_ns,
        noticed: worst.noticed,
    }
}

/// What the rounds of a budget amount to, with the supply that follows from it of a cell that has its cpu to itself; `None` where the kernel
/// itself held it.
pub(super) fn measured(
    held: &Budget,
    rounds: &[&Reacted],
) -> Option<(MeasuredReaction, Option<BoundedDelay>)> {
    if rounds.is_empty() {
        return None;
    }
    let spread = |pick: fn(&Reacted) -> &Times| {
        Spread::of(Times::of_all(rounds.iter().map(|round| pick(round))))
    };
    let costs = rounds.iter().filter_map(|round| round.cost);
    let cost = costs.reduce(|all, one| Share {
        cpu_ns: all.cpu_ns + one.cpu_ns,
        of_ns: all.of_ns + one.of_ns,
    });
    let mut reaction = MeasuredReaction {
        late: spread(|round| &round.late),
        overruns: spread(|round| &round.overruns),
        noticed: rounds.iter().all(|round| round.noticed == Some(true)),
        cost,
        textbook_gap_ns: 0,
        longest_gap_ns: None,
    };
    let worst = analysed(reaction.worst());
    let alone = FreezerSupply::alone(held.budget_ns, held.period_ns, worst).ok();
    // Not `worst.overrun`, which is no less than the lateness and would have that counted twice.
    reaction.textbook_gap_ns = 2 * held.period_ns.saturating_sub(held.budget_ns)
        + reaction.late.most_ns
        + reaction.overruns.most_ns;
    reaction.longest_gap_ns = alone.map(|(gap, _)| gap);
    Some((reaction, alone.map(|(_, line)| line)))
}

/// What is relied on before anybody has measured; `None` where the kernel itself holds the budget, or nothing is certain.
pub(super) fn unmeasured(held: &Budget) -> Option<FreezerSupply> {
    let by_freezer = held.enforcer == Enforcer::Freezer;
    by_freezer
        .then(|| FreezerSupply::new(held.budget_ns, held.period_ns, Reaction::MEASURED).ok())
        .flatten()
}

/// Headings of a row.
pub(super) const HEADINGS: [&str; 8] = [
    "reservation",
    "of the grant",
    "looked late: median, 99 %, most",
    "ran on: median, 99 %, most",
    "used up",
    "longest gap",
    "2(P-Q) and reaction",
    "holding it takes",
];

/// One supply; `None` where the kernel itself held it.
pub(super) fn row(supply: &MeasuredSupply) -> Option<[Text; 8]> {
    let reaction = supply.reaction.as_ref()?;
    let plain = |text: String| Text(text, Tone::Plain);
    let held = &supply.held;
    let granted = held.budget_ns as f64 / held.period_ns.max(1) as f64;
    let billed = supply.billed.map_or(0.0, Share::ratio) / granted;
    let gap = supply.longest_gap_ns.most;
    let tone = match gap <= reaction.textbook_gap_ns {
        true => Tone::Good,
        false => Tone::Caution,
    };
    Some([
        plain(reservation(held)),
        plain(format!("{billed:.4}")),
        plain(spread(&reaction.late)),
        plain(spread(&reaction.overruns)),
        plain(count(reaction.overruns.count)),
        Text(time(gap as f64), tone),
        plain(time(reaction.textbook_gap_ns as f64)),
        plain(cost(reaction)),
    ])
}

/// `27.1 us, 73.7 us, 1.54 ms`.
fn spread(of: &Spread) -> String {
    if of.count == 0 {
        return "none".to_owned();
    }
    let times = [of.median_ns, of.p99_ns, of.most_ns].map(|ns| time(ns as f64));
    times.join(", ")
}

fn cost(reaction: &MeasuredReaction) -> String {
    let share = reaction.cost.map(|cost| percent(cost.ratio()));
    share.map_or("-".to_owned(), |share| format!("{share} of a cpu"))
}

/// What is to be said of it: the worst reaction, what follows, and what it broke.
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
        "the freezer looked up to {} late, and cells ran on for up to {} beyond their budgets; admission counts on no better \
         (`--supply`), nor on overruns shorter than the lateness, and `analyze` does with `--reaction {}us/{}us{noticed}`",
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
            "by that nothing is certain of {names}: a look came later than the whole period"
        ));
    }
    let behind = |supply: &MeasuredSupply, _: &MeasuredReaction| {
        let of = FreezerSupply::new(supply.held.budget_ns, supply.held.period_ns, worst);
        supply.by_reaction.is_some() && of.is_err()
    };
    if let Some(names) = named(&behind) {
        all.push(format!(
            "by that nothing is certain of {names} beside other cells, as admission has them: the lateness takes the whole budget"
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
            "what the kernel billed to the thread under the freezer is off by more than {} of what was granted: of {names}",
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
            "to hold a cell took more than the {} in each of its periods with which admission reckons: of {names}",
            time(Reaction::COST as f64)
        ));
    }
    let long = |supply: &MeasuredSupply, reaction: &MeasuredReaction| {
        supply.longest_gap_ns.most > reaction.textbook_gap_ns
    };
    if let Some(names) = named(&long) {
        all.push(format!(
            "gaps under the freezer were longer than 2(P-Q), lateness and overrun together: of {names}; an overrun of more than \
             a budget is paid for with whole periods, and what the host takes comes on top"
        ));
    }
    all
}

/// What a share may be off by, as part of what is granted.
const EXACT: f64 = 0.005;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn held() -> Budget {
        Budget {
            enforcer: Enforcer::Freezer,
            budget_ns: 3 * MS,
            period_ns: 10 * MS,
        }
    }

    fn reacted(late_ns: u64, overrun_ns: u64, noticed: bool) -> Reacted {
        let times = |ns| Times {
            bins: vec![(ns + 1, 10)],
            most_ns: ns,
        };
        Reacted {
            late: times(late_ns),
            overruns: times(overrun_ns),
            noticed: Some(noticed),
            cost: Some(Share {
                cpu_ns: 1,
                of_ns: 100,
            }),
            takeovers: 0,
            errors: 0,
        }
    }

    #[test]
    fn the_bound_follows_from_the_worst_of_all_rounds() {
        let rounds = [
            reacted(50_000, 400_000, true),
            reacted(100_000, 20_000, false),
        ];
        let (reaction, supply) = measured(&held(), &rounds.each_ref()).unwrap();
        assert_eq!(
            (reaction.late.most_ns, reaction.overruns.most_ns),
            (100_000, 400_000)
        );
        assert_eq!((reaction.late.count, reaction.noticed), (20, false));
        assert_eq!(reaction.cost.unwrap().of_ns, 200);
        assert_eq!(reaction.textbook_gap_ns, 14 * MS + 500_000);
        assert_eq!(reaction.longest_gap_ns, Some(7 * MS + 500_000));
        let worst = Reaction {
            late: 100_000,
            overrun: 400_000,
            noticed: false,
        };
        let expected = FreezerSupply::new(3 * MS, 10 * MS, worst).unwrap();
        assert_eq!(supply, Some(expected.alone));
        // Later than the budget is long: something follows of a cell that is alone.
        let (reaction, supply) = measured(&held(), &[&reacted(4 * MS, 0, true)]).unwrap();
        assert_eq!(reaction.textbook_gap_ns, 14 * MS + 4 * MS);
        // An overrun contains the lateness: two budgets are owed at the worst.
        assert_eq!(reaction.longest_gap_ns, Some(2 * 7 * MS + 4 * MS + 3 * MS));
        assert!(supply.is_some());
        // Later than a period: nothing follows.
        let (reaction, supply) = measured(&held(), &[&reacted(10 * MS, 0, true)]).unwrap();
        assert_eq!((reaction.longest_gap_ns, supply), (None, None));
        assert!(measured(&held(), &[]).is_none());
    }
}
