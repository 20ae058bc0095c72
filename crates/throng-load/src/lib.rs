//! The generator: scenario, program, users, pace, source addresses.
