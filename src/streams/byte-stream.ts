// What is a connection to the protocols above it? Bytes in and bytes out, with a brake in both directions; sockets offer it
// (socket.ts), and so do queues in memory, for parts of the same process and for tests.

export interface ByteStream {
  /** Ends when the other side has said all; fails when the connection breaks. Read once, piece by piece. */
  readonly input: AsyncIterable<Uint8Array>
  /** Resolves when there is room for more; fails when the other side is gone. */
  write(bytes: Uint8Array): Promise<void>
  /** Nothing more will come from us. */
  end(): Promise<void>
  /** Both directions, at once. */
  destroy(): void
  /** Aborts when it was destroyed, by whomever; whoever is busy and does not read hears of it here. */
  readonly gone: AbortSignal
}

/** Bytes on their way from one part to another, never more than `limitBytes` and one piece. */
export interface ByteQueue extends AsyncIterable<Uint8Array> {
  /** Resolves when there is room for more. What nobody will read any more is dropped. */
  write(bytes: Uint8Array): Promise<void>
  end(): void
  /** The reader gets what was written before, then this. */
  fail(error: Error): void
  /** Nobody reads: what is here and what comes is dropped. */
  discard(): void
}

export function createByteQueue(limitBytes = 65_536): ByteQueue {
  const pieces: Uint8Array[] = []
  let size = 0
  let end: { readonly error?: Error } | undefined
  let discarded = false
  let wakeReader: (() => void) | undefined
  let writers: (() => void)[] = []
  const wakeWriters = () => {
    for (const wake of writers.splice(0)) wake()
  }
  const discard = () => {
    discarded = true
    pieces.length = 0
    size = 0
    wakeReader?.()
    wakeWriters()
  }
  const finish = (how: { readonly error?: Error }) => {
    end ??= how
    wakeReader?.()
    wakeWriters()
  }
  async function* read(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        const piece = pieces.shift()
        if (piece) {
          size -= piece.length
          if (size < limitBytes) wakeWriters()
          yield piece
          continue
        }
        if (end?.error) throw end.error
        if (end || discarded) return
        await new Promise<void>((resolve) => (wakeReader = resolve))
        wakeReader = undefined
      }
    } finally {
      discard()
    }
  }
  return {
    async write(bytes) {
      if (discarded || end || bytes.length === 0) return
      pieces.push(bytes)
      size += bytes.length
      wakeReader?.()
      if (size >= limitBytes) await new Promise<void>((resolve) => void writers.push(resolve))
    },
    end: () => finish({}),
    fail: (error) => finish({ error }),
    discard,
    [Symbol.asyncIterator]: read,
  }
}

/** A connection inside this process: what one end writes, the other reads. */
export function createStreamPair(limitBytes?: number): readonly [ByteStream, ByteStream] {
  const [there, back] = [createByteQueue(limitBytes), createByteQueue(limitBytes)]
  const gone = new AbortController()
  const half = (input: ByteQueue, output: ByteQueue): ByteStream => ({
    input,
    async write(bytes) {
      if (gone.signal.aborted) throw new Error('the connection is closed')
      // The other end may keep a piece while ours is used again.
      await output.write(Uint8Array.from(bytes))
    },
    end: async () => output.end(),
    gone: gone.signal,
    destroy() {
      gone.abort(new Error('the connection was cut'))
      for (const queue of [input, output]) queue.fail(new Error('the connection was cut'))
    },
  })
  return [half(back, there), half(there, back)]
}

/** Everything that comes in, up to a limit. */
export async function readAll(input: AsyncIterable<Uint8Array>, limitBytes: number): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of input) {
    size += piece.length
    if (size > limitBytes) throw new Error(`more than ${limitBytes} bytes`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

type Joined = Omit<ByteStream, 'gone'>

/** Both ways until both have ended; when one breaks, so does the other, and that is an end like any. */
export async function joinStreams(one: Joined, other: Joined): Promise<void> {
  const copy = async (from: Joined, to: Joined) => {
    for await (const piece of from.input) await to.write(piece)
    await to.end()
  }
  await Promise.all([copy(one, other), copy(other, one)]).catch(() => {})
  one.destroy()
  other.destroy()
}
