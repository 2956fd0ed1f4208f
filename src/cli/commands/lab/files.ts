// Which files does a report have, and how are they written?
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { junitReport } from '../../../lab/reports/junit.ts'
import { keptReport } from '../../../lab/reports/json.ts'
import { markdownReport } from '../../../lab/reports/markdown.ts'
import type { LabReport } from '../../../lab/report.ts'
import { json } from '../../output.ts'

export const reportFile = 'report.json'

/** All forms of the report; the directory is made. */
export function writeReport(directory: string, report: LabReport): readonly string[] {
  const files: readonly (readonly [string, string])[] = [
    [reportFile, `${json(keptReport(report))}\n`],
    ['junit.xml', junitReport(report)],
    ['report.md', markdownReport(report)],
  ]
  mkdirSync(directory, { recursive: true })
  for (const [name, text] of files) writeFileSync(join(directory, name), text)
  return files.map(([name]) => name)
}
