// How large is the client's terminal now? Only the newest size counts: whoever asks late gets that one.

export interface TerminalSize {
  readonly width: number
  readonly height: number
}

export interface Sizes extends AsyncIterable<TerminalSize> {
  /** JSON as kubectl writes it, `{"Width":80,"Height":24}`, perhaps several of them. */
  read(text: string): void
  /** The same from a stream, until it ends. */
  readFrom(input: AsyncIterable<Uint8Array>): Promise<void>
  end(): void
}

const longestRest = 1_024

export function createSizes(): Sizes {
  let newest: TerminalSize | undefined
  let ended = false
  let wake: (() => void) | undefined
  const sizes: Sizes = {
    read(text) {
      for (const [object] of text.matchAll(/\{[^{}]*\}/g)) newest = parseSize(object) ?? newest
      wake?.()
    },
    async readFrom(input) {
      let rest = ''
      try {
        for await (const bytes of input) {
          const text = rest + Buffer.from(bytes).toString('latin1')
          const end = text.lastIndexOf('}') + 1
          sizes.read(text.slice(0, end))
          rest = text.slice(end).slice(0, longestRest)
        }
      } catch {
        // the client has gone; the command hears of that elsewhere
      }
      sizes.end()
    },
    end() {
      ended = true
      wake?.()
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const size = newest
        newest = undefined
        if (size) yield size
        else if (ended) return
        else await new Promise<void>((resolve) => (wake = resolve))
      }
    },
  }
  return sizes
}

function parseSize(text: string): TerminalSize | undefined {
  try {
    const { Width: width, Height: height } = JSON.parse(text) as { Width?: unknown; Height?: unknown }
    return isLength(width) && isLength(height) ? { width, height } : undefined
  } catch {
    return undefined // no JSON: the terminal keeps its size
  }
}

function isLength(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= 65_535
}
