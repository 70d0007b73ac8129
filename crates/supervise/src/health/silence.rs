//! Detects silence.
//!
//! Only a silence that was looked at counts. Signs of life count from the instants at which they were given, however late
//! they are seen, so a silence that was over when somebody looked was none. If nobody looked when the timeout expired,
//! the machine itself may have stalled, and the cell with it: then the silence gets its timeout once more, counted from
//! the look.

/// A silence with a timeout. When the timeout has passed, it is reported once, and the next one begins.
#[derive(Debug, Clone)]
pub(super) struct Silence {
    timeout_ns: i64,
    /// `None`: nothing is expected.
    since: Option<Since>,
}

#[derive(Debug, Clone, Copy)]
struct Since {
    /// The last sign of life.
    sign_ns: i64,
    /// That, or when the silence was told or forgiven last.
    told_ns: i64,
    /// It was forgiven that it had lasted when a late look came. Once: a look that is always late finds it, too.
    forgiven: bool,
}

impl Silence {
    pub(super) fn new(timeout_ns: i64) -> Silence {
        Silence {
            timeout_ns: timeout_ns.max(1),
            since: None,
        }
    }

    /// Something is expected from now on.
    pub(super) fn begin(&mut self, now_ns: i64) {
        self.since = Some(Since {
            sign_ns: now_ns,
            told_ns: now_ns,
            forgiven: false,
        });
    }

    pub(super) fn sign(&mut self, at_ns: i64) {
        if self.since.is_none_or(|since| since.sign_ns < at_ns) {
            self.begin(at_ns);
        }
    }

    pub(super) fn expect_nothing(&mut self) {
        self.since = None;
    }

    pub(super) fn timeout_ns(&self) -> i64 {
        self.timeout_ns
    }

    /// When it will have lasted too long.
    pub(super) fn due_ns(&self) -> Option<i64> {
        Some(self.since?.told_ns.saturating_add(self.timeout_ns))
    }

    /// How long it has lasted, if that is too long.
    pub(super) fn look(&mut self, now_ns: i64) -> Option<i64> {
        let late_ns = now_ns.saturating_sub(self.due_ns()?);
        if late_ns < 0 {
            return None;
        }
        let since = self.since.as_mut()?;
        since.told_ns = now_ns;
        if late_ns > self.timeout_ns / 2 && !std::mem::replace(&mut since.forgiven, true) {
            return None;
        }
        Some(now_ns.saturating_sub(since.sign_ns))
    }
}
