//! What authors of handlers use.

mod return_style;
