"use strict"

const messages = document.getElementById("messages")
const form = document.getElementById("form")
const button = form.querySelector("button")
const state = document.getElementById("state")
let socket
let position // of the last message: after a break the socket continues from there
let pause = 500

function show(text, name) {
  const item = document.createElement("li")
  if (name) {
    const author = document.createElement("b")
    author.textContent = `${name}: `
    item.append(author)
  } else {
    item.className = "note"
  }
  item.append(text)
  messages.append(item)
  item.scrollIntoView()
}

function receive(event) {
  const message = JSON.parse(event.data)
  position = message.position
  if (message.reset) return show("Earlier messages are no longer there.")

  const { name, text } = JSON.parse(message.data)
  show(text, name)
}

function connect() {
  const address = new URL("/room", location.href)
  address.protocol = location.protocol.replace("http", "ws")
  if (position) address.searchParams.set("since", position)
  socket = new WebSocket(address)
  socket.onmessage = receive
  socket.onopen = () => {
    pause = 500
    state.textContent = "connected"
    button.disabled = false
  }
  socket.onclose = () => {
    state.textContent = "connecting …"
    button.disabled = true
    setTimeout(connect, pause * (0.5 + Math.random()))
    pause = Math.min(pause * 2, 30_000)
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault()
  if (socket.readyState !== WebSocket.OPEN) return

  socket.send(JSON.stringify({ name: form.elements.name.value, text: form.elements.text.value }))
  form.elements.text.value = ""
  form.elements.text.focus()
})

connect()
