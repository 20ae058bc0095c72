//! Time, the connection table, timers, a seeded prng and units: pure.
