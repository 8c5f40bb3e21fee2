//! stand-in until the http room is merged
use crate::{jsonrpc::Request, RpcError};
pub trait Headers { fn each<'h>(&'h self, name: &str, f: &mut dyn FnMut(&'h [u8])); }
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyClass { Result, HandlerError, MetaInvalid, HeaderMismatch, MissingCapability, UnsupportedVersion, MethodNotFound, Accepted, ParseError, InvalidRequest, TooLarge }
pub fn check_version_present(_h: &dyn Headers) -> Result<(), RpcError> { Ok(()) }
pub fn check_version_matches(_h: &dyn Headers, _v: &str) -> Result<(), RpcError> { Ok(()) }
pub fn check_standard(_h: &dyn Headers, _r: &Request<'_>) -> Result<(), RpcError> { Ok(()) }
pub struct ParamHeaders;
impl ParamHeaders { pub fn from_schema(_s: crate::jsonrpc::Json<'_>) -> Result<Self, &'static str> { Ok(Self) } }
pub fn check_params(_h: &dyn Headers, _r: &Request<'_>, _a: &ParamHeaders) -> Result<(), RpcError> { Ok(()) }
