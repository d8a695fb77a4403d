"use strict"
// Node.js with the package ws: node ws.js PORT [CERTIFICATE KEY]
const fs = require("fs")
const http = require("http")
const https = require("https")
const { WebSocketServer } = require("ws")

const room = new Set()
const sockets = new WebSocketServer({ noServer: true })
const [port, certificate, key] = process.argv.slice(2)
const answer = (_request, response) => response.end("hello\n")
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
      else if (request.url === "/room") for (const one of room) one.send(message, { binary: false })
    })
  })
})
server.listen(Number(port), "127.0.0.1", 4096)
