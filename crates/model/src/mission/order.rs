//! In which order cells are started, and in which they are shed.

use super::{Cell, Mission};

impl Mission {
    /// Positions of the cells in an order in which each comes after those it waits for; otherwise as in the file. Cells that
    /// wait for each other, which no mission file may have, come last, in the order of the file.
    pub fn start_order(&self) -> Vec<usize> {
        let waits = self.waits();
        let (mut order, rest) = sorted(&waits);
        order.extend(rest);
        order
    }

    /// Positions of the cells of low criticality in the order of shedding: those that `shed` names, then the others, from the
    /// end of the file.
    pub fn shed_order(&self) -> Vec<usize> {
        let named = self.shed.iter().filter_map(|name| self.position(name));
        let mut order: Vec<usize> = named.filter(|&at| !self.cells[at].is_high()).collect();
        let others = (0..self.cells.len()).rev();
        let others = others.filter(|at| !self.cells[*at].is_high() && !order.contains(at));
        let others: Vec<usize> = others.collect();
        order.extend(others);
        order
    }

    /// Positions of the cells that cannot run without this one, directly or through others; ascending.
    pub fn dependents(&self, position: usize) -> Vec<usize> {
        let mut reached = vec![false; self.cells.len()];
        let mut next = vec![position];
        while let Some(at) = next.pop() {
            let Some(name) = self.cells.get(at).map(|cell| &cell.name) else {
                continue;
            };
            for (other, cell) in self.cells.iter().enumerate() {
                if !reached[other] && other != position && cell.needs.contains(name) {
                    reached[other] = true;
                    next.push(other);
                }
            }
        }
        (0..reached.len()).filter(|at| reached[*at]).collect()
    }

    /// For each cell, the positions of the cells it waits for.
    pub(super) fn waits(&self) -> Vec<Vec<usize>> {
        let places: std::collections::HashMap<&str, usize> = (self.cells.iter().enumerate().rev())
            .map(|(at, cell)| (cell.name.as_str(), at))
            .collect();
        let waits = |cell: &Cell| {
            let names = cell.after.iter().chain(&cell.needs);
            let mut waits: Vec<usize> = names
                .filter_map(|name| places.get(name.as_str()).copied())
                .collect();
            waits.sort_unstable();
            waits.dedup();
            waits
        };
        self.cells.iter().map(waits).collect()
    }
}

/// Positions such that each comes after those it waits for, the smallest possible first; and, ascending, the rest: those that
/// wait for each other, and those that wait for them.
pub(super) fn sorted(waits: &[Vec<usize>]) -> (Vec<usize>, Vec<usize>) {
    let mut open: Vec<usize> = waits.iter().map(Vec::len).collect();
    let mut waiting = vec![Vec::new(); waits.len()];
    for (at, targets) in waits.iter().enumerate() {
        for &target in targets {
            waiting[target].push(at);
        }
    }
    let free = (0..waits.len()).filter(|at| open[*at] == 0);
    let mut free: std::collections::BTreeSet<usize> = free.collect();
    let mut order = Vec::with_capacity(waits.len());
    while let Some(at) = free.pop_first() {
        order.push(at);
        for &other in &waiting[at] {
            open[other] -= 1;
            if open[other] == 0 {
                free.insert(other);
            }
        }
    }
    let rest = (0..waits.len()).filter(|at| open[*at] > 0).collect();
    (order, rest)
}

/// Cells that wait for each other: for each strongly connected group at least one cycle, in which each waits for the next and
/// the last for the first, the smallest position first. At most `most` of them.
pub(super) fn cycles(mut waits: Vec<Vec<usize>>, most: usize) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    while found.len() < most {
        let (_, rest) = sorted(&waits);
        let Some(&first) = rest.first() else {
            break;
        };
        // Everyone who is left waits for someone who is left, so this walk comes back to where it was.
        let mut walk = vec![first];
        let cycle = loop {
            let at = walk[walk.len() - 1];
            let Some(&next) = waits[at]
                .iter()
                .find(|next| rest.binary_search(next).is_ok())
            else {
                return found;
            };
            if let Some(start) = walk.iter().position(|seen| *seen == next) {
                break walk.split_off(start);
            }
            walk.push(next);
        };
        let mut cycle = cycle;
        let least = cycle.iter().enumerate().min_by_key(|(_, at)| **at);
        let turn = least.map_or(0, |(place, _)| place);
        cycle.rotate_left(turn);
        let (last, first) = (cycle[cycle.len() - 1], cycle[0]);
        waits[last].retain(|target| *target != first);
        found.push(cycle);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comes_behind_those_it_waits_for() {
        let waits = vec![vec![2], vec![], vec![1], vec![]];
        assert_eq!(sorted(&waits), (vec![1, 2, 0, 3], vec![]));
    }

    #[test]
    fn every_knot_is_named() {
        let waits = vec![vec![1], vec![0], vec![4], vec![2], vec![3], vec![0]];
        assert_eq!(cycles(waits, 9), [vec![0, 1], vec![2, 4, 3]]);
        let shared = vec![vec![1, 2], vec![0], vec![0]];
        assert_eq!(cycles(shared, 9), [vec![0, 1], vec![0, 2]]);
        assert_eq!(cycles(vec![vec![0]], 9), [vec![0]]);
        let full: Vec<Vec<usize>> = (0..20).map(|_| (0..20).collect()).collect();
        assert_eq!(cycles(full, 7).len(), 7);
    }
}
