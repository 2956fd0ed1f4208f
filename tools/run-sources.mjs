// How do the sources of a clone run like an installed package? Node strips the types of a .ts file with a parser that it
// then keeps for life: 30 to 50 MB of a server. Here the stripped text of every version of a file is kept on disk; when
// one is missing, a short-lived process makes it. Positions stay the same, so stack traces fit the sources.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const self = fileURLToPath(import.meta.url)
const sources = join(dirname(self), '..', 'src')

if (import.meta.main) stripAll(process.argv[2])
else if (process.env.NODE_COMPILE_CACHE) keep(join(process.env.NODE_COMPILE_CACHE, 'stripped', process.version))

function keep(cache) {
  let tried = false
  registerHooks({
    load(url, context, next) {
      if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context)
      const path = fileURLToPath(url)
      if (!path.startsWith(sources)) return next(url, context)
      const kept = join(cache, nameOf(readFileSync(path)))
      if (!existsSync(kept) && !tried) {
        tried = true
        spawnSync(process.execPath, [self, cache])
      }
      // Where nothing can be kept (a read-only disk, a full one), Node strips by itself.
      if (!existsSync(kept)) return next(url, context)
      return { format: 'module', source: readFileSync(kept, 'utf8'), shortCircuit: true }
    },
  })
}

function stripAll(cache) {
  mkdirSync(cache, { recursive: true, mode: 0o700 })
  for (const file of globSync('**/*.ts', { cwd: sources })) {
    if (file.endsWith('.test.ts') || file.endsWith('.d.ts')) continue
    const bytes = readFileSync(join(sources, file))
    const kept = join(cache, nameOf(bytes))
    if (existsSync(kept)) continue
    const partial = `${kept}.${process.pid}`
    writeFileSync(partial, stripTypeScriptTypes(bytes.toString()))
    // Whoever finds the name finds the whole text.
    renameSync(partial, kept)
  }
}

function nameOf(bytes) {
  return `${createHash('sha256').update(bytes).digest('hex').slice(0, 40)}.js`
}
