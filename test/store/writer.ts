// The process that dies: writes without end and says on standard output what was acknowledged.
// argv: file, round. Each line is `key value revision` or `key - revision` for a removal.
import { openSqliteStore } from '../../src/store/sqlite-store.ts'

const [, , path = '', round = '0'] = process.argv
const store = openSqliteStore({ path, history: { changes: 200, bytes: 1_000_000 } })
const writers = 16

async function write(writer: number): Promise<never> {
  const key = `/load/${writer}`
  let entry = await store.get(key)
  for (let step = 0; ; step++) {
    const value = `${round}.${step}.${'x'.repeat((step * 37) % 3000)}`
    if (entry === undefined) entry = await store.create(key, value)
    else if (step % 7 === 6) {
      const removed = await store.remove(key, entry.revision)
      process.stdout.write(`${key} - ${removed.revision}\n`)
      entry = undefined
      continue
    } else entry = await store.update(key, value, entry.revision)
    process.stdout.write(`${key} ${value} ${entry.revision}\n`)
  }
}

await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)))
