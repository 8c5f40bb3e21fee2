//! One request, or several, a line each, at a server whose tools ask: no panic; whatever comes back is one line of
//! JSON that is a response; a result says what it is and who made it; the same input gives the same output; and
//! no tool that needs a yes completes, for no input has the key.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let server = mrtr_fuzz::server::Server::encrypted();
    for (number, line) in input.split(|&byte| byte == b'\n').take(4).enumerate() {
        let reply = server.receive(line, number as u64);
        assert_eq!(reply, server.receive(line, number as u64));
        if let Some(reply) = mrtr_fuzz::server::check(&reply) {
            assert!(!mrtr_fuzz::server::says(&reply, "confirmed"));
        }
    }
});
