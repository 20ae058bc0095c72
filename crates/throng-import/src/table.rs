//! Tables of words and of constructs, without the commas with which each entry would take lines of
//! its own.

/// Returns a list of words.
macro_rules! words {
    ($($word:literal)+) => { &[$($word),+] };
}

/// Returns a table of constructs. A row has constructs that become the same, their fidelity, the
/// file and function of the tool that does them (`""` if its language does), and the note.
macro_rules! rows {
    ($( $($construct:literal)+ $fidelity:ident $source:expr => $note:expr; )+) => {
        &[$( $( crate::row::Row {
            construct: $construct,
            fidelity: crate::fidelity::Fidelity::$fidelity,
            note: $note,
            source: $source,
        } ),+ ),+]
    };
}
