//! tungstenite, an implementation that knows nothing of this one, as the other end.
