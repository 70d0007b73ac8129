//! Counts within a sliding window.

use std::collections::VecDeque;

use model::mission::{Action, Rule};

/// Instants within a sliding window, limited to the latest ones.
#[derive(Debug, Clone)]
pub(super) struct Within {
    window_ns: i64,
    most: usize,
    at_ns: VecDeque<i64>,
}

impl Within {
    pub(super) fn new(window_ns: Option<i64>, most: u32) -> Within {
        Within {
            window_ns: window_ns.unwrap_or(i64::MAX),
            most: most.max(1) as usize,
            at_ns: VecDeque::new(),
        }
    }

    /// How many there are in the window that ends now, both of its ends included.
    pub(super) fn count(&mut self, now_ns: i64) -> u32 {
        while let Some(first) = self.at_ns.front()
            && now_ns.saturating_sub(*first) > self.window_ns
        {
            self.at_ns.pop_front();
        }
        u32::try_from(self.at_ns.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn add(&mut self, now_ns: i64) {
        self.at_ns.push_back(now_ns);
        if self.at_ns.len() > self.most {
            self.at_ns.pop_front();
        }
    }

    pub(super) fn clear(&mut self) {
        self.at_ns.clear();
    }
}

/// The state of a rule: its count, and how often it has acted.
#[derive(Debug, Clone)]
pub(super) struct Counting {
    seen: Within,
    acted: Within,
    quiet_until_ns: Option<i64>,
}

/// The verdict of a rule on an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was observed this many times within the window, which is not enough.
    Below { seen: u32 },
    /// The rule has acted and does nothing until then.
    Cooldown { until_ns: i64 },
    /// This is to be done; the rule has acted this many times before within the window.
    Act { action: Action, before: u32 },
}

impl Counting {
    pub(super) fn new(rule: &Rule) -> Counting {
        let window_ns = rule.window.map(|window| window.ns());
        // How often it has acted matters up to the last step only.
        let steps = rule.escalate.iter().map(|step| step.after);
        Counting {
            seen: Within::new(window_ns, rule.times),
            acted: Within::new(window_ns, steps.max().unwrap_or(0)),
            quiet_until_ns: None,
        }
    }

    pub(super) fn observe(&mut self, rule: &Rule, now_ns: i64) -> Verdict {
        self.seen.add(now_ns);
        let seen = self.seen.count(now_ns);
        if seen < rule.times {
            return Verdict::Below { seen };
        }
        if let Some(until_ns) = self.quiet_until_ns
            && now_ns < until_ns
        {
            return Verdict::Cooldown { until_ns };
        }
        let before = self.acted.count(now_ns);
        self.seen.clear();
        self.acted.add(now_ns);
        self.quiet_until_ns = Some(now_ns.saturating_add(rule.cooldown.ns()));
        Verdict::Act {
            action: rule.action_after(before),
            before,
        }
    }
}
