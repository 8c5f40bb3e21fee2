//! How often, and how much, an exchange allocates; a line each.

use std::hint::black_box;

use mrtr_tests::exchange::{Bench, SUITES};

fn main() {
    for suite in SUITES {
        let bench = Bench::new(suite, 1);
        print(&format!("exchange {suite}"), || drop(black_box(bench.exchange(7))));
    }
    let bench = Bench::new("xchacha", 10);
    let (request, mut reply) = (bench.exchange(0), Vec::with_capacity(4_096));
    print("replay", || bench.serve(&request, 256, &mut reply));
}

fn print(name: &str, run: impl FnOnce()) {
    let counted = allocation_counter::measure(run);
    println!("{name} {} allocations {} bytes", counted.count_total, counted.bytes_total);
}
