//! Vectors of RFC 8448 section 3, "Simple 1-RTT Handshake".

/// One direction of the trace, after the handshake.
pub(crate) struct Trace {
    pub secret: [u8; 32],
    pub key: [u8; 16],
    pub iv: [u8; 12],
    /// Records before the one below with the same key.
    pub seq: u64,
    /// The record with the bytes 0 to 49.
    pub record: &'static str,
    /// The record with `close_notify`, which follows it.
    pub close: &'static str,
}

pub(crate) const CLIENT: Trace = Trace {
    secret: hex("9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5"),
    key: hex("17422dda596ed5d9acd890e3c63f5051"),
    iv: hex("5b78923dee08579033e523d9"),
    seq: 0,
    record: "1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b39\
             5bd54a9a20441e2b62974e1f5a6292a2977014bd1e3deae63aeebb21694915e4",
    close: "1703030013c9872760655666b74d7ff1153efd6db6d0b0e3",
};

pub(crate) const SERVER: Trace = Trace {
    secret: hex("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643"),
    key: hex("9f02283b6c9c07efc26bb9f2ac92e356"),
    iv: hex("cf782b88dd83549aadf1e984"),
    // A ticket came before.
    seq: 1,
    record: "17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6df\
             fc602dcb501a59a8fcc49c4bf2e5f0a21c0047c2abf332540dd032e167c2955d",
    close: "1703030013b58fd67166ebf599d24720cfbe7efa7a8864a9",
};

/// Returns the bytes of a text of hexadecimal digits.
pub(crate) const fn hex<const N: usize>(text: &str) -> [u8; N] {
    let (text, mut bytes, mut at) = (text.as_bytes(), [0; N], 0);
    assert!(text.len() == 2 * N, "the text has another length");
    while at < N {
        bytes[at] = digit(text[2 * at]) << 4 | digit(text[2 * at + 1]);
        at += 1;
    }
    bytes
}

const fn digit(text: u8) -> u8 {
    match text {
        b'0'..=b'9' => text - b'0',
        b'a'..=b'f' => text - b'a' + 10,
        _ => panic!("no hexadecimal digit"),
    }
}

/// Returns the bytes of a record.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
