//! Why a retry neither runs nor gets a stored reply.

use crate::error::RpcError;

/// Why, for the log; the peer gets [`Refusal::to_error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The state has been used with other answers, or is being used with them (B2).
    #[error("the state was used with other answers")]
    OtherAnswers,
    /// The state expired while the claim was under way.
    #[error("the state expired before it could be claimed")]
    Expired,
    /// Another copy of the retry is running and has not ended in time, too many wait for it already, or it
    /// took over a run that was too slow (B4).
    #[error("another copy of this retry is running")]
    Busy,
    /// A run began and its end is not known (B6).
    #[error("an earlier run ended in the unknown")]
    Lost,
    /// The run has ended, but its reply was too large to keep (B3).
    #[error("the reply of the earlier run was too large to keep")]
    NotKept,
    /// What the store holds cannot be read, or a stored reply not opened: another version, a retired secret,
    /// a foreign writer. It is not free, so nothing runs.
    #[error("the store holds what cannot be read")]
    Unreadable,
    /// The store did not answer, or has no room for another entry (B7).
    #[error("the store is down or full")]
    StoreDown,
    /// The claim was given up by [`Claim::handle_cancel`](super::Claim::handle_cancel); there is nobody to
    /// tell.
    #[error("the request was cancelled")]
    Cancelled,
}

impl Refusal {
    /// What to tell the peer. All states that are not accepted get one sentence (B2, G-11).
    #[must_use]
    pub fn to_error(self) -> RpcError {
        match self {
            Self::OtherAnswers | Self::Expired => RpcError::invalid_params("Invalid or expired requestState"),
            Self::Busy => RpcError::internal("This request is still being carried out")
                .with_raw_data("{\"retry\":true}".into()),
            Self::Lost => {
                RpcError::internal("Outcome unknown: an earlier attempt at this request was cut off")
            }
            Self::NotKept => {
                RpcError::internal("This request has been carried out; its result was too large to keep")
            }
            Self::Unreadable => {
                RpcError::internal("This request was begun before; what became of it cannot be read")
            }
            Self::StoreDown => RpcError::internal("Single use cannot be checked at the moment"),
            Self::Cancelled => RpcError::internal("The request was cancelled"),
        }
    }
}
