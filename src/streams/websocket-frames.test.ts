// Does the WebSocket codec read what clients send, whatever pieces it comes in, and refuse what RFC 6455 forbids?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WebSocketFrame } from './websocket-frames.ts'
import {
  acceptKey,
  closePayload,
  createWebSocketDecoder,
  encodeWebSocketFrame,
  WebSocketError,
} from './websocket-frames.ts'

const mask = Uint8Array.of(1, 2, 3, 250)
/** Whole messages, so that pieces of every size compare alike. */
function messages(frames: readonly WebSocketFrame[]): unknown[] {
  const out: unknown[] = []
  let message: Buffer | undefined
  for (const frame of frames) {
    if (frame.kind === 'close') out.push(`close ${frame.code}`)
    else if (frame.kind !== 'data') out.push(`${frame.kind} ${Buffer.from(frame.bytes).toString()}`)
    else {
      assert.equal(frame.first, message === undefined)
      message = Buffer.concat([message ?? Buffer.alloc(0), frame.bytes])
      if (!frame.last) continue
      out.push(message.length > 50 ? message.length : message.toString())
      message = undefined
    }
  }
  return out
}

test('the key of the handshake is the one of the RFC', () => {
  assert.equal(acceptKey('dGhlIHNhbXBsZSBub25jZQ=='), 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
})

for (const masked of [true, false]) {
  test(`what is written is read again, cut at every byte (${masked ? 'client' : 'server'})`, () => {
    const frame = (kind: Parameters<typeof encodeWebSocketFrame>[0], ...parts: Uint8Array[]) =>
      encodeWebSocketFrame(kind, parts, masked ? mask : undefined)
    const fragments = Buffer.concat([
      fragment(0x02, 'abc', masked),
      frame('ping', Buffer.from('p')),
      fragment(0x00, '', masked),
      fragment(0x80, 'def', masked),
    ])
    const bytes = Buffer.concat([
      frame('binary', Buffer.from('he'), Buffer.from('llo')),
      frame('binary'),
      frame('binary', Buffer.alloc(200, 1)),
      fragments,
      frame('pong'),
      frame('close', closePayload(1001, 'away')),
    ])
    const expected = ['hello', '', 200, 'ping p', 'abcdef', 'pong ', 'close 1001']
    for (let cut = 0; cut <= bytes.length; cut++) {
      const decoder = createWebSocketDecoder(masked)
      const frames = [...decoder.feed(bytes.subarray(0, cut)), ...decoder.feed(bytes.subarray(cut))]
      assert.deepEqual(messages(frames), expected, `cut at ${cut}`)
    }
    const decoder = createWebSocketDecoder(masked)
    assert.deepEqual(messages([...bytes].flatMap((byte) => [...decoder.feed(Uint8Array.of(byte))])), expected)
  })
}

test('a message of 70,000 bytes has its length in eight bytes', () => {
  const bytes = encodeWebSocketFrame('binary', [Buffer.alloc(70_000)], mask)
  assert.deepEqual(messages(createWebSocketDecoder(true).feed(bytes)), [70_000])
})

test('a message whose beginning is empty begins with its first byte: that names the channel', () => {
  const frames = createWebSocketDecoder(true).feed(Buffer.concat([fragment(0x02, '', true), fragment(0x80, 'x', true)]))
  assert.deepEqual(frames, [{ kind: 'data', bytes: Buffer.from('x'), first: true, last: true }])
})

test('a long message is passed on as it comes', () => {
  const head = Buffer.from([0x82, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
  const decoder = createWebSocketDecoder(true)
  assert.deepEqual(decoder.feed(head), [])
  const [part] = decoder.feed(Buffer.alloc(10))
  assert.ok(part?.kind === 'data' && part.first && !part.last && part.bytes.length === 10)
})

const refused: readonly (readonly [string, readonly number[]])[] = [
  ['an unmasked frame of a client', [0x82, 1, 7]],
  ['an extension nobody agreed on', [0xc2, 0x80, 0, 0, 0, 0]],
  ['an unknown frame', [0x83, 0x80, 0, 0, 0, 0]],
  ['a long ping', [0x89, 0xfe, 0, 200, 0, 0, 0, 0]],
  ['a ping in parts', [0x09, 0x80, 0, 0, 0, 0]],
  ['a continuation of nothing', [0x80, 0x80, 0, 0, 0, 0]],
  ['a message inside another', [0x02, 0x80, 0, 0, 0, 0, 0x82, 0x80, 0, 0, 0, 0]],
  ['a length beyond all numbers', [0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
  ['half a code to close with', [0x88, 0x81, 0, 0, 0, 0, 3]],
]
for (const [name, bytes] of refused) {
  test(`refused: ${name}`, () =>
    assert.throws(() => createWebSocketDecoder(true).feed(Uint8Array.from(bytes)), WebSocketError))
}

test('a client refuses masked frames', () => {
  const bytes = encodeWebSocketFrame('binary', [], mask)
  assert.throws(() => createWebSocketDecoder(false).feed(bytes), WebSocketError)
})

function fragment(first: number, text: string, masked: boolean): Buffer {
  const whole = encodeWebSocketFrame('binary', [Buffer.from(text)], masked ? mask : undefined)
  whole[0] = first
  return whole
}
