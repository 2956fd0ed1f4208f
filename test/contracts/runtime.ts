// What must every runtime do with a command whose streams are open? The same test for real processes and for their twin.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodUid } from '../../src/api/names.ts'
import type { CommandStreams } from '../../src/streams/remote-command.ts'
import type { InteractiveRequest, Runtime } from '../../src/node/runtime/port.ts'

export interface RunningContainer extends AsyncDisposable {
  readonly runtime: Runtime
  readonly pod: PodUid
  readonly name: string
}

export function interactive(container: RunningContainer, argv: readonly string[], tty = false): InteractiveRequest {
  const { pod, name } = container
  const env = { PATH: '/usr/bin:/bin', FLAVOUR: 'sour' }
  return { pod, name, argv, tty, env, workingDirectory: '/', groups: [] }
}

/** Streams that record what is written to them; `stdin` are the pieces the command reads. */
export function recordingStreams(stdin?: AsyncIterable<Uint8Array>) {
  const output = { stdout: '', stderr: '' }
  const streams: CommandStreams = {
    stdin,
    stdout: async (bytes) => void (output.stdout += Buffer.from(bytes).toString()),
    stderr: async (bytes) => void (output.stderr += Buffer.from(bytes).toString()),
    sizes: (async function* () {})(),
  }
  return { output, streams }
}

export async function* pieces(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text)
}

/** `make` gives a container that runs, in which `cat` and `false` are what they are. */
export function interactiveContract(
  name: string,
  make: () => Promise<RunningContainer>,
  options: { readonly skip?: string | false } = {},
): void {
  const never = new AbortController().signal
  test(`${name}: a command gets its input, and its output and exit code come back`, options, async () => {
    await using container = await make()
    const { output, streams } = recordingStreams(pieces('one\n', 'two\n'))
    assert.equal(await container.runtime.runInteractive(interactive(container, ['cat']), streams, never), 0)
    assert.deepEqual(output, { stdout: 'one\ntwo\n', stderr: '' })
    assert.equal(
      await container.runtime.runInteractive(interactive(container, ['false']), recordingStreams().streams, never),
      1,
    )
  })
  test(`${name}: a command that nobody waits for any more is ended`, options, async () => {
    await using container = await make()
    const stop = new AbortController()
    const silence = (async function* () {
      yield Buffer.from('here\n')
      await new Promise(() => {})
    })()
    const { streams } = recordingStreams(silence)
    const first = Promise.withResolvers<void>()
    const listening = { ...streams, stdout: async () => first.resolve() }
    const running = container.runtime.runInteractive(interactive(container, ['cat']), listening, stop.signal)
    await first.promise
    stop.abort(new Error('gone'))
    await assert.rejects(running, /gone/)
  })
  test(`${name}: a command in a container that does not run is refused`, options, async () => {
    await using container = await make()
    const { runtime, pod } = container
    const wrong = { ...interactive(container, ['cat']), name: 'nobody' }
    await assert.rejects(
      runtime.runInteractive(wrong, recordingStreams().streams, never),
      /container nobody does not run/,
    )
    await runtime.stop({ pod, name: container.name, graceMs: 0 }, never)
    await assert.rejects(
      runtime.runInteractive(interactive(container, ['cat']), recordingStreams().streams, never),
      /does not run/,
    )
  })
}
