// The server's figures, over one answer that goes on for as long as this page is open.

import { lines } from "./stream.js"

const AGAIN = 1000 // ms until the server is asked again when it has gone
const listeners = []
let stream = null // the AbortController of the answer under way
let timer = null

// Calls back with each line, and with null when the server has gone. The first line of an answer says what the
// others mean: the seconds between them, and the bounds of the buckets.
export function follow(listener) {
  listeners.push(listener)
  if (listeners.length === 1) look()
}

const tell = (sample) => { for (const listener of listeners) listener(sample) }

async function listen() {
  const own = new AbortController()
  stream = own
  try {
    for await (const line of lines("/pulse", { cache: "no-store", signal: own.signal })) tell(JSON.parse(line))
  } catch {
    // The reason does not matter: the code below sees that it has ended.
  }
  if (stream !== own) return
  stream = null
  tell(null)
  timer = setTimeout(listen, AGAIN)
}

function look() {
  if (document.hidden) {
    clearTimeout(timer)
    stream?.abort()
    stream = null
  } else if (!stream) {
    clearTimeout(timer)
    listen()
  }
}

document.addEventListener("visibilitychange", look)
