//! One test binary for everything that goes through the public API: one link, many modules.

mod ledger;
