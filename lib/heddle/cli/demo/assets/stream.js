// Reading an answer while it is being written.

// The lines of the answer to a GET, each as soon as it is whole.
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
  if (rest) yield rest
}
