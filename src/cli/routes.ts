// How is the help of commands shown? As Stricli writes it, but no line is wider than a terminal.
import { buildRouteMap } from '@stricli/core'
import type { RouteMap, RouteMapBuilderArguments } from '@stricli/core'
import type { Context } from './context.ts'

type Options = RouteMapBuilderArguments<string, Context>

/** A group of commands whose help fits. */
export function buildRoutes(options: Options): RouteMap<Context> {
  const routes = Object.entries(options.routes).map(([name, target]) => [name, narrow(target)] as const)
  return narrow(buildRouteMap<string, Context>({ ...options, routes: Object.fromEntries(routes) }))
}

function narrow<T extends Options['routes'][string]>(target: T): T {
  return {
    ...target,
    formatHelp: (args: Parameters<T['formatHelp']>[0]) => fitHelp(target.formatHelp(args), helpWidth),
  }
}

const helpWidth = 96

/**
 * Long lines continue below: a row of a table in its last column, other text where the line began. What is left of a line of prose
 * begins the next line of its paragraph.
 */
export function fitHelp(text: string, width: number): string {
  const fitted: string[] = []
  let rest = ''
  for (const line of text.split('\n')) {
    const flows = isProse(line)
    if (rest !== '' && !flows) fitted.push(rest)
    const whole = rest !== '' && flows ? `${rest} ${line}` : line
    rest = ''
    if (whole.length <= width) {
      fitted.push(whole)
      continue
    }
    const lines = fold(whole, width)
    if (flows) rest = lines.pop() ?? ''
    fitted.push(...lines)
  }
  return (rest === '' ? fitted : [...fitted, rest]).join('\n')
}

const isProse = (line: string) => /^\S/.test(line)

/** A flag or a command, a gap, what it is for. */
const row = /^(\s+\S.*?\s{2,})(\S.*)$/

function fold(line: string, width: number): string[] {
  const [, before, rest] = row.exec(line) ?? []
  const start = before ?? /^\s*/.exec(line)![0]
  const indent = ' '.repeat(start.length)
  const lines: string[] = []
  let current = start
  let isEmpty = true
  for (const word of wordsOf(rest ?? line.trim())) {
    if (!isEmpty && current.length + 1 + word.length > width) {
      lines.push(current)
      ;[current, isEmpty] = [indent, true]
    }
    current += isEmpty ? word : ` ${word}`
    isEmpty = false
  }
  return [...lines, current]
}

/** A default, `[default = 120]`, is one word. */
const wordsOf = (text: string) => text.match(/\S*\[[^\]]*\]\S*|\S+/g) ?? []
