//! The token that names a long-poll session. It is opaque to the client, and a client cannot forge
//! it.

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use throng_base::Instant;

/// The issuer and verifier of the tokens of one server.
#[derive(Clone)]
pub struct Tokens {
    hmac: Hmac<Sha256>,
}

/// The claim of a token: its holder acts for this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The core that owns the session.
    pub core: u16,
    /// The core's identifier of the session.
    pub session: u64,
}

/// The reason why a token is refused. The server responds 410: unknown session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// This server did not issue the token.
    #[error("this server did not issue the token")]
    Forged,
    /// The token is older than two weeks.
    #[error("the token is older than two weeks")]
    Expired,
}

impl Tokens {
    /// Creates the issuer. `secret` is random and known only to this server; a new secret
    /// invalidates all earlier tokens.
    pub fn new(secret: &[u8; 32]) -> Self {
        // RFC 2104 pads a shorter key with zeros to a block.
        let mut block = [0; 64];
        block[..32].copy_from_slice(secret);
        Self { hmac: Hmac::new(&block.into()) }
    }

    /// Returns a token for `claim`, issued now: 67 characters that need no escape in a URL or in
    /// JSON.
    pub fn issue(&self, now: Instant, claim: Claim) -> String {
        let mut token = [0; TOKEN_BYTES];
        token[..8].copy_from_slice(&now.as_nanos().to_be_bytes());
        token[8..10].copy_from_slice(&claim.core.to_be_bytes());
        token[10..CLAIM_BYTES].copy_from_slice(&claim.session.to_be_bytes());
        let mac = self.hmac.clone().chain_update(&token[..CLAIM_BYTES]).finalize().into_bytes();
        token[CLAIM_BYTES..].copy_from_slice(&mac);
        URL_SAFE_NO_PAD.encode(token)
    }

    /// Returns the claim of `token`, if this server issued it at most two weeks ago. The check of
    /// the MAC takes the same time for every forgery.
    pub fn check(&self, now: Instant, token: &str) -> Result<Claim, TokenError> {
        let mut bytes = [0; TOKEN_BYTES];
        if URL_SAFE_NO_PAD.decode_slice(token, &mut bytes) != Ok(TOKEN_BYTES) {
            return Err(TokenError::Forged);
        }
        let (claim, seal) = bytes.split_at(CLAIM_BYTES);
        self.hmac.clone().chain_update(claim).verify_slice(seal).map_err(|_| TokenError::Forged)?;
        let number =
            |bytes: &[u8]| bytes.iter().fold(0, |sum: u64, &byte| sum << 8 | u64::from(byte));
        if now.since(Instant::from_nanos(number(&claim[..8]))) > AGE_MAX {
            return Err(TokenError::Expired);
        }
        Ok(Claim { core: number(&claim[8..10]) as u16, session: number(&claim[10..]) })
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(secret)")
    }
}

/// The time, the core, the session.
const CLAIM_BYTES: usize = 8 + 2 + 8;
const TOKEN_BYTES: usize = CLAIM_BYTES + 32;
const AGE_MAX: Duration = Duration::from_secs(14 * 24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 32] = [7; 32];
    const CLAIM: Claim = Claim { core: 65_535, session: u64::MAX - 3 };
    const TWO_WEEKS: Duration = AGE_MAX;

    #[test]
    fn a_token_holds_for_two_weeks() {
        let (tokens, issued) = (Tokens::new(&SECRET), Instant::from_nanos(5));
        let token = tokens.issue(issued, CLAIM);
        assert_eq!(token.len(), 67);
        assert_eq!(tokens.check(issued, &token), Ok(CLAIM));
        assert_eq!(tokens.check(issued + TWO_WEEKS, &token), Ok(CLAIM));
        let late = issued + TWO_WEEKS + Duration::from_nanos(1);
        assert_eq!(tokens.check(late, &token), Err(TokenError::Expired));
    }

    #[test]
    fn a_token_with_any_character_changed_is_refused() {
        let tokens = Tokens::new(&SECRET);
        let token = tokens.issue(Instant::ZERO, CLAIM);
        // Miri runs a few of the positions.
        for at in (0..token.len()).step_by(if cfg!(miri) { 7 } else { 1 }) {
            for other in ["A", "B", "_", "+", "=", "é", ""] {
                let forged = format!("{}{other}{}", &token[..at], &token[at + 1..]);
                let want = if forged == token { Ok(CLAIM) } else { Err(TokenError::Forged) };
                assert_eq!(tokens.check(Instant::ZERO, &forged), want, "{forged}");
            }
        }
        for forged in ["", "A", &format!("{token}A"), &format!("{token}="), &"A".repeat(100_000)] {
            assert_eq!(tokens.check(Instant::ZERO, forged), Err(TokenError::Forged));
        }
    }

    #[test]
    fn tokens_of_another_secret_are_refused() {
        let token = Tokens::new(&[8; 32]).issue(Instant::ZERO, CLAIM);
        assert_eq!(Tokens::new(&SECRET).check(Instant::ZERO, &token), Err(TokenError::Forged));
    }

    /// RFC 4231, test case 2, shows that the MAC is HMAC-SHA256: a key shorter than a block, padded
    /// with zeros.
    #[test]
    fn the_mac_is_hmac_sha256() {
        let mut secret = [0; 32];
        secret[..4].copy_from_slice(b"Jefe");
        let seal =
            Tokens::new(&secret).hmac.chain_update(b"what do ya want for nothing?").finalize();
        let hex: String = seal.into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}
