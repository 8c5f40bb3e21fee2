//! stand-in until the form room is merged
use alloc::string::String;
use crate::jsonrpc::Json;
pub(crate) fn check_content(_schema: Json<'_>, content: Json<'_>) -> Result<String, String> { Ok(content.as_str().into()) }
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elicited<T> { Accept(T), Decline, Cancel }
#[derive(Clone, Debug)]
pub struct Form;
impl Form { pub fn request(&self) -> crate::wire::InputRequest<'static> { crate::wire::InputRequest::confirm("x") } }
