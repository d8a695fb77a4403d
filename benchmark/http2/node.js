// The application of bin/bench http, as far as bin/bench http2 asks for it: node node.js PORT SIZE_OF_12K [CERT KEY]
const http2 = require("http2");
const fs = require("fs");
const [port, size, certificate, key] = process.argv.slice(2);

const HELLO = "Hello, world!\n";
const LINE = "a line of the answer, one of many that are written one by one\n";
const BODY_12K = Buffer.from("0123456789abcde\n".repeat(size / 16));
const BODY_12M = Buffer.alloc(size * 1024, BODY_12K);

function answer(request, response) {
  response.setHeader("content-type", "text/plain");
  switch (request.url) {
    case "/hello":
      return response.end(HELLO);
    case "/12k":
      return response.end(BODY_12K);
    case "/12m":
      return response.end(BODY_12M);
    case "/upload": {
      let bytes = 0;
      request.on("data", (piece) => { bytes += piece.length; });
      return request.on("end", () => response.end(`${bytes}\n`));
    }
    case "/stream":
      for (let i = 0; i < 99; i++) response.write(LINE);
      return response.end();
    default:
      response.statusCode = 404;
      return response.end();
  }
}

const server = certificate
  ? http2.createSecureServer({ cert: fs.readFileSync(certificate), key: fs.readFileSync(key) }, answer)
  : http2.createServer(answer);
server.listen({ host: "127.0.0.1", port: Number(port), backlog: 4096 });
