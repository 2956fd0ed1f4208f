// Do imports follow tools/import-rules.ts, does only an adapter touch the outside, and is every file used?
import { dirname, join, relative, resolve } from 'node:path'
import { linuxUsers, mayImport, outsideFiles, portOnly, pureModules, sharedPlugins } from '../import-rules.ts'
import { isComment, root } from './tree.ts'
import type { Files } from './tree.ts'

/** All import specifiers, static and dynamic. */
function importsOf(text: string): string[] {
  const pattern =
    /(?:^|\n)\s*(?:import|export)\s[^'"\n]*?(?:\{[^}]*\})?[^'"\n]*?from\s+['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)|(?:^|\n)import\s+['"]([^'"]+)['"]/g
  return [...text.matchAll(pattern)].map((match) => (match[1] ?? match[2] ?? match[3])!)
}

export function importProblems(file: string, text: string): string[] {
  const inside = file.slice('src/'.length)
  const folder = inside.split('/')[0]!
  const allowed = mayImport[folder]
  if (!allowed) return [`${file}: folder ${folder} is not in tools/import-rules.ts`]
  return importsOf(text).flatMap((specifier) => {
    if (specifier.startsWith('node:')) {
      const fine = pureModules.includes(specifier) || isOutside(inside)
      return fine ? [] : [`${file}: ${specifier} belongs into an adapter`]
    }
    if (!specifier.startsWith('.')) return []
    const target = relative(join(root, 'src'), resolve(root, dirname(file), specifier))
    if (target.startsWith('..'))
      return target.endsWith('package.json') ? [] : [`${file}: imports ${specifier} outside src`]
    return layerProblems(file, target, allowed)
  })
}

const isOutside = (inside: string) => outsideFiles.some((prefix) => inside.startsWith(prefix))

function layerProblems(file: string, target: string, allowed: readonly string[]): string[] {
  const inside = file.slice('src/'.length)
  const [from, to] = [inside.split('/')[0]!, target.split('/')[0]!]
  const problems: string[] = []
  if (to !== from && !allowed.includes('*') && !allowed.includes(to))
    problems.push(`${file}: ${from} may not import ${to} (${target})`)
  if (to === 'host' && portOnly.includes(from) && /^host\/(linux|model)\//.test(target))
    problems.push(`${file}: only the host port, not ${target}`)
  if (target.startsWith('host/linux/') && !linuxUsers.includes(from))
    problems.push(`${file}: may not choose the Linux host`)
  if (from === 'plugins' && to === 'plugins') {
    const [mine, theirs] = [inside.split('/')[1], target.split('/')[1]]
    if (inside.includes('/', 'plugins/'.length) && mine !== theirs && !sharedPlugins.includes(theirs ?? ''))
      problems.push(`${file}: one plugin may not import another (${target})`)
  }
  return problems
}

const banned: readonly (readonly [RegExp, string])[] = [
  [/\bDate\.now\(/, 'Date.now'],
  [/\bnew Date\(\s*\)/, 'new Date()'],
  [/(?<![.\w])setTimeout\(/, 'setTimeout'],
  [/(?<![.\w])setInterval\(/, 'setInterval'],
  [/\bMath\.random\(/, 'Math.random'],
  [/\brandomUUID\(/, 'crypto.randomUUID'],
  [/\bprocess\.env\b/, 'process.env'],
  [/(?<![.\w])console\./, 'console'],
  [/\bAbortSignal\.timeout\(/, 'AbortSignal.timeout'],
  [/\bshell:\s*true/, 'a shell'],
  [/\bexecSync\(|\bexec\(`/, 'a shell string'],
]

export function bannedGlobals(file: string, text: string): string[] {
  if (isOutside(file.slice('src/'.length))) return []
  return text.split('\n').flatMap((line, index) => {
    if (isComment(line)) return []
    return banned
      .filter(([pattern]) => pattern.test(line))
      .map(([, name]) => `${file}:${index + 1}: ${name} escapes the simulator; use a port`)
  })
}

/** A source file that nothing imports and nobody starts. */
export function deadFiles(sources: Files): string[] {
  const used = new Set<string>(['src/cli/main.ts', 'src/index.ts'])
  for (const [file, text] of sources) {
    for (const specifier of importsOf(text))
      if (specifier.startsWith('.')) used.add(relative(root, resolve(root, dirname(file), specifier)))
    for (const match of text.matchAll(/['"`]\.{0,2}\/?([\w./-]+\.ts)['"`]/g)) {
      used.add(relative(root, resolve(root, dirname(file), match[1]!)))
      used.add(match[1]!)
    }
  }
  return [...sources.keys()]
    .filter((file) => file.startsWith('src/') && !/\.(test|d)\.ts$/.test(file) && !used.has(file))
    .map((file) => `${file}: nothing imports this file`)
}
