//! stand-in until the seal room is merged
use alloc::{string::String, vec::Vec};
use core::time::Duration;
use crate::{Entropy, Timestamp};
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExchangeId([u8; 16]);
impl ExchangeId { pub const fn from_bytes(b: [u8; 16]) -> Self { Self(b) } pub const fn as_bytes(&self) -> &[u8; 16] { &self.0 } }
impl core::fmt::Display for ExchangeId { fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result { for b in self.0 { write!(f, "{b:02x}")?; } Ok(()) } }
#[derive(Clone, Copy, Debug)] pub enum Principal<'a> { Anonymous, Authenticated(&'a [u8]) }
pub struct Binding<'a> { pub principal: Principal<'a>, pub request: &'a [u8; 32] }
pub struct NewClaims { pub exchange: ExchangeId, pub round: u32, pub state_only: u32, pub deadline: Timestamp, pub ttl: Option<Duration> }
pub struct Claims { pub exchange: ExchangeId, pub round: u32, pub state_only: u32, pub issued: Timestamp, pub expires: Timestamp, pub deadline: Timestamp }
pub struct Opened { pub claims: Claims, pub payload: Vec<u8>, pub expired: bool }
#[derive(Clone, Debug)] pub struct Refused { pub verdict: Verdict }
impl core::fmt::Display for Refused { fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result { f.write_str("refused") } }
#[derive(Debug, Clone, Copy)] pub enum Verdict { Malformed }
impl Verdict { pub fn name(self) -> &'static str { "malformed" } }
#[derive(Debug)] pub enum SealError { TooLarge { size: usize, limit: usize } }
impl core::fmt::Display for SealError { fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result { f.write_str("too large") } }
#[derive(Clone, Debug)] pub struct Sealer;
impl Sealer {
  pub fn seal(&self, c: &NewClaims, payload: &[u8], _b: &Binding<'_>, now: Timestamp, _e: &Entropy) -> Result<(String, Timestamp), SealError> { Ok((alloc::format!("{}{}{:?}", c.exchange, now.as_unix_millis(), payload), now)) }
  pub fn open(&self, _t: &str, _b: &Binding<'_>, _now: Timestamp) -> Result<Opened, Refused> { Err(Refused { verdict: Verdict::Malformed }) }
}
