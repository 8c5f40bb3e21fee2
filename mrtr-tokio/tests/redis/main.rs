//! The ledger in a real Redis, and bridges that hand calls to one another through one: `tests/run redis` starts the
//! ledger's and says where it is, the bridges' are started by their tests.
//!
//! One test at a time: some change the server's settings.

// Tests may panic, helpers included.
#![allow(clippy::std_instead_of_core, clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

#[cfg(unix)]
mod bridges;
mod faults;
mod replicas;
mod store;

/// The address of the Redis that the tests may do anything with.
fn url() -> String {
    std::env::var("MRTR_TEST_REDIS").expect("MRTR_TEST_REDIS: the address of a Redis for the tests")
}

/// A connection that is patient, also with a machine that is busy with something else.
async fn plain() -> redis::aio::MultiplexedConnection {
    let patience = Some(std::time::Duration::from_secs(60));
    let patient =
        redis::AsyncConnectionConfig::new().set_connection_timeout(patience).set_response_timeout(patience);
    redis::Client::open(url()).unwrap().get_multiplexed_async_connection_with_config(&patient).await.unwrap()
}
