// Which rules of docs/rules does no test name? Usage: node tools/rules-without-tests.ts [--all]
// Rules that docs/rules/exceptions.md argues are listed, with their reasons, only with --all.
import { coverageOf, exceptionFor, exceptionsOf, ruleDocuments, rulesNamedIn, testsAmong } from './tidy/rules.ts'
import { readFiles } from './tidy/tree.ts'

function main(): number {
  const documents = readFiles('docs/rules/*.md')
  const exceptions = exceptionsOf(documents.get('docs/rules/exceptions.md') ?? '')
  const named = rulesNamedIn(testsAmong(readFiles('{src,test,tools}/**/*.ts')).values())
  let open = 0
  for (const [document, definitions] of Map.groupBy(ruleDocuments(documents), ({ document }) => document)) {
    const coverage = coverageOf(definitions, named, exceptions)
    open += coverage.open.length
    process.stdout.write(
      `${document}: ${definitions.length} rules, ${coverage.named.length} named by tests, ` +
        `${coverage.argued.length} argued exceptions, ${coverage.open.length} open\n`,
    )
    for (const id of coverage.open) process.stdout.write(`  ${id}\n`)
    if (process.argv.includes('--all'))
      for (const id of coverage.argued) process.stdout.write(`  ${id} (exception: ${exceptionFor(id, exceptions)})\n`)
  }
  return open === 0 ? 0 : 1
}

if (import.meta.main) process.exit(main())
