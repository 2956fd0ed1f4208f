// Does each file say what question it answers, and do comments and test names speak in words?
import { isTest } from './tree.ts'

const id = /[A-Z]{1,8}-\d+[a-z]?/.source

/** Tests speak through their names; every other file begins with a comment. */
export function missingHeader(file: string, text: string): string[] {
  const fine = text.startsWith('//') || text.startsWith('#!') || isTest(file)
  return fine ? [] : [`${file}: no comment on top says what question it answers`]
}

/** A comment states its rule in words; an id alone tells a reader nothing. */
export function idOnlyComments(file: string, text: string): string[] {
  const joined = `(?:${id}(?:[ ,;…–]|and|to|\\.\\.)*)+`
  const pattern = new RegExp(`^\\s*(?://|/\\*\\*?|\\*)\\s*${joined}[.:]?\\s*(?:\\*/)?$|\\S\\s+//\\s*${joined}[.:]?$`)
  return text
    .split('\n')
    .flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1}: this comment is only a rule's id`] : []))
}

/** A test's name is a sentence; ids may stand at its end. Rows of a table become names, so they count, too. */
export function idFirstNames(file: string, text: string): string[] {
  const pattern = new RegExp(`(['"\`])${id}(?:(?:,? | … |–|/)${id})*[:,]? (?!…)[^'"\`]*[a-z]`)
  return text
    .split('\n')
    .flatMap((line, index) =>
      pattern.test(line) && !/\b(SHA|UTF|RFC|DNS)-\d/.test(line)
        ? [`${file}:${index + 1}: a name that begins with a rule's id; put the id at its end`]
        : [],
    )
}
