// The little that the drawings need of SVG.

const NAMESPACE = "http://www.w3.org/2000/svg"

// An SVG element with its attributes, put into its parent.
export function draw(parent, name, attributes = {}) {
  const element = document.createElementNS(NAMESPACE, name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  parent.append(element)
  return element
}

// The colour of one of many requests, so that it differs from its neighbours in every drawing.
export function dye(index, count) {
  const share = Math.round((index / Math.max(count - 1, 1)) * 100)
  return `color-mix(in oklab, var(--madder) ${share}%, var(--indigo))`
}

export const calm = matchMedia("(prefers-reduced-motion: reduce)")
