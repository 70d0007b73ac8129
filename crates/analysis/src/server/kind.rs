//! The kinds of servers, and when each gets new budget.

use serde::{Deserialize, Serialize};

use crate::{MAX_NS, Ns};

/// A server's use of budget that it does not need, and the time of its refill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Refilled every period, keeps its budget until the end of the period (Lehoczky, Sha and Strosnider, RTSS 1987).
    Deferrable,
    /// Refilled every period; loses its budget as soon as it finds nothing to do.
    Polling,
    /// Each part of the budget comes back one period after it became usable (Sprunt, Sha and Lehoczky, Real-Time
    /// Systems 1(1), 1989), and parts that came back at different times are kept apart (as Stanovich, Baker, Wang and
    /// Gonzalez Harbour fix it, RTAS 2010). Where they are merged, as in POSIX, part of the budget comes back too
    /// early and the server takes more than a task of its size: such a server is no `Sporadic` here.
    Sporadic,
    /// Refilled every period; idles its budget away when it finds nothing to do (Davis and Burns, RTSS 2005).
    Periodic,
    /// Constant bandwidth server with hard reservation, as `SCHED_DEADLINE`: an exhausted budget comes back at the
    /// server's deadline (Abeni and Buttazzo, RTSS 1998; wake-up rule of Linux). Such servers are dispatched by EDF
    /// among themselves and run above every other server, as the deadline class of Linux does.
    ConstantBandwidth,
}

/// How the refills of several servers lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refill {
    /// Each at instants of its own: nothing is assumed about their phases.
    Apart,
    /// All at the same instants, which needs equal periods: the lock-step case, a group quota with one global tick.
    Together,
}

/// A server: `budget` every `period`, at a fixed priority given by its place in a list (highest first).
///
/// Times in ns; 1 <= budget <= period <= [`MAX_NS`], 1 <= deadline <= period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Server {
    /// When budget is kept, lost and refilled.
    pub kind: Kind,
    /// Budget C_S.
    pub budget: Ns,
    /// Period T_S.
    pub period: Ns,
    /// How long after a refill, at the latest, the whole budget must have been there; usually T_S.
    pub deadline: Ns,
    /// The longest time for which lower priorities can delay the server, once per refill, 0 to [`MAX_NS`].
    pub blocking: Ns,
}

/// Why the parameters of a server are invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// A time that must be positive is 0.
    #[error("the {0} of the server is 0; it must be at least 1 ns")]
    Zero(&'static str),
    /// A time is larger than [`MAX_NS`].
    #[error(
        "the {0} of the server, {1} ns, is too long; the longest time is {MAX_NS} ns (36 years)"
    )]
    TooLong(&'static str, Ns),
    /// More budget than a cpu has.
    #[error("the budget of {budget} ns exceeds the period of {period} ns")]
    BeyondPeriod {
        /// Budget, ns.
        budget: Ns,
        /// Period, ns.
        period: Ns,
    },
    /// A deadline after the next refill.
    #[error("the deadline of {deadline} ns exceeds the period of {period} ns")]
    LateDeadline {
        /// Deadline, ns.
        deadline: Ns,
        /// Period, ns.
        period: Ns,
    },
}

impl Server {
    /// A server that nothing below delays.
    ///
    /// ```
    /// use timecell_analysis::server::{Kind, Server};
    /// let server = Server::new(Kind::Deferrable, 3_000_000, 10_000_000);
    /// assert_eq!(server.jitter(), 7_000_000);
    /// assert_eq!(Server::new(Kind::Sporadic, 3_000_000, 10_000_000).jitter(), 0);
    /// ```
    pub const fn new(kind: Kind, budget: Ns, period: Ns) -> Server {
        Server {
            kind,
            budget,
            period,
            deadline: period,
            blocking: 0,
        }
    }

    /// The same server that must have had its budget so long after each refill.
    ///
    /// ```
    /// use timecell_analysis::server::{Kind, Refill, Server, ServerSupply};
    /// let high = Server::new(Kind::Sporadic, 4, 10);
    /// let low = Server::new(Kind::Sporadic, 3, 10);
    /// assert!(ServerSupply::new(&[high, low.due(7)], 1, Refill::Apart).is_ok());
    /// assert!(ServerSupply::new(&[high, low.due(6)], 1, Refill::Apart).is_err());
    /// ```
    #[must_use]
    pub const fn due(self, deadline: Ns) -> Server {
        Server { deadline, ..self }
    }

    /// The same server with blocking.
    ///
    /// ```
    /// use timecell_analysis::server::{Kind, Refill, Server, ServerSupply};
    ///
    /// // 4 of blocking and 3 of budget: done in time every 10, not every 6.
    /// assert!(ServerSupply::new(&[Server::new(Kind::Periodic, 3, 10).blocked(4)], 0, Refill::Apart).is_ok());
    /// assert!(ServerSupply::new(&[Server::new(Kind::Periodic, 3, 6).blocked(4)], 0, Refill::Apart).is_err());
    /// ```
    #[must_use]
    pub const fn blocked(self, blocking: Ns) -> Server {
        Server { blocking, ..self }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// Names the time that is out of range.
    ///
    /// ```
    /// use timecell_analysis::server::{Kind, Server, ServerError};
    ///
    /// assert_eq!(Server::new(Kind::Polling, 10, 10).check(), Ok(()));
    /// let refused = Server::new(Kind::Polling, 11, 10).check();
    /// assert_eq!(refused, Err(ServerError::BeyondPeriod { budget: 11, period: 10 }));
    /// ```
    pub fn check(&self) -> Result<(), ServerError> {
        for (name, time) in [
            ("budget", self.budget),
            ("period", self.period),
            ("deadline", self.deadline),
        ] {
            if time == 0 {
                return Err(ServerError::Zero(name));
            }
        }
        for (name, time) in [
            ("budget", self.budget),
            ("period", self.period),
            ("blocking", self.blocking),
        ] {
            if time > MAX_NS {
                return Err(ServerError::TooLong(name, time));
            }
        }
        if self.budget > self.period {
            return Err(ServerError::BeyondPeriod {
                budget: self.budget,
                period: self.period,
            });
        }
        if self.deadline > self.period {
            return Err(ServerError::LateDeadline {
                deadline: self.deadline,
                period: self.period,
            });
        }
        Ok(())
    }

    /// Jitter J_X with which this server interferes with lower priorities, as a task of wcet `budget` and
    /// period `period` would: T - C for servers that can keep their budget to the end of a period and use the next
    /// one at once, 0 for the others (Davis and Burns, RTSS 2005, section 3; Bernat and Burns, RTSS 1999).
    ///
    /// ```
    /// use timecell_analysis::server::{Kind, Server};
    ///
    /// assert_eq!(Server::new(Kind::Deferrable, 2, 7).jitter(), 5);
    /// assert_eq!(Server::new(Kind::Periodic, 2, 7).jitter(), 0);
    /// ```
    pub const fn jitter(&self) -> Ns {
        match self.kind {
            Kind::Deferrable | Kind::ConstantBandwidth => self.period.saturating_sub(self.budget),
            Kind::Polling | Kind::Sporadic | Kind::Periodic => 0,
        }
    }

    /// The longest wait of work that arrives at any instant for the next refill: T - C, since the budget must have
    /// been used first, and T for a polling server, which loses it without use.
    ///
    /// (Davis and Burns, RTSS 2005, section 4.) In ns.
    ///
    /// ```
    /// use timecell_analysis::server::{Kind, Server};
    ///
    /// assert_eq!(Server::new(Kind::Deferrable, 3, 10).gap(), 7);
    /// assert_eq!(Server::new(Kind::Polling, 3, 10).gap(), 10);
    /// ```
    pub const fn gap(&self) -> Ns {
        match self.kind {
            Kind::Polling => self.period,
            _ => self.period.saturating_sub(self.budget),
        }
    }

    /// Whether refills come at fixed instants, so that a task can be bound to them.
    pub(crate) const fn is_refilled_periodically(&self) -> bool {
        matches!(self.kind, Kind::Deferrable | Kind::Polling | Kind::Periodic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_checked() {
        let check = |budget, period| Server::new(Kind::Periodic, budget, period).check();
        assert_eq!(check(1, 1), Ok(()));
        assert_eq!(check(0, 1), Err(ServerError::Zero("budget")));
        assert_eq!(
            check(3, 2),
            Err(ServerError::BeyondPeriod {
                budget: 3,
                period: 2
            })
        );
        assert_eq!(
            Server::new(Kind::Periodic, 1, 2).due(3).check(),
            Err(ServerError::LateDeadline {
                deadline: 3,
                period: 2
            })
        );
        assert_eq!(
            check(1, u64::MAX),
            Err(ServerError::TooLong("period", u64::MAX))
        );
    }

    #[test]
    fn a_polling_server_waits_longest() {
        assert_eq!(Server::new(Kind::Polling, 2, 5).gap(), 5);
        assert_eq!(Server::new(Kind::Periodic, 2, 5).gap(), 3);
    }
}
