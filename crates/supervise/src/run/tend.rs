//! When each cell needs attention.

use model::Enforcer;
use model::mission::Cell;

use super::best_effort::Grip;
use crate::admit::Grant;

/// How often it is seen whether a cell is still shed or being held again, and whether one of its threads has taken a class again, ns.
const SHED_NS: i64 = 100_000_000;
/// The same while its enforcer releases it, ns.
const LETTING_GO_NS: i64 = 5_000_000;

/// How often threads are sought that a cell is expected to make, ns.
const SOUGHT_NS: i64 = 20_000_000;
const SECOND_NS: i64 = 1_000_000_000;

/// How old the report of parts not held may be, ns: more frequent requests cost the loop no look at threads.
const UNHELD_NS: i64 = 1_000_000_000;

/// The parts of a cell that are not held, at the last look.
#[derive(Debug, Default)]
pub(super) struct Unheld {
    looked_ns: Option<i64>,
    told: Vec<String>,
}

impl Unheld {
    /// As clauses.
    pub(super) fn told(&self) -> &[String] {
        &self.told
    }

    /// Has it be seen again if that was last done a second ago, or never.
    pub(super) fn look(&mut self, now_ns: i64, look: impl FnOnce() -> Vec<String>) {
        let due = |looked_ns: i64| looked_ns.saturating_add(UNHELD_NS) <= now_ns;
        if self.looked_ns.is_none_or(due) {
            self.looked_ns = Some(now_ns);
            self.told = look();
        }
    }
}

/// The highest priority that was granted to a cell whose threads take any class by attaching to EVL, and keep it; `None`: it is no such
/// cell.
pub(super) fn keeps_classes(cell: &Cell, grant: Option<&Grant>) -> Option<Option<u8>> {
    let is_left = grant.is_none_or(|grant| {
        grant.enforcer.is_out_of_band() || grant.enforcer == Enforcer::CpusetOnly
    });
    let highest = grant.and_then(|grant| grant.band).map(|band| band.highest);
    (cell.rights.evl && is_left).then_some(highest)
}

/// When a cell is looked after, CLOCK_MONOTONIC ns.
#[derive(Debug)]
pub(super) struct Tended {
    pub(super) next_ns: Option<i64>,
    /// When to report parts of it that are not held.
    pub(super) unheld_ns: Option<i64>,
    /// When its end may be told.
    settles_ns: Option<i64>,
}

impl Tended {
    /// Of a cell that has just been started or adopted.
    pub(super) fn from_now(cell: &Cell) -> Tended {
        let now = timecell_client::now_ns();
        Tended {
            next_ns: Some(now),
            unheld_ns: Some(now.saturating_add(cell.start_timeout.ns())),
            settles_ns: None,
        }
    }

    /// When something is to be done about it.
    pub(super) fn due_ns(&self) -> Option<i64> {
        self.settles_ns.or(self.next_ns)
    }

    /// Whether it needs attention now.
    pub(super) fn is_due(&self, now_ns: i64) -> bool {
        self.settles_ns.is_none() && self.next_ns.is_some_and(|next| next <= now_ns)
    }

    /// It is looked after from now on.
    pub(super) fn look_now(&mut self) {
        self.next_ns = Some(timecell_client::now_ns());
    }

    /// Whether its hold is not looked at for now, since it is shed or about to be held again: nobody holds it on purpose.
    pub(super) fn waits(&mut self, now_ns: i64, is_shed: bool, grip: Grip) -> bool {
        let waits = is_shed || grip.changes();
        if waits {
            let wait_ns = match grip {
                Grip::LettingGo => LETTING_GO_NS,
                _ => SHED_NS,
            };
            self.next_ns = Some(now_ns + wait_ns);
        }
        waits
    }

    /// It was looked after now. Its enforcer wants that again in so many ns; `seeks`: its threads are still sought. Else that is soon enough
    /// at the next full second of the clock, when all cells are looked after.
    pub(super) fn looked(&mut self, now_ns: i64, again_ns: Option<i64>, seeks: bool) {
        let second = now_ns - now_ns.rem_euclid(SECOND_NS) + SECOND_NS;
        let sought = seeks.then_some(now_ns + SOUGHT_NS);
        let again = again_ns.map(|again| now_ns + again);
        self.next_ns = [Some(second), sought, again].into_iter().flatten().min();
    }

    /// When its end may be told; `None`: it has not ended.
    pub(super) fn settles_ns(&self) -> Option<i64> {
        self.settles_ns
    }

    /// Whether its holdings are not counted any more: `held_ns` after its end was first seen, which is now if it was not yet.
    pub(super) fn has_settled(&mut self, held_ns: i64) -> bool {
        let now = timecell_client::now_ns();
        now >= *self.settles_ns.get_or_insert(now.saturating_add(held_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admit::Basis;
    use model::mission::{Band, MissionFile};

    #[test]
    fn classes_are_told_of_cells_of_evl_that_keep_them() {
        let cell = |evl: bool| {
            let text = format!(
                "schema = 1\nname = \"m\"\n[[cell]]\nname = \"c\"\nimage = {{ binary = \"c\" }}\nclass = \"other\"\n\
                 rights = {{ evl = {evl} }}\n"
            );
            let file = MissionFile::parse("m.toml", &text).unwrap();
            file.into_mission().cells.remove(0)
        };
        assert_eq!(keeps_classes(&cell(true), None), Some(None));
        assert_eq!(keeps_classes(&cell(false), None), None);
        for (enforcer, highest) in [
            (Enforcer::CpusetOnly, Some(Some(50))),
            (Enforcer::EvlTp, Some(Some(50))),
            (Enforcer::RtCgroup, None),
        ] {
            let grant = Grant {
                cell: "c".to_owned(),
                enforcer,
                cpus: vec![0],
                budget_ns: None,
                period_ns: None,
                band: Some(Band {
                    lowest: 49,
                    highest: 50,
                }),
                round_robin: false,
                partition: None,
                basis: Basis::WholeCpu,
                rate: 1.0,
                delay_ns: None,
                postponed_ns: 0,
                tasks: Vec::new(),
            };
            assert_eq!(keeps_classes(&cell(true), Some(&grant)), highest);
        }
    }

    #[test]
    fn who_asks_often_is_told_what_was_seen_within_a_second() {
        let mut unheld = Unheld::default();
        let mut looks = 0;
        let mut asked = |now_ns: i64| {
            unheld.look(now_ns, || {
                looks += 1;
                vec![format!("look {looks}")]
            });
            unheld.told().join("; ")
        };
        for (now_ns, told) in [
            (-5, "look 1"),
            (0, "look 1"),
            (UNHELD_NS - 6, "look 1"),
            (UNHELD_NS - 5, "look 2"),
            (2 * UNHELD_NS - 6, "look 2"),
            (3 * UNHELD_NS, "look 3"),
        ] {
            assert_eq!(asked(now_ns), told, "at {now_ns}");
        }
    }

    #[test]
    fn one_that_is_shed_or_being_held_again_is_looked_at_later() {
        let mut tended = Tended {
            next_ns: None,
            unheld_ns: None,
            settles_ns: None,
        };
        let now_ns = timecell_client::now_ns();
        assert!(!tended.is_due(now_ns), "nobody has to look after it");
        tended.look_now();
        let now_ns = timecell_client::now_ns();
        assert!(tended.is_due(now_ns));
        assert!(!tended.waits(now_ns, false, Grip::Held) && tended.is_due(now_ns));
        for (is_shed, grip, wait_ns) in [
            (true, Grip::LetGo, SHED_NS),
            (true, Grip::LettingGo, LETTING_GO_NS),
            (false, Grip::Holding, SHED_NS),
        ] {
            tended.look_now();
            assert!(tended.waits(now_ns, is_shed, grip));
            assert!(!tended.is_due(now_ns + wait_ns - 1) && tended.is_due(now_ns + wait_ns));
        }
    }

    #[test]
    fn an_end_is_told_when_what_was_held_is_not_counted_any_more() {
        let mut tended = Tended {
            next_ns: Some(7),
            unheld_ns: None,
            settles_ns: None,
        };
        assert_eq!((tended.due_ns(), tended.settles_ns()), (Some(7), None));
        assert!(!tended.has_settled(3_600_000_000_000));
        let settles = tended.settles_ns();
        assert!(settles.is_some() && tended.due_ns() == settles);
        assert!(!tended.has_settled(0), "the first sight of the end counts");
        tended.settles_ns = Some(timecell_client::now_ns());
        assert!(tended.has_settled(3_600_000_000_000));
    }
}
