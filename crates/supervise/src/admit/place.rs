//! Finds cpus for cells.

use record::supply::MeasuredSupply;

use super::cpu::{Bound, Candidate, Unfit, check};
use super::partition::{self, is_apart, roams};
use super::{CpuLoad, Facts};

/// The bounds of cells that share a cpu, in their order.
type Answer = Result<Vec<Bound>, Unfit>;

/// Where the cells are.
pub(super) struct Placed {
    /// Each candidate's cpus and its bound there, or why it fits nowhere.
    pub(super) cells: Vec<Result<(Vec<u32>, Bound), Unfit>>,
    /// The candidates on each cpu.
    pub(super) cpus: Vec<(u32, Vec<usize>)>,
}

/// Puts every candidate on its cpus: those that others were granted come first and stay where they are; then those with cpus of their own first, in the order of the file; the others by falling
/// bandwidth, each on the first cpu where all deadlines hold with it (first fit decreasing: Johnson et al., 1974), those that need
/// partitions before the others. A heuristic: that it finds no place does not prove that there is none. Cells that run on any cpu are
/// on all of them, before all others.
pub(super) fn place(
    candidates: &[Candidate<'_>],
    cpus: &[u32],
    facts: &Facts,
    measured: &[MeasuredSupply],
) -> Placed {
    let mut placed = Placed {
        cells: Vec::new(),
        cpus: cpus.iter().map(|&cpu| (cpu, Vec::new())).collect(),
    };
    let mut refused: Vec<Option<Unfit>> = vec![None; candidates.len()];
    let (everywhere, mut order): (Vec<usize>, Vec<usize>) =
        (0..candidates.len()).partition(|&at| roams(candidates[at].asked, facts));
    let mut anywhere: Vec<usize> = Vec::new();
    // The same test on every cpu, of all threads that run on any. Where it holds for all, it need not be asked of each.
    if !placed.cpus.is_empty()
        && placed
            .hold(0, &everywhere, candidates, facts, measured)
            .is_ok()
    {
        anywhere.clone_from(&everywhere);
    } else if !placed.cpus.is_empty() {
        for at in everywhere {
            let with: Vec<usize> = anywhere.iter().copied().chain([at]).collect();
            match placed.hold(0, &with, candidates, facts, measured) {
                Ok(()) => anywhere = with,
                Err(unfit) => refused[at] = Some(unfit),
            }
        }
    }
    for (_, members) in &mut placed.cpus {
        members.extend(&anywhere);
    }
    let free = |at: usize| candidates[at].asked.cpus.is_empty();
    let shares = |at: usize| free(at) && !is_apart(candidates[at].asked, facts);
    order.sort_by(|&a, &b| {
        let by_kind = free(a).cmp(&free(b)).then(shares(a).cmp(&shares(b)));
        by_kind.then_with(|| {
            let by_size = candidates[b]
                .bandwidth()
                .total_cmp(&candidates[a].bandwidth());
            if free(a) {
                by_size
            } else {
                std::cmp::Ordering::Equal
            }
        })
    });
    let named = order.partition_point(|&at| !free(at));
    if placed.all_on_their_own(&order[..named], &anywhere, candidates, facts, measured) {
        order.drain(..named);
    }
    for at in order {
        let own = &candidates[at].asked.cpus;
        if own.is_empty() {
            let mut last = None;
            let mut found = false;
            for cpu in partition::open_to(candidates[at].asked, cpus, facts) {
                let place = placed.place_of(cpu, &anywhere);
                let fits = placed.fits(place, at, candidates, facts, measured);
                let taken = placed.with_partition(at, &[cpu], candidates, facts);
                match fits {
                    Ok(()) if !partition::leave_one(&taken, facts) => {
                        last = Some(partition::takes_the_last(at, &[cpu]));
                    }
                    Ok(()) => {
                        placed.cpus[place].1.push(at);
                        found = true;
                        break;
                    }
                    Err(unfit) => last = Some(unfit),
                }
            }
            if !found {
                refused[at] = Some(last.unwrap_or_else(|| partition::no_cpu(at, cpus, facts)));
            }
        } else {
            let mut places = Vec::new();
            for &cpu in own {
                let place = placed.place_of(cpu, &anywhere);
                match placed.fits(place, at, candidates, facts, measured) {
                    Ok(()) => places.push(place),
                    Err(unfit) => refused[at] = Some(unfit),
                }
            }
            let taken = placed.with_partition(at, own, candidates, facts);
            if refused[at].is_none() && !partition::leave_one(&taken, facts) {
                refused[at] = Some(partition::takes_the_last(at, own));
            }
            if refused[at].is_none() {
                for place in places {
                    placed.cpus[place].1.push(at);
                }
            }
        }
    }
    // The kernel takes supervisors off partitions.
    for (_, members) in &mut placed.cpus {
        *members = on_their_cpu(members, candidates, facts);
    }
    let mut bounds: Vec<Option<(Vec<u32>, Bound)>> = vec![None; candidates.len()];
    // Cpus that have the same cells, such as those that run anywhere, hold them alike.
    let mut known: Vec<(&[usize], Answer)> = Vec::new();
    for (cpu, members) in &placed.cpus {
        let at = known.iter().position(|(those, _)| those == members);
        let at = at.unwrap_or_else(|| {
            let cells: Vec<Candidate<'_>> =
                members.iter().map(|&at| candidates[at].clone()).collect();
            known.push((members, check(&cells, facts, measured)));
            known.len() - 1
        });
        match &known[at].1 {
            Ok(all) => {
                for (&at, bound) in members.iter().zip(all) {
                    match &mut bounds[at] {
                        Some((cpus, _)) => cpus.push(*cpu),
                        none => *none = Some((vec![*cpu], bound.clone())),
                    }
                }
            }
            // It was checked with every cell that came; it cannot fail now.
            Err(unfit) => {
                let of = members[unfit.of];
                refused[of] = Some(Unfit {
                    of,
                    ..unfit.clone()
                });
            }
        }
    }
    placed.cells = (refused.into_iter().zip(bounds).enumerate())
        .map(|(at, (refused, bound))| match (refused, bound) {
            (Some(unfit), _) => Err(unfit),
            (None, Some(bound)) => Ok(bound),
            (None, None) => Err(Unfit {
                of: at,
                why: match candidates[at].asked.is_supervisor {
                    true => {
                        "every cpu on which it may run would become a mission's cpuset partition"
                    }
                    false => "it has no cpu",
                }
                .to_owned(),
                witness: None,
            }),
        })
        .collect();
    placed
}

impl Placed {
    /// The place of a cpu, which has those that run anywhere where nobody was before.
    fn place_of(&mut self, cpu: u32, anywhere: &[usize]) -> usize {
        let place = self.cpus.iter().position(|(known, _)| *known == cpu);
        place.unwrap_or_else(|| {
            self.cpus.push((cpu, anywhere.to_vec()));
            self.cpus.len() - 1
        })
    }

    /// Puts these on the cpus that they name if all of them fit there together, and says so: to ask that once is enough then, and an
    /// update of many cells asks it of all that stay.
    fn all_on_their_own(
        &mut self,
        these: &[usize],
        anywhere: &[usize],
        candidates: &[Candidate<'_>],
        facts: &Facts,
        measured: &[MeasuredSupply],
    ) -> bool {
        if these.is_empty() {
            return true;
        }
        let before = self.cpus.clone();
        for &at in these {
            for &cpu in &candidates[at].asked.cpus {
                let place = self.place_of(cpu, anywhere);
                self.cpus[place].1.push(at);
            }
        }
        let taken = self.partitions(candidates, facts);
        let hold = (taken.is_empty() || partition::leave_one(&taken, facts))
            && (0..self.cpus.len())
                .all(|place| self.hold(place, &[], candidates, facts, measured).is_ok());
        if !hold {
            self.cpus = before;
        }
        hold
    }

    /// Whether a cpu holds one more; the answer's cell is one of the candidates.
    pub(super) fn fits(
        &self,
        place: usize,
        at: usize,
        candidates: &[Candidate<'_>],
        facts: &Facts,
        measured: &[MeasuredSupply],
    ) -> Result<(), Unfit> {
        self.hold(place, &[at], candidates, facts, measured)
    }

    /// Whether a cpu holds these beside those that are there.
    fn hold(
        &self,
        place: usize,
        more: &[usize],
        candidates: &[Candidate<'_>],
        facts: &Facts,
        measured: &[MeasuredSupply],
    ) -> Result<(), Unfit> {
        let members: Vec<usize> = self.cpus[place].1.iter().chain(more).copied().collect();
        let members = on_their_cpu(&members, candidates, facts);
        let cells: Vec<Candidate<'_>> = members.iter().map(|&at| candidates[at].clone()).collect();
        check(&cells, facts, measured)
            .map(|_| ())
            .map_err(|unfit| Unfit {
                of: members[unfit.of],
                ..unfit
            })
    }

    /// The cpus that are partitions by now.
    fn partitions(&self, candidates: &[Candidate<'_>], facts: &Facts) -> Vec<u32> {
        let apart =
            |members: &[usize]| (members.iter()).any(|&at| is_apart(candidates[at].asked, facts));
        let taken = self.cpus.iter().filter(|(_, members)| apart(members));
        taken.map(|(cpu, _)| *cpu).collect()
    }

    /// The same with these cpus of one more, if they are to be one; none where it needs no partition.
    fn with_partition(
        &self,
        at: usize,
        cpus: &[u32],
        candidates: &[Candidate<'_>],
        facts: &Facts,
    ) -> Vec<u32> {
        match is_apart(candidates[at].asked, facts) {
            true => {
                let taken = self.partitions(candidates, facts);
                taken.into_iter().chain(cpus.iter().copied()).collect()
            }
            false => Vec::new(),
        }
    }

    pub(super) fn loads(&self, candidates: &[Candidate<'_>], facts: &Facts) -> Vec<CpuLoad> {
        let part = |cell: &Candidate<'_>| match roams(cell.asked, facts) {
            true => cell.bandwidth() / self.cpus.len().max(1) as f64,
            false if is_apart(cell.asked, facts) => {
                cell.bandwidth() / cell.asked.cpus.len().max(1) as f64
            }
            false => cell.bandwidth(),
        };
        (self.cpus.iter())
            .map(|(cpu, members)| {
                let mut members: Vec<&Candidate<'_>> =
                    members.iter().map(|&at| &candidates[at]).collect();
                members.sort_by_key(|cell| {
                    std::cmp::Reverse(cell.asked.band.map(|band| band.highest))
                });
                CpuLoad {
                    cpu: *cpu,
                    cells: members.iter().map(|cell| cell.asked.name.clone()).collect(),
                    reserved: members
                        .iter()
                        .map(|cell| part(cell))
                        .fold(0.0, |sum, one| sum + one),
                }
            })
            .collect()
    }
}

/// Which of these are on their cpu: where it is a partition, no supervisor.
fn on_their_cpu(members: &[usize], candidates: &[Candidate<'_>], facts: &Facts) -> Vec<usize> {
    let apart = (members.iter()).any(|&at| is_apart(candidates[at].asked, facts));
    let stays = |at: &usize| !(apart && candidates[*at].asked.is_supervisor);
    members.iter().copied().filter(stays).collect()
}
