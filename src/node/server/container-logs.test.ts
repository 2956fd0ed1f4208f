// Does reading a log end when nobody wants it any more? A container may make its log as long as it likes.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { podUid } from '../../api/names.ts'
import { createSystemClock } from '../../clock/system-clock.ts'
import { createContainerLogs } from './container-logs.ts'

test('the search for the last lines of an endless line ends with its client', { timeout: 20_000 }, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-logs-'))
  try {
    mkdirSync(join(directory, 'default_p_u/c'), { recursive: true })
    const file = join(directory, 'default_p_u/c/0.log')
    writeFileSync(file, '')
    truncateSync(file, 2 ** 40)
    const logs = createContainerLogs({ clock: createSystemClock(), directory })
    const request = { namespace: 'default', pod: 'p', uid: podUid('u'), container: 'c', previous: false, tailLines: 5 }
    const left = AbortSignal.timeout(50)
    await assert.rejects(logs(request, left), { name: 'TimeoutError' })
  } finally {
    rmSync(directory, { recursive: true })
  }
})
