//! stand-in until the digest room is merged
use crate::{jsonrpc::Json, wire::AskKind};
use sha2::{Digest, Sha256};
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestFault { Number }
impl core::fmt::Display for DigestFault { fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result { f.write_str("number") } }
pub fn structural(value: Json<'_>) -> Result<[u8; 32], DigestFault> { Ok(Sha256::digest(value.as_str()).into()) }
#[derive(Clone, Copy, PartialEq, Eq)]
#[derive(Debug)]
pub struct RequestDigest([u8; 32]);
impl RequestDigest {
    pub fn new(method: &str, target: &str, arguments: Option<Json<'_>>) -> Result<Self, DigestFault> {
        Ok(Self(Sha256::new().chain_update(method).chain_update(target).chain_update(arguments.map_or("{}", |a| a.as_str())).finalize().into()))
    }
    pub fn as_bytes(&self) -> &[u8; 32] { &self.0 }
}
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u8; 16]);
impl Fingerprint {
    pub fn new(exchange: &[u8; 16], kind: AskKind, params: Option<Json<'_>>) -> Result<Self, DigestFault> {
        let d: [u8; 32] = Sha256::new().chain_update(exchange).chain_update([kind.code()]).chain_update(params.map_or("", |a| a.as_str())).finalize().into();
        let mut out = [0; 16];
        out.copy_from_slice(&d[..16]);
        Ok(Self(out))
    }
    pub const fn from_bytes(b: [u8; 16]) -> Self { Self(b) }
    pub fn as_bytes(&self) -> &[u8; 16] { &self.0 }
}
