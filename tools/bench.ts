// How fast is it? `npm run bench -- NAME` runs one measurement and prints one JSON line. Names: loop.
import { requirePinnedNode } from './runtime.ts'

requirePinnedNode()
const benches: Readonly<Record<string, () => Promise<{ run(): Promise<void> }>>> = {
  loop: () => import('./bench/loop.ts'),
}
const [name = ''] = process.argv.slice(2)
const bench = benches[name]
if (!bench) {
  process.stderr.write(`usage: npm run bench -- ${Object.keys(benches).join('|')}\n`)
  process.exit(2)
}
await (await bench()).run()
