//! The cells that scenarios create, watch and remove: every engine, and the OCI runtimes also attached.

use engine::{Cell, CellSpec, User};
use host::rtgroup::RtGroup;
use host::sched::Class;
use model::{EngineKind, Helper, Requirement};

use super::bench::SeriesOptions;
use crate::cells::Placement;
use crate::needs::Needs;

/// How a cell is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As in experiments: the cell's creator has ended, except for the engine's processes beside every cell.
    Detached,
    /// The OCI runtime waits for the payload as its parent.
    Attached,
}

/// An engine in one form.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub name: String,
    pub kind: EngineKind,
    pub form: Form,
    /// The user, where it is rootless.
    pub user: Option<User>,
    /// The virtual machine, where it is one.
    pub machine: Option<engine::Machine>,
    options: engine::Options,
}

impl Subject {
    /// Creates a cell.
    pub(super) fn create(&self, spec: &CellSpec) -> Result<Box<dyn Cell>, String> {
        let created = match self.form {
            Form::Detached => engine::by_kind(self.kind, &self.options).create(spec),
            Form::Attached => engine::attach(spec),
        };
        created.map_err(|error| error.to_string())
    }

    /// Whether the payload may set its own class.
    pub(super) fn sets_class(&self) -> bool {
        engine::by_kind(self.kind, &self.options).cell_sets_class()
    }

    /// Where its cells belong, as those of experiments do: in a real-time group where the kernel wants one, and in their class and on their
    /// cpus where they may not take them themselves.
    pub(super) fn placement<'a>(
        &self,
        rt_group: Option<&'a RtGroup>,
        cpus: &'a [u32],
        fifo: Option<u8>,
    ) -> Placement<'a> {
        Placement {
            partition: None,
            rt_group: rt_group.filter(|_| self.kind != EngineKind::Bare),
            class: (!self.sets_class()).then(|| (cpus, class(fifo))),
        }
    }

    /// Whether each cell has a helper process of its own.
    pub(super) fn has_helper(&self) -> bool {
        self.kind.helper() == Helper::Always || self.form == Form::Attached
    }
}

/// SCHED_FIFO of this priority, or no real-time class.
pub(super) fn class(fifo: Option<u8>) -> Class {
    fifo.map_or(Class::Other, |priority| Class::Fifo { priority })
}

/// Measurable subjects, and needs.
pub(super) struct Found {
    pub subjects: Vec<Subject>,
    pub needs: Needs,
}

/// The virtual machines that come with timecell for cells, each with its name, or why there is none.
pub(super) fn machines(needs: &mut Needs) -> Vec<(String, engine::Machine)> {
    let mut all = Vec::new();
    for &board in engine::Machine::BOARDS {
        let mut of_board =
            engine::by_kind(EngineKind::Qemu, &engine::Options::default()).requirements();
        let asked = model::Machine {
            board: Some(board.to_owned()),
            ..model::Machine::default()
        };
        let machine = match of_board.iter().all(|need| need.met) {
            true => engine::Machine::of(&asked, &|what| eprintln!("note    {what}"))
                .map_err(|unmet| of_board.push(unmet))
                .ok(),
            false => None,
        };
        let name = format!("qemu-{board}");
        needs.note(&name, of_board);
        all.extend(machine.map(|machine| match machine.kvm {
            true => (name, machine),
            false => (name + " (emulated)", machine),
        }));
    }
    all
}

/// Checks every wanted engine against the machine; virtual machines only `with_machines`.
pub(super) fn find(wanted: &SeriesOptions, with_machines: bool) -> Found {
    let options = engine::Options {
        rootless_user: wanted.rootless_user.clone(),
    };
    let mut found = Found {
        subjects: Vec::new(),
        needs: Needs::default(),
    };
    for kind in (EngineKind::OF_BENCH.iter().copied()).filter(|kind| wanted.wants(*kind)) {
        if kind.is_machine() && with_machines {
            let subjects = machines(&mut found.needs)
                .into_iter()
                .map(|(name, machine)| Subject {
                    name,
                    kind,
                    form: Form::Detached,
                    user: None,
                    machine: Some(machine),
                    options: options.clone(),
                });
            found.subjects.extend(subjects);
            continue;
        }
        let mut needs = engine::by_kind(kind, &options).requirements();
        if kind.is_machine() {
            let reason = "virtual machines run the task of an experiment and nothing else";
            let fix = "see `timecell bench startup` and experiments";
            needs.push(Requirement::unmet("another payload", reason, fix));
        }
        if !found.needs.note(kind.name(), needs) {
            continue;
        }
        let user = kind.is_rootless().then(|| wanted.user().ok()).flatten();
        let subject = |form, name: String| Subject {
            name,
            kind,
            form,
            user: user.clone(),
            machine: None,
            options: options.clone(),
        };
        found
            .subjects
            .push(subject(Form::Detached, kind.name().to_owned()));
        if kind.is_runtime() {
            found
                .subjects
                .push(subject(Form::Attached, format!("{kind} attached")));
        }
    }
    found
}
