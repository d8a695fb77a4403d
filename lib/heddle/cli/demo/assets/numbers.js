// Numbers as the page writes them.

export const grouped = new Intl.NumberFormat("en")

export const count = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`

// Seconds, in a unit that fits.
export function duration(seconds) {
  if (seconds === null) return "–"
  const [value, unit] = seconds < 1e-3 ? [seconds * 1e6, "µs"] : seconds < 1 ? [seconds * 1e3, "ms"] : [seconds, "s"]
  return `${value >= 100 ? Math.round(value) : Number(value.toPrecision(2))} ${unit}`
}

// The least round number that is not less.
export function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 3, 4, 6, 8, 10].map((step) => step * power).find((step) => step >= value)
}
