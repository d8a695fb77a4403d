"use strict"
// Node.js with the package ws: node ws.js PORT
const http = require("http")
const { WebSocketServer } = require("ws")

const room = new Set()
const sockets = new WebSocketServer({ noServer: true })
const server = http.createServer((_request, response) => response.end("hello\n"))

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
server.listen(Number(process.argv[2]), "127.0.0.1", 4096)
