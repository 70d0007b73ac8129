//! The data of the picture of demand and supply in one cell; it is drawn elsewhere.

/// How demand and supply compare at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// The demand is more than the supply: a deadline is missed.
    Missed,
    /// The demand counted is more than the supply, but whether a deadline is missed is not decided.
    Doubt,
    /// The demand is met: all of the work is done.
    Met,
    /// The margin of supply over demand is smallest here.
    Nearest,
}

/// An instant to point out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The instant, ns.
    pub instant: u64,
    /// Demand there, ns.
    pub demand: u64,
    /// Supply there, ns.
    pub supply: u64,
    /// How the two compare.
    pub touch: Touch,
}

/// Demand against supply over one interval, all in ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// The heading, such as `cell control: task loop under fp`.
    pub title: String,
    /// The work that the demand counts.
    pub demand_of: String,
    /// The source of the supply.
    pub supply_of: String,
    /// The label of the deadlines, such as `deadline, less 1 ms of jitter`.
    pub deadlines_of: String,
    /// Length of the interval.
    pub until: u64,
    /// The demand's steps: the demand from each instant on.
    pub demand: Vec<(u64, u64)>,
    /// The supply's corners, joined by straight lines.
    pub supply: Vec<(u64, u64)>,
    /// Deadlines; that of the mark is drawn as a vertical line, and so are the others unless they are many.
    pub deadlines: Vec<u64>,
    /// The witness, or where the demand is met.
    pub mark: Option<Mark>,
}
