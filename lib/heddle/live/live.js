// The browser's side of Heddle::Live: sends events, and applies the server's changes to the page.
"use strict";

(() => {
  const KINDS = ["click", "submit", "change", "input", "keydown"]

  // Makes the new pieces from the old ones: see lib/heddle/live/patch.rb.
  function patched(old, script) {
    const pieces = []
    let cursor = 0
    for (const step of script) {
      if (typeof step === "string") cursor = Number(step)
      else if (Array.isArray(step)) pieces.push(step)
      else if (typeof step === "number") {
        pieces.push(...old.slice(cursor, cursor + step))
        cursor += step
      } else {
        const piece = old[cursor++].slice()
        for (const place in step) piece[Number(place) + 1] = step[place]
        pieces.push(piece)
      }
    }
    return pieces
  }

  const html = (statics, pieces) => pieces.map(([number, ...values]) =>
    statics[number].map((text, i) => i ? values[i - 1] + text : text).join("")).join("")

  // -- the document -----------------------------------------------------------------------------------------------------

  const keyOf = (node) => node.nodeType === 1 ? node.getAttribute("data-key") || node.id : ""

  // Keeps what the user has typed or selected, unless the server has changed the attribute.
  function morphAttributes(node, wanted) {
    for (const { name } of [...node.attributes]) {
      if (wanted.hasAttribute(name)) continue
      node.removeAttribute(name)
      if (name === "checked" || name === "selected") node[name] = false
    }
    for (const { name, value } of wanted.attributes) {
      if (node.getAttribute(name) === value) continue
      node.setAttribute(name, value)
      if (name === "value") node.value = value
      if (name === "checked" || name === "selected") node[name] = true
    }
  }

  function morph(node, wanted) {
    if (node.nodeType !== 1) {
      if (node.data !== wanted.data) node.data = wanted.data
      return
    }
    morphAttributes(node, wanted)
    if (node.hasAttribute("data-live-ignore")) return
    if (node.localName === "textarea" && node.defaultValue !== wanted.defaultValue) node.value = wanted.defaultValue
    morphChildren(node, wanted)
  }

  function morphChildren(parent, wanted) {
    const keyed = new Map()
    for (const child of parent.children) if (keyOf(child)) keyed.set(keyOf(child), child)
    let place = parent.firstChild
    for (const node of [...wanted.childNodes]) {
      const key = keyOf(node)
      let found = key ? keyed.get(key) : place && !keyOf(place) && place
      if (found && found.nodeName !== node.nodeName) found = undefined
      if (found !== place || !found) parent.insertBefore(found || node, place)
      else place = place.nextSibling
      if (found) morph(found, node)
    }
    for (let next; place; place = next) {
      next = place.nextSibling
      place.remove()
    }
  }

  // -- in place of a WebSocket -------------------------------------------------------------------------------------------

  // Opens an event stream. Sends each message in a POST request, one after the other.
  function openStream(address) {
    const source = new EventSource(address)
    const socket = {}
    let key, sent = Promise.resolve()
    const end = () => {
      source.close()
      socket.onclose?.()
      socket.onclose = null
    }
    source.addEventListener("key", ({ data }) => socket.onopen(key = data))
    source.onmessage = (event) => socket.onmessage(event)
    source.onerror = end
    socket.send = (body) => {
      sent = sent.then(() => fetch(address, { method: "POST", headers: { "x-stream-key": key }, body }))
        .then(({ ok }) => ok || end(), end)
    }
    return socket
  }

  // -- a page -----------------------------------------------------------------------------------------------------------

  function start(root) {
    let socket, id, statics, pieces
    let pause = 500
    let streams = !window.WebSocket

    function receive(event) {
      const word = JSON.parse(event.data)
      if (word.reload) return setTimeout(() => location.reload(), performance.now() < 5000 ? 5000 : 0)

      if (Array.isArray(word)) pieces = patched(pieces, word)
      else ({ id, statics, pieces } = word)
      const template = document.createElement("template")
      template.innerHTML = html(statics, pieces)
      morphChildren(root, template.content)
      socket.send("1")
      pause = 500
      root.dataset.liveState = "connected"
    }

    function connect() {
      const address = new URL(root.dataset.liveSocket, location.href)
      socket = streams ? openStream(address) : new WebSocket(address.href.replace("http", "ws"))
      socket.onopen = () => socket.send(JSON.stringify({ token: root.dataset.live, id }))
      socket.onmessage = receive
      socket.onclose = () => {
        root.dataset.liveState = "disconnected"
        if (!id) streams = !streams || !window.WebSocket // no message was ever received: tries the other transport
        setTimeout(connect, pause * (0.5 + Math.random()))
        pause = Math.min(pause * 2, 30_000)
      }
    }

    // data-live-x="3" sets the parameter x to 3, and data-live-row-id="7" sets row_id to 7.
    function valuesOf(element, event) {
      const values = {}
      for (const { name, value } of element.attributes) {
        const word = name.startsWith("data-live-") && name.slice(10)
        if (word && ![...KINDS, "reset", "ignore"].includes(word)) values[word.replaceAll("-", "_")] = value
      }
      if (event.type === "submit") {
        for (const [name, value] of new FormData(element, event.submitter)) if (typeof value === "string") values[name] = value
      } else if (event.type === "keydown") values.key = event.key
      else if (event.type !== "click") values.value = event.target.type === "checkbox" ? String(event.target.checked) : event.target.value
      return values
    }

    function send(event) {
      const attribute = `data-live-${event.type}`
      const element = event.target.closest(`[${attribute}]`)
      if (!element) return
      if (event.type === "submit" || element.localName === "a") event.preventDefault()
      if (root.dataset.liveState !== "connected") return

      socket.send(JSON.stringify({ event: element.getAttribute(attribute), values: valuesOf(element, event) }))
      if (event.type === "submit" && element.hasAttribute("data-live-reset")) element.reset()
    }

    for (const kind of KINDS) root.addEventListener(kind, send)
    connect()
  }

  document.querySelectorAll("[data-live]").forEach(start)
})()
