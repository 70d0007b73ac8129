//! The cells that scenarios create, watch and remove: every engine, and the OCI runtimes also attached.

use engine::{Cell, CellSpec, User};
use model::{EngineKind, Helper, Requirement};
use record::NotMeasured;

use super::SeriesOptions;

/// How a cell is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As experiments do: whoever made the cell has ended, but for what the engine keeps beside every cell.
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
    /// Who runs it, where it is rootless.
    pub user: Option<User>,
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

    /// Whether a process is kept beside each cell that belongs to the cell alone.
    pub(super) fn has_helper(&self) -> bool {
        self.kind.helper() == Helper::Always || self.form == Form::Attached
    }
}

/// What can be measured here, and what cannot.
pub(super) struct Found {
    pub subjects: Vec<Subject>,
    pub not_measured: Vec<NotMeasured>,
    pub requirements: Vec<Requirement>,
}

/// Holds every engine that is wanted against the machine.
pub(super) fn find(wanted: &SeriesOptions) -> Found {
    let options = engine::Options {
        rootless_user: wanted.rootless_user.clone(),
    };
    let mut found = Found {
        subjects: Vec::new(),
        not_measured: Vec::new(),
        requirements: Vec::new(),
    };
    for kind in EngineKind::ALL
        .into_iter()
        .filter(|kind| wanted.wants(*kind))
    {
        let needs = engine::by_kind(kind, &options).requirements();
        let unmet = needs.iter().find(|need| !need.met).cloned();
        for need in needs {
            if !found.requirements.contains(&need) {
                found.requirements.push(need);
            }
        }
        if let Some(unmet) = unmet {
            found.not_measured.push(NotMeasured {
                trial: kind.name().to_owned(),
                reason: unmet.reason,
                mend: unmet.mend.unwrap_or_default(),
            });
            continue;
        }
        let user = kind.is_rootless().then(|| wanted.user().ok()).flatten();
        let subject = |form, name: String| Subject {
            name,
            kind,
            form,
            user: user.clone(),
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
