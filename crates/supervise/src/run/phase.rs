//! The state of a version of a cell, and its transitions. Decided here and carried out by [`super::lives`]: no clock, no
//! process and no file is touched.

use crate::cause::{Cause, Reason, is_kill};
use crate::end::End;

/// How a program ends that does not in its time.
const KILLED: End = End::Killed {
    signal: libc::SIGKILL,
    core_dumped: false,
};

/// The next step once nothing is left of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing, until somebody wants it to run again.
    Stays,
    /// It is started once those that it comes after are ready and its turn has come.
    Waits,
    /// It is restarted at this instant, CLOCK_MONOTONIC ns.
    Due(i64),
}

/// Where a version of a cell is in its life; `L` is the running instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase<L> {
    /// Nothing is there.
    Down(Next),
    /// It is being made, since this instant, CLOCK_MONOTONIC ns; it may be that it is to end as soon as it runs, and that something follows.
    Starting(i64, Option<(Ask, Next)>),
    /// It runs, and may.
    Running(L),
    /// It runs yet, and is to end.
    Ending(L, Ending, Next),
    /// Its program has ended or is killed now, and all that was made for it is being removed.
    Removing(Gone, Next),
}

/// How a cell is asked to end: the signal, and the time to do so, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) signal: i32,
    pub(super) patience_ns: i64,
}

/// Why a cell that runs is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// It was asked to at the first of these instants, and is killed at the second, CLOCK_MONOTONIC ns.
    Asked(i64, i64),
    /// It is killed for this as soon as it is looked at; whether it was asked to end before.
    Killed(Reason, bool),
    /// It was killed for this, and nobody has asked for its end: the next step is its policy's.
    Dies(Reason),
}

/// How a program has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gone {
    pub(super) end: End,
    /// Why, if known.
    pub(super) cause: Option<Cause>,
    /// Whether that was asked for: then neither rules nor a policy have a say in the next step.
    pub(super) asked: bool,
}

/// An event in the life of a version of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event<L> {
    /// This is to follow the present life; nothing follows one that runs and may.
    Follow(Next),
    /// Its turn has come.
    Start,
    /// It was made, and runs.
    Made(L),
    /// It could not be made: why, a sentence.
    NotMade(String),
    /// It is asked to end; one that was asked before keeps to its time.
    AskEnd(Ask),
    /// It is to be killed for this.
    Kill(Reason),
    /// It has not become ready in its time.
    NotReady(Reason),
    /// Its program has ended; `memory`: the kernel may have killed it for that.
    Ended { end: End, memory: Option<Cause> },
    /// It was looked at, and its program runs; `killed_as_asked`: it was killed since it does not handle the signal, and takes long to die.
    Runs { killed_as_asked: bool },
    /// Nothing is left of it; how it ended, where only its engine could tell.
    Removed(Option<End>),
}

/// The actions after an event, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect<L> {
    /// It is made, beside the loop.
    Make,
    /// It is watched and on record; it was begun at this instant, CLOCK_MONOTONIC ns.
    Begin(i64),
    /// It is on record and told why it could not be made.
    TellNotMade(String),
    /// Rules and policy decide the next step after that.
    JudgeNotMade,
    /// This signal asks it to end, and its rules rest.
    Ask(i32),
    /// It is killed.
    Kill,
    /// It is removed with all that was made for it, beside the loop.
    Remove(L),
    /// Its end is on record and told.
    TellEnd(Gone),
    /// Rules and policy decide the next step after this end.
    Judge(End),
    /// Nothing of it is watched any more.
    Forget,
}

impl Ask {
    fn at(self, now_ns: i64) -> Ending {
        Ending::Asked(now_ns, now_ns.saturating_add(self.patience_ns))
    }
}

impl Ending {
    /// It is to be killed; the first reason counts.
    fn killed(self, why: Reason) -> Ending {
        match self {
            Ending::Asked(..) => Ending::Killed(why, true),
            Ending::Dies(why) => Ending::Killed(why, false),
            killed @ Ending::Killed(..) => killed,
        }
    }

    /// Why a program has ended like this that was to end, and whether that was asked for.
    fn explains(self, end: End, memory: Option<Cause>) -> Gone {
        let killed = |reason| is_kill(end).then_some(Cause::Supervisor { reason });
        let (cause, asked) = match self {
            Ending::Asked(..) => (Some(Cause::Asked), true),
            Ending::Killed(why, true) => (killed(why).or(Some(Cause::Asked)), true),
            Ending::Killed(why, false) => (killed(why), true),
            Ending::Dies(why) => (killed(why), false),
        };
        let cause = cause.or(memory);
        Gone { end, cause, asked }
    }

    /// Why it is killed now that its program runs; else it has time.
    fn over(self, killed_as_asked: bool, now_ns: i64) -> Result<Cause, Ending> {
        let reason = match self {
            Ending::Asked(_, until_ns) if until_ns <= now_ns && killed_as_asked => {
                return Ok(Cause::Asked);
            }
            Ending::Asked(since_ns, until_ns) if until_ns <= now_ns => {
                let waited_ns = until_ns - since_ns;
                Reason::StopTimeout { waited_ns }
            }
            Ending::Killed(why, _) => why,
            has_time => return Err(has_time),
        };
        Ok(Cause::Supervisor { reason })
    }
}

impl<L> Phase<L> {
    /// Processes an event at this instant of CLOCK_MONOTONIC. An event that cannot happen in a phase changes nothing.
    pub(super) fn decide(self, event: Event<L>, now_ns: i64) -> (Phase<L>, Vec<Effect<L>>) {
        use Phase::{Down, Ending as Ends, Removing, Running, Starting};
        let stays = Next::Stays;
        let remove = |live, gone, next| (Removing(gone, next), vec![Effect::Remove(live)]);
        match (self, event) {
            (Down(_), Event::Follow(next)) => (Down(next), vec![]),
            (Down(Next::Waits | Next::Due(_)), Event::Start) => {
                (Starting(now_ns, None), vec![Effect::Make])
            }
            (Starting(began_ns, Some((ask, _))), Event::Follow(next)) => {
                (Starting(began_ns, Some((ask, next))), vec![])
            }
            (Starting(began_ns, None), Event::AskEnd(ask)) => {
                (Starting(began_ns, Some((ask, stays))), vec![])
            }
            (Starting(began_ns, None), Event::Made(live)) => {
                (Running(live), vec![Effect::Begin(began_ns)])
            }
            (Starting(began_ns, Some((ask, next))), Event::Made(live)) => {
                let effects = vec![Effect::Begin(began_ns), Effect::Ask(ask.signal)];
                (Ends(live, ask.at(now_ns), next), effects)
            }
            (Starting(_, None), Event::NotMade(why)) => {
                let effects = vec![Effect::TellNotMade(why), Effect::JudgeNotMade];
                (Down(stays), effects)
            }
            (Starting(_, Some((_, next))), Event::NotMade(why)) => {
                (Down(next), vec![Effect::TellNotMade(why)])
            }
            (Running(live), Event::AskEnd(ask)) => {
                let effects = vec![Effect::Ask(ask.signal)];
                (Ends(live, ask.at(now_ns), stays), effects)
            }
            (Running(live), Event::Kill(why)) => {
                (Ends(live, Ending::Killed(why, false), stays), vec![])
            }
            (Running(live), Event::NotReady(why)) => {
                (Ends(live, Ending::Dies(why), stays), vec![Effect::Kill])
            }
            (Running(live), Event::Ended { end, memory }) => {
                let (cause, asked) = (memory, false);
                remove(live, Gone { end, cause, asked }, stays)
            }
            (Ends(live, ending, _), Event::Follow(next)) => (Ends(live, ending, next), vec![]),
            (Ends(live, Ending::Dies(why), next), Event::AskEnd(ask)) => {
                let effects = vec![Effect::Ask(ask.signal)];
                (Ends(live, Ending::Killed(why, true), next), effects)
            }
            (Ends(live, ending, next), Event::Kill(why)) => {
                (Ends(live, ending.killed(why), next), vec![])
            }
            (Ends(live, ending, next), Event::Ended { end, memory }) => {
                remove(live, ending.explains(end, memory), next)
            }
            (Ends(live, ending, next), Event::Runs { killed_as_asked }) => {
                match ending.over(killed_as_asked, now_ns) {
                    Ok(cause) => {
                        let (end, cause, asked) = (KILLED, Some(cause), true);
                        remove(live, Gone { end, cause, asked }, next)
                    }
                    Err(ending) => (Ends(live, ending, next), vec![]),
                }
            }
            (Removing(gone, _), Event::Follow(next)) => (Removing(gone, next), vec![]),
            (Removing(gone, next), Event::AskEnd(_)) => {
                let asked = true;
                (Removing(Gone { asked, ..gone }, next), vec![])
            }
            (Removing(mut gone, next), Event::Removed(end)) => {
                gone.end = end.unwrap_or(gone.end);
                gone.cause = gone.cause.filter(|cause| cause.fits(gone.end));
                let then = match gone.asked {
                    true => Effect::Forget,
                    false => Effect::Judge(gone.end),
                };
                (Down(next), vec![Effect::TellEnd(gone), then])
            }
            // A life that nobody waits for must not stay.
            (phase, Event::Made(live)) => (phase, vec![Effect::Remove(live)]),
            (phase, _) => (phase, vec![]),
        }
    }

    /// The next step after the present life; one that runs and may is not to be started.
    pub(super) fn next(&self) -> Next {
        match self {
            Phase::Down(next) | Phase::Ending(.., next) | Phase::Removing(_, next) => *next,
            Phase::Starting(_, ends) => ends.map_or(Next::Stays, |(_, next)| next),
            Phase::Running(_) => Next::Stays,
        }
    }

    /// Whether it is to be started once its turn has come.
    pub(super) fn waits(&self) -> bool {
        self.next() == Next::Waits
    }

    /// When to restart it, CLOCK_MONOTONIC ns.
    pub(super) fn due_ns(&self) -> Option<i64> {
        match self.next() {
            Next::Due(at_ns) => Some(at_ns),
            Next::Stays | Next::Waits => None,
        }
    }

    /// Whether it is being made, runs, or is being removed.
    pub(super) fn is_there(&self) -> bool {
        !matches!(self, Phase::Down(_))
    }

    pub(super) fn is_starting(&self) -> bool {
        matches!(self, Phase::Starting(..))
    }

    pub(super) fn is_removing(&self) -> bool {
        matches!(self, Phase::Removing(..))
    }

    /// Whether the present life was told to end, or killed for a rule.
    pub(super) fn is_told(&self) -> bool {
        match self {
            Phase::Starting(_, ends) => ends.is_some(),
            Phase::Ending(_, ending, _) => !matches!(ending, Ending::Dies(_)),
            Phase::Removing(gone, _) => gone.asked,
            Phase::Down(_) | Phase::Running(_) => false,
        }
    }

    /// When a cell that is to end is killed, CLOCK_MONOTONIC ns; in the past: at once.
    pub(super) fn killed_ns(&self) -> Option<i64> {
        match self {
            Phase::Ending(_, Ending::Asked(_, until_ns), _) => Some(*until_ns),
            Phase::Ending(_, Ending::Killed(..), _) => Some(0),
            _ => None,
        }
    }

    /// The running instance, if it runs.
    pub(super) fn live(&self) -> Option<&L> {
        match self {
            Phase::Running(live) | Phase::Ending(live, ..) => Some(live),
            _ => None,
        }
    }

    pub(super) fn live_mut(&mut self) -> Option<&mut L> {
        match self {
            Phase::Running(live) | Phase::Ending(live, ..) => Some(live),
            _ => None,
        }
    }
}

impl<L> Default for Phase<L> {
    fn default() -> Phase<L> {
        Phase::Down(Next::Stays)
    }
}

#[cfg(test)]
mod tests;
