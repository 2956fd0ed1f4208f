// What does work cost? `npm run bench -- NAME [ROUNDS]` runs one measurement and prints JSON lines.
import { loads, runLoad } from './bench/load.ts'
import { run } from './bench/loop.ts'
import { requirePinnedNode } from './runtime.ts'

requirePinnedNode()
const [name = '', rounds = '3'] = process.argv.slice(2)
const load = Object.hasOwn(loads, name) ? loads[name] : undefined
if (name === 'loop') await run()
else if (load !== undefined && /^[1-9]\d*$/.test(rounds)) await runLoad(name, load, Number(rounds))
else {
  process.stderr.write(`usage: npm run bench -- loop|${Object.keys(loads).join('|')} [rounds]\n`)
  process.exit(2)
}
