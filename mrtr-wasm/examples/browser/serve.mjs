// Serves this folder, and the package under /mrtr/, on loopback: `node serve.mjs [PORT]`. It prints its url.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, extname, join, normalize, sep } from "node:path";
import { fileURLToPath } from "node:url";

const folders = {
  page: dirname(fileURLToPath(import.meta.url)),
  mrtr: dirname(createRequire(import.meta.url).resolve("mrtr/package.json")),
};
const types = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };

const http = createServer(async (request, response) => {
  try {
    const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
    const inPackage = path.startsWith("/mrtr/");
    const folder = inPackage ? folders.mrtr : folders.page;
    const file = normalize(join(folder, inPackage ? path.slice(6) : path === "/" ? "index.html" : path));
    if (!file.startsWith(folder + sep) || !(await stat(file)).isFile()) throw new Error("not here");
    response.writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
  } catch {
    response.writeHead(404).end("not here\n");
  }
});
http.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/`));
