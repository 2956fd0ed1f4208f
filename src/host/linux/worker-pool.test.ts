// Can a host be closed at any moment? Also while its threads still load their native library.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLinuxHost } from './linux-host.ts'

test('closing a host right after its first answer does not take the process down', async () => {
  const { signal } = new AbortController()
  for (let round = 0; round < 8; round++) {
    await using host = createLinuxHost()
    // The first thread answers while the others are still loading.
    assert.equal(await host.files.exists('/', signal), true)
  }
})
