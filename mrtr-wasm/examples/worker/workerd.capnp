# Runs the example without any account: see README.md.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "disk", disk = (writable = true, path = "ledger")),
  ],
  sockets = [(name = "http", address = "127.0.0.1:8787", http = (), service = "main")],
);

const worker :Workerd.Worker = (
  modules = [
    (name = "worker.js", esModule = embed "dist/worker.js"),
    (name = "mrtr_bg.wasm", wasm = embed "dist/mrtr_bg.wasm"),
  ],
  bindings = [
    (name = "MRTR_KEYS", fromEnvironment = "MRTR_KEYS"),
    (name = "LEDGER", durableObjectNamespace = "Ledger"),
  ],
  durableObjectNamespaces = [(className = "Ledger", uniqueKey = "mrtr-ledger")],
  durableObjectStorage = (localDisk = "disk"),
  compatibilityDate = "2026-11-01",
  # So that the server is told of a client that leaves, by `request.signal`.
  compatibilityFlags = ["enable_request_signal"],
);
