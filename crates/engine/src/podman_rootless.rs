//! stub
use crate::{Cell, CellSpec, Engine, EngineError};
use model::{EngineKind, Requirement};
pub(crate) struct PodmanRootless {
    pub(crate) user: Option<String>,
}
impl Engine for PodmanRootless {
    fn kind(&self) -> EngineKind {
        EngineKind::PodmanRootless
    }
    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::unmet("it", "not yet", "wait")]
    }
    fn version(&self) -> Option<String> {
        None
    }
    fn cell_sets_class(&self) -> bool {
        true
    }
    fn create(&self, _: &CellSpec) -> Result<Box<dyn Cell>, EngineError> {
        todo!()
    }
}
pub(crate) fn wipe(_: &CellSpec) -> Result<(), String> {
    Ok(())
}
