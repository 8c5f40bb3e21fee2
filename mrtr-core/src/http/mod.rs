//! The rules of HTTP: verdicts on method, headers and body, and the shape of a reply. Pure: an adapter brings
//! the bytes, and hyper and an edge worker share what is here (design decision 9).
//!
//! # A server
//!
//! The order of the checks is fixed. What is in *italics* is the server's own.
//!
//! | step | check | here | error | status |
//! |---|---|---|---|---|
//! | 1 | `Host` and `Origin` may call | [`Gate::check`] | `-32600`, no id | 403 |
//! | 2 | the method is POST | [`Gate::check`] | `-32600`, no id | 405 and `Allow` |
//! | 2 | the body is said to be JSON | [`Gate::check`] | `-32600`, no id | 415 |
//! | 2 | the client reads JSON or event streams | [`Gate::check`] | `-32600`, no id | 406 |
//! | 2 | the body is said to be within the limit | [`Gate::check`] | `-32600`, no id | 413 |
//! | | *the body is one JSON-RPC message* | [`jsonrpc::admit`](crate::jsonrpc::admit) | `-32700`, `-32600` | 400, 413 |
//! | | *modern or legacy, if both are served* | [`Opening::judge`] | | |
//! | 3 | the version header is there | [`check_version_present`] | `-32020` | 400 |
//! | 4 | *`_meta` is complete* | [`RequestMeta`](crate::wire::RequestMeta) | `-32602` | 400 |
//! | 5 | the version header says what `_meta` says | [`check_version_matches`] | `-32020` | 400 |
//! | 6 | *the version is served* | | `-32022` | 400 |
//! | 7 | `Mcp-Method`, `Mcp-Name` say what the body says | [`check_standard`] | `-32020` | 400 |
//! | 7 | `Mcp-Param-*` say what the arguments say | [`check_params`] | `-32020` | 400 |
//! | 8 | *the method is known* | | `-32601` | 404 |
//! | 9 | *capabilities* | | `-32021` | 400 |
//! | 9 | *parameters, state, handler* | | `-32602`, `-32603`, … | 200 |
//!
//! A notification needs none of the headers ([`check_notification`], G-49) and is answered 202 without a body.
//! On stdio there are no headers and no `-32020`. The status of a reply goes by its [`ReplyClass`], its
//! body by [`ReplyBody`].
//!
//! # A client
//!
//! [`request_headers`] builds the headers from the body, the same for every retry. [`BodyPlan`] says how to
//! read the response, [`judge`] what it is.
//!
//! | file | what |
//! |---|---|
//! | `headers` | [`Headers`], a view of an adapter's own map |
//! | `media` | `Content-Type` and `Accept` |
//! | `authority` | the names in `Host` and `Origin` |
//! | `gate`, `cors` | steps 1 and 2; what browsers have to be told |
//! | `check` | steps 3, 5 and 7 |
//! | `opening` | which era a message belongs to |
//! | `params` | `x-mcp-header` annotations, for both sides |
//! | `sentinel`, `number` | values in headers: `=?base64?…?=`, exact comparison |
//! | `class`, `reply` | status, headers and body of a reply |
//! | `request`, `response` | the client's half |

mod authority;
mod check;
mod class;
mod cors;
#[cfg(any(fuzzing, feature = "test-utils"))]
pub mod fuzzing;
mod gate;
mod headers;
mod media;
mod number;
mod opening;
mod params;
mod reply;
mod request;
mod response;
mod sentinel;

pub use check::{
    HeaderMismatch, HeaderProblem, check_notification, check_params, check_standard, check_version_matches,
    check_version_present, named_by,
};
pub use class::ReplyClass;
pub use cors::Cors;
pub use gate::{Bind, Gate, GateFault, NotAName, Ruling, Verdict};
pub use headers::{Headers, name};
pub(crate) use headers::{Single, single};
pub use media::Accepts;
pub use opening::Opening;
pub use params::{ParamFault, ParamHeader, ParamHeaders, ParamType};
pub use reply::{Content, ReplyBody, ReplyHead};
pub use request::{HeaderFault, RequestHeaders, request_headers};
pub(crate) use response::is_modern;
pub use response::{BodyPlan, HttpError, HttpErrorKind, Judgement, Sent, judge};
pub use sentinel::{SentinelFault, decode_value, encode_value};
