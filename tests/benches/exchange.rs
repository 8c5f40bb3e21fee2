//! What an exchange costs, piece by piece: `tests/run bench` measures each case and holds instructions and allocations
//! against `tests/bench/baseline.json`.

use std::process::ExitCode;

use mrtr_tests::bench;

fn main() -> ExitCode {
    bench::main(bench::cases(), bench::growth())
}
