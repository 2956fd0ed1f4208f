// Which kubectl are there to test with? HAWSER_KUBECTL (paths separated by colons), else the one in PATH.
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

export function kubectlBinaries(): readonly string[] {
  return (process.env['HAWSER_KUBECTL']?.split(':') ?? fromPath('kubectl')).filter(executable)
}

function fromPath(name: string): readonly string[] {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((directory) => join(directory, name))
    .filter(executable)
    .slice(0, 1)
}

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
