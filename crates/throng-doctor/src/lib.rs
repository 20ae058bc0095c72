//! Kernel facts: limits, sysctls, counters, listeners.
