// Is the tree in order? Imports, ports, module state, rule ids, comments, READMEs and links; each check is a file in tools/tidy.
// Lengths of functions and files are checked by oxlint, unused exports by knip (tools/check.ts).
import { idFirstNames, idOnlyComments, missingHeader } from './tidy/comments.ts'
import { mayImport } from './import-rules.ts'
import { brokenLinks, importListProblems, readmeProblems, unknownFiles } from './tidy/documents.ts'
import { bannedGlobals, deadFiles, importProblems } from './tidy/imports.ts'
import { ruleDocuments, testsAmong, unresolvedIds, untestedRules } from './tidy/rules.ts'
import { moduleState } from './tidy/state.ts'
import { isGenerated, isTest, readFiles } from './tidy/tree.ts'
import type { Files } from './tidy/tree.ts'

export function findProblems(): string[] {
  const all = readFiles('{src,test,tools}/**/*.ts')
  const code: Files = new Map([...all].filter(([file, text]) => !isGenerated(file, text)))
  const documents = readFiles('*.md', '{docs,src,test}/**/*.md')
  return [
    ...[...code].flatMap(([file, text]) => codeProblems(file, text)),
    ...deadFiles(all),
    ...readmeProblems(all, documents),
    ...[...documents].flatMap(([document, text]) => [
      ...brokenLinks(document, text),
      ...unknownFiles(document, text, all),
      ...importListProblems(document, text, mayImport),
    ]),
    ...ruleProblems(code, documents),
  ]
}

function codeProblems(file: string, text: string): string[] {
  const problems = [...missingHeader(file, text), ...idOnlyComments(file, text)]
  if (isTest(file) || file.startsWith('test/')) problems.push(...idFirstNames(file, text))
  if (file.startsWith('src/') && !isTest(file))
    problems.push(...importProblems(file, text), ...bannedGlobals(file, text), ...moduleState(file, text))
  return problems
}

function ruleProblems(code: Files, documents: Files): string[] {
  const definitions = ruleDocuments(documents)
  return [
    ...unresolvedIds(definitions, new Map([...code, ...documents])),
    ...untestedRules(definitions, testsAmong(code), documents.get('docs/rules/exceptions.md') ?? ''),
  ]
}

if (import.meta.main) {
  const problems = findProblems()
  for (const problem of problems) process.stdout.write(`${problem}\n`)
  process.exit(problems.length === 0 ? 0 : 1)
}
