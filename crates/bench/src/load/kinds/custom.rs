//! `custom`: any command. Its cpu share is its rate.

use model::LoadKind;

use crate::load::kind::Load;

pub(crate) struct Custom;

impl Load for Custom {
    fn kind(&self) -> LoadKind {
        LoadKind::Custom
    }

    fn does(&self) -> &'static str {
        "runs any command, given in an experiment file"
    }
}
