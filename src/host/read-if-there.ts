// What does a file say that may not exist? Its text, or nothing; every other failure stays one.
import type { Files } from './host.ts'
import { hasCode } from './host-error.ts'

export async function readIfThere(files: Files, path: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    return await files.readText(path, signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }
}
