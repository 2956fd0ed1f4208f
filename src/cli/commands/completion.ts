// `hawser completion`: a line for the shell's start file; the shell then asks `hawser __complete` for proposals.
import { buildCommand, proposeCompletions } from '@stricli/core'
import type { Application, Command } from '@stricli/core'
import { connectionTyped } from '../completions.ts'
import type { Context } from '../context.ts'

const scripts = {
  bash: [
    '_hawser() {',
    "  local IFS=$'\\n'",
    '  COMPREPLY=($(hawser __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))',
    '}',
    'complete -o default -F _hawser hawser',
  ],
  zsh: [
    '#compdef hawser',
    '_hawser() { local -a found; found=("${(@f)$(hawser __complete -- "${words[@]:1:$((CURRENT-1))}" 2>/dev/null)}"); compadd -a found }',
    'compdef _hawser hawser',
  ],
  fish: ["complete -c hawser -f -a '(hawser __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'"],
} as const

export const completion = buildCommand<NonNullable<unknown>, ['bash' | 'zsh' | 'fish'], Context>({
  docs: {
    brief: 'Print completion for a shell',
    fullDescription: [
      'Examples:',
      '  source <(hawser completion bash)',
      '  hawser completion fish > ~/.config/fish/completions/hawser.fish',
    ].join('\n'),
  },
  parameters: {
    positional: {
      kind: 'tuple',
      parameters: [{ parse: shellFrom, placeholder: 'bash|zsh|fish', brief: 'Shell' }],
    },
  },
  func(_flags, shell) {
    this.print(scripts[shell].join('\n'))
  },
})

/** Hidden: proposals for the words typed so far, one per line. */
export function createComplete(application: () => Promise<Application<Context>>): Command<Context> {
  return buildCommand<NonNullable<unknown>, string[], Context>({
    docs: { brief: 'Propose completions (used by shells)' },
    parameters: { positional: { kind: 'array', parameter: { parse: String, brief: 'Words so far' } } },
    async func(_flags, ...words) {
      const typed = connectionTyped(words)
      const context = { ...this, typed }
      const proposals = await proposeCompletions(await application(), words.length === 0 ? [''] : words, context)
      for (const { completion: text } of proposals) this.print(text)
    },
  })
}

function shellFrom(text: string): 'bash' | 'zsh' | 'fish' {
  if (text === 'bash' || text === 'zsh' || text === 'fish') return text
  throw new SyntaxError(`"${text}" is not one of bash, zsh, fish`)
}
