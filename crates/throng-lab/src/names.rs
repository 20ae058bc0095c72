//! The names of the labs, which their work folders carry.

/// The name of every lab, in the order of the catalogue. A test of the catalogue compares the two.
pub(crate) const LABS: [&str; 11] = [
    "demo",
    "stressgrid-100k",
    "fast-connect",
    "fast-receive",
    "connscale",
    "haskell-chat",
    "phoenix-2m",
    "one-room",
    "many-rooms",
    "simulated-chat",
    "reconnect-storm",
];

/// The name of a calibration's work folder.
pub(crate) const CALIBRATION: &str = "calibration";
