//! How long a simulation must run to have seen everything.

use timecell_analysis::Task;

/// Every period of the sets for which exact answers are sought divides this.
pub const REPEATS: u64 = 120;

/// How long to watch tasks that are released together at their densest, supplied with `rate` ticks every [`REPEATS`]
/// (after `wait` ticks without any), so that the longest response, or a miss if there can be one, is seen.
///
/// Below the rate all work released is done once supply has caught up with the work that came at once; above it the work left
/// outgrows every deadline; at it everything repeats. That is so of each level of priority, hence the longest counts.
pub fn ticks_to_see(tasks: &[Task], rate: u64, wait: u64) -> u64 {
    let (mut load, mut at_once, mut longest) = (0u64, wait, 0);
    for task in tasks {
        assert_eq!(REPEATS % task.period, 0);
        load += REPEATS / task.period * task.wcet;
        at_once += task.wcet * (2 + task.jitter / task.period) + task.deadline + task.jitter;
        longest = longest.max(match load.abs_diff(rate) {
            0 => 0,
            excess => REPEATS * at_once / excess,
        });
    }
    longest + at_once + 3 * REPEATS
}
