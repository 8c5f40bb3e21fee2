//! `mrtr-bindgen IN.wasm OUT_DIR NAME`: writes NAME.js, NAME.d.ts and NAME_bg.wasm.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, folder, name] = arguments.as_slice() else {
        eprintln!("usage: mrtr-bindgen IN.wasm OUT_DIR NAME");
        return ExitCode::FAILURE;
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(input).out_name(name).typescript(true).omit_default_module_path(true);
    match bindgen.web(true).and_then(|bindgen| bindgen.generate(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mrtr-bindgen: {error:#}");
            ExitCode::FAILURE
        }
    }
}
