// What is in a tar archive? Entries one after the other as they arrive, in the forms that GNU tar and busybox write; nothing is
// collected but names. Who sent it is not trusted: what cannot be understood is an error, never a guess.

export interface TarEntry {
  /** As it was sent: perhaps absolute, perhaps with `..`. */
  readonly path: string
  readonly kind: 'file' | 'directory' | 'symlink' | 'hardLink' | 'other'
  /** Where a link points. */
  readonly target: string
  readonly mode: number
  /** Seconds since 1970. */
  readonly modified: number
  /** To be read before the next entry is asked for; what is left is skipped. */
  readonly content: AsyncIterable<Uint8Array>
}

export class TarError extends Error {
  override readonly name = 'TarError'
  readonly code = 'TAR'
}

const broken = 'what came is no tar archive, or a broken one'
const blockBytes = 512
/** Of a name that needs blocks of its own. */
const longestName = 1_048_576
const kinds: Readonly<Record<string, TarEntry['kind']>> = {
  '\0': 'file',
  '0': 'file',
  '7': 'file',
  '1': 'hardLink',
  '2': 'symlink',
  '5': 'directory',
}

export async function* readTar(input: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry, void, undefined> {
  const bytes = createByteReader(input)
  let said: Record<string, string> = {}
  for (;;) {
    const block = await bytes.exactly(blockBytes)
    // A block of zeros ends an archive; what comes behind it is read to the end, so that its writer is not cut off.
    if (block.every((byte) => byte === 0)) return await bytes.drain()
    const head = parseHead(block)
    if (/^[xgLK]$/.test(head.type)) {
      if (head.size > longestName) throw new TarError(`an archive holds a name of ${head.size} bytes`)
      const text = (await bytes.exactly(padded(head.size))).subarray(0, head.size)
      // What a global header says of all files concerns us as little as their owners.
      if (head.type !== 'g') said = { ...said, ...recordsOf(head.type, text) }
      continue
    }
    const size = head.kind === 'hardLink' ? 0 : (sizeFrom(said['size']) ?? head.size)
    const content = bytes.piecesOf(size)
    yield { ...entryOf(head, said), content }
    said = {}
    for await (const piece of content) void piece
    await bytes.exactly(padded(size) - size)
  }
}

interface Head {
  readonly type: string
  readonly kind: TarEntry['kind']
  readonly path: string
  readonly target: string
  readonly mode: number
  readonly modified: number
  readonly size: number
}

function parseHead(block: Buffer): Head {
  const text = (from: number, length: number) => {
    const field = block.subarray(from, from + length)
    const end = field.indexOf(0)
    return field.toString('utf8', 0, end < 0 ? length : end)
  }
  const number = (from: number, length: number) => numberFrom(block.subarray(from, from + length))
  const sum = block.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 32 : byte), 0)
  if (sum !== number(148, 8)) throw new TarError(broken)
  // Only the POSIX form has a prefix; GNU's keeps other things there.
  const prefix = block.toString('latin1', 257, 263) === 'ustar\0' ? text(345, 155) : ''
  const type = block.toString('latin1', 156, 157)
  return {
    type,
    kind: kinds[type] ?? 'other',
    path: prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`,
    target: text(157, 100),
    mode: number(100, 8) & 0o7777,
    modified: number(136, 12),
    size: number(124, 12),
  }
}

/** Octal digits, or, when they do not suffice, the number itself behind a mark. */
function numberFrom(field: Buffer): number {
  const [first = 0] = field
  if ((first & 0x80) === 0) {
    const [, digits] = /^ *([0-7]*)[\0 ]*$/.exec(field.toString('latin1')) ?? []
    if (digits === undefined) throw new TarError(broken)
    return Number.parseInt(digits || '0', 8)
  }
  // Below zero is only a time before 1970, and that is as good as none.
  if (first === 0xff) return 0
  const value = BigInt(`0x${field.toString('hex')}`) & ((1n << BigInt(field.length * 8 - 1)) - 1n)
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new TarError(broken)
  return Number(value)
}

/** What GNU's long names and the records of POSIX say of the next entry. */
function recordsOf(type: string, text: Buffer): Record<string, string> {
  if (type !== 'x') return { [type === 'L' ? 'path' : 'linkpath']: text.toString('utf8').replace(/\0.*$/s, '') }
  const records: Record<string, string> = {}
  for (let at = 0; at < text.length;) {
    const [, digits = '', name = ''] = /^(\d+) ([^=\n]+)=/.exec(text.toString('utf8', at, at + 200)) ?? []
    const length = Number(digits)
    const begin = at + digits.length + 1 + Buffer.byteLength(name) + 1
    if (name === '' || at + length > text.length || begin >= at + length) throw new TarError(broken)
    records[name] = text.toString('utf8', begin, at + length - 1)
    at += length
  }
  return records
}

function sizeFrom(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,15}$/.test(text)) throw new TarError(broken)
  return Number(text)
}

function entryOf(head: Head, said: Readonly<Record<string, string>>): Omit<TarEntry, 'content'> {
  const path = said['path'] ?? head.path
  const isSparse = Object.keys(said).some((name) => name.startsWith('GNU.sparse.'))
  const kind = isSparse ? 'other' : head.kind === 'file' && path.endsWith('/') ? 'directory' : head.kind
  const modified = said['mtime'] === undefined ? head.modified : Number.parseFloat(said['mtime']) || 0
  return { path, kind, target: said['linkpath'] ?? head.target, mode: head.mode, modified }
}

const padded = (size: number) => Math.ceil(size / blockBytes) * blockBytes

function createByteReader(input: AsyncIterable<Uint8Array>) {
  const iterator = input[Symbol.asyncIterator]()
  let rest: Buffer = Buffer.alloc(0)
  /** Something, but no more than this. */
  const upTo = async (limit: number): Promise<Buffer> => {
    while (rest.length === 0) {
      const { done, value } = await iterator.next()
      if (done === true) throw new TarError('the archive ends in the middle')
      rest = Buffer.from(value.buffer, value.byteOffset, value.length)
    }
    const piece = rest.subarray(0, limit)
    rest = rest.subarray(piece.length)
    return piece
  }
  return {
    async exactly(length: number): Promise<Buffer> {
      const pieces: Buffer[] = []
      for (let left = length; left > 0; left -= pieces.at(-1)!.length) pieces.push(await upTo(left))
      return Buffer.concat(pieces)
    },
    /** May be read in several goes: each begins where the one before stopped. */
    piecesOf(size: number): AsyncIterable<Uint8Array> {
      let left = size
      return {
        async *[Symbol.asyncIterator]() {
          while (left > 0) {
            const piece = await upTo(left)
            left -= piece.length
            yield piece
          }
        },
      }
    },
    async drain(): Promise<void> {
      while ((await iterator.next()).done !== true);
    },
  }
}
