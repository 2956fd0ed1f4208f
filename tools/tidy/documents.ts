// Does each folder have a README that fits a screen, and does every link and file name in a document lead somewhere?
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { mayImport } from '../import-rules.ts'
import { root } from './tree.ts'
import type { Files } from './tree.ts'

const longestReadme = 24

/** Every folder directly below src. */
export function readmeProblems(sources: Files, documents: Files): string[] {
  const inSrc = [...sources.keys()].filter((file) => /^src\/[^/]+\//.test(file))
  const folders = new Set(inSrc.map((file) => file.split('/').slice(0, 2).join('/')))
  return [...folders].flatMap((folder) => {
    const text = documents.get(`${folder}/README.md`)
    if (text === undefined) return [`${folder}: no README.md`]
    const length = text.trimEnd().split('\n').length
    return length > longestReadme
      ? [`${folder}/README.md: ${length} lines; a folder's README fits a screen (${longestReadme})`]
      : []
  })
}

/** "May import: `a`, `b`." in a README of src says what the table says. */
export function importListProblems(document: string, text: string, table: typeof mayImport): string[] {
  const [, folder = ''] = /^src\/([^/]+)\/README\.md$/.exec(document) ?? []
  const allowed = table[folder]
  if (allowed === undefined || allowed.includes('*')) return []
  const [, list] = /May import: ([^.;]*)/.exec(text) ?? []
  if (list === undefined) return [`${document}: no line "May import: …" (tools/import-rules.ts)`]
  const said = [...list.matchAll(/`([\w-]+)`/g)].map(([, name]) => name!)
  return said.toSorted().join() === allowed.toSorted().join()
    ? []
    : [
        `${document}: may import ${allowed.join(', ') || 'nothing'} (tools/import-rules.ts), but names ${said.join(', ')}`,
      ]
}

export function brokenLinks(document: string, text: string): string[] {
  return [...text.replaceAll(/```[\s\S]*?```/g, '').matchAll(/\]\(([^)\s]+)\)/g)]
    .map((match) => match[1]!.split('#')[0]!)
    .filter((link) => link !== '' && !/^[a-z]+:/.test(link))
    .filter((link) => !existsSync(resolve(root, dirname(document), link)))
    .map((link) => `${document}: broken link ${link}`)
}

/** Files that a README of src names in backticks: below its folder, beside it (`../x.ts`), or from src or the root on. */
export function unknownFiles(document: string, text: string, sources: Files): string[] {
  if (!/^src\/.*README\.md$/.test(document)) return []
  const folder = dirname(document)
  const isKnown = (name: string) =>
    name.startsWith('../')
      ? sources.has(join(folder, name))
      : sources.has(name) ||
        sources.has(`src/${name}`) ||
        [...sources.keys()].some((file) => file.startsWith(`${folder}/`) && file.endsWith(`/${name}`))
  return [...text.matchAll(/`([\w./-]+\.ts)`/g)]
    .map((match) => match[1]!)
    .filter((name) => !isKnown(name))
    .map((name) => `${document}: there is no file ${name}`)
}
