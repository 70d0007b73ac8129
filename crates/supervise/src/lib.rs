//! What keeps the cells of a mission running. Here live the page through which applications report their jobs, the journal of
//! what the supervisor has done, the health rules that decide what is done about a failing cell, and the records of
//! incidents. Making cells, budgets and schedulability are crates of their own.

pub mod page;
