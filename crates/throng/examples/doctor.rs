//! Asks the doctor: can this machine hold a number of connections, and if not, what is to be done?
//! `cargo run --example doctor -- 1000000`.

use throng::doctor::preflight::{MachineRole, Requirements, preflight};
use throng::doctor::{MachineLimits, ProcRoot};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let connections = std::env::args().nth(1).map_or(Ok(100_000), |text| text.parse())?;
    let machine = MachineLimits::read(&ProcRoot::default(), std::process::id());
    let preflight = preflight(&Requirements::new(connections, MachineRole::Server), &machine);
    println!("{}", preflight.verdict());
    for check in &preflight.checks {
        println!("{:<9} {}", check.state, check.limit);
    }
    for sysctl in preflight.sysctls() {
        println!("sysctl -w {}={}", sysctl.name, sysctl.value);
    }
    Ok(())
}
