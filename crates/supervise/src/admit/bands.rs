//! Assigns priorities to cells that name none.

use model::mission::{Band, Limits};

use super::asked::Asked;

/// The most urgent priority that is given to a cell whose file does not name one: above are those of the kernel's threads and
/// of the supervisor.
const HIGHEST: u8 = 89;

/// Gives priorities to the FIFO cells that have none: the shorter the deadline, the higher (deadline-monotonic: Leung and
/// Whitehead, Performance Evaluation 2(4), 1982), as many as a cell has tasks, none that another cell has.
///
/// Nor one of `others`, which other missions have, as long as there are enough; otherwise admission keeps two of one
/// priority off the same cpu.
///
/// Returns the cells for which none were left.
pub(super) fn give(cells: &mut [Asked], others: &[Band]) -> Vec<usize> {
    let before: Vec<Option<Band>> = cells.iter().map(|cell| cell.band).collect();
    let without = give_beside(cells, others);
    if without.is_empty() || others.is_empty() {
        return without;
    }
    for (cell, band) in cells.iter_mut().zip(before) {
        cell.band = band;
    }
    give_beside(cells, &[])
}

fn give_beside(cells: &mut [Asked], others: &[Band]) -> Vec<usize> {
    let own = cells.iter().filter_map(|cell| cell.band);
    let mut taken: Vec<Band> = own.chain(others.iter().copied()).collect();
    let mut open: Vec<usize> = (0..cells.len())
        .filter(|&at| {
            cells[at].band.is_none() && cells[at].class == model::mission::CellClass::Fifo
        })
        .collect();
    open.sort_by_key(|&at| (cells[at].urgency(), cells[at].at));
    let least = u8::try_from(*Limits::PRIORITY.start()).unwrap_or(1);
    let mut below = HIGHEST + 1;
    let mut without = Vec::new();
    for at in open {
        let count = cells[at].priorities();
        match next(&taken, below, count, least) {
            Some(band) => {
                below = band.lowest;
                taken.push(band);
                cells[at].band = Some(band);
            }
            None => without.push(at),
        }
    }
    without
}

/// The highest free band of this many priorities below `below`.
fn next(taken: &[Band], below: u8, count: usize, least: u8) -> Option<Band> {
    let count = u8::try_from(count).ok()?;
    let mut highest = below.checked_sub(1)?;
    loop {
        let lowest = highest
            .checked_sub(count - 1)
            .filter(|lowest| *lowest >= least)?;
        let band = Band { lowest, highest };
        match taken
            .iter()
            .filter(|other| other.overlaps(band))
            .map(|other| other.lowest)
            .min()
        {
            None => return Some(band),
            Some(lowest) => highest = lowest.checked_sub(1)?,
        }
    }
}

/// Priorities of a cell's threads, the most urgent task first: downwards from the top of the band; where it has fewer than
/// tasks, the last share its lowest.
pub(super) fn of_tasks(band: Band, tasks: usize) -> Vec<u8> {
    (0..tasks)
        .map(|place| {
            let place = u8::try_from(place).unwrap_or(u8::MAX);
            band.highest.saturating_sub(place).max(band.lowest)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_bands_are_found_from_the_top() {
        let band = |lowest, highest| Band { lowest, highest };
        assert_eq!(next(&[], 90, 3, 1), Some(band(87, 89)));
        assert_eq!(next(&[band(85, 88)], 90, 3, 1), Some(band(82, 84)));
        assert_eq!(next(&[band(2, 88)], 90, 1, 1), Some(band(89, 89)));
        assert_eq!(next(&[band(2, 88)], 90, 2, 1), None);
        assert_eq!(next(&[], 90, 300, 1), None);
        assert_eq!(of_tasks(band(4, 6), 4), [6, 5, 4, 4]);
    }
}
