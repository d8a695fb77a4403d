// Reads lines of JSON, {kind: "request" or "response", method, bytes: base64}, parses each with Node's http over a stream
// in memory, and writes a line of JSON for each: what it understood, or the code of the error.

"use strict";

const http = require("node:http");
const { Duplex } = require("node:stream");

function memoryStream(bytes) {
  const stream = new Duplex({ read() {}, write(chunk, encoding, done) { done(); } });
  stream.setTimeout = stream.setNoDelay = stream.setKeepAlive = stream.ref = stream.unref = () => stream;
  stream.feed = () => { stream.push(bytes); setImmediate(() => stream.push(null)); };
  return stream;
}

function lowerCase(raw) {
  return raw.map((text, index) => (index % 2 ? text : text.toLowerCase()));
}

// Notes the body as it comes; calls back at its end.
function collect(message, result, done) {
  const chunks = [];
  result.body = "";
  message.on("data", (chunk) => {
    chunks.push(chunk);
    result.body = Buffer.concat(chunks).toString("base64");
  });
  message.on("end", () => done(result));
  for (const event of ["error", "aborted"]) message.on(event, () => done({ ...result, error: "BODY" }));
}

function once(callback) {
  let called = false;
  return (result) => { if (!called) { called = true; callback(result); } };
}

function parseRequest(bytes, callback) {
  const done = once(callback);
  const head = (request) => ({ method: request.method, target: request.url, minor: request.httpVersionMinor,
    fields: lowerCase(request.rawHeaders) });
  const server = http.createServer({ keepAliveTimeout: 0, joinDuplicateHeaders: true });
  let result = {};
  const answered = (request, response) => {
    result = { ...head(request), keepAlive: response.shouldKeepAlive };
    collect(request, result, done);
  };
  server.on("request", answered);
  server.on("checkContinue", answered);
  server.on("checkExpectation", (request) => done({ error: "EXPECTATION" }));
  for (const event of ["upgrade", "connect"]) server.on(event, (request) => done({ ...head(request), [event]: true }));
  server.on("clientError", (error) => done({ ...result, error: error.code || "unknown" }));
  const stream = memoryStream(bytes);
  stream.on("close", () => setImmediate(() => done({ ...result, error: "CLOSED" })));
  stream.on("error", () => {});
  // Without a Host it answers 400 by itself, and then there is no request.
  stream._write = (chunk, encoding, written) => {
    if (String(chunk).startsWith("HTTP/1.1 400")) done({ error: "BAD_REQUEST" });
    written();
  };
  server.emit("connection", stream);
  stream.feed();
}

function parseResponse(bytes, method, callback) {
  const done = once(callback);
  const stream = memoryStream(bytes);
  const head = (response) => ({ status: response.statusCode, minor: response.httpVersionMinor,
    reason: response.statusMessage, fields: lowerCase(response.rawHeaders) });
  const request = http.request({ method, host: "a", path: method === "CONNECT" ? "a:1" : "/",
    createConnection: () => stream });
  let result = {};
  request.on("response", (response) => {
    result = head(response);
    collect(response, result, done);
  });
  for (const event of ["upgrade", "connect"]) request.on(event, (response) => done({ ...head(response), [event]: true }));
  request.on("error", (error) => done({ ...result, error: error.code || "unknown" }));
  request.on("close", () => setImmediate(() => done({ ...result, error: "CLOSED" })));
  request.end();
  setImmediate(() => stream.feed());
}

async function main() {
  let text = "";
  for await (const chunk of process.stdin) text += chunk;
  for (const line of text.split("\n").filter(Boolean)) {
    const input = JSON.parse(line);
    const bytes = Buffer.from(input.bytes, "base64");
    const result = await new Promise((resolve) => {
      setTimeout(() => resolve({ error: "SILENT" }), 1000).unref();
      if (input.kind === "request") parseRequest(bytes, resolve);
      else parseResponse(bytes, input.method, resolve);
    });
    process.stdout.write(`${JSON.stringify(result)}\n`);
  }
}

process.on("uncaughtException", (error) => { console.error(error); process.exit(1); });
main();
