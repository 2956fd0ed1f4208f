// What is there to say about one cause? The same words for `hawser why` and for its page in docs/symptoms.

export interface CauseText {
  /** The symptom, as a person would put it; the page's title. */
  readonly title: string
  /** One sentence; {pod}, {container}, {claim}, {volume}, {node}, {holder}, {class}, {driver}, {namespace} are filled in; a part in [brackets] goes if a name is missing. */
  readonly sentence: string
  /** For the page: what is going on, and why it is so. */
  readonly meaning: string
  /** What ends it without anybody's help, or that nothing does. */
  readonly ends: string
  /** Safe commands, each with what it is good for. */
  readonly hints: readonly (readonly [command: string, purpose: string])[]
}

export type CauseTable = Readonly<Record<string, CauseText>>
