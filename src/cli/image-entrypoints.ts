// What does --image-entrypoint say? Which program an image stands for; a program that nobody could run is refused at once.
import { accessSync, constants, statSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import type { ImageEntrypoint } from '../installation/config.ts'
import { UsageError } from '../installation/config.ts'

const example = '--image-entrypoint "registry.k8s.io/e2e-test-images/agnhost=/usr/local/bin/agnhost pause"'

export function parseImageEntrypoints(given: readonly string[]): readonly ImageEntrypoint[] {
  const found = given.map(parseImageEntrypoint)
  for (const [index, { image }] of found.entries())
    if (found.findIndex((each) => each.image === image) !== index)
      throw new UsageError(`--image-entrypoint names image ${image} twice`, 'name one program for each image')
  return found
}

/** At the first "=": a reference holds none before its program. */
function parseImageEntrypoint(given: string): ImageEntrypoint {
  const cut = given.indexOf('=')
  const image = given.slice(0, Math.max(cut, 0))
  const [program = '', ...defaultArgs] = given
    .slice(cut + 1)
    .split(/\s+/)
    .filter(Boolean)
  if (image === '' || /\s/.test(image) || program === '')
    throw new UsageError(`--image-entrypoint takes IMAGE=PATH, not "${given}"`, example)
  const problem = programProblem(program)
  if (problem !== undefined) throw new UsageError(`--image-entrypoint ${image}=${program}: ${problem}`, example)
  return { image, program, defaultArgs }
}

function programProblem(path: string): string | undefined {
  if (!isAbsolute(path)) return 'the program must be an absolute path'
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) return 'there is no such file on this machine'
  if (!found.isFile()) return 'that is not a file'
  try {
    accessSync(path, constants.X_OK)
  } catch {
    return 'that file may not be executed; make it executable: chmod +x'
  }
  return undefined
}
