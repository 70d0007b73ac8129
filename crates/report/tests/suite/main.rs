//! What is studied, judged and drawn of runs that are made up, so that the truth is known.

mod crowded;
mod deadlines;
mod golden;
mod isolation;
mod judge;
mod kept_tails;
mod loads;
mod lost;
mod opens;
mod output;
mod overloads;
mod published;
mod scale;
mod study;
mod synthetic;
mod tails;
mod turns;
