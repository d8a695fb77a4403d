// One room for all visitors: each message comes back over a WebSocket and as an event.

const panel = document.getElementById("together")
const find = (name) => panel.querySelector(`[data-${name}]`)
const LINES = 5

const sent = new Map() // times of our own messages, by id
let socket = null
let events = null

function join() {
  if (socket) return
  const address = new URL("/together", location.href)
  address.protocol = location.protocol.replace("http", "ws")
  socket = new WebSocket(address)
  events = new EventSource("/together/events")
  socket.onopen = events.onopen = () => {
    if (socket.readyState === WebSocket.OPEN && events.readyState === EventSource.OPEN) joined()
  }
  socket.onmessage = ({ data }) => show("socket", JSON.parse(data))
  events.onmessage = ({ data }) => show("events", JSON.parse(data))
  socket.onclose = leave
  if (!find("weave").src) find("weave").src = "/weave"
}

function joined() {
  find("run").hidden = true
  find("say").hidden = false
  find("status").textContent = "You have joined. Say something, or cross a thread."
  panel.dataset.joined = "true"
}

function leave() {
  events.close()
  socket = null
  find("run").hidden = false
  find("say").hidden = true
  find("status").textContent = "The connection has ended. Join again?"
  delete panel.dataset.joined
}

// A message of ours is shown with the time that it took.
function show(way, { id, text }) {
  const time = sent.get(id)
  const took = time === undefined ? "" : ` (${(performance.now() - time).toFixed(1)} ms)`
  find(way).prepend(Object.assign(document.createElement("li"), { textContent: text + took }))
  while (find(way).children.length > LINES) find(way).lastElementChild.remove()
}

function say(event) {
  event.preventDefault()
  const field = event.target.elements.text
  const id = Math.random().toString(36).slice(2)
  sent.set(id, performance.now())
  socket.send(JSON.stringify({ id, text: field.value }))
  field.value = ""
}

find("run").addEventListener("click", join)
find("say").addEventListener("submit", say)
