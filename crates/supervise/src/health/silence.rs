//! Noticing silence.

/// A silence that may last so long. When it has lasted, it is told once, and the next one begins.
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
    /// That, or when the silence was told last.
    told_ns: i64,
}

impl Silence {
    pub(super) fn new(timeout_ns: i64) -> Silence {
        Silence {
            timeout_ns: timeout_ns.max(1),
            since: None,
        }
    }

    pub(super) fn sign(&mut self, now_ns: i64) {
        let told_ns = now_ns;
        let sign_ns = now_ns;
        self.since = Some(Since { sign_ns, told_ns });
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
        if self.due_ns()? > now_ns {
            return None;
        }
        let since = self.since.as_mut()?;
        since.told_ns = now_ns;
        Some(now_ns.saturating_sub(since.sign_ns))
    }
}
