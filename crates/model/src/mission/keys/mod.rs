//! The keys of the mission file, each declared once. The reader, the JSON Schema and the tables of the documentation all follow
//! these declarations.

mod cell;
mod health;
mod top;

pub(super) use health::PARAMETERS;
pub(super) use top::TOP;

use super::Limits;
use crate::file::Kind;

const CPUS: Kind = Kind::List {
    of: &Kind::Integer {
        least: 0,
        most: Limits::CPUS - 1,
    },
    least: 1,
    most: Limits::CPUS as usize,
    unique: true,
};

const CELL_NAMES: Kind = Kind::List {
    of: &Kind::Name,
    least: 0,
    most: Limits::CELLS,
    unique: true,
};
