//! Why a transport fails: each cause in one row, with its name and a sentence.

macro_rules! transport_errors {
    ($($error:ident = $name:literal $sentence:literal;)*) => {
        /// Why a transport failed. An alert that says so to the peer is in the out buffer already.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
        pub enum TransportError {
            $(#[doc = concat!("It is counted as `", $name, "`: ", $sentence, ".")]
            #[error($sentence)]
            $error,)*
        }

        impl TransportError {
            /// All causes.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$error),*];

            /// Returns the name: `bad_record_mac`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$error => $name,)*
                }
            }
        }
    };
}

transport_errors! {
    CertificateExpired = "certificate_expired" "the peer's certificate has expired";
    CertificateNotYetValid = "certificate_not_yet_valid" "the peer's certificate is not valid yet";
    CertificateForOtherName = "certificate_for_other_name"
        "the peer's certificate is for other names";
    CertificateUnknownIssuer = "certificate_unknown_issuer"
        "no trusted authority issued the peer's certificate, or a certificate between them is \
         missing";
    CertificateRejected = "certificate_rejected" "the peer's certificate is wrong in another way";
    CertificateMissing = "certificate_missing" "the peer showed no certificate";
    NoCommonVersion = "no_common_version" "the peer has no version that is allowed here";
    NoCommonCipher = "no_common_cipher"
        "the peer has no cipher, group or signature that is allowed here";
    NoCommonProtocol = "no_common_protocol" "the peer has no protocol that is allowed here";
    HandshakeAlert = "handshake_alert" "the peer ended the handshake with an alert";
    HandshakeMisbehaved = "handshake_misbehaved" "the peer broke the rules of the handshake";
    HandshakeTooLong = "handshake_too_long" "the peer sent more in a handshake than it may";
    HandshakeClosed = "handshake_closed" "the peer closed the connection during the handshake";
    HandshakeLocal = "handshake_local" "this program failed in the handshake";
    NotTls = "not_tls" "the peer does not speak the protocol of the transport";
    KeysDiffer = "keys_differ" "two ways to the keys of the handshake lead to different ones";
    BadRecordMac = "bad_record_mac"
        "a record does not decrypt: it was changed, repeated or sealed with another key";
    RecordTooLong = "record_too_long" "a record is longer than it may be";
    PlaintextTooLong = "plaintext_too_long" "the plaintext of a record is longer than it may be";
    RecordVersion = "record_version" "a record has a wrong version in its header";
    ContentType = "content_type" "a record has an unknown content type";
    NoContentType = "no_content_type" "a record has padding and no content type";
    UnprotectedRecord = "unprotected_record"
        "a record without protection arrived after the handshake";
    UnexpectedMessage = "unexpected_message" "a message arrived where it may not";
    EmptyRecord = "empty_record" "a record that must carry something is empty";
    MalformedMessage = "malformed_message" "a message has a wrong form";
    BadKeyUpdate = "bad_key_update" "a key update has an illegal value";
    MessageTooLong = "message_too_long" "a message after the handshake is too long";
    IdleRecords = "idle_records" "too many records in a row had no data";
    Renegotiation = "renegotiation" "the peer asked to negotiate anew";
    AlertReceived = "alert_received" "the peer sent an alert";
    KeysExhausted = "keys_exhausted" "a key has sealed as many records as it may";
    ClientKey = "client_key" "the certificate of this client, or its key, cannot be read";
    NotOpen = "not_open" "the connection is not open";
    RecordTimeout = "record_timeout"
        "a record arrived in part, and its rest did not follow in time";
    RecordsHeld = "records_held" "the connections hold more parts of records than they may";
}

impl TransportError {
    /// Reports whether the transport has told the peer why: it fails by what the peer sent, and the
    /// peer has not given up by itself.
    pub const fn is_answered(self) -> bool {
        !matches!(
            self,
            Self::HandshakeAlert
                | Self::AlertReceived
                | Self::HandshakeClosed
                | Self::RecordTimeout
                | Self::RecordsHeld
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_cause_has_a_name_and_a_sentence_of_its_own() {
        let names: HashSet<_> = TransportError::ALL.map(TransportError::name).into();
        let sentences: HashSet<_> = TransportError::ALL.map(|error| error.to_string()).into();
        assert_eq!((names.len(), sentences.len()), (TransportError::ALL.len(), names.len()));
        let is_name =
            |name: &&str| name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase());
        assert!(names.iter().all(is_name), "{names:?}");
    }
}
