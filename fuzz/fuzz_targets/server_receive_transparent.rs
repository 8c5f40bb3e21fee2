//! Behind the seal: the first line is a journal as bytes in hexadecimal, the second the answers as JSON. Under a suite that seals nothing
//! the server gets a retry with that journal: no panic, a proper reply, and a confirmation only if the journal or
//! the answers hold an accept for it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let server = mrtr_fuzz::server::Server::transparent();
    let mut lines = input.splitn(2, |&byte| byte == b'\n');
    let journal = mrtr_fuzz::unhex(lines.next().unwrap_or_default());
    let answers = core::str::from_utf8(lines.next().unwrap_or_default()).unwrap_or("{}");
    for tool in mrtr_fuzz::server::TOOLS {
        let request = mrtr_fuzz::server::retry(tool, &server.seal(tool, &journal), answers);
        let reply = server.receive(request.as_bytes(), 1);
        let _ = mrtr_fuzz::server::check(&reply);
    }
});
