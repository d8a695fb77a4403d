// Code for both panels: lines of a response, numbers, SVG, axes.

const NAMESPACE = "http://www.w3.org/2000/svg"

export const grouped = new Intl.NumberFormat("en")

export const count = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`

// Finds an element of a panel by the name of its data attribute.
export const finder = (panel) => (name) => panel.querySelector(`[data-${name}]`)

// The lines of the response to a GET, each as soon as it is complete.
export async function* lines(path, options = {}) {
  const answer = await fetch(path, options)
  if (!answer.ok) throw new Error(`${answer.status} ${(await answer.text()).trim()}`)
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    const pieces = (rest + value).split("\n")
    rest = pieces.pop()
    yield* pieces
  }
}

// An SVG element with its attributes, put into its parent.
export function draw(parent, name, attributes = {}) {
  const element = document.createElementNS(NAMESPACE, name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  parent.append(element)
  return element
}

// The colour of the request with this index among `many`: different for each request, and the same in every drawing.
export function dye(index, many) {
  return `color-mix(in oklab, var(--madder) ${Math.round((index / Math.max(many - 1, 1)) * 100)}%, var(--indigo))`
}

// Writes the marks of an axis: pairs of a place, from 0 to 1, and a text.
export function mark(axis, marks) {
  axis.replaceChildren(...marks.map(([place, text]) => {
    const span = Object.assign(document.createElement("span"), { textContent: text, className: place > 0.999 ? "end" : "" })
    span.style.left = `${place * 100}%`
    return span
  }))
}

// Writes the marks of an axis that shows `span` seconds, as many as fit.
export function ticks(axis, span) {
  const most = Math.max(Math.min((axis.clientWidth || 600) / 80, 6), 2)
  const step = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20].find((size) => span / size <= most) ?? 60
  const marks = Array.from({ length: Math.floor(span / step + 1e-9) + 1 }, (_, index) => index * step)
  mark(axis, marks.map((at) => [at / span, at === 0 ? "0" : `${Number(at.toFixed(2))} s`]))
}

// Formats seconds in a unit that fits.
export function duration(seconds) {
  if (seconds === null) return "–"
  const [value, unit] = seconds < 1e-3 ? [seconds * 1e6, "µs"] : seconds < 1 ? [seconds * 1e3, "ms"] : [seconds, "s"]
  return `${value >= 100 ? Math.round(value) : Number(value.toPrecision(2))} ${unit}`
}
