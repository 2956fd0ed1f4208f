// What does a Secret hold? Its values as text: the API has them in base64.
import type { Secret } from './generated/types.ts'

export function secretTexts(secret: Pick<Secret, 'data'>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]),
  )
}
