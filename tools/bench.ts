// How fast is it? `npm run bench -- NAME [ROUNDS]` runs one measurement and prints JSON lines.
import { loads, runLoad } from './bench/load.ts'
import { run } from './bench/loop.ts'
import { requirePinnedNode } from './runtime.ts'

requirePinnedNode()
const [name = '', rounds = '5'] = process.argv.slice(2)
if (name === 'loop') await run()
else if (isLoad(name) && /^[1-9]\d*$/.test(rounds)) await runLoad(name, Number(rounds))
else {
  process.stderr.write(`usage: npm run bench -- loop|${Object.keys(loads).join('|')} [rounds]\n`)
  process.exit(2)
}

function isLoad(word: string): word is keyof typeof loads {
  return Object.hasOwn(loads, word)
}
