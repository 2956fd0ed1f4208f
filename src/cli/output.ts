// How is an answer shown? As a table by default, as json, yaml or names when asked; the same everywhere.
import { styleText } from 'node:util'
import { stringify } from 'yaml'
import type { Context } from './context.ts'

export type OutputForm = 'table' | 'wide' | 'json' | 'yaml' | 'name'

export const outputFlag = {
  kind: 'enum',
  values: ['table', 'wide', 'json', 'yaml', 'name'],
  default: 'table',
  brief: 'Output format',
} as const

/** Columns as wide as their widest cell, three spaces between, nothing behind the last. */
export function table(headers: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = headers.length > 0 ? [headers, ...rows] : [...rows]
  const columns = Math.max(0, ...all.map((row) => row.length))
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...all.map((row) => (row[column] ?? '').length)),
  )
  return all
    .map((row) =>
      row
        .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column]! + 3)))
        .join('')
        .trimEnd(),
    )
    .join('\n')
}

export function json(value: unknown): string {
  return JSON.stringify(value, null, 2)
}

export function yaml(value: unknown): string {
  return stringify(value, { lineWidth: 0 })
}

export type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan'

export function paint(context: Context, style: Style, text: string): string {
  return context.color ? styleText(style, text, { validateStream: false }) : text
}

/** 850 ms, 2.3 s, 4 min, 3 h, 2 d: as short as a person would say it. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} d`
}
