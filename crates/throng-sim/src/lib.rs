//! Driver on virtual time, with faults; one seed decides everything.
