// Can a host be closed at any moment, also while its threads still load? Does a call that hangs delay the ones behind it?
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLinuxHost } from './linux-host.ts'

const { signal } = new AbortController()

test('closing a host right after its first answer does not take the process down', async () => {
  for (let round = 0; round < 8; round++) {
    await using host = createLinuxHost()
    // The first thread answers while the others are still loading.
    assert.equal(await host.files.exists('/', signal), true)
  }
})

test('calls that wait behind one that hangs are made by another thread, each once', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-pool-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const pipe = join(directory, 'pipe')
  execFileSync('mkfifo', [pipe])
  await using host = createLinuxHost({ threads: 1 })
  assert.equal(await host.files.exists('/', signal), true)
  // Reading a pipe without a writer does not come back from the kernel.
  const hanging = host.files.readText(pipe, signal)
  const made = Array.from({ length: 6 }, (_, index) => host.files.mkdir(join(directory, `d${index}`), 0o755, signal))
  const given = new AbortController()
  const unwanted = host.files.mkdir(join(directory, 'unwanted'), 0o755, given.signal)
  given.abort()
  await assert.rejects(unwanted, { code: 'ABORTED', certain: true })
  // A second try of any of them would be EEXIST.
  await Promise.all(made)
  writeFileSync(pipe, 'at last')
  assert.equal(await hanging, 'at last')
  assert.equal(await host.files.exists(join(directory, 'unwanted'), signal), false)
})

test('a call that cannot be handed to a thread fails alone, and the next one is made', async () => {
  await using host = createLinuxHost({ threads: 1 })
  const path = (() => '/') as unknown as string
  await assert.rejects(host.files.exists(path, signal), { code: 'BUG' })
  assert.equal(await host.files.exists('/', signal), true)
})
