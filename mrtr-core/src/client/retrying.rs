//! State `Retrying`: a retry with answers, a state, or both is on the wire.

use super::receive::{Flight, InFlight, Open};

/// A retry is on the wire.
#[derive(Debug)]
pub struct Retrying(Flight);

impl Open for Retrying {}

impl InFlight for Retrying {
    fn new(flight: Flight) -> Self {
        Self(flight)
    }

    fn flight(&self) -> &Flight {
        &self.0
    }

    fn flight_mut(&mut self) -> &mut Flight {
        &mut self.0
    }
}
