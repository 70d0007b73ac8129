//! How exact the process was that held budgets from outside the kernel: evaluates its looks.

use analysis::linux::{FreezerSupply, Reaction};
use analysis::reservation::BoundedDelay;
use model::Enforcer;
use record::supply::{
    Budget, MeasuredReaction, MeasuredSupply, Reacted, Share, Spread, Times, WorstReaction,
};

/// The worst reaction of these, as the analysis needs it; `None`: the freezer held none of them.
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

/// Sums up the rounds of a budget, with the resulting supply of a cell that has its cpu to itself; `None` if the kernel itself held it.
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

/// The supply that is assumed without a measurement; `None` if the kernel itself holds the budget, or nothing is certain.
pub(super) fn unmeasured(held: &Budget) -> Option<FreezerSupply> {
    let by_freezer = held.enforcer == Enforcer::Freezer;
    by_freezer
        .then(|| FreezerSupply::new(held.budget_ns, held.period_ns, Reaction::MEASURED).ok())
        .flatten()
}

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
        // Later than the budget is long: something is guaranteed for a cell alone.
        let (reaction, supply) = measured(&held(), &[&reacted(4 * MS, 0, true)]).unwrap();
        assert_eq!(reaction.textbook_gap_ns, 14 * MS + 4 * MS);
        // An overrun contains the lateness: two budgets are owed at the worst.
        assert_eq!(reaction.longest_gap_ns, Some(2 * 7 * MS + 4 * MS + 3 * MS));
        assert!(supply.is_some());
        // Later than a period: nothing is guaranteed.
        let (reaction, supply) = measured(&held(), &[&reacted(10 * MS, 0, true)]).unwrap();
        assert_eq!((reaction.longest_gap_ns, supply), (None, None));
        assert!(measured(&held(), &[]).is_none());
    }
}
