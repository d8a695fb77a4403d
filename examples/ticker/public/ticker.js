"use strict"

const table = document.getElementById("prices")
const state = document.getElementById("state")
const rows = new Map()
const KEPT = 60
const SVG = "http://www.w3.org/2000/svg"

function rowOf(name) {
  if (rows.has(name)) return rows.get(name)

  const line = table.insertRow()
  const head = document.createElement("th")
  head.textContent = name
  line.append(head)
  const price = line.insertCell()
  const picture = document.createElementNS(SVG, "svg")
  picture.setAttribute("preserveAspectRatio", "none")
  const curve = picture.appendChild(document.createElementNS(SVG, "polyline"))
  line.insertCell().append(picture)
  rows.set(name, { price, picture, curve, past: [] })
  return rows.get(name)
}

function show(name, price) {
  const row = rowOf(name)
  const before = row.past.at(-1) ?? price
  row.past.push(price)
  row.past = row.past.slice(-KEPT)
  row.price.textContent = price
  row.price.className = price > before ? "up" : price < before ? "down" : ""
  const least = Math.min(...row.past)
  const span = Math.max(...row.past) - least || 1
  row.picture.setAttribute("viewBox", `0 -2 ${KEPT - 1} 44`)
  const left = KEPT - row.past.length
  row.curve.setAttribute("points", row.past.map((one, x) => `${left + x},${40 - 40 * (one - least) / span}`).join(" "))
}

const prices = new EventSource("/prices")
prices.onopen = () => { state.textContent = rows.size ? "connected" : "waiting for market.rb …" }
prices.onerror = () => { state.textContent = "connecting …" }
prices.onmessage = (event) => {
  state.textContent = "connected"
  for (const [name, price] of Object.entries(JSON.parse(event.data))) show(name, price)
}
// Prices between are lost: the curves begin anew.
prices.addEventListener("reset", () => rows.forEach((row) => { row.past = [] }))
