//! The health of one cell: its rules, and the actions that they ask for.

use crate::End;

use super::counting::{Counting, Verdict};
use super::event::{Event, TaskTimes};
use super::finding::{Decision, Finding, Sight, Why};
use super::restarts::Restarts;
use super::watch::Watch;
use model::mission::{Action, Observed, Restart, RestartPolicy, Rule};

/// A mission's settings for one cell's health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Its tasks; events name them by their index.
    pub tasks: Vec<TaskTimes>,
    /// Its health rules, in the order of the mission file.
    pub rules: Vec<Rule>,
    /// The restart policy for its program.
    pub restart: Restart,
}

/// A rule is about a task that the cell does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a health rule is about task `{0}`, which the cell does not have")]
pub struct UnknownTask(pub String);

/// The health of one cell. Give it every event and every [`CellHealth::due_ns`], and carry out its findings.
#[derive(Debug, Clone)]
pub struct CellHealth {
    config: Config,
    watches: Vec<Watch>,
    counting: Vec<Counting>,
    restarts: Restarts,
    life: Life,
    /// The latest instant that was given.
    now_ns: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// It is not there, or was told to end.
    Down,
    Running,
    Frozen,
}

/// A request of a rule that changes whether the cell runs, the strongest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    Later,
    AtOnce,
    Stop,
}

impl Config {
    pub(super) fn task(&self, name: &str) -> Result<usize, UnknownTask> {
        let at = self.tasks.iter().position(|task| task.name == name);
        at.ok_or_else(|| UnknownTask(name.to_owned()))
    }
}

impl CellHealth {
    /// A cell that is not running yet. `past_restarts_ns` are the instants in this boot at which earlier supervisors have
    /// restarted it, ascending: they count to its limit.
    ///
    /// # Errors
    /// When a rule is about a task that the cell does not have.
    pub fn new(config: Config, past_restarts_ns: &[i64]) -> Result<CellHealth, UnknownTask> {
        let watches: Result<Vec<Watch>, UnknownTask> = (config.rules.iter())
            .map(|rule| Watch::new(&rule.when, &config))
            .collect();
        Ok(CellHealth {
            watches: watches?,
            counting: config.rules.iter().map(Counting::new).collect(),
            restarts: Restarts::new(&config.restart, past_restarts_ns),
            life: Life::Down,
            now_ns: i64::MIN,
            config,
        })
    }

    /// Processes an event that happened at `now_ns` of CLOCK_MONOTONIC. Give events the instants at which they
    /// happened, in order, and call [`CellHealth::tick`] when all that is known was given: only that finds silences.
    /// A report in time that is seen late is no silence, and a silence that is over by then was never seen. Of the
    /// findings that stop or restart the cell at most one is to be carried out; the supervisor does so, and reports
    /// [`Event::Started`] when the cell runs again. An instant before the latest is taken for that.
    pub fn observe(&mut self, now_ns: i64, event: Event) -> Vec<Finding> {
        let mut findings = Vec::new();
        self.now_ns = self.now_ns.max(now_ns);
        let now_ns = self.now_ns;
        match (self.life, event) {
            (_, Event::Started) => {
                self.life = Life::Running;
                for watch in &mut self.watches {
                    watch.start(now_ns);
                }
            }
            (Life::Frozen, Event::Thawed) => {
                self.life = Life::Running;
                for watch in &mut self.watches {
                    watch.thaw(now_ns);
                }
            }
            (Life::Down, _) => {}
            (_, Event::Stopping) => self.rest(Life::Down),
            (Life::Running, Event::Frozen) => self.rest(Life::Frozen),
            // Killed while it was frozen.
            (_, Event::Ended(end)) => {
                let sights = self.sights(|watch, config| watch.see(event, now_ns, config));
                findings.extend(self.judge(sights, Some(end)));
            }
            (Life::Frozen, _) => {}
            (Life::Running, event) => {
                let sights = self.sights(|watch, config| watch.see(event, now_ns, config));
                if sights.is_empty() && event == Event::MemoryLimit {
                    let nothing = Decision::Nothing(Why::NoRule);
                    findings.push(self.finding(Sight::MemoryLimit, None, nothing));
                }
                findings.extend(self.judge(sights, None));
            }
        }
        findings
    }

    /// Advances by time alone. Call it at [`CellHealth::due_ns`]; any other instant does no harm.
    pub fn tick(&mut self, now_ns: i64) -> Vec<Finding> {
        self.now_ns = self.now_ns.max(now_ns);
        let now_ns = self.now_ns;
        if self.life != Life::Running {
            return Vec::new();
        }
        let sights = self.sights(|watch, _| watch.look(now_ns));
        self.judge(sights, None)
    }

    /// When [`CellHealth::tick`] has something to say if no event comes; `None`: never.
    pub fn due_ns(&self) -> Option<i64> {
        self.watches.iter().filter_map(Watch::due_ns).min()
    }

    /// Its tasks; events name them by their index.
    pub fn tasks(&self) -> &[TaskTimes] {
        &self.config.tasks
    }

    /// Whether the cell is watched: it runs and is not frozen.
    pub fn is_watched(&self) -> bool {
        self.life == Life::Running
    }

    /// Forgets every count and every restart, as after a start by hand.
    pub fn forget(&mut self) {
        self.counting = self.config.rules.iter().map(Counting::new).collect();
        self.restarts.forget();
    }

    fn sights(
        &mut self,
        mut look: impl FnMut(&mut Watch, &Config) -> Option<Sight>,
    ) -> Vec<(usize, Sight)> {
        let config = &self.config;
        let watches = self.watches.iter_mut().enumerate();
        watches
            .filter_map(|(rule, watch)| Some((rule, look(watch, config)?)))
            .collect()
    }

    fn rest(&mut self, life: Life) {
        self.life = life;
        for watch in &mut self.watches {
            watch.rest();
        }
    }

    /// The findings of the rules and, if its program has ended, of the restart policy.
    fn judge(&mut self, sights: Vec<(usize, Sight)>, end: Option<End>) -> Vec<Finding> {
        let mut findings: Vec<Finding> = (sights.into_iter())
            .map(|(rule, sight)| self.by_rule(rule, sight))
            .collect();
        let mut wish = strongest(&findings);
        if let Some(end) = end {
            let policy = match self.config.restart.policy {
                RestartPolicy::Never => false,
                RestartPolicy::OnFailure => end.is_failure(),
                RestartPolicy::Always => true,
            };
            let by_policy = wish.is_none() && policy;
            let decision = match wish {
                Some((_, rule)) => Decision::Nothing(Why::Stronger { rule }),
                None if policy => act(Action::RestartBackoff, 0),
                None => Decision::Nothing(Why::Policy),
            };
            // The end of a program is reported even if no rule covers it.
            findings.push(self.finding(Sight::Ended(end), None, decision));
            if by_policy {
                wish = Some((Wish::Later, None));
            }
            if wish.is_none() {
                self.rest(Life::Down);
            }
        }
        if let Some((wish, by)) = wish {
            self.carry_out(wish, by, &mut findings);
        }
        findings
    }

    fn by_rule(&mut self, index: usize, sight: Sight) -> Finding {
        let now_ns = self.now_ns;
        let decision = match (self.config.rules.get(index), self.counting.get_mut(index)) {
            (Some(rule), Some(counting)) => match counting.observe(rule, now_ns) {
                Verdict::Act { action, before } => act(action, before),
                Verdict::Below { seen } => Decision::Nothing(Why::Below {
                    seen,
                    times: rule.times,
                }),
                Verdict::Cooldown { until_ns } => Decision::Nothing(Why::Cooldown {
                    left_ns: until_ns.saturating_sub(now_ns),
                }),
            },
            _ => Decision::Nothing(Why::NoRule),
        };
        self.finding(sight, Some(index), decision)
    }

    fn finding(&self, sight: Sight, rule: Option<usize>, decision: Decision) -> Finding {
        Finding {
            at_ns: self.now_ns,
            sight,
            rule,
            decision,
        }
    }

    /// Stops or restarts the cell as `by` wishes, if the limit allows; the wishes of others are only recorded.
    fn carry_out(&mut self, wish: Wish, by: Option<usize>, findings: &mut Vec<Finding>) {
        let wait_ns = match wish {
            Wish::Stop => Some(0),
            Wish::AtOnce | Wish::Later => {
                let at_once = wish == Wish::AtOnce;
                let restart = &self.config.restart;
                self.restarts.next(restart, self.now_ns, at_once)
            }
        };
        for finding in findings.iter_mut().filter(|finding| is_wish(finding)) {
            finding.decision = match (finding.decision, wait_ns) {
                (_, None) => Decision::Nothing(Why::RestartLimit),
                (Decision::Act { action, before, .. }, Some(wait_ns)) if finding.rule == by => {
                    Decision::Act {
                        action,
                        wait_ns,
                        before,
                    }
                }
                _ => Decision::Nothing(Why::Stronger { rule: by }),
            };
        }
        self.rest(Life::Down);
        if wait_ns.is_none() {
            findings.extend(self.at_the_limit());
        }
    }

    /// The cell is stopped instead of restarted; rules that look at that may tell somebody or make room for others.
    fn at_the_limit(&mut self) -> Vec<Finding> {
        let sight = Sight::RestartLimit {
            restarts: self.restarts.count(self.now_ns),
            window_ns: self.config.restart.window.ns(),
        };
        let mut findings = vec![self.finding(sight, None, act(Action::Stop, 0))];
        let rules = self.config.rules.iter().enumerate();
        let at_limit: Vec<usize> = rules
            .filter(|(_, rule)| rule.when == Observed::RestartLimit)
            .map(|(index, _)| index)
            .collect();
        for index in at_limit {
            let mut finding = self.by_rule(index, sight);
            // Stopped it is already, and restarted it cannot be.
            if is_wish(&finding) {
                finding.decision = Decision::Nothing(Why::RestartLimit);
            }
            findings.push(finding);
        }
        findings
    }
}

fn act(action: Action, before: u32) -> Decision {
    Decision::Act {
        action,
        wait_ns: 0,
        before,
    }
}

fn wish(finding: &Finding) -> Option<Wish> {
    match finding.decision {
        Decision::Act { action, .. } => match action {
            Action::Stop => Some(Wish::Stop),
            Action::Restart => Some(Wish::AtOnce),
            Action::RestartBackoff => Some(Wish::Later),
            Action::Log | Action::Notify | Action::Shed | Action::SwitchMode => None,
        },
        Decision::Nothing(_) => None,
    }
}

fn is_wish(finding: &Finding) -> bool {
    wish(finding).is_some()
}

/// The strongest wish and its rule; of equals the first.
fn strongest(findings: &[Finding]) -> Option<(Wish, Option<usize>)> {
    let mut strongest = None;
    for finding in findings {
        let found = wish(finding);
        if found > strongest.map(|(wish, _)| wish) {
            strongest = found.map(|wish| (wish, finding.rule));
        }
    }
    strongest
}
