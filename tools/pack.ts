// What is published? JavaScript and declarations in dist/, made from src/ by the compiler, the versions of all that is installed
// with it (npm-shrinkwrap.json) and a bill of materials (dist/bom.cdx.json); `npm run pack` runs this first.
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Lock } from './lock.ts'
import { billOfMaterials, shrinkwrap } from './lock.ts'
import { requirePinnedNode } from './runtime.ts'

requirePinnedNode()
const root = join(import.meta.dirname, '..')
const [verb = 'build'] = process.argv.slice(2)

rmSync(join(root, 'dist'), { recursive: true, force: true })
rmSync(join(root, 'npm-shrinkwrap.json'), { force: true })
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
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock
  // Users get the versions that we tested, and their checksums.
  writeFileSync(join(root, 'npm-shrinkwrap.json'), `${JSON.stringify(shrinkwrap(lock), null, 2)}\n`)
  writeFileSync(join(root, 'dist/bom.cdx.json'), `${JSON.stringify(billOfMaterials(lock), null, 2)}\n`)
}
