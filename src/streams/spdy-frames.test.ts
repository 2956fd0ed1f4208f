// Does the SPDY codec understand what Go's implementation writes, whatever pieces it comes in, and refuse the rest?
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { constants, createDeflate } from 'node:zlib'
import type { SpdyFrame } from './spdy-frames.ts'
import { createSpdyDecoder, createSpdyEncoder } from './spdy-frames.ts'
import { spdyDictionary, SpdyError } from './spdy-headers.ts'

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString()
/** Parts of one data frame joined, so that pieces of every size compare alike. */
function joined(frames: readonly SpdyFrame[]): unknown[] {
  const out: Record<string, unknown>[] = []
  let open = false
  for (const frame of frames) {
    if (frame.kind !== 'data') {
      out.push({ ...frame, ...('headers' in frame ? { headers: { ...frame.headers } } : {}) })
      open = false
      continue
    }
    const last = out.at(-1)
    if (open && last?.['kind'] === 'data' && last['stream'] === frame.stream && last['fin'] === false) {
      last['bytes'] = `${String(last['bytes'])}${text(frame.bytes)}`
      last['fin'] = frame.fin
    } else out.push({ ...frame, bytes: text(frame.bytes) })
    open = true
  }
  return out
}

const conversation: readonly SpdyFrame[] = [
  { kind: 'synStream', stream: 1, headers: { streamtype: 'error' }, fin: false },
  { kind: 'synStream', stream: 3, headers: { streamtype: 'stdin', port: '80' }, fin: true },
  { kind: 'synReply', stream: 1, headers: {}, fin: false },
  { kind: 'data', stream: 3, bytes: Buffer.from('hello'), fin: false },
  { kind: 'ping', id: 7 },
  { kind: 'headers', stream: 3, headers: { a: 'b' }, fin: false },
  { kind: 'data', stream: 1, bytes: Buffer.from('x'.repeat(300)), fin: true },
  { kind: 'reset', stream: 3, status: 5 },
  { kind: 'goAway', lastStream: 3, status: 0 },
]

test('the dictionary is the one of the draft', () => {
  assert.equal(spdyDictionary.length, 1423)
  const known = '51d27341373f923f3cd88e1eb7162aeaa3723d7585ff2399201dc06498407f02'
  assert.equal(hash('sha256', spdyDictionary, 'hex'), known)
})

test('what is written is read again, cut into pieces at every byte', () => {
  const encode = createSpdyEncoder()
  const bytes = Buffer.concat(conversation.map(encode))
  const expected = joined(createSpdyDecoder().feed(bytes))
  assert.equal(expected.length, conversation.length)
  for (let cut = 0; cut <= bytes.length; cut++) {
    const decoder = createSpdyDecoder()
    const frames = [...decoder.feed(bytes.subarray(0, cut)), ...decoder.feed(bytes.subarray(cut))]
    assert.deepEqual(joined(frames), expected, `cut at ${cut}`)
  }
  const decoder = createSpdyDecoder()
  const single = [...bytes].flatMap((byte) => [...decoder.feed(Uint8Array.of(byte))])
  assert.deepEqual(joined(single), expected)
})

test('headers that were compressed as one stream, as Go does, are understood', async () => {
  const deflate = createDeflate({ dictionary: spdyDictionary })
  const chunks: Buffer[] = []
  deflate.on('data', (chunk: Buffer) => chunks.push(chunk))
  const pack = async (headers: Record<string, string>) => {
    chunks.length = 0
    deflate.write(plainBlock(headers))
    await new Promise<void>((resolve) => deflate.flush(constants.Z_SYNC_FLUSH, resolve))
    return Buffer.concat(chunks)
  }
  const decoder = createSpdyDecoder()
  for (const streamtype of ['error', 'stdin', 'stdout', 'stderr', 'resize', 'x'.repeat(40_000), 'error']) {
    const block = await pack({ streamtype, 'user-agent': 'kubectl/v1.27' })
    const [frame] = decoder.feed(synStream(1, block))
    assert.ok(frame?.kind === 'synStream')
    assert.deepEqual({ ...frame.headers }, { streamtype, 'user-agent': 'kubectl/v1.27' })
  }
})

const refused: readonly (readonly [string, Uint8Array])[] = [
  ['another version', Buffer.from([0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1])],
  ['an unknown control frame', Buffer.from([0x80, 3, 0, 77, 0, 0, 0, 0])],
  ['a control frame that is too long', Buffer.from([0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff])],
  ['a ping that is too short', Buffer.from([0x80, 3, 0, 6, 0, 0, 0, 2, 0, 1])],
  ['a stream without room for its number', Buffer.from([0x80, 3, 0, 1, 0, 0, 0, 3, 0, 1, 2])],
  ['headers that are no zlib stream', synStream(1, Buffer.from('no zlib at all'))],
  ['headers that end too early', synStream(1, Buffer.from([0x78, 0xbb, 0, 0, 0, 0, 0, 2, 0, 0xfd, 0xff, 0, 1]))],
]
for (const [name, bytes] of refused) {
  test(`refused: ${name}`, () => assert.throws(() => createSpdyDecoder().feed(bytes), SpdyError))
}

test('headers that unpack to megabytes are refused before they are there', async () => {
  const deflate = createDeflate({ dictionary: spdyDictionary })
  const chunks: Buffer[] = []
  deflate.on('data', (chunk: Buffer) => chunks.push(chunk))
  deflate.write(plainBlock({ a: 'x'.repeat(8 * 1024 * 1024) }))
  await new Promise<void>((resolve) => deflate.flush(constants.Z_SYNC_FLUSH, resolve))
  const block = Buffer.concat(chunks)
  assert.ok(block.length < 65_000)
  assert.throws(() => createSpdyDecoder().feed(synStream(1, block)), SpdyError)
})

test('a long data frame is passed on as it comes', () => {
  const decoder = createSpdyDecoder()
  const head = Buffer.from([0, 0, 0, 1, 1, 0xff, 0xff, 0xff])
  assert.deepEqual(decoder.feed(head), [])
  const [part] = decoder.feed(Buffer.alloc(1000))
  assert.ok(part?.kind === 'data' && part.bytes.length === 1000 && !part.fin)
})

function plainBlock(headers: Record<string, string>): Buffer {
  const number = (value: number) => Buffer.from([value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255])
  const words = Object.entries(headers).flat()
  const parts = words.flatMap((word) => [number(word.length), Buffer.from(word)])
  return Buffer.concat([number(words.length / 2), ...parts])
}

function synStream(id: number, block: Uint8Array): Buffer {
  const head = Buffer.from([0x80, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, id, 0, 0, 0, 0, 0, 0])
  head.writeUIntBE(block.length + 10, 5, 3)
  return Buffer.concat([head, block])
}
