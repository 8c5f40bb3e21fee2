//! Tickets: which ask of which exchange a web page belongs to, and for whom it was asked.

use alloc::string::String;

use subtle::ConstantTimeEq as _;

use super::{
    Sealer,
    binding::{self, Principal, TAG},
    claims::{ExchangeId, read_time, write_time},
    envelope,
    key::Purpose,
    text,
    verdict::{Refused, SealError, Verdict},
};
use crate::{Entropy, Timestamp};

/// What the page behind a url ask must know: it travels in the page's address, sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The exchange that asked.
    pub exchange: ExchangeId,
    /// The key of the ask, 1 to [`MAX_KEY`](Self::MAX_KEY) bytes.
    pub key: String,
    /// The first moment at which the ticket is no longer good.
    pub expires: Timestamp,
}

impl Ticket {
    /// The most bytes that the key of a ticket's ask may have.
    pub const MAX_KEY: usize = 128;
    /// Exchange id 16, expires 6, bound tags of audience and principal.
    const FIXED: usize = 22 + 2 * TAG;
    /// The most characters of a sealed ticket, under any suite.
    const MAX_TEXT: usize = text::text_len(envelope::Head::BYTES + Self::FIXED + Self::MAX_KEY + 32);
}

impl Sealer {
    /// Seals a ticket for the page behind a url ask; its characters need no escaping in a URL.
    ///
    /// It says nothing of the answer and is no credential: the page logs its visitor in by its own means and
    /// then asks [`open_ticket`](Self::open_ticket) whether that is the person who was asked.
    ///
    /// # Errors
    ///
    /// [`SealError::TicketKey`] if the key is empty or longer than [`Ticket::MAX_KEY`].
    pub fn seal_ticket(
        &self,
        ticket: &Ticket,
        principal: Principal<'_>,
        entropy: &Entropy,
    ) -> Result<String, SealError> {
        let size = ticket.key.len();
        if !(1..=Ticket::MAX_KEY).contains(&size) {
            return Err(SealError::TicketKey { size, limit: Ticket::MAX_KEY });
        }
        let nonce = entropy.nonce();
        let body_bytes = Ticket::FIXED + size;
        let ring = self.current.get();
        let sealed = envelope::seal(&ring, Purpose::Ticket, &[], nonce, body_bytes, |keys, body| {
            body.extend_from_slice(ticket.exchange.as_bytes());
            write_time(ticket.expires, body);
            body.extend_from_slice(&binding::audience_tag(keys, &nonce, &self.audience));
            body.extend_from_slice(&binding::principal_tag(keys, &nonce, principal));
            body.extend_from_slice(ticket.key.as_bytes());
        });
        Ok(text::encode(&sealed.map_err(|_| SealError::TooLongForCipher)?))
    }

    /// Opens a ticket that came with a request for its page, for the visitor `principal`.
    ///
    /// With [`Principal::Anonymous`] on both sides nothing tells one visitor from another (B-15).
    ///
    /// # Errors
    ///
    /// [`Refused`] with the first [`Verdict`] that applies; [`Verdict::NotYetValid`] and
    /// [`Verdict::OtherRequest`] never do.
    pub fn open_ticket(
        &self,
        token: &str,
        principal: Principal<'_>,
        now: Timestamp,
    ) -> Result<Ticket, Refused> {
        let mut bytes =
            text::decode(token, Ticket::MAX_TEXT).map_err(|verdict| Refused::new(verdict, None))?;
        let ring = self.current.get();
        let opening = envelope::open(&ring, Purpose::Ticket, &[], Ticket::FIXED + 1, &mut bytes)?;
        let malformed = Refused::new(Verdict::Malformed, Some(opening.keys.id));
        let body = bytes.get(opening.body.clone()).and_then(Body::read).ok_or(malformed)?;
        let refused =
            |verdict| Refused { exchange: Some(body.exchange), ..Refused::new(verdict, malformed.key) };

        let keys = opening.keys;
        let same_audience = body.audience.ct_eq(&binding::audience_tag(keys, &opening.nonce, &self.audience));
        let same_principal = body.principal.ct_eq(&binding::principal_tag(keys, &opening.nonce, principal));
        if now >= body.expires {
            return Err(refused(Verdict::Expired));
        }
        if !bool::from(same_audience) {
            return Err(refused(Verdict::OtherAudience));
        }
        if !bool::from(same_principal) {
            return Err(refused(Verdict::OtherPrincipal));
        }
        Ok(Ticket { exchange: body.exchange, key: body.key.into(), expires: body.expires })
    }
}

struct Body<'b> {
    exchange: ExchangeId,
    expires: Timestamp,
    audience: &'b [u8; TAG],
    principal: &'b [u8; TAG],
    key: &'b str,
}

impl<'b> Body<'b> {
    fn read(body: &'b [u8]) -> Option<Self> {
        let (exchange, rest) = body.split_first_chunk()?;
        let (expires, rest) = rest.split_first_chunk()?;
        let (audience, rest) = rest.split_first_chunk()?;
        let (principal, key) = rest.split_first_chunk()?;
        Some(Self {
            exchange: ExchangeId::from_bytes(*exchange),
            expires: read_time(*expires),
            audience,
            principal,
            key: core::str::from_utf8(key).ok()?,
        })
    }
}
