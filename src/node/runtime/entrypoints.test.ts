// Which words does a container run, with and without a command of its own?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ContainerWords, ImageEntrypoint } from './entrypoints.ts'
import { commandLineOf, imageUser, NoCommandError } from './entrypoints.ts'

const map: readonly ImageEntrypoint[] = [
  { image: 'web', program: '/any', defaultArgs: [] },
  { image: 'web:2', program: '/two', defaultArgs: ['serve'] },
  { image: 'host:5000/tool', program: '/tool', defaultArgs: ['idle'] },
  { image: 'my/pause', program: '/mine', defaultArgs: [] },
]
const wanted = (image: string, more: Partial<ContainerWords> = {}): ContainerWords => ({
  name: 'c',
  image,
  command: [],
  args: [],
  ...more,
})

const table: readonly [ContainerWords, readonly string[]][] = [
  [wanted('web:2', { command: ['own'], args: ['x'] }), ['own', 'x']],
  [wanted('web:1'), ['/any']],
  [wanted('web'), ['/any']],
  [wanted('web@sha256:00'), ['/any']],
  [wanted('web:2'), ['/two', 'serve']],
  [wanted('web:2', { args: ['--port=1'] }), ['/two', '--port=1']],
  [wanted('host:5000/tool:1.2@sha256:00'), ['/tool', 'idle']],
  [wanted('busybox', { args: ['sleep', '1'] }), ['sleep', '1']],
  [wanted('my/pause:1'), ['/mine']],
]
for (const [container, expected] of table)
  test(`${container.image} ${[...container.command, ...container.args].join(' ')} runs ${expected.join(' ')}`, () => {
    assert.deepEqual(commandLineOf(map, container), expected)
  })

test('a container whose program nobody knows is refused, and the error names it, its image and the flag', () => {
  const refused = (container: ContainerWords, words: RegExp) =>
    assert.throws(
      () => commandLineOf(map, container),
      (error) => error instanceof NoCommandError && words.test(error.message),
    )
  refused(wanted('nginx:1'), /container c has no command, .* image nginx:1 .* --image-entrypoint nginx:1=PATH/)
  refused(wanted('nginx', { args: ['-g', 'x'] }), /args begin with the option "-g"/)
  refused(wanted('host:5000/other'), /unknown/)
  refused(wanted('x/pauses'), /unknown/)
})

test('a pause image is a process that waits, as the user of those images', () => {
  assert.equal(commandLineOf([], wanted('registry.k8s.io/pause:3.10'))[0], '/bin/sh')
  assert.deepEqual(
    [{ image: 'pause' }, { image: 'k8s.gcr.io/pause@sha256:1' }, { image: 'pause', command: ['x'] }, {}].map(imageUser),
    [65535, 65535, undefined, undefined],
  )
})
