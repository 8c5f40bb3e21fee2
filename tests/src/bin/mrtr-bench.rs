//! What an exchange costs.
//!
//! `mrtr-bench time` prints CPU time; `run SUITE COUNT` and `replay COUNT` only run, for a tool that counts
//! instructions from outside: the difference of two counts is the cost of the runs between them. Allocations are
//! counted by `mrtr-allocations`, a program of its own, for counting them costs instructions too.

use std::hint::black_box;

use mrtr_tests::exchange::{Bench, SUITES};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["time"] => {
            for suite in SUITES {
                let bench = Bench::new(suite, 1);
                time(&format!("exchange {suite}"), |number| drop(black_box(bench.exchange(number))));
            }
            let replay = replay();
            time("replay", replay);
        }
        ["run", suite, count] => {
            let bench = Bench::new(suite, 1);
            (0..count.parse().expect("a count")).for_each(|number| drop(black_box(bench.exchange(number))));
        }
        ["replay", count] => (0..count.parse().expect("a count")).for_each(replay()),
        _ => {
            eprintln!("usage: mrtr-bench time | run SUITE COUNT | replay COUNT    (suites: {SUITES:?})");
            std::process::exit(2);
        }
    }
}

/// The last request of an exchange with ten recorded asks, without the rest of the exchange.
fn replay() -> impl FnMut(u64) {
    let bench = Bench::new("xchacha", 10);
    let (request, mut reply) = (bench.exchange(0), Vec::new());
    move |number| {
        reply.clear();
        bench.serve(&request, 256 + number, &mut reply);
        black_box(&reply);
    }
}

/// The best of many turns: what else the machine does can only make a turn slower.
fn time(name: &str, mut run: impl FnMut(u64)) {
    (0..1_000).for_each(&mut run);
    let mut best = u64::MAX;
    for _ in 0..40 {
        let from = cpu();
        (0..1_000).for_each(&mut run);
        best = best.min(cpu() - from);
    }
    println!("{name} {:.2} µs CPU", best as f64 / 1_000_000.0);
}

/// Nanoseconds that this process has spent on a processor.
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number")
}
