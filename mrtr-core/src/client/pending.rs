//! State `Pending`: the first request is on the wire.

use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

use super::{
    Call, Client, Exchange, StartError,
    call::{Method, Params},
    ongoing::{Counts, Ongoing, Tail, Unsent},
    policy::Spent,
    receive::{Flight, Open},
};
use crate::{jsonrpc::RequestId, time::Timestamp, wire::Version};

/// The first request is on the wire.
#[derive(Debug)]
pub struct Pending(Flight);

impl Open for Pending {}

impl super::receive::InFlight for Pending {
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

impl Client {
    /// Starts an exchange: appends its first request.
    ///
    /// `id` must not be the id of another request that is still to be answered, and the exchange refuses
    /// it for its later requests.
    ///
    /// # Errors
    ///
    /// If the call's parameters are not usable or the request would be too large. Nothing is appended then.
    pub fn start(
        &self,
        id: RequestId,
        call: Call<'_>,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> Result<Exchange<Pending>, StartError> {
        let config = &self.shared.config;
        let capabilities = match call.options.capabilities {
            None => self.shared.capabilities,
            Some(capabilities) => super::as_declared(&config.declared(capabilities)),
        };
        let mut ongoing = alloc::boxed::Box::new(Ongoing {
            shared: Arc::clone(&self.shared),
            method: Method::from_name(call.method),
            params: Params::read(call.params, config)?,
            options: call.options,
            capabilities,
            version: config.versions.first().copied().unwrap_or(Version::LATEST),
            id,
            earlier: Vec::new(),
            tail: Tail::default(),
            base: 0,
            counts: Counts::default(),
            spent: Spent::new(now),
            last: Vec::new(),
            past: BTreeMap::new(),
        });
        match ongoing.write(&ongoing.id, &ongoing.tail, out) {
            Ok(base) => {
                ongoing.base = base;
                Ok(Exchange { call: ongoing, state: Pending(Flight::new(now)) })
            }
            Err(Unsent::Id(fault)) => Err(StartError::Id(fault)),
            Err(Unsent::TooLarge { bytes, limit }) => Err(StartError::TooLarge { bytes, limit }),
        }
    }
}
