//! How often the cases of `exchange.rs` allocate. A program of its own, for it replaces the allocator, and counting
//! costs instructions.

use std::process::ExitCode;

use allocation_counter::measure;
use mrtr_tests::bench;

fn main() -> ExitCode {
    bench::count(bench::cases(), |run| {
        let info = measure(run);
        (info.count_total, info.bytes_total)
    })
}
