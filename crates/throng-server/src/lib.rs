//! Server, accept topologies, limits, drain, Handler.
