//! One message of one era into the other (BT-1…BT-6): pure functions that keep every byte they do not own.
//!
//! *Narrow* is what a peer of 2025-11-25 or before reads, *wide* what one of 2026-07-28 reads.
//!
//! | message | to the modern side | to the legacy side |
//! |---|---|---|
//! | a question | [`ask_to_modern`] | [`ask_to_legacy`] |
//! | its answer | [`answer_to_modern`] | [`answer_to_legacy`] |
//! | params of a request | [`params_to_modern`] | [`params_to_legacy`] |
//! | a result | [`result_to_modern`] | [`result_to_legacy`] |
//! | an error | [`error_to_modern`], [`url_required`] | [`error_to_legacy`] |
//!
//! Everything is appended to a buffer. Members are copied as they stand, in their order, with their own spelling of
//! numbers and strings; what is dropped or replaced is named at each function. The values that come in have been
//! admitted (they are [`Json`](crate::jsonrpc::Json)), so nothing here can fail on syntax, and nothing recurses.
//!
//! ```
//! use mrtr_core::{Limits, jsonrpc::Json, translate::result_to_legacy, wire::Version};
//!
//! let result = r#"{"resultType":"complete","content":[{"type":"text","text":"9007199254740993"}],"x":1.50,"ttlMs":0}"#;
//! let mut out = Vec::new();
//! result_to_legacy(&mut out, "tools/call", Json::parse(result, &Limits::default())?, Version::V2025_11_25);
//! assert_eq!(out, br#"{"content":[{"type":"text","text":"9007199254740993"}],"x":1.50}"#);
//! # Ok::<(), mrtr_core::jsonrpc::Refusal>(())
//! ```

mod answer;
mod ask;
mod capability;
mod edit;
mod error;
mod params;
mod result;

pub use answer::{answer_to_legacy, answer_to_modern};
pub(crate) use ask::write_message;
pub use ask::{ModernAsk, Origin, Unsayable, Wording, ask_to_legacy, ask_to_modern};
pub use capability::{promise, understood};
pub(crate) use edit::{Edit, Keep, Tail, edit_object};
pub(crate) use error::caused;
pub use error::{NoUrls, UrlRequired, error_to_legacy, error_to_modern, lacking_to_modern, url_required};
pub use params::{ModernMeta, params_to_legacy, params_to_modern};
pub use result::{result_to_legacy, result_to_modern};
