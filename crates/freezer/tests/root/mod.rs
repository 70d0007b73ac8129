//! Needs of tests that hold groups of real-time threads.

/// Why groups of real-time threads cannot be held here, beside a missing freezer; `None` if they can.
pub fn missing() -> Option<&'static str> {
    let caps = host::caps::effective();
    let root = caps.is_ok_and(|caps| caps.has("CAP_SYS_NICE") && caps.has("CAP_SYS_ADMIN"));
    if !root || host::caps::in_user_namespace() {
        return Some("needs root");
    }
    let own = host::rtgroup::own_group(0);
    (own.is_ok_and(|own| !own.has_budget())).then_some("the own group has no real-time budget")
}
