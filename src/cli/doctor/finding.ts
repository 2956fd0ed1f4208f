// What does the doctor say? One finding per look: fine, worth knowing, or wrong, with the command that mends it.

export interface Finding {
  readonly level: 'ok' | 'warn' | 'problem'
  readonly about: string
  readonly text: string
  /** The command (or change) that helps. */
  readonly fix?: string
}

export const ok = (about: string, text: string): Finding => ({ level: 'ok', about, text })
export const warn = (about: string, text: string, fix?: string): Finding => finding('warn', about, text, fix)
export const problem = (about: string, text: string, fix?: string): Finding => finding('problem', about, text, fix)

function finding(level: Finding['level'], about: string, text: string, fix: string | undefined): Finding {
  return { level, about, text, ...(fix === undefined ? {} : { fix }) }
}
