// Does what others wrote reach a terminal as text?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createContext } from './context.ts'

function written(isTTY: boolean, say: (context: ReturnType<typeof createContext>) => void): string {
  let all = ''
  const stream = { isTTY, write: (text: string) => ((all += text), true) } as unknown as NodeJS.WriteStream
  say(createContext({ env: {}, stdout: stream, stderr: stream }))
  return all
}

test('control characters of drivers and pods are shown, not obeyed; our colours work', () => {
  const hostile = 'a\u001b]0;owned\u0007\u001b[2Jb\rc\u009bd\te\n'
  const shown = 'a\\u001b]0;owned\\u0007\\u001b[2Jb\\u000dc\\u009bd\te\n'
  assert.equal(
    written(true, ({ print }) => print(hostile)),
    shown,
  )
  assert.equal(
    written(true, ({ note }) => note(hostile)),
    shown,
  )
  assert.equal(
    written(true, ({ print }) => print('\u001b[31mred\u001b[39m\n')),
    '\u001b[31mred\u001b[39m\n',
  )
  assert.equal(
    written(false, ({ print }) => print('\u001b[31mred\n')),
    '\\u001b[31mred\n',
  )
})

test('the output of somebody else’s program stays as it is', () => {
  let all = Buffer.alloc(0)
  const stream = {
    isTTY: true,
    write: (bytes: Uint8Array) => ((all = Buffer.from(bytes)), true),
  } as unknown as NodeJS.WriteStream
  createContext({ env: {}, stdout: stream, stderr: stream }).write(Buffer.from('\u001b[2J'))
  assert.equal(all.toString(), '\u001b[2J')
})
