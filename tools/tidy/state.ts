// Does a module keep state of its own? Two clusters in one process would share it, and a test would inherit it.

const mutations = 'push|pop|shift|unshift|splice|sort|reverse|fill|set|add|delete|clear'

const member = String.raw`(?:\[[^\]]+\]|\.\w+)`

/**
 * Finds `let`, static members of classes, collections whose type allows changes, empty literals, and constants that the
 * file itself changes, at any depth.
 */
export function moduleState(file: string, text: string): string[] {
  const lines = text.split('\n')
  return lines.flatMap((line, index) => {
    const at = `${file}:${index + 1}`
    if (/^(?:export )?(?:let|var) /.test(line)) return [`${at}: a module-level variable; pass it in or return it`]
    if (/^\s+(?:public |private )?static #?\w+(?::[^=(]+)? = /.test(line))
      return [`${at}: a static member is module state`]
    const [, name, type, value] = /^(?:export )?const (\w+)(?:: ([^=]+?))? = (.*)$/.exec(line) ?? []
    if (name === undefined || value === undefined) return []
    const isReadonly = /^(?:Readonly|readonly )/.test(type ?? '')
    if (!isReadonly && /^(?:new (?:Map|Set|WeakMap|WeakSet|Array)\b|\[\]$|\{\}$)/.test(value))
      return [`${at}: ${name} can be changed; type it Readonly… or keep it in a createX function`]
    const changed = new RegExp(
      `(?<![.\\w])${name}${member}*(?:\\.(?:${mutations})\\(|${member}(?: (?:[+-]|\\?\\?|\\|\\|)?= |\\+\\+|--))`,
    )
    const isInstance = /^(?:new |\[|\{)/.test(value)
    return isInstance && lines.some((other) => changed.test(other)) ? [`${at}: ${name} is changed in this module`] : []
  })
}
