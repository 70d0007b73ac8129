//! Studies, verdicts and pictures of made-up runs, whose truth is known.

mod crowded;
mod deadlines;
mod devices;
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
