//! Assigns priorities to cells that name none.

use model::mission::{Band, Limits};

use super::asked::Asked;

/// The most urgent priority that is given to a cell whose file does not name one: above are those of the kernel's threads and
/// of the supervisor.
const HIGHEST: u8 = 89;

/// Gives priorities to the FIFO cells that have none: those that their programs use themselves where they are free, to the others the
/// higher ones the shorter the deadline (deadline-monotonic: Leung and
/// Whitehead, Performance Evaluation 2(4), 1982), as many as a cell has tasks; none that another cell has. One more below them, for threads
/// that are no task's, where that changes the order of no two cells.
///
/// Nor one of `others`, which other missions have, as long as there are enough; otherwise admission keeps two of one
/// priority off the same cpu.
///
/// Returns the cells for which none were left.
pub(super) fn give(cells: &mut [Asked], others: &[Band]) -> Vec<usize> {
    let before: Vec<Option<Band>> = bands(cells);
    for others in [others, &[]] {
        set(cells, &before);
        if !give_beside(cells, others, false).is_empty() {
            continue;
        }
        let tight = bands(cells);
        set(cells, &before);
        let without = give_beside(cells, others, true);
        if !without.is_empty() || order(&bands(cells), others) != order(&tight, others) {
            set(cells, &tight);
        }
        return Vec::new();
    }
    set(cells, &before);
    give_beside(cells, &[], false)
}

fn bands(cells: &[Asked]) -> Vec<Option<Band>> {
    cells.iter().map(|cell| cell.band).collect()
}

fn set(cells: &mut [Asked], bands: &[Option<Band>]) {
    for (cell, band) in cells.iter_mut().zip(bands) {
        cell.band = *band;
    }
}

/// The places of all bands, the most urgent first.
fn order(own: &[Option<Band>], others: &[Band]) -> Vec<usize> {
    let all = own.iter().copied().chain(others.iter().copied().map(Some));
    let mut all: Vec<(usize, Option<Band>)> = all.enumerate().collect();
    all.sort_by_key(|(place, band)| (std::cmp::Reverse(band.map(|band| band.highest)), *place));
    all.into_iter().map(|(place, _)| place).collect()
}

fn give_beside(cells: &mut [Asked], others: &[Band], spare: bool) -> Vec<usize> {
    for at in 0..cells.len() {
        let band = cells[at]
            .wished
            .filter(|_| cells[at].band.is_none() && is_open(&cells[at]));
        let fits = |band: &Band| {
            let own = (cells.iter().enumerate())
                .filter(|(other, cell)| *other != at && cell.may_meet(&cells[at]));
            let own = own.filter_map(|(_, cell)| cell.band);
            i64::from(band.highest) < *Limits::PRIORITY.end()
                && !own
                    .chain(others.iter().copied())
                    .any(|taken| taken.overlaps(*band))
        };
        let roomy = |band: Band| Band {
            lowest: band.lowest.saturating_sub(1).max(1),
            ..band
        };
        let tried = band.map(roomy).filter(|_| spare).into_iter().chain(band);
        let found = tried.into_iter().find(fits);
        cells[at].band = cells[at].band.or(found);
    }
    let own = cells.iter().filter_map(|cell| cell.band);
    let mut taken: Vec<Band> = own.chain(others.iter().copied()).collect();
    let mut open: Vec<usize> = (0..cells.len())
        .filter(|&at| cells[at].band.is_none() && is_open(&cells[at]))
        .collect();
    open.sort_by_key(|&at| (cells[at].urgency(), cells[at].at));
    let least = u8::try_from(*Limits::PRIORITY.start()).unwrap_or(1);
    let mut below = HIGHEST + 1;
    let mut without = Vec::new();
    for at in open {
        let count = cells[at].priorities(spare);
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

fn is_open(cell: &Asked) -> bool {
    cell.class == model::mission::CellClass::Fifo
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

/// Priorities of a cell's threads, the most urgent task first: those that the program uses (`declared`) if the band has them all, else
/// downwards from the top of the band, which has enough.
pub(super) fn of_tasks(band: Band, declared: Option<&[u8]>, tasks: usize) -> Vec<u8> {
    let own = declared.filter(|declared| (declared.iter()).all(|&own| band.holds(own.into())));
    if let Some(own) = own {
        return own.to_vec();
    }
    (0..tasks)
        .map(|place| {
            let place = u8::try_from(place).unwrap_or(u8::MAX);
            band.highest.saturating_sub(place)
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
        assert_eq!(of_tasks(band(4, 6), None, 3), [6, 5, 4]);
        assert_eq!(of_tasks(band(4, 9), Some(&[9, 5]), 2), [9, 5]);
        assert_eq!(of_tasks(band(4, 9), Some(&[99, 5]), 2), [9, 8]);
    }
}
