// May we use a data directory that another process used?
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { lockHolder } from './data-directory.ts'

const stateOf = (pid: string) => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

test('a living process holds its directory; one that was killed does not, even before its parent has taken notice', async () => {
  const place = mkdtempSync(join(tmpdir(), 'hawser-lock-'))
  // The shell becomes a program that never asks for its children.
  const parent = spawn('sh', ['-c', 'sleep 600 & echo $!; exec sleep 600'], { stdio: ['ignore', 'pipe', 'ignore'] })
  try {
    const [line] = (await once(parent.stdout, 'data')) as [Buffer]
    const pid = line.toString().trim()
    writeFileSync(join(place, 'lock'), `${pid} ${stateOf(pid)[19]}\n`)
    assert.equal(lockHolder(place), pid)
    process.kill(Number(pid), 'SIGKILL')
    while (stateOf(pid)[0] !== 'Z') await new Promise((resolve) => setTimeout(resolve, 5))
    assert.equal(lockHolder(place), undefined)
  } finally {
    parent.kill('SIGKILL')
    rmSync(place, { recursive: true, force: true })
  }
})
