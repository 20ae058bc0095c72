//! Histograms, counters, snapshots, the run file and findings: what was measured.
