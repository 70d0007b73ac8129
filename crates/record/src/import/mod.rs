//! Files of other tools, read into ours. [`taskset`]: what shall run (SchedCAT, CARTS, rt-app, CSV). [`measured`]: what
//! was measured (cyclictest, oslat, rtla, jitterdebugger, rteval, rt-app's logs, hackbench, iteration logs).

pub mod measured;
mod source;
pub mod taskset;
mod words;
