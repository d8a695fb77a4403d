"use strict"
// Node.js with the package ws: node ws.js PORT [CERTIFICATE KEY]
const fs = require("fs")
const http = require("http")
const https = require("https")
const { WebSocketServer } = require("ws")

const room = new Set()
const sockets = new WebSocketServer({ noServer: true })
const [port, certificate, key] = process.argv.slice(2)
const listeners = new Set()
const answer = (request, response) => {
  if (request.url !== "/events") return response.end("hello\n")
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" })
  response.flushHeaders()
  listeners.add(response)
  response.on("close", () => listeners.delete(response))
}
const server = certificate
  ? https.createServer({ cert: fs.readFileSync(certificate), key: fs.readFileSync(key) }, answer)
  : http.createServer(answer)

server.on("upgrade", (request, socket, head) => {
  sockets.handleUpgrade(request, socket, head, (client) => {
    client.on("error", () => {})
    if (request.url === "/room") {
      room.add(client)
      client.on("close", () => room.delete(client))
    }
    client.on("message", (message) => {
      if (request.url === "/echo") client.send(message, { binary: false })
      else if (request.url === "/room") {
        for (const one of room) one.send(message, { binary: false })
        if (listeners.size) {
          const event = `data: ${message}\n\n`
          for (const one of listeners) one.write(event)
        }
      }
    })
  })
})
server.listen(Number(port), "127.0.0.1", 4096)
