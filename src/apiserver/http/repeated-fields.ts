// Which fields does a JSON text name twice? JSON.parse keeps the last and is silent; Kubernetes warns or refuses.

/** `duplicate field "spec.x"`, in the order of the text. `value` is what the text was parsed to. */
export function repeatedFields(text: string, value: unknown): readonly string[] {
  // Clients send compact JSON: written again it is as long as it came, unless a field was lost.
  if (JSON.stringify(value)?.length === text.trimEnd().length) return []
  const found = new Set<string>()
  let length = 0
  const frames: Frame[] = []
  for (let at = 0; at < text.length; at++) {
    const frame = frames.at(-1)
    switch (text[at]) {
      case '"': {
        const end = stringEnd(text, at)
        if (frame?.keys !== undefined && frame.expectsKey) {
          const key: unknown = JSON.parse(text.slice(at, end + 1))
          frame.field = String(key)
          if (frame.keys.has(frame.field) && length < lengthLimit && found.size < countLimit) {
            const path = pathOf(frames)
            found.add(path)
            length += path.length
          }
          frame.keys.add(frame.field)
          frame.expectsKey = false
        }
        at = end
        break
      }
      case '{':
        frames.push({ keys: new Set(), field: '', expectsKey: true, index: 0 })
        break
      case '[':
        frames.push({ keys: undefined, field: '', expectsKey: false, index: 0 })
        break
      case '}':
      case ']':
        frames.pop()
        break
      case ',':
        if (frame?.keys !== undefined) frame.expectsKey = true
        else if (frame !== undefined) frame.index++
        break
      default:
    }
  }
  return [...found].map((path) => `duplicate field ${JSON.stringify(path)}`)
}

/** Kubernetes' own limit. */
const countLimit = 100
/** A long name above many repeated ones would be written once for each. */
const lengthLimit = 64 * 1024

/** A map (with the keys seen so far and the one we are at) or a list (with the index we are at). */
interface Frame {
  readonly keys: Set<string> | undefined
  field: string
  expectsKey: boolean
  index: number
}

function pathOf(frames: readonly Frame[]): string {
  return frames.reduce((path, { keys, field, index }) => {
    if (keys === undefined) return `${path}[${index}]`
    return path === '' ? field : `${path}.${field}`
  }, '')
}

/** The text is valid JSON: a string ends at the first quote that is not escaped. */
function stringEnd(text: string, start: number): number {
  let at = start + 1
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at
}
