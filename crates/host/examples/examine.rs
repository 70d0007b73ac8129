//! Prints the doctor's findings on this machine.

fn main() {
    let provenance = timecell_host::provenance::Provenance::collect(env!("CARGO_PKG_VERSION"));
    println!("{}", provenance.one_line());
    for check in &provenance.checks {
        println!(
            "\n{:<8} {} [{}]",
            check.state.to_string(),
            check.title,
            check.id
        );
        println!("         {}", check.found);
        if let Some(fix) = &check.fix {
            println!("         fix: {fix}");
        }
    }
}
