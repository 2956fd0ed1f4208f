// What does a full disk do to the store? Writes are refused, nothing acknowledged is lost, and room heals it. Needs root.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSqliteStore } from '../../src/store/sqlite-store.ts'
import { StoreError } from '../../src/store/store.ts'

const skip = process.getuid?.() === 0 ? false : 'needs root'

test('a full disk refuses writes, keeps what was acknowledged, and room heals it', { skip }, async () => {
  const place = mkdtempSync(join(tmpdir(), 'hawser-full-'))
  spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', place])
  try {
    const ballast = join(place, 'ballast')
    writeFileSync(ballast, Buffer.alloc(1_000_000))
    const path = join(place, 'store.db')
    const acknowledged: string[] = []
    {
      await using store = openSqliteStore({ path })
      const put = async (key: string): Promise<unknown> => {
        await store.create(key, 'x'.repeat(2_000))
        acknowledged.push(key)
        return undefined
      }
      let refused: unknown
      for (let index = 0; index < 3_000 && refused === undefined; index++)
        refused = await put(`/key-${index}`).catch((error: unknown) => error)
      assert.ok(refused instanceof StoreError && refused.code === 'unavailable', String(refused))
      assert.match(refused.message, /full/)
      rmSync(ballast)
      await put('/after')
    }
    await using again = openSqliteStore({ path })
    const { entries } = await again.list('/', {})
    assert.deepEqual(
      entries.map(({ key }) => key),
      acknowledged.toSorted(),
    )
  } finally {
    spawnSync('umount', ['-l', place])
    rmdirSync(place)
  }
})
