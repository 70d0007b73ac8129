//! The server rule: when a cell's group may use a cpu and when somebody has to look again. Integers in, integers out;
//! no clock, no file.
//!
//! It is the *deferrable server* (Strosnider, Lehoczky and Sha, "The deferrable server algorithm for enhanced aperiodic
//! responsiveness in hard real-time environments", IEEE Transactions on Computers 44(1), 1995; Bernat and Burns, "New
//! results on fixed priority aperiodic servers", RTSS 1999): a budget Q that is kept while it is not used and is full
//! again at the end of every period P, on a fixed grid. Two things differ from the textbook, and neither changes its analysis:
//!
//! - **Periods on demand.** A group that did not want the cpu when its period ended has its full budget and no period,
//!   so nobody has to wake for it. With its use begins the period of the grid in which it falls: the conservatively early
//!   instant, for the group then gets its next budget no later than in the textbook, and ends of periods remain
//!   multiples of P apart, which is all that the bound on use rests on. Groups of equal or harmonic periods get their
//!   budgets in one wake-up.
//! - **Overruns are carried over.** The enforcer of the rule looks late, and freezing takes effect late. Use beyond the
//!   budget is taken from the next one, or from several.
//!
//! # Guarantees
//! Let `O` be the longest time for which a group goes on using the cpu after its budget is used up: the lateness of the
//! look, plus the time until the freeze takes effect, plus [`Server::coarseness_ns`]. Let looks be late by `L` at most.
//!
//! - **Use.** In any window of length k·P the group uses at most (k+1)·Q + O. Budgets are given at least P apart, so the
//!   window meets k+1 of them at most; the i-th lets through Q less the debt before it plus its own overrun, and an
//!   overrun is the debt of the next one: only the last remains. (For k = 1 these are the textbook's two budgets back to
//!   back.)
//! - **Share.** From the beginning of a period on, a group uses at most n·Q + O in n periods: its share exceeds Q/P by
//!   nothing that does not vanish with time.
//! - **Supply.** A group that runs whenever it may gets at least k·Q − O in every window of length k·P + L + O, hence in
//!   every one of k·P + (P−Q) + L if O <= P−Q; for L <= P−Q, since beyond it a thaw may be too late for the whole budget.
//!   If it begins to do so, L less once, and [`FIRST_USE_NS`] less with notice. So its longest gap is P−Q + L + O if O < Q. An
//!   overrun of whole budgets costs whole periods: in general the gap is m·P − (m−1)·Q − max(0, Q−O) + L with m = ⌊O/Q⌋ + 1, which for
//!   a small budget is long: 3 ms too much of 0.125 ms in 10 ms are paid for in 240 ms. If
//!   others of higher priority take turns with it on the cpu, its budget may come at the beginning of one period and at
//!   the end of the next: 2·(P−Q) + L + O.
//! - **No loss.** A group is frozen only while its budget is used up or owed.
//!
//! Use that falls near the end of a period of which the look was late counts as use after it, as far as it can be: the
//! safe side for others. It costs a group that was not running at the end at most that lateness, once a period.

#[cfg(test)]
mod behaviour;
#[cfg(test)]
mod handover;

/// How much later than the earliest instant at which a budget can be used up a look is scheduled, ns: the time that
/// wake-ups take from the group. It spares a look that would find a few microseconds left.
const SLACK_NS: i64 = 10_000;
/// A group that ran for all but this much of the time between two looks has not slept, ns.
const DISTURBED_NS: i64 = 50_000;
/// A group without a period is noticed when it has used this much, ns.
pub const FIRST_USE_NS: i64 = 20_000;
/// Without notice of use, looks are no closer than a hundredth of the period.
const STEPS_IN_PERIOD: i64 = 100;
/// The most budgets that a group owes for its use while nobody held it. The loss of others meanwhile stays; making the
/// group pay for all of it would keep it off the cpu for up to P/Q times as long. A group can owe this much after any
/// long stall, and pays for it within five periods.
pub const MOST_OWED: i64 = 4;
/// The longest period, ns: 1,000 s. All sums below stay far from overflow.
const LONGEST_PERIOD_NS: i64 = 1_000_000_000_000;
/// The shortest period, ns, that a thread can hold: 100 us.
const SHORTEST_PERIOD_NS: i64 = 100_000;

/// A budget that cannot be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReservationError {
    /// The period is out of range.
    #[error("a period of {0} ns; the freezer holds periods from 100 us to 1,000 s")]
    Period(i64),
    /// No budget, or more than the period.
    #[error(
        "a budget of {budget_ns} ns in a period of {period_ns} ns; it must be above 0 and at most the period"
    )]
    Budget {
        /// The budget, ns.
        budget_ns: i64,
        /// The period, ns.
        period_ns: i64,
    },
}

/// Budget Q every period P on one cpu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    budget_ns: i64,
    period_ns: i64,
}

impl Reservation {
    /// A budget of `budget_ns` in every `period_ns`, both ns.
    ///
    /// # Errors
    /// Unless 100 us <= period <= 1,000 s and 0 < budget <= period.
    pub fn new(budget_ns: i64, period_ns: i64) -> Result<Reservation, ReservationError> {
        if !(SHORTEST_PERIOD_NS..=LONGEST_PERIOD_NS).contains(&period_ns) {
            return Err(ReservationError::Period(period_ns));
        }
        if !(1..=period_ns).contains(&budget_ns) {
            return Err(ReservationError::Budget {
                budget_ns,
                period_ns,
            });
        }
        Ok(Reservation {
            budget_ns,
            period_ns,
        })
    }

    /// The same of times without a sign.
    ///
    /// # Errors
    /// As [`Reservation::new`].
    pub fn of_unsigned(budget_ns: u64, period_ns: u64) -> Result<Reservation, ReservationError> {
        // A time that does not fit is longer than any period, and refused as such.
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        Reservation::new(signed(budget_ns), signed(period_ns))
    }

    /// Q, ns, above 0 and at most the period.
    pub fn budget_ns(self) -> i64 {
        self.budget_ns
    }

    /// P, ns.
    pub fn period_ns(self) -> i64 {
        self.period_ns
    }
}

/// The events that wake the enforcer of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// The clock only: use is found by looking.
    Clock,
    /// The clock, and the kernel when the group has used a given time.
    Use,
}

/// The decision after a look, and when the next one is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Whether the group may run.
    pub thawed: bool,
    /// Look again at this instant at the latest, ns; `None` for a group without a period, of whose use notice comes.
    pub look_at_ns: Option<i64>,
    /// Look again when the group has used this much more, ns; never with [`Notice::Clock`].
    pub look_after_use_ns: Option<i64>,
    /// The periods that ended since the last look, if any did.
    pub ended: Option<Ended>,
}

/// The state of a server, kept where another one can continue from it ([`Server::resume`]); all ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct State {
    /// Budget that is left; below 0: a debt.
    pub left_ns: i64,
    /// The budget with which the running period began; not below 0.
    pub began_with_ns: i64,
    /// When the running period ends; `None` without one.
    pub end_ns: Option<i64>,
    /// Charged to the running period so far.
    pub spent_ns: i64,
    /// The instant of the last look.
    pub looked_ns: i64,
    /// The group's cpu time then.
    pub used_ns: i64,
}

/// A group's use in periods that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// How many ended; more than one only if a look was late by a whole period, or a debt took several.
    pub periods: u64,
    /// Cpu time charged to them, ns.
    pub used_ns: i64,
    /// The largest use beyond the budget of one of them (after the debt that it had to pay), ns; 0: none.
    pub overrun_ns: i64,
    /// Whether the budget of the last was used up.
    pub exhausted: bool,
}

/// The server of one group on one cpu. See the module for its guarantees.
#[derive(Debug, Clone)]
pub struct Server {
    reservation: Reservation,
    notice: Notice,
    /// An instant at which a period of the grid begins, ns.
    grid_ns: i64,
    state: State,
}

impl Server {
    /// The server of a group that is thawed at `now_ns`, has used `used_ns` of cpu time until then, and begins with its full
    /// budget. Its periods begin at `grid_ns` and multiples of the period before and after it; all ns.
    pub fn new(
        reservation: Reservation,
        notice: Notice,
        grid_ns: i64,
        now_ns: i64,
        used_ns: i64,
    ) -> Server {
        Server {
            reservation,
            notice,
            grid_ns,
            state: State {
                left_ns: reservation.budget_ns,
                began_with_ns: reservation.budget_ns,
                end_ns: None,
                spent_ns: 0,
                looked_ns: now_ns,
                used_ns,
            },
        }
    }

    /// The server that another one was in this state. Its next look is late by the time that has passed since: the
    /// group's use meanwhile is charged as by any late look, so no overrun is forgotten.
    pub fn resume(reservation: Reservation, notice: Notice, grid_ns: i64, state: State) -> Server {
        Server {
            reservation,
            notice,
            grid_ns,
            state,
        }
    }

    /// Its state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Holds the group to another budget and period from `now_ns` on, right after a look. Nothing is given at once: the
    /// rest of the running period's budget remains, but no more than the new budget, and a debt remains. The next budget
    /// comes with the first period of the new grid that begins at least one new period after the last budget was given, so
    /// two budgets are never closer than the new period.
    pub fn change(&mut self, reservation: Reservation, now_ns: i64) {
        let given_ns = self
            .state
            .end_ns
            .map(|end_ns| end_ns - self.reservation.period_ns);
        self.reservation = reservation;
        let Reservation {
            budget_ns,
            period_ns,
        } = reservation;
        let Some(given_ns) = given_ns else {
            // Without a period a group has its full budget.
            (self.state.left_ns, self.state.began_with_ns) = (budget_ns, budget_ns);
            return;
        };
        self.state.left_ns = self.state.left_ns.min(budget_ns);
        self.state.began_with_ns = self.state.spent_ns + self.state.left_ns.max(0);
        let earliest_ns = (given_ns + period_ns).max(now_ns + 1);
        let beyond_ns = (earliest_ns - self.grid_ns).rem_euclid(period_ns);
        self.state.end_ns = Some(match beyond_ns {
            0 => earliest_ns,
            _ => earliest_ns - beyond_ns + period_ns,
        });
    }

    /// Waives the debt beyond [`MOST_OWED`] budgets; returns that, ns. Right after a look, for a group that nobody held for a time; the
    /// next look decides by it.
    pub fn waive(&mut self) -> i64 {
        let most_ns = MOST_OWED * self.reservation.budget_ns;
        let waived_ns = (-self.state.left_ns - most_ns).max(0);
        self.state.left_ns += waived_ns;
        waived_ns
    }

    /// Budget and period.
    pub fn reservation(&self) -> Reservation {
        self.reservation
    }

    /// Budget that was left at the last look, ns; at or below 0 the group is frozen.
    pub fn left_ns(&self) -> i64 {
        self.state.left_ns
    }

    /// When the running period ends, ns; `None` for a group that does not want the cpu and has its full budget.
    pub fn period_end_ns(&self) -> Option<i64> {
        self.state.end_ns
    }

    /// How much later than a budget is used up a look may be meant to be, ns.
    pub fn coarseness_ns(&self) -> i64 {
        match self.notice {
            Notice::Use => SLACK_NS,
            Notice::Clock => SLACK_NS.max(self.reservation.period_ns / STEPS_IN_PERIOD),
        }
    }

    /// Takes a look: `now_ns` on the clock, `used_ns` of cpu time that the group has used so far on this cpu. Neither runs backwards; a value
    /// below the last one counts as the last one.
    pub fn look(&mut self, now_ns: i64, used_ns: i64) -> Decision {
        let period_ns = self.reservation.period_ns;
        let now_ns = now_ns.max(self.state.looked_ns);
        let fresh_ns = (used_ns - self.state.used_ns).max(0);
        let was_frozen = self.state.left_ns <= 0;
        // It could run since the last look, in the same period, and did not all the time.
        let slept = !was_frozen
            && self.state.end_ns.is_some_and(|end_ns| now_ns < end_ns)
            && fresh_ns + DISTURBED_NS < now_ns - self.state.looked_ns;
        if self.state.end_ns.is_none() && fresh_ns > 0 {
            // By the clock, it may have begun right after the last look. With notice it began when it can have
            // at the latest, or used less than notice takes before; that it may lose, once.
            let began_ns = match self.notice {
                Notice::Use => (now_ns - fresh_ns).max(self.state.looked_ns),
                Notice::Clock => self.state.looked_ns,
            };
            let into_period_ns = (began_ns - self.grid_ns).rem_euclid(period_ns);
            self.state.end_ns = Some(began_ns - into_period_ns + period_ns);
        }
        let mut ended = None;
        match self.state.end_ns {
            Some(end_ns) if end_ns <= now_ns => {
                ended = Some(self.pass(end_ns, now_ns, fresh_ns));
                let idle = fresh_ns == 0 && !was_frozen;
                if idle && self.state.left_ns == self.reservation.budget_ns {
                    self.state.end_ns = None;
                }
            }
            _ => self.charge(fresh_ns),
        }
        self.state.looked_ns = now_ns;
        self.state.used_ns = self.state.used_ns.max(used_ns);
        let (look_at_ns, look_after_use_ns) = self.next(now_ns, slept);
        Decision {
            thawed: self.state.left_ns > 0,
            look_at_ns,
            look_after_use_ns,
            ended,
        }
    }

    /// Charges `fresh_ns` of use that lies before `now_ns`, when the running period ended at `end_ns` or earlier ones after it did.
    fn pass(&mut self, end_ns: i64, now_ns: i64, fresh_ns: i64) -> Ended {
        let period_ns = self.reservation.period_ns;
        let mut after_ns = fresh_ns.min(now_ns - end_ns);
        self.charge(fresh_ns - after_ns);
        let periods = (now_ns - end_ns) / period_ns + 1;
        let last_began_ns = end_ns + (periods - 1) * period_ns;
        // As late as it can be: the last period first, then those before it, each to the full.
        let in_last_ns = after_ns.min(now_ns - last_began_ns);
        after_ns -= in_last_ns;
        let used_up_ns = after_ns / period_ns + i64::from(after_ns % period_ns > 0);
        let mut ended = self.close();
        self.refill(periods - 1 - used_up_ns);
        for place in 0..used_up_ns {
            self.refill(1);
            // The first of them takes the part of a period.
            let whole_ns = (used_up_ns - 1 - place) * period_ns;
            let here_ns = after_ns - whole_ns.min(after_ns);
            after_ns -= here_ns;
            self.charge(here_ns);
            let next = self.close();
            ended.used_ns += next.used_ns;
            ended.overrun_ns = ended.overrun_ns.max(next.overrun_ns);
            ended.exhausted = next.exhausted;
        }
        self.refill(1);
        self.charge(in_last_ns);
        self.state.end_ns = Some(last_began_ns + period_ns);
        ended.periods = periods.unsigned_abs();
        ended
    }

    fn charge(&mut self, used_ns: i64) {
        self.state.left_ns -= used_ns;
        self.state.spent_ns += used_ns;
    }

    fn close(&self) -> Ended {
        Ended {
            periods: 1,
            used_ns: self.state.spent_ns,
            overrun_ns: (self.state.spent_ns - self.state.began_with_ns).max(0),
            exhausted: self.state.left_ns <= 0,
        }
    }

    /// Gives the budgets of `periods` that begin one after the other without use between; 0: none.
    fn refill(&mut self, periods: i64) {
        if periods <= 0 {
            return;
        }
        let budget_ns = self.reservation.budget_ns;
        self.state.left_ns = match self.state.left_ns {
            0.. => budget_ns,
            debt_ns => (debt_ns + periods.saturating_mul(budget_ns)).min(budget_ns),
        };
        self.state.began_with_ns = self.state.left_ns.max(0);
        self.state.spent_ns = 0;
    }

    fn next(&self, now_ns: i64, slept: bool) -> (Option<i64>, Option<i64>) {
        let Reservation {
            budget_ns,
            period_ns,
        } = self.reservation;
        let Some(end_ns) = self.state.end_ns else {
            return match self.notice {
                Notice::Use => (None, Some(FIRST_USE_NS.min(budget_ns))),
                Notice::Clock => (Some(now_ns + budget_ns + SLACK_NS), None),
            };
        };
        if self.state.left_ns <= 0 {
            // The first end at which the debt is paid and something is left.
            let periods = -self.state.left_ns / budget_ns;
            return (Some(end_ns + periods * period_ns), None);
        }
        // Once a group has slept, its budget may last long after the earliest instant at which it can be used up.
        match self.notice {
            Notice::Use if slept => (Some(end_ns), Some(self.state.left_ns)),
            Notice::Clock if slept => {
                let step_ns = self.coarseness_ns().max(self.state.left_ns + SLACK_NS);
                (Some(end_ns.min(now_ns + step_ns)), None)
            }
            _ => (
                Some(end_ns.min(now_ns + self.state.left_ns + SLACK_NS)),
                None,
            ),
        }
    }
}
