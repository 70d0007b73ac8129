//! The analyses from outside: against each other, against simulation, and against reference vectors.

mod differential_dedicated;
mod examples;
mod oracle_ample;
mod oracle_dedicated;
mod oracle_freezer;
mod oracle_inside;
mod oracle_mixed;
mod oracle_servers;
mod paper_reservations;
mod properties_dedicated;
mod properties_multi;
mod properties_servers;
mod simulator;
mod vectors;
