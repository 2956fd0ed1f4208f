// A test report that a person reads to the end: failures and loud skips in full, then one line of counts.
import type { TestEvent } from 'node:test/reporters'

export default async function* quietReporter(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const counts = { passed: 0, failed: 0, skipped: 0 }
  const started = performance.now()
  for await (const event of source) {
    if (event.type === 'test:pass' && event.data.details?.type !== 'suite') {
      if (event.data.skip !== undefined || event.data.todo !== undefined) {
        counts.skipped++
        yield `SKIPPED ${event.data.file ?? ''} ${event.data.name}: ${String(event.data.skip ?? event.data.todo)}\n`
      } else counts.passed++
    }
    if (event.type === 'test:fail') {
      const { details, name, file, line } = event.data
      if (isSuite(details)) continue
      counts.failed++
      yield `\nFAILED ${file ?? ''}:${line ?? ''} ${name}\n${indent(describe(details.error))}\n`
    }
    if (event.type === 'test:stderr') yield event.data.message
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  yield `in ${seconds} s\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`
}

/** A failing file or suite repeats what its tests said; only tests count. */
function isSuite(details: { readonly type?: string; readonly error: Error & { failureType?: string } }): boolean {
  return details.type === 'suite' || details.error.failureType === 'subtestsFailed'
}

/** The runner wraps what a test threw; what that was caused by, and so on, is told below it. */
function describe(error: Error): string {
  const thrown = error.cause instanceof Error ? error.cause : error
  const lines: string[] = []
  for (let each: unknown = thrown; each instanceof Error && lines.length < 5; each = each.cause)
    lines.push(`${lines.length === 0 ? '' : 'caused by '}${each.stack ?? each.message}`)
  return lines.join('\n')
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '    ')
}
