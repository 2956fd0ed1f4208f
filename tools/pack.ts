// What is published? JavaScript and declarations in dist/, made from src/ by the compiler; `npm pack` runs this first.
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { requirePinnedNode } from './runtime.ts'

requirePinnedNode()
const root = join(import.meta.dirname, '..')
const [verb = 'build'] = process.argv.slice(2)

rmSync(join(root, 'dist'), { recursive: true, force: true })
if (verb === 'build') build()
else if (verb !== 'clean') {
  process.stderr.write('usage: node tools/pack.ts build|clean\n')
  process.exit(2)
}

function build(): void {
  const tsc = join(root, 'node_modules/.bin/tsc')
  const { status } = spawnSync(tsc, ['-p', 'tsconfig.build.json'], { cwd: root, stdio: ['ignore', 2, 2] })
  if (status !== 0) {
    rmSync(join(root, 'dist'), { recursive: true, force: true })
    process.exit(1)
  }
  // The compiler rewrites endings in JavaScript only; declarations must name files that exist, too.
  for (const file of globSync('dist/**/*.d.ts', { cwd: root })) {
    const path = join(root, file)
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.replaceAll(/((?:from|import\()\s*['"]\.{1,2}\/[^'"]+)\.ts(['"])/g, '$1.js$2'))
  }
}
