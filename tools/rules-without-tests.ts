// Which rules of a specification does no test name? Usage: node tools/rules-without-tests.ts SPEC.md [--all] [FOLDER …]
// Exceptions, each with its reason, stand in docs/rule-exceptions.md under the specification's name; they are listed only
// with --all. Groups such as W and T exist in several specifications: name folders to count only the tests of this one.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

const root = join(import.meta.dirname, '..')
const exceptionsFile = join(root, 'docs/rule-exceptions.md')

/** Rules are defined in bold, `**CLM-8** …`, several to a line; or each begins an entry of a list, `- LAYOUT-1 …`. */
export function rulesOf(spec: string): readonly string[] {
  const found = Array.from(spec.matchAll(/\*\*([A-Z]{1,7}-\d+)\*\*|^- ([A-Z]{1,7}-\d+) /gm), ([, bold, listed]) => {
    return bold ?? listed!
  })
  return [...new Set(found)]
}

/** `- CLM-8, CLM-9: reason` or `- XPR-*: reason` (a whole group), below the heading `## <specification>`. */
export function exceptionsOf(text: string, specification: string): ReadonlyMap<string, string> {
  const reasons = new Map<string, string>()
  let section = ''
  for (const line of text.split('\n')) {
    section = /^## (.+)$/.exec(line)?.[1] ?? section
    if (section !== specification) continue
    const match = /^- ((?:[A-Z]+-(?:\d+|\*)(?:, )?)+): (.+)$/.exec(line)
    for (const rule of match?.[1]?.split(', ') ?? []) reasons.set(rule, match![2]!)
  }
  return reasons
}

/** Rule ids in the names (or anywhere in the text) of tests; a rule with a letter, CLM-8c, counts for CLM-8. */
export function rulesNamedIn(texts: Iterable<string>): ReadonlySet<string> {
  const named = new Set<string>()
  for (const text of texts) for (const [, rule] of text.matchAll(/\b([A-Z]{1,7}-\d+)[a-z]?\b/g)) named.add(rule!)
  return named
}

export function reasonFor(rule: string, exceptions: ReadonlyMap<string, string>): string | undefined {
  return exceptions.get(rule) ?? exceptions.get(`${rule.slice(0, rule.indexOf('-'))}-*`)
}

function testTexts(folders: readonly string[]): readonly string[] {
  const everywhere = ['src/**/*.test.ts', 'test/**/*.ts', 'tools/**/*.test.ts']
  const patterns = folders.length === 0 ? everywhere : folders.map((folder) => `${folder}/**/*.test.ts`)
  const files = globSync(patterns, { cwd: root })
  return files.map((file) => readFileSync(join(root, file), 'utf8'))
}

function main(): number {
  const [file, ...rest] = process.argv.slice(2)
  const folders = rest.filter((each) => !each.startsWith('--'))
  if (file === undefined || !existsSync(file)) {
    process.stderr.write('usage: node tools/rules-without-tests.ts SPEC.md [--all] [FOLDER …]\n')
    return 2
  }
  const rules = rulesOf(readFileSync(file, 'utf8'))
  const exceptions = exceptionsOf(readFileSync(exceptionsFile, 'utf8'), basename(file))
  const named = rulesNamedIn(testTexts(folders))
  const untested = rules.filter((rule) => !named.has(rule))
  const open = untested.filter((rule) => reasonFor(rule, exceptions) === undefined)
  for (const rule of open) process.stdout.write(`${rule}\n`)
  if (rest.includes('--all'))
    for (const rule of untested) {
      const reason = reasonFor(rule, exceptions)
      if (reason !== undefined) process.stdout.write(`${rule} (exception: ${reason})\n`)
    }
  const count = `${rules.length} rules, ${rules.length - untested.length} named by tests`
  process.stdout.write(`${count}, ${untested.length - open.length} argued exceptions, ${open.length} open\n`)
  return open.length === 0 ? 0 : 1
}

if (import.meta.main) process.exit(main())
