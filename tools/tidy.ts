// Style as a test: import directions, banned globals, lengths, dead files, folder READMEs, links in documents.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { linuxUsers, mayImport, outsideFiles, portOnly, pureModules, sharedPlugins } from './import-rules.ts'

const root = join(import.meta.dirname, '..')
const longestFile = 450
const longestFunction = 90

export function findProblems(): string[] {
  const files = globSync('{src,test,tools}/**/*.ts', { cwd: root }).toSorted()
  const sources = new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]))
  return [
    ...[...sources].flatMap(([file, text]) => problemsOf(file, text)),
    ...deadFiles(sources),
    ...missingReadmes(files),
    ...brokenLinks(),
  ]
}

function problemsOf(file: string, text: string): string[] {
  if (isGenerated(file, text)) return []
  const lines = text.split('\n')
  const problems: string[] = []
  // Tests speak through their names.
  if (!text.startsWith('//') && !text.startsWith('#!') && !file.endsWith('.test.ts'))
    problems.push(`${file}: no comment on top says what question it answers`)
  if (lines.length > longestFile && !file.endsWith('.test.ts'))
    problems.push(`${file}: ${lines.length} lines; one idea per file (${longestFile})`)
  if (!file.startsWith('src/')) return problems
  problems.push(...longFunctions(file, lines))
  if (!file.endsWith('.test.ts')) problems.push(...importProblems(file, text), ...bannedGlobals(file, lines))
  return problems
}

const isGenerated = (file: string, text: string) =>
  /(_pb|generated)\.ts$/.test(file) || /^\/\/ @?[gG]enerated/m.test(text.slice(0, 400))

/** All import specifiers, static and dynamic. */
function importsOf(text: string): string[] {
  const pattern =
    /(?:^|\n)\s*(?:import|export)\s[^'"\n]*?(?:\{[^}]*\})?[^'"\n]*?from\s+['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)|(?:^|\n)import\s+['"]([^'"]+)['"]/g
  return [...text.matchAll(pattern)].map((match) => (match[1] ?? match[2] ?? match[3])!)
}

function importProblems(file: string, text: string): string[] {
  const inside = file.slice('src/'.length)
  const folder = inside.split('/')[0]!
  const allowed = mayImport[folder]
  if (!allowed) return [`${file}: folder ${folder} is not in tools/import-rules.ts`]
  return importsOf(text).flatMap((specifier) => {
    if (specifier.startsWith('node:')) {
      const fine = pureModules.includes(specifier) || outsideFiles.some((prefix) => inside.startsWith(prefix))
      return fine ? [] : [`${file}: ${specifier} belongs into an adapter`]
    }
    if (!specifier.startsWith('.')) return []
    const target = relative(join(root, 'src'), resolve(root, dirname(file), specifier))
    if (target.startsWith('..'))
      return target.endsWith('package.json') ? [] : [`${file}: imports ${specifier} outside src`]
    return layerProblems(file, inside, folder, target, allowed)
  })
}

function layerProblems(
  file: string,
  inside: string,
  folder: string,
  target: string,
  allowed: readonly string[],
): string[] {
  const to = target.split('/')[0]!
  const problems: string[] = []
  if (to !== folder && !allowed.includes('*') && !allowed.includes(to))
    problems.push(`${file}: ${folder} may not import ${to} (${target})`)
  if (to === 'host' && portOnly.includes(folder) && /^host\/(linux|model)\//.test(target))
    problems.push(`${file}: only the host port, not ${target}`)
  if (target.startsWith('host/linux/') && !linuxUsers.includes(folder))
    problems.push(`${file}: may not choose the Linux host`)
  if (folder === 'plugins' && to === 'plugins') {
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

function bannedGlobals(file: string, lines: readonly string[]): string[] {
  if (outsideFiles.some((prefix) => file.slice('src/'.length).startsWith(prefix))) return []
  return lines.flatMap((line, index) => {
    if (/^\s*(\/\/|\*|\/\*)/.test(line)) return []
    return banned
      .filter(([pattern]) => pattern.test(line))
      .map(([, name]) => `${file}:${index + 1}: ${name} is a hole in the simulator; use a port`)
  })
}

/** Top-level functions end at the first line that is a closing brace in column one. */
function longFunctions(file: string, lines: readonly string[]): string[] {
  const problems: string[] = []
  let start = -1
  lines.forEach((line, index) => {
    if (/^(export )?(default )?(async )?function/.test(line)) start = index
    else if (line === '}' && start >= 0) {
      const length = index - start + 1
      const isFactory = /function (create|start|serve|define)/.test(lines[start]!)
      if (length > longestFunction && !isFactory && !file.endsWith('.test.ts'))
        problems.push(`${file}:${start + 1}: a function of ${length} lines (${longestFunction})`)
      start = -1
    }
  })
  return problems
}

/** A source file that nothing imports and nobody starts. */
function deadFiles(sources: ReadonlyMap<string, string>): string[] {
  const used = new Set<string>()
  for (const [file, text] of sources) {
    for (const specifier of importsOf(text))
      if (specifier.startsWith('.')) used.add(relative(root, resolve(root, dirname(file), specifier)))
    for (const match of text.matchAll(/['"`]\.{0,2}\/?([\w./-]+\.ts)['"`]/g)) {
      used.add(relative(root, resolve(root, dirname(file), match[1]!)))
      used.add(match[1]!)
    }
  }
  const entries = new Set(['src/cli/main.ts', 'src/index.ts'])
  return [...sources.keys()]
    .filter((file) => file.startsWith('src/') && !/\.(test|d)\.ts$/.test(file) && !entries.has(file) && !used.has(file))
    .map((file) => `${file}: nothing imports this file`)
}

function missingReadmes(files: readonly string[]): string[] {
  const folders = new Set(
    files.filter((file) => file.startsWith('src/')).map((file) => file.split('/').slice(0, 2).join('/')),
  )
  return [...folders]
    .filter((folder) => !folder.endsWith('.ts'))
    .flatMap((folder) => {
      const path = join(root, folder, 'README.md')
      if (!existsSync(path)) return [`${folder}: no README.md`]
      const length = readFileSync(path, 'utf8').trimEnd().split('\n').length
      return length > 24 ? [`${folder}/README.md: ${length} lines; a folder's README fits a screen (24)`] : []
    })
}

function brokenLinks(): string[] {
  const documents = globSync('{*.md,docs/**/*.md,src/**/*.md,test/**/*.md}', { cwd: root })
  return documents.flatMap((document) => {
    const text = readFileSync(join(root, document), 'utf8').replaceAll(/```[\s\S]*?```/g, '')
    return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
      .map((match) => match[1]!.split('#')[0]!)
      .filter((link) => link !== '' && !/^[a-z]+:/.test(link))
      .filter((link) => !existsSync(resolve(root, dirname(document), link)))
      .map((link) => `${document}: broken link ${link}`)
  })
}

if (import.meta.main) {
  const problems = findProblems()
  for (const problem of problems) process.stdout.write(`${problem}\n`)
  process.exit(problems.length === 0 ? 0 : 1)
}
